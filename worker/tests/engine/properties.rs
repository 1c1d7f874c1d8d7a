//! Random declarations against a model, and random values against JavaScript's own view of them.

use crate::harness::{Engine, json_of, value_of};
use proptest::prelude::*;
use std::collections::HashMap;
use vm_system_protocol::limits::EVENT_TEXT_BYTES;
use vm_system_protocol::worker::Outcome;

/// One statement of a repl input.
#[derive(Debug, Clone)]
enum Statement {
    Let(char, i32),
    Const(char, i32),
    Var(char, i32),
    Class(char),
    Function(char, i32),
    Assign(char, i32),
    Add(char, i32),
}

#[derive(Debug, Clone, PartialEq)]
enum Meaning {
    Number(i32, bool),
    Class,
    Function(i32),
    /// A text; the model does not track its value.
    Text,
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let name = || prop_oneof![Just('a'), Just('b'), Just('c')];
    let number = || -99..99_i32;
    let statement = prop_oneof![
        (name(), number()).prop_map(|(name, number)| Statement::Let(name, number)),
        (name(), number()).prop_map(|(name, number)| Statement::Const(name, number)),
        (name(), number()).prop_map(|(name, number)| Statement::Var(name, number)),
        name().prop_map(Statement::Class),
        (name(), number()).prop_map(|(name, number)| Statement::Function(name, number)),
        (name(), number()).prop_map(|(name, number)| Statement::Assign(name, number)),
        (name(), number()).prop_map(|(name, number)| Statement::Add(name, number)),
    ];
    proptest::collection::vec(statement, 1..20)
}

impl Statement {
    fn source(&self) -> String {
        match self {
            Self::Let(name, number) => format!("let {name} = {number}"),
            Self::Const(name, number) => format!("const {name} = {number}"),
            Self::Var(name, number) => format!("var {name} = {number}"),
            Self::Class(name) => format!("class {name} {{}}"),
            Self::Function(name, number) => format!("function {name}() {{ return {number} }}"),
            Self::Assign(name, number) => format!("{name} = {number}; undefined"),
            Self::Add(name, number) => format!("{name} += {number}; undefined"),
        }
    }

    /// Applies the statement to the model; returns the message of the exception if it throws.
    fn apply(&self, model: &mut HashMap<char, Meaning>) -> Option<String> {
        let constant = "TypeError: Assignment to constant variable.".to_owned();
        match *self {
            Self::Let(name, number) | Self::Var(name, number) => {
                model.insert(name, Meaning::Number(number, false));
            }
            Self::Const(name, number) => {
                model.insert(name, Meaning::Number(number, true));
            }
            Self::Class(name) => {
                model.insert(name, Meaning::Class);
            }
            Self::Function(name, number) => {
                model.insert(name, Meaning::Function(number));
            }
            Self::Assign(name, number) => match model.get(&name) {
                Some(Meaning::Number(_, true)) => return Some(constant),
                _ => {
                    model.insert(name, Meaning::Number(number, false));
                }
            },
            Self::Add(name, number) => match model.get(&name) {
                None => return Some(format!("ReferenceError: {name} is not defined")),
                Some(Meaning::Number(_, true)) => return Some(constant),
                Some(Meaning::Number(old, false)) => {
                    let sum = old + number;
                    model.insert(name, Meaning::Number(sum, false));
                }
                Some(_) => {
                    model.insert(name, Meaning::Text);
                }
            },
        }
        None
    }
}

