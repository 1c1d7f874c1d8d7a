//! Accepted schemas, values that fit them, and the bounded time of hostile schemas.

use super::Schema;
use super::judge::{Judge, PATH_BYTES, SchemaMismatch, ValuePath};
use super::patterns::CompiledPattern;
use serde_json::{Value, json};

#[track_caller]
fn judged(schema: &Value, value: &Value) -> Result<(), String> {
    Schema::new(&schema.to_string()).expect("a schema").fits(value)
}

#[test]
fn each_keyword_constrains_values() {
    let numbers =
        json!({ "$defs": { "n": { "type": "number" } }, "type": "array", "items": { "$ref": "#/$defs/n" } });
    let tree = json!({ "type": "object", "properties": { "v": {}, "kids": { "items": { "$ref": "#" } } },
        "required": ["v"], "additionalProperties": false });
    for (schema, fitting, unfit) in [
        (json!({ "type": ["string", "null"] }), json!(null), json!(1)),
        (json!({ "type": "integer" }), json!(2.0), json!(2.5)),
        (json!({ "enum": [1, [1, { "a": 2 }]] }), json!([1.0, { "a": 2.0 }]), json!([1])),
        (json!({ "const": { "a": 1 } }), json!({ "a": 1.0 }), json!({ "a": 1, "b": 1 })),
        (json!({ "minLength": 2, "maxLength": 2 }), json!("äö"), json!("a")),
        (json!({ "minimum": 1, "exclusiveMaximum": 2 }), json!(1), json!(2)),
        (json!({ "multipleOf": 3 }), json!(9), json!(10)),
        (json!({ "uniqueItems": true }), json!([1, 2]), json!([1, 1.0])),
        (
            json!({ "uniqueItems": true }),
            json!([{ "a": 1 }, { "b": 1 }]),
            json!([{ "a": 1, "b": 2 }, { "b": 2, "a": 1 }]),
        ),
        (
            json!({ "prefixItems": [{ "type": "string" }], "items": { "type": "number" } }),
            json!(["a", 1]),
            json!(["a", "b"]),
        ),
        (json!({ "contains": { "type": "null" } }), json!([1, null]), json!([1])),
        (
            json!({ "contains": { "type": "null" }, "minContains": 0, "maxContains": 1 }),
            json!([]),
            json!([null, null]),
        ),
        (json!({ "required": ["a"] }), json!({ "a": 1 }), json!({})),
        (json!({ "dependentRequired": { "a": ["b"] } }), json!({ "b": 1 }), json!({ "a": 1 })),
        (json!({ "properties": { "a": false } }), json!({ "b": 1 }), json!({ "a": 1 })),
        (json!({ "propertyNames": { "maxLength": 1 } }), json!({ "a": 1 }), json!({ "ab": 1 })),
        (
            json!({ "patternProperties": { "^n_": { "type": "number" } }, "additionalProperties": false }),
            json!({ "n_a": 1 }),
            json!({ "a": 1 }),
        ),
        (json!({ "pattern": "^\\d{4}-[A-Z]+$" }), json!("2026-AB"), json!("２０２６-AB")),
        (json!({ "pattern": "a[[&]b" }), json!("xa&b"), json!("ab")),
        (json!({ "pattern": "^(?<n>a|[(?i)])(?:b)\\(\\?i$" }), json!("?b(?i"), json!("Ab(?i")),
        (json!({ "pattern": "a\\Bb\\b" }), json!("ab!"), json!("abc")),
        (json!({ "anyOf": [{ "type": "string" }, { "minimum": 5 }] }), json!(5), json!(4)),
        (json!({ "oneOf": [{ "minimum": 1 }, { "minimum": 5 }] }), json!(1), json!(5)),
        (json!({ "allOf": [{ "minimum": 1 }, { "maximum": 5 }] }), json!(5), json!(6)),
        (json!({ "not": { "type": "string" } }), json!(1), json!("")),
        (
            json!({ "if": { "minimum": 10 }, "then": { "multipleOf": 10 }, "else": { "multipleOf": 2 } }),
            json!(20),
            json!(15),
        ),
        (numbers, json!([1, 2.5]), json!([1, "2"])),
        (
            tree,
            json!({ "v": 1, "kids": [{ "v": 2, "kids": [] }] }),
            json!({ "v": 1, "kids": [{ "kids": [] }] }),
        ),
        (json!(true), json!(1), Value::Null),
    ] {
        assert_eq!(judged(&schema, &fitting), Ok(()), "{schema} {fitting}");
        if schema != json!(true) {
            assert!(judged(&schema, &unfit).is_err(), "{schema} {unfit}");
        }
    }
    let deep = json!({ "properties": { "a": { "items": { "type": "number" } } } });
    assert_eq!(
        judged(&deep, &json!({ "a": [1, "x"] })),
        Err("answer.a[1] must be of type number".to_owned())
    );
}

