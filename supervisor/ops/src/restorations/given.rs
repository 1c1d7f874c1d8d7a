//! The parts of inputs that the records do not have and the client gives: redacted values, arguments, the text of sent files. What
//! is missing, and what had effects outside of the session, is refused before anything runs, with a list.

use super::plan::RepeatedInputs;
use super::{incomplete, too_many};
use crate::errors::{invalid, stored};
use crate::{executions, redact};
use serde_json::{Map, Value};
use std::collections::HashMap;
use uuid::Uuid;
use vm_system_core::{ExecuteRequest, Source};
use vm_system_protocol::control::{ErrorCode, GivenInput, INTERACTIVE_INPUT, OpError, TYPESCRIPT_INPUT};
use vm_system_protocol::counted::counted;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionKind, Session};
use vm_system_protocol::worker::SourceFormat;
use vm_system_record::{ExecutionRow, RepeatFacts, Scope};
use vm_system_store::StoreHandle;

/// Most inputs for which a client gives something.
const GIVEN: usize = 10_000;
/// Inputs that an error lists.
const LISTED: usize = 100;

/// By the number of the input.
#[derive(Debug)]
pub(super) struct GivenInputs(HashMap<u64, GivenInput>);

impl GivenInputs {
    pub(super) fn new(inputs: Vec<GivenInput>, most: usize) -> Result<Self, OpError> {
        if inputs.len() > GIVEN {
            return Err(too_many("given inputs"));
        }
        let mut by_number = HashMap::with_capacity(inputs.len());
        for given in inputs {
            let number = given.input;
            if number == 0 || number > most as u64 {
                return Err(invalid(format!("there is no input {number}: the session has {most} to repeat")));
            }
            if by_number.insert(number, given).is_some() {
                return Err(invalid(format!("input {number} is given twice")));
            }
        }
        Ok(Self(by_number))
    }

    /// Refuses what cannot be repeated, and what may not be repeated without a request.
    pub(super) async fn check(
        &self,
        store: &StoreHandle,
        plan: &RepeatedInputs,
        repeat_effects: bool,
        ended: &Session,
    ) -> Result<(), OpError> {
        let (mut missing, mut effects) = (Listed::default(), Listed::default());
        for (number, id) in (1..).zip(&plan.inputs) {
            let row = row_of(store, *id).await?;
            let Some(row) = row else {
                return Err(incomplete(ended.id, "the record of some of its inputs was deleted"));
            };
            let (_, needs) = self.request(number, &row)?;
            if !needs.is_empty() {
                missing.add(serde_json::json!({ "input": number, "execution_id": id, "needs": needs }));
            }
            let had = effects_of(&row);
            if !had.is_empty() && !repeat_effects {
                effects.add(serde_json::json!({ "input": number, "execution_id": id, "effects": had }));
            }
        }
        if effects.count > 0 {
            let message = format!(
                "{} had effects outside of the session: {}",
                counted(effects.count, "input"),
                effects.text()
            );
            return Err(OpError::new(ErrorCode::Conflict, message)
                .with_details(&serde_json::json!({ "inputs": effects.shown, "count": effects.count }))
                .with_hint("`repeat_effects` (--repeat-effects) repeats them, too"));
        }
        if missing.count > 0 {
            let message = format!(
                "the record of {} is not complete: {}",
                counted(missing.count, "input"),
                missing.text()
            );
            return Err(OpError::new(ErrorCode::ValidationError, message)
                .with_details(&serde_json::json!({ "inputs": missing.shown, "count": missing.count }))
                .with_hint(
                    "give it in `inputs` (--inputs FILE): [{\"input\": 1, \"args\": {…}, \"env\": {…}, \"argv\": […], \
                     \"source\": \"…\"}]",
                ));
        }
        Ok(())
    }

