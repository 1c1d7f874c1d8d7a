//! Tables for people: columns without lines, one object per row.

use super::document;
use super::escape;
use super::fit::{Fit, GAP};
use super::tree::DocumentValue;
use super::wrap;
use crate::error::CliError;
use comfy_table::{Table, presets};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

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

    /// Adds a column behind the first one.
    pub(super) fn insert(&mut self, header: &str, cells: impl Iterator<Item = String>) {
        self.header.insert(1, header.to_owned());
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.insert(1, escape::for_cell(&cell).into_owned());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Only the first column, one object per line, for shell loops.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.rows.iter().filter_map(|row| row.first()).map(String::as_str).collect();
        names.join("\n")
    }

    /// The table's text, fitted to a terminal of `fit` if that is given, or `empty` if there are no rows. A table that does not
    /// fit is one block of names and values for each row.
    pub(crate) fn finish(mut self, empty: &str, fit: Option<Fit>) -> String {
        if self.is_empty() {
            return empty.to_owned();
        }
        if let Some(fit) = fit
            && !fit.shorten(&self.header, &mut self.rows)
        {
            let block =
                |cells: Vec<String>| entries(self.header.iter().cloned().zip(cells).collect(), fit.width);
            return self.rows.into_iter().map(block).collect::<Vec<_>>().join("\n\n");
        }
        self.whole()
    }

    /// The table's text; on a terminal of `fit` the last column is wrapped instead of being cut.
    pub(crate) fn wrapped(self, empty: &str, fit: Option<Fit>) -> String {
        let Some(fit) = fit.filter(|_| !self.is_empty()) else { return self.finish(empty, None) };
        let last = self.header.len() - 1;
        let all = || std::iter::once(&self.header).chain(&self.rows);
        let widest = |column: usize| all().map(|row| row[column].width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..last).map(widest).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths);
            let label: String =
                cells.map(|(cell, width)| cell.clone() + &spaces(width + GAP - cell.width())).collect();
            wrap::entry(&label, &row[last], fit.width)
        };
        all().map(line).collect::<Vec<_>>().join("\n")
    }

    fn whole(self) -> String {
        let mut table = plain();
        table.set_header(self.header);
        table.add_rows(self.rows);
        text(table)
    }
}

/// Names and values of one object; nested fields are `outer.inner`. On a terminal of `fit` the values are wrapped.
pub(super) fn details<T: Serialize>(value: &T, fit: Option<Fit>) -> Result<String, CliError> {
    let mut lines = Vec::new();
    flatten("", &document::tree(value)?, &mut lines)?;
    // Names can come from a script, too: keys of its arguments and results.
    let escaped = |text: String| escape::for_cell(&text).into_owned();
    let lines = lines.into_iter().map(|(name, value)| (escaped(name), escaped(value)));
    if let Some(fit) = fit {
        return Ok(entries(lines.collect(), fit.width));
    }
    let mut table = plain();
    for (name, value) in lines {
        table.add_row([name, value]);
    }
    Ok(text(table))
}

/// Names and values, one below the other, on lines of at most `width` columns.
fn entries(lines: Vec<(String, String)>, width: usize) -> String {
    let widest = lines.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let entry = |(name, value): (String, String)| {
        let label = format!("{name}{}", spaces(widest + GAP - name.width()));
        wrap::entry(&label, &value, width)
    };
    lines.into_iter().map(entry).collect::<Vec<_>>().join("\n")
}

fn spaces(count: usize) -> String {
    " ".repeat(count)
}

fn flatten(prefix: &str, value: &DocumentValue, lines: &mut Vec<(String, String)>) -> Result<(), CliError> {
    let DocumentValue::Mapping(map) = value else {
        lines.push((prefix.to_owned(), plain_text(value)?));
        return Ok(());
    };
    for (name, value) in map {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        if matches!(value, DocumentValue::Mapping(map) if map.is_empty()) {
            lines.push((path, String::from("-")));
        } else {
            flatten(&path, value, lines)?;
        }
    }
    Ok(())
}

fn plain_text(value: &DocumentValue) -> Result<String, CliError> {
    Ok(match value {
        DocumentValue::Null => "-".to_owned(),
        DocumentValue::Sequence(list) if list.is_empty() => "-".to_owned(),
        DocumentValue::Sequence(list)
            if list
                .iter()
                .all(|item| !matches!(item, DocumentValue::Mapping(_) | DocumentValue::Sequence(_))) =>
        {
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
        let text = details(&value, None).expect("a table");
        assert_eq!(text.trim_end().lines().count(), 2, "{text:?}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
