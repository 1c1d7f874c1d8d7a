//! Redaction of what is never recorded: values whose name contains `secret`, in `args` (at any depth) and in `env`. The script sees
//! them; records and responses do not.

use serde_json::{Map, Value};
use vm_system_protocol::json::JsonText;

const REDACTED: &str = "[redacted]";

fn is_secret(name: &str) -> bool {
    name.to_lowercase().contains("secret")
}

/// The recorded form of `args`. Unchanged if nothing is secret.
pub(super) fn args(args: &JsonText, parsed: &Value) -> JsonText {
    let mut clean = parsed.clone();
    if redact(&mut clean) { JsonText::from_value(&clean) } else { args.clone() }
}

/// Replaces secrets; returns whether there were any. Recursion is bounded: the parser accepts at most 128 levels.
fn redact(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => {
            let mut changed = false;
            for (name, value) in fields {
                if is_secret(name) {
                    *value = Value::from(REDACTED);
                    changed = true;
                } else {
                    changed |= redact(value);
                }
            }
            changed
        }
        Value::Array(values) => {
            let mut changed = false;
            for value in values {
                changed |= redact(value);
            }
            changed
        }
        _ => false,
    }
}

/// Adds the paths of redacted values: `args.a.secret`.
pub(super) fn find_redacted(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                if is_secret(name) && value == REDACTED {
                    found.push(path);
                } else {
                    find_redacted(&path, value, found);
                }
            }
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                find_redacted(&format!("{path}[{at}]"), value, found);
            }
        }
        _ => {}
    }
}

/// The recorded form of `env`: an object.
pub(super) fn env(env: &[(String, String)]) -> JsonText {
    let shown = |(name, value): &(String, String)| {
        let value = if is_secret(name) { REDACTED } else { value.as_str() };
        (name.clone(), Value::from(value))
    };
    JsonText::from_value(&Value::Object(env.iter().map(shown).collect::<Map<_, _>>()))
}

#[cfg(test)]
mod tests {
    use super::{args, env};
    use vm_system_protocol::json::JsonText;

    fn recorded(text: &str) -> String {
        let text = JsonText::from_untrusted(text.to_owned());
        let parsed = text.to_value().expect("the test writes JSON");
        args(&text, &parsed).as_str().to_owned()
    }

    #[test]
    fn secret_values_are_replaced_at_any_depth_and_all_else_stays() {
        assert_eq!(recorded(r#"{"b":1.0, "a":[2]}"#), r#"{"b":1.0, "a":[2]}"#);
        assert_eq!(
            recorded(r#"{"a":[{"clientSecret":{"x":1}}],"SECRET":7,"n":3}"#),
            r#"{"SECRET":"[redacted]","a":[{"clientSecret":"[redacted]"}],"n":3}"#
        );
        let redacted =
            serde_json::json!({ "a": [{ "secret": "[redacted]" }], "secret": "x", "b": "[redacted]" });
        let mut found = Vec::new();
        super::find_redacted("args", &redacted, &mut found);
        assert_eq!(found, ["args.a[0].secret"]);
        let variables = [("MY_SECRET".to_owned(), "x".to_owned()), ("HOME".to_owned(), "/h".to_owned())];
        assert_eq!(env(&variables).as_str(), r#"{"HOME":"/h","MY_SECRET":"[redacted]"}"#);
    }
}
