//! The inputs of a restoration as JSON, which all clients write in the same form. No I/O.

use crate::codec::{Decode, Encode};
use crate::input::read_value;
use crate::json::JsonText;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The parts of an input that the record does not have: values that were redacted, arguments, the text of a sent file.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, JsonSchema)]
#[schemars(with = "Written")]
pub struct GivenInput {
    /// The number of the input, from 1.
    pub input: u64,
    /// Merged into the recorded `args` (an object; JSON merge patch, RFC 7396).
    pub args: Option<JsonText>,
    /// Variables that replace those of the same name.
    pub env: Vec<(String, String)>,
    pub argv: Option<Vec<String>>,
    /// The text of a file that the client had sent.
    pub source: Option<String>,
}

/// A [`GivenInput`] as clients write it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The number of the input, from 1.
    #[schemars(range(min = 1))]
    input: u64,
    /// Merged into the recorded `args` (JSON merge patch, RFC 7396).
    args: Option<Map<String, Value>>,
    /// Variables that replace those of the same name.
    #[serde(default)]
    env: BTreeMap<String, String>,
    argv: Option<Vec<String>>,
    /// The text of a file that the client had sent.
    source: Option<String>,
}

#[derive(Deserialize)]
struct WrittenList {
    inputs: Vec<Written>,
}

impl GivenInput {
    /// Reads a list (`[{"input": 1, "env": {"A": "b"}}]`); the error says what is wrong with which element.
    pub fn list(json: Value) -> Result<Vec<Self>, String> {
        if !json.is_array() {
            return Err("inputs is no list: [{\"input\": 1, \"env\": {\"NAME\": \"value\"}}]".to_owned());
        }
        // Errors have the path from here on.
        let list: WrittenList = read_value("the list", Map::from_iter([("inputs".to_owned(), json)]).into())?;
        let given = |written: Written| Self {
            input: written.input,
            args: written.args.map(|args| JsonText::from_value(&Value::Object(args))),
            env: written.env.into_iter().collect(),
            argv: written.argv,
            source: written.source,
        };
        Ok(list.inputs.into_iter().map(given).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::GivenInput;
    use serde_json::json;

    #[test]
    fn inputs_are_read_with_their_parts_and_errors_name_the_element() {
        let given = GivenInput::list(json!([{ "input": 2, "args": { "a": 1 }, "env": { "B": "c" } }]));
        let given = given.expect("a list").remove(0);
        assert_eq!((given.input, given.env), (2, vec![("B".to_owned(), "c".to_owned())]));
        assert_eq!(given.args.expect("args").as_str(), r#"{"a":1}"#);
        assert!(GivenInput::list(json!({})).expect_err("no list").starts_with("inputs is no list"));
        let wrong = GivenInput::list(json!([{ "input": 1 }, { "input": 2, "envs": {} }]))
            .expect_err("a typing error");
        assert!(wrong.starts_with("there is no field `inputs[1].envs`;"), "{wrong}");
    }
}