/// An expression; the engine has to show its value.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("({number:e})").replace("inf", "Infinity")),
        "[ -~é日]{0,40}".prop_map(|text| format!("{text:?}").replace("\\'", "'")),
        Just("null".to_owned()),
        Just("undefined".to_owned()),
        Just("true".to_owned()),
        Just("10n".to_owned()),
        Just("Symbol('s')".to_owned()),
        Just("-0".to_owned()),
        Just("new Date(0)".to_owned()),
        Just("/r/g".to_owned()),
        Just("(() => 1)".to_owned()),
        Just("class K {}".to_owned()).prop_map(|class| format!("({class})")),
        Just("new Uint8Array([1, 2])".to_owned()),
        Just("new Proxy({}, { get() { calls++ }, ownKeys() { calls++; return [] } })".to_owned()),
        Just("{ get g() { calls++; return 1 } }".to_owned()).prop_map(|object| format!("({object})")),
        Just("{ toJSON() { calls++; return 1 } }".to_owned()).prop_map(|object| format!("({object})")),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            proptest::collection::vec(("[a-z]{1,12}", inner.clone()), 0..8).prop_map(|fields| {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("'{name}': {value}")).collect();
                format!("({{ {} }})", fields.join(", "))
            }),
            inner.clone().prop_map(|value| format!("new Map([[1, {value}], [{value}, 2]])")),
            inner.clone().prop_map(|value| format!("new Set([{value}])")),
            inner.clone().prop_map(|value| format!("Object.assign(Object.create(null), {{ n: {value} }})")),
            inner.clone().prop_map(|value| format!("((o) => (o.self = o))({{ v: {value} }})")),
            inner.clone().prop_map(|value| format!("new (class P {{ x = {value} }})()")),
            inner.prop_map(|value| format!("[, {value}, ,]")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn declarations_and_assignments_follow_the_model(statements in statements()) {
        let mut engine = Engine::new();
        let mut model = HashMap::new();
        for statement in &statements {
            let source = statement.source();
            let done = engine.repl(&source);
            if let Some(message) = statement.apply(&mut model) {
                prop_assert_eq!(done.outcome, Outcome::Exception { message }, "{}", source);
            } else {
                prop_assert_eq!(done.outcome, Outcome::Ok, "{}: {:?}", source, done.events);
            }
            for (name, meaning) in &model {
                let shown = match meaning {
                    Meaning::Number(number, _) => engine.value(&name.to_string()).parse::<i32>().ok() == Some(*number),
                    Meaning::Text => engine.value(&format!("typeof {name}")) == "'string'",
                    Meaning::Class => engine.value(&name.to_string()) == format!("[class {name}]"),
                    Meaning::Function(number) => engine.value(&format!("{name}()")) == number.to_string(),
                };
                prop_assert!(shown, "{} after {}", name, source);
            }
        }
    }

    #[test]
    fn any_value_is_shown_without_running_its_code_and_has_its_json(expression in expression()) {
        let mut engine = Engine::new();
        engine.value("var calls = 0; var value");
        let done = engine.repl(&format!("value = {expression}; calls = 0; value"));
        prop_assert_eq!(&done.outcome, &Outcome::Ok, "{}: {:?}", expression, done.events);
        let (_, preview, json) = value_of(&done).expect("a value");
        prop_assert!(!preview.is_empty() && preview.len() <= EVENT_TEXT_BYTES);
        prop_assert_eq!(engine.value("console.log(value); console.log('%s %o %j %d', value, value, value, value); console.table(value); calls"), "0");
        if let Some(json) = json {
            let done = engine.repl("JSON.stringify(value)");
            let text: String = serde_json::from_str(&json_of(&done)).expect("a string");
            prop_assert_eq!(json, text);
        }
    }

    #[test]
    fn any_text_runs_or_is_refused_and_the_session_continues(source in "[ -~\\n]{0,60}|(let|const|class|await|\\{|\\}|\\(|\\)|;|=|x|1| |\\n|=>|function|async|`|'|/){0,30}") {
        let mut engine = Engine::with_limits(crate::harness::limits(|limits| limits.cpu_ms = 300));
        engine.repl(&source);
        // The text may have replaced anything but the ability to run the next one.
        prop_assert_eq!(engine.repl("void 0").outcome, Outcome::Ok, "{}", source);
    }
}
