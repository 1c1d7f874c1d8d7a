//! Tables for people: columns without lines, one object per row.

use super::document;
use super::escape;
use super::fit::Fit;
use crate::error::CliError;
use comfy_table::{Table, presets};
use serde::Serialize;
use serde_norway::Value;

/// Rows under a header.
pub(crate) struct Rows {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    pub(crate) fn new<const N: usize>(header: [&str; N]) -> Self {
        Self { header: header.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| escape::for_cell(&cell).into_owned()).to_vec());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Only the first column, one object per line, for shell loops.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.rows.iter().filter_map(|row| row.first()).map(String::as_str).collect();
        names.join("\n")
    }

    /// The table's text, fitted to a terminal of `fit` if that is given, or `empty` if there are no rows.
    pub(crate) fn finish(mut self, empty: &str, fit: Option<Fit>) -> String {
        if self.is_empty() {
            return empty.to_owned();
        }
        if let Some(fit) = fit {
            fit.shorten(&self.header, &mut self.rows);
        }
        let mut table = plain();
        table.set_header(self.header);
        table.add_rows(self.rows);
        text(table)
    }
}

/// Names and values of one object; nested fields are `outer.inner`.
pub(super) fn details<T: Serialize>(value: &T) -> Result<String, CliError> {
    let mut table = plain();
    let mut lines = Vec::new();
    flatten("", &document::tree(value)?, &mut lines)?;
    for (name, value) in lines {
        // Names can come from a script, too: keys of its arguments and results.
        table.add_row([name, value].map(|text| escape::for_cell(&text).into_owned()));
    }
    Ok(text(table))
}

fn flatten(prefix: &str, value: &Value, lines: &mut Vec<(String, String)>) -> Result<(), CliError> {
    let Value::Mapping(map) = value else {
        lines.push((prefix.to_owned(), plain_text(value)?));
        return Ok(());
    };
    for (name, value) in map {
        let name = name.as_str().unwrap_or_default();
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        if matches!(value, Value::Mapping(map) if map.is_empty()) {
            lines.push((path, String::from("-")));
        } else {
            flatten(&path, value, lines)?;
        }
    }
    Ok(())
}

fn plain_text(value: &Value) -> Result<String, CliError> {
    Ok(match value {
        Value::Null => "-".to_owned(),
        Value::Sequence(list) if list.is_empty() => "-".to_owned(),
        Value::Sequence(list) if list.iter().all(|item| !item.is_mapping() && !item.is_sequence()) => {
            list.iter().map(document::cell).collect::<Result<Vec<_>, _>>()?.join(", ")
        }
        other => document::cell(other)?,
    })
}

/// Two spaces between columns, none before the first.
fn text(mut table: Table) -> String {
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table.trim_fmt()
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_feed_in_a_name_adds_no_row() {
        let value = serde_json::json!({"result": {"a\nstatus  ok": 1, "b\u{1b}[2J": {"c\n": 2}}});
        let text = details(&value).expect("a table");
        assert_eq!(text.trim_end().lines().count(), 2, "{text:?}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
