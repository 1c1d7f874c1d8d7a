//! Files of the operator (TOML) as values. Errors name the setting and its line; those about a file of secrets quote no value.

use serde::de::DeserializeOwned;
use vm_system_protocol::input::{at_path, plain, plain_without_value};

/// The content of a file; on error the reason, for the operator.
pub fn read_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    read(text, plain)
}

/// As [`read_toml`], for a file whose values no error may quote.
pub fn read_secret_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    read(text, plain_without_value)
}

fn read<T: DeserializeOwned>(text: &str, explain: fn(&str, &str, &str) -> String) -> Result<T, String> {
    let reader = toml::Deserializer::parse(text).map_err(|error| at_line(text, &error, error.message()))?;
    at_path(reader)
        .map_err(|(path, error)| at_line(text, &error, &explain("the file", &path, error.message())))
}

fn at_line(text: &str, error: &toml::de::Error, why: &str) -> String {
    let Some(span) = error.span() else { return why.to_owned() };
    let before = text.get(..span.start).unwrap_or_default();
    format!("line {}: {why}", before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::read_toml;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    #[serde(deny_unknown_fields)]
    struct File {
        max_sessions: Option<u32>,
        #[serde(default)]
        root: Vec<Root>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Root {
        path: String,
        #[serde(default)]
        owners: Vec<String>,
    }

    #[test]
    fn errors_name_the_setting_and_its_line() {
        let why = |text: &str| read_toml::<File>(text).map(drop).expect_err(text);
        assert_eq!(
            why("\n\nmax_sessions = \"many\""),
            "line 3: `max_sessions` must be a whole number from 0 to 4294967295, not the text \"many\""
        );
        assert_eq!(
            why("[[root]]\npath = \"/a\"\nowners = \"ci\""),
            "line 3: `root[0].owners` must be a list, not the text \"ci\""
        );
        assert_eq!(why("[[root]]\nowners = []"), "line 1: `root[0].path` is missing");
        assert_eq!(
            why("max_session = 1"),
            "line 1: there is no field `max_session`; a field is `max_sessions` or `root`"
        );
        assert!(why("max_sessions = 1\nroot =").starts_with("line 2: "));
    }
}
