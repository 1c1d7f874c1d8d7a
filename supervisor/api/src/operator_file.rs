//! Files of the operator (TOML) as values. Errors name the setting and its line; those about a file of secrets quote no value.

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
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

/// The line of a setting: its names from the outside, and for members of lists their numbers. Of one that is not there, the line of the
/// innermost table or list that is.
pub fn line_of(text: &str, setting: &[impl AsRef<str>]) -> Option<usize> {
    let file = DeTable::parse(text).ok()?;
    let mut line = None;
    let mut table = Some(file.get_ref());
    let mut list: Option<&toml::de::DeArray<'_>> = None;
    for name in setting.iter().map(AsRef::as_ref) {
        let (at, value) = match (table, list) {
            (Some(table), _) => {
                let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
                (key.span().start, value)
            }
            (None, Some(list)) => {
                let Some(value) = name.parse().ok().and_then(|number: usize| list.get(number)) else { break };
                (value.span().start, value)
            }
            (None, None) => break,
        };
        line = Some(line_at(text, at));
        (table, list) = match value.get_ref() {
            DeValue::Table(table) => (Some(table), None),
            DeValue::Array(list) => (None, Some(list)),
            _ => (None, None),
        };
    }
    line
}

fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

fn at_line(text: &str, error: &toml::de::Error, why: &str) -> String {
    let Some(span) = error.span() else { return why.to_owned() };
    format!("line {}: {why}", line_at(text, span.start))
}

#[cfg(test)]
mod tests {
    use super::{line_of, read_toml};
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
    fn a_setting_has_a_line_or_that_of_its_table() {
        let text = "stop_s = 1\n\n[http]\nlisten = [\n\"a\",\n\"b\"]\n[[root]]\npath = \"/\"\n[[root]]\npath = \"/b\"\n\
                    [shares.streams]\nmost = 1\n";
        for (setting, line) in [
            (&["stop_s"][..], 1),
            (&["http", "listen"], 4),
            (&["http", "listen", "1"], 6),
            (&["http", "absent"], 3),
            (&["root", "1", "path"], 10),
            (&["shares", "streams", "most"], 12),
        ] {
            assert_eq!(line_of(text, setting), Some(line), "{setting:?}");
        }
        assert_eq!(line_of(text, &["absent"]), None);
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
