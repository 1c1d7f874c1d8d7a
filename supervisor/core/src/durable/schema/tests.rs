//! Accepted schemas, values that fit them, and the bounded time of hostile schemas.

use super::Schema;
use serde_json::{Value, json};

#[track_caller]
fn judged(schema: &Value, value: &Value) -> Result<(), String> {
    Schema::check(schema).expect("a schema");
    Schema::fits(schema, value)
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

proptest::proptest! {
    #[test]
    fn any_pattern_and_any_document_are_accepted_or_refused(pattern in ".{0,40}", text in ".{0,40}", document in "[\\[\\]{}\",:a-z0-9 $#/]{0,60}") {
        let schema = json!({ "pattern": pattern });
        if Schema::check(&schema).is_ok() {
            let _ = Schema::fits(&schema, &Value::from(text));
        }
        if let Ok(schema) = serde_json::from_str::<Value>(&document)
            && Schema::check(&schema).is_ok()
        {
            let _ = Schema::fits(&schema, &schema);
        }
    }
}