#[test]
fn unknown_keywords_are_refused_by_name() {
    for (schema, expected) in [
        (json!({ "unevaluatedProperties": false }), "the keyword \"unevaluatedProperties\" is not supported"),
        (
            json!({ "properties": { "a": { "$dynamicRef": "#a" } } }),
            "the keyword \"$dynamicRef\" is not supported",
        ),
        (json!({ "items": { "$id": "b" } }), "the keyword \"$id\" is not supported"),
        (
            json!({ "$ref": "https://example.com/schema.json" }),
            "the reference \"https://example.com/schema.json\" cannot be resolved",
        ),
        (json!({ "$ref": "#/$defs/none" }), "cannot be resolved"),
        (json!({ "$ref": "#/properties/a", "properties": { "a": {} } }), "cannot be resolved"),
        (json!({ "pattern": "(?=a)b" }), "look-around and back-references are not supported"),
        (json!({ "pattern": "a(?i)b" }), "flags in it are not supported"),
        (json!({ "pattern": "a(?i:b)" }), "flags in it are not supported"),
        (json!({ "pattern": "(a)\\1" }), "look-around and back-references are not supported"),
        (json!({ "pattern": "((((a{1000}){1000}){1000}){1000})" }), "is too large"),
        (json!({ "type": "text" }), "\"type\" has an invalid value"),
        (json!({ "required": "a" }), "\"required\" has an invalid value"),
        (json!({ "patternProperties": { "(": {} } }), "cannot be used"),
        (json!(7), "a schema is an object"),
    ] {
        let why = Schema::check(&schema).expect_err("refused");
        assert!(why.contains(expected), "{schema}: {why}");
    }
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({ "not": deep });
    }
    assert!(Schema::check(&deep).is_err());
}

#[test]
fn schema_that_requires_unbounded_work_is_stopped_by_the_budget() {
    // 2^30 combinations.
    let mut definitions = serde_json::Map::new();
    for n in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        definitions.insert(format!("d{n}"), json!({ "anyOf": [next, next] }));
    }
    definitions.insert("d30".to_owned(), json!({ "type": "string" }));
    let ways = json!({ "$defs": definitions, "$ref": "#/$defs/d0" });
    assert!(judged(&ways, &json!(1)).expect_err("too much").contains("too long"));
    for circle in [
        json!({ "$ref": "#" }),
        json!({ "not": { "$ref": "#" } }),
        json!({ "anyOf": [{ "$ref": "#" }, true] }),
    ] {
        assert!(judged(&circle, &json!(1)).is_err(), "{circle}");
    }
    let wide = json!({ "items": { "enum": (0..2_000).collect::<Vec<_>>() } });
    let answer = Value::from(vec![1_999; 10_000]);
    assert!(judged(&wide, &answer).expect_err("too much").contains("too long"));
    let slow = json!({ "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$" });
    assert!(judged(&slow, &json!("a".repeat(100_000))).is_err());
    // A large honest answer is validated.
    let plain = json!({ "type": "array", "items": { "type": "number" } });
    assert_eq!(judged(&plain, &Value::from(vec![1; 1_000_000])), Ok(()));
}

/// The cost of an answer, and whether it fitted.
fn cost(schema: &Value, value: &Value) -> (u64, Result<(), String>) {
    let schema = Schema::new(&schema.to_string()).expect("a schema");
    let mut judge = Judge::new(&schema);
    let fits = judge.fits(&schema.root, value, &ValuePath::Top, 0).map_err(SchemaMismatch::into_words);
    (judge.spent(), fits)
}

#[test]
fn size_of_all_patterns_of_a_schema_is_bounded_before_they_are_compiled() {
    let refused = |schema: Value| Schema::check(&schema).expect_err("refused");
    let many = |pattern: &str, count: usize| {
        let list: Vec<Value> = (0..count).map(|n| json!({ "pattern": format!("{pattern}{n}") })).collect();
        json!({ "anyOf": list })
    };
    assert!(Schema::check(&many("\\p{L}", 16)).is_ok());
    assert!(refused(many("\\p{L}{16}", 16)).contains("is too large"));
    assert!(refused(many("(?:a{100}){100}", 20)).contains("is too large"));
    assert!(refused(many("\\p{L}", 40)).contains("more than 16 classes"));
    assert!(refused(many("a", 65)).contains("more than 64 patterns"));
    assert!(refused(many(&"a".repeat(4_000), 5)).contains("bytes of patterns"));
    assert!(refused(json!({ "pattern": "a".repeat(4_097) })).contains("bytes"));
    // One that is in many places counts once.
    let same = vec![json!({ "pattern": "^\\p{L}{1,20}$" }); 100];
    assert!(Schema::check(&json!({ "anyOf": same })).is_ok());
    for pattern in
        ["^[\\p{L} '.-]{1,50}$", "^.{0,2000}$", "^[^@\\s]{1,64}@[^@\\s]{1,255}$", "^(?:[0-9a-f]{2}){1,1024}$"]
    {
        let schema = Schema::new(&json!({ "pattern": pattern }).to_string()).expect(pattern);
        assert!(schema.pattern(pattern).is_some(), "{pattern} compiles");
        assert!(schema.bytes() > 1_000 && schema.bytes() < 4 << 20, "{pattern}: {}", schema.bytes());
    }
}