    /// The request that repeats an input, and what is missing for it.
    pub(super) fn request(
        &self,
        number: u64,
        row: &ExecutionRow,
    ) -> Result<(ExecuteRequest, Vec<String>), OpError> {
        let (record, facts) = (&row.execution, row.facts);
        let given = self.0.get(&number);
        let mut needs = Vec::new();
        let mut args = record.args.to_value().unwrap_or_default();
        if let Some(patch) = given.and_then(|given| given.args.as_ref()) {
            let patch = patch.to_value().filter(Value::is_object);
            let patch = patch.ok_or_else(|| invalid(format!("args of input {number} is not an object")))?;
            merge(&mut args, patch);
        }
        redact::find_redacted("args", &args, &mut needs);
        let mut env: Map<String, Value> = match record.env.to_value() {
            Some(Value::Object(env)) => env,
            _ => Map::new(),
        };
        for (name, value) in given.map(|given| given.env.as_slice()).unwrap_or_default() {
            env.insert(name.clone(), Value::from(value.as_str()));
        }
        let env_value = Value::Object(env);
        redact::find_redacted("env", &env_value, &mut needs);
        let env: Vec<(String, String)> = match env_value {
            Value::Object(env) => env
                .into_iter()
                .map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned()))
                .collect(),
            _ => Vec::new(),
        };
        let argv = match given.and_then(|given| given.argv.clone()) {
            Some(argv) => argv,
            None if facts.has(RepeatFacts::ARGV) => {
                needs.push("argv".to_owned());
                Vec::new()
            }
            None => Vec::new(),
        };
        let source = source_of(row, given.and_then(|given| given.source.clone())).unwrap_or_else(|| {
            needs.push("source".to_owned());
            Source::Text { text: String::new(), file_name: String::new(), format: None }
        });
        let text = JsonText::from_value(&args);
        executions::check_inputs(&text, &env, &argv)
            .map_err(|error| invalid(format!("input {number}: {}", error.message)))?;
        let request = ExecuteRequest {
            id: ExecutionId::from_uuid(Uuid::now_v7()),
            kind: record.kind,
            source,
            recorded_args: redact::args(&text, &args),
            recorded_env: redact::env(&env),
            args: text,
            env,
            argv,
            wait: true,
            collect_events: false,
            stored_first: false,
        };
        Ok((request, needs))
    }
}

/// The recorded source; `None`: it is not recorded.
fn source_of(row: &ExecutionRow, given: Option<String>) -> Option<Source> {
    let (record, facts) = (&row.execution, row.facts);
    if record.kind == ExecutionKind::Repl {
        let text = record.input.clone()?;
        let (file_name, format) = if facts.has(RepeatFacts::TYPESCRIPT) {
            (TYPESCRIPT_INPUT, SourceFormat::TypeScript)
        } else if facts.has(RepeatFacts::INTERACTIVE) {
            (INTERACTIVE_INPUT, SourceFormat::Script)
        } else {
            ("repl", SourceFormat::Script)
        };
        return Some(Source::Text { text, file_name: file_name.to_owned(), format: Some(format) });
    }
    let path = record.path.clone().unwrap_or_default();
    match given {
        Some(text) => Some(Source::Text { text, file_name: path, format: None }),
        None if facts.has(RepeatFacts::SENT_SOURCE) => None,
        None => Some(Source::File { path, format: None }),
    }
}

/// The effects that an input had. A record of which a write was lost does not say.
fn effects_of(row: &ExecutionRow) -> Vec<&'static str> {
    let mut facts = row.facts;
    if row.execution.degraded {
        facts.add(RepeatFacts::UNKNOWN);
    }
    facts.effects()
}

/// The record of an execution, of any owner: its session's owner was checked.
pub(super) async fn row_of(store: &StoreHandle, id: ExecutionId) -> Result<Option<ExecutionRow>, OpError> {
    let row = store.execution(&Scope::All, id).await.map_err(stored)?;
    Ok(row.map(|row| *row))
}

/// JSON merge patch (RFC 7396). Recursion is bounded: the parser accepts at most 128 levels.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// The first entries of a list, and how many there are.
#[derive(Default)]
struct Listed {
    shown: Vec<Value>,
    count: u64,
}

impl Listed {
    fn add(&mut self, entry: Value) {
        self.count += 1;
        if self.shown.len() < LISTED {
            self.shown.push(entry);
        }
    }

    /// The first entries as text.
    fn text(&self) -> String {
        const IN_TEXT: usize = 10;
        let one = |entry: &Value| {
            let names = entry.get("needs").or_else(|| entry.get("effects")).and_then(Value::as_array);
            let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
            format!("input {} ({})", entry["input"], names.join(", "))
        };
        let mut texts: Vec<String> = self.shown.iter().take(IN_TEXT).map(one).collect();
        if self.count > texts.len() as u64 {
            texts.push(format!("and {} more", self.count - texts.len() as u64));
        }
        texts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::{Listed, merge};
    use serde_json::json;

    #[test]
    fn a_patch_replaces_redacted_values_and_keeps_the_others() {
        let mut args = json!({ "a": 1, "deep": { "secret": "[redacted]", "b": 2 }, "c": 3 });
        merge(&mut args, json!({ "deep": { "secret": "x" }, "c": null }));
        assert_eq!(args, json!({ "a": 1, "deep": { "secret": "x", "b": 2 } }));
    }

    #[test]
    fn a_long_list_says_how_much_it_leaves_out() {
        let mut listed = Listed::default();
        for number in 1..=200 {
            listed.add(json!({ "input": number, "effects": ["files"] }));
        }
        assert_eq!((listed.count, listed.shown.len()), (200, 100));
        let text = listed.text();
        assert!(text.starts_with("input 1 (files), ") && text.ends_with("and 190 more"), "{text}");
    }
}