#[test]
fn patterns_are_compiled_when_an_answer_needs_them_and_once() {
    let schema = json!({ "properties": { "a": { "pattern": "^a+$" }, "b": { "pattern": "^b+$" } } });
    let schema = Schema::new(&schema.to_string()).expect("a schema");
    let compiled = || schema.patterns.values().filter(|pattern| pattern.get().is_some()).count();
    assert_eq!(compiled(), 0);
    assert_eq!(schema.fits(&json!({ "a": "aaa" })), Ok(()));
    assert_eq!(compiled(), 1);
    let first: *const CompiledPattern = schema.pattern("^a+$").expect("compiled");
    assert!(schema.fits(&json!({ "a": "b" })).is_err());
    assert!(std::ptr::eq(first, schema.pattern("^a+$").expect("compiled")));
}

#[test]
fn matching_costs_fuel_by_the_states_that_the_text_needs() {
    // Each byte of the text is another set of thousands of states.
    let hostile = json!({ "pattern": "^(?:[ab]*a[ab]{4000}c|x)$" });
    let mut random = 1_u32;
    let text: String = (0..200_000)
        .map(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if random >> 31 == 0 { 'a' } else { 'b' }
        })
        .collect();
    let (spent, fits) = cost(&hostile, &Value::from(text.clone()));
    assert!(fits.expect_err("it cannot be checked").contains("too many states"));
    assert!(spent > text.len() as u64, "{spent}");
    // The same text and a pattern with few states.
    let (few, fits) = cost(&json!({ "pattern": "^[ab]*$" }), &Value::from(text));
    assert_eq!(fits, Ok(()));
    assert!(few < spent / 10, "{few} and {spent}");
    // States that were computed for one text are there for the next one.
    let names = Value::from(vec!["José Ångström-Ōe"; 1_000]);
    let (names, fits) = cost(&json!({ "items": { "pattern": "^[\\p{L} '-]{1,20}$" } }), &names);
    assert_eq!(fits, Ok(()));
    assert!(names < 4_000_000, "{names}");
}

#[test]
fn alternatives_that_do_not_fit_format_nothing() {
    let schema = json!({ "anyOf": [false, { "type": "number" }, { "required": ["x"] }, { "enum": ["y"] }] });
    let schema = Schema::new(&schema.to_string()).expect("a schema");
    let mut judge = Judge::new(&schema);
    let value = json!("z");
    let alternatives = schema.root["anyOf"].as_array().expect("a list");
    for alternative in alternatives.iter().filter(|alternative| alternative.get("required").is_none()) {
        assert!(matches!(judge.would(alternative, &value, &ValuePath::Top, 0), Ok(false)));
        judge.alternatives = 1;
        let within = judge.fits(alternative, &value, &ValuePath::Top, 0);
        assert!(matches!(within, Err(SchemaMismatch::Here(message)) if message.is_empty()), "{alternative}");
        judge.alternatives = 0;
        let alone = judge.fits(alternative, &value, &ValuePath::Top, 0);
        assert!(matches!(alone, Err(SchemaMismatch::Here(message)) if message.starts_with("answer ")));
    }
}

#[test]
fn messages_are_bounded() {
    let mut schema = json!({ "const": 1 });
    let mut value = json!(2);
    for _ in 0..60 {
        let name = "n".repeat(60);
        schema = json!({ "properties": { name.as_str(): schema } });
        value = json!({ name.as_str(): value });
    }
    let why = judged(&schema, &value).expect_err("it does not fit");
    assert!(why.len() < PATH_BYTES + 50 && why.ends_with("must be 1"), "{why}");
    let long = vec![json!([["v".repeat(1_000), "w"], [["x".repeat(1_000)]]]); 12];
    let why = judged(&json!({ "enum": long }), &json!(1)).expect_err("it does not fit");
    assert!(why.len() < 1_500, "{}", why.len());
}

proptest::proptest! {
    #[test]
    fn any_pattern_and_any_document_are_accepted_or_refused(pattern in ".{0,40}", text in ".{0,40}", document in "[\\[\\]{}\",:a-z0-9 $#/]{0,60}") {
        let schema = json!({ "pattern": pattern });
        if let Ok(schema) = Schema::new(&schema.to_string()) {
            let compiled = schema.pattern(&pattern).is_some();
            proptest::prop_assert!(compiled, "a pattern that passed the check compiles: {}", pattern);
            let _ = schema.fits(&Value::from(text));
        }
        if let Ok(schema) = Schema::new(&document) {
            let _ = schema.fits(&schema.root);
        }
    }
}
