//! Values as JSON, YAML and CSV; fields are in the order of the model.

use super::fields::Columns;
use super::tree::DocumentValue;
use super::yaml;
use crate::error::CliError;
use serde::Serialize;

/// Indented, with a line feed at the end.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, CliError> {
    // Through a tree, so that nested JSON texts are indented too.
    let text = serde_json::to_string_pretty(&tree(value)?).map_err(|error| unprintable(&error))?;
    Ok(text + "\n")
}

/// On one line.
pub(crate) fn json_line<T: Serialize>(value: &T) -> Result<String, CliError> {
    Ok(serde_json::to_string(value).map_err(|error| unprintable(&error))? + "\n")
}

/// One document.
pub(crate) fn yaml<T: Serialize + ?Sized>(value: &T) -> Result<String, CliError> {
    Ok(yaml::document(&tree(value)?))
}

/// A header and a row for each element; a single object is one row. Nested values are JSON.
pub(crate) fn csv<T: Columns + ?Sized>(value: &T) -> Result<String, CliError> {
    let rows = match tree(value)? {
        DocumentValue::Sequence(rows) => rows,
        DocumentValue::Null => Vec::new(),
        single => vec![single],
    };
    let columns = columns::<T>(rows.first());
    if columns.is_empty() {
        return Ok(String::new());
    }
    let mut lines = vec![columns.clone()];
    for row in &rows {
        lines.push(cells(row, &columns)?);
    }
    write_csv(&lines)
}

/// A row of a stream, after the header if it is the first.
pub(crate) fn csv_element<T: Columns>(value: &T, first: bool) -> Result<String, CliError> {
    let row = tree(value)?;
    let columns = columns::<T>(Some(&row));
    let cells = cells(&row, &columns)?;
    if first { write_csv(&[columns, cells]) } else { write_csv(&[cells]) }
}

/// The columns of a type; without a list, those of its first value.
fn columns<T: Columns + ?Sized>(first: Option<&DocumentValue>) -> Vec<String> {
    if T::FIELDS.is_empty() {
        return first.map(names).unwrap_or_default();
    }
    T::FIELDS.iter().map(|name| (*name).to_owned()).collect()
}

/// The value as a tree whose maps keep their order.
pub(super) fn tree<T: Serialize + ?Sized>(value: &T) -> Result<DocumentValue, CliError> {
    let text = serde_json::to_string(value).map_err(|error| unprintable(&error))?;
    serde_json::from_str(&text).map_err(|error| unprintable(&error))
}

/// The text of a value in a cell.
pub(super) fn cell(value: &DocumentValue) -> Result<String, CliError> {
    Ok(match value {
        DocumentValue::Null => String::new(),
        DocumentValue::String(text) => text.clone(),
        nested => serde_json::to_string(nested).map_err(|error| unprintable(&error))?,
    })
}

fn names(row: &DocumentValue) -> Vec<String> {
    match row {
        DocumentValue::Mapping(fields) => fields.iter().map(|(name, _)| name.clone()).collect(),
        _ => vec!["value".to_owned()],
    }
}

fn cells(row: &DocumentValue, columns: &[String]) -> Result<Vec<String>, CliError> {
    debug_assert!(names(row).iter().all(|name| columns.contains(name)), "a field without a column");
    match row {
        DocumentValue::Mapping(fields) => {
            let field = |name: &String| fields.iter().find(|(field, _)| field == name);
            columns
                .iter()
                .map(|name| field(name).map_or_else(|| Ok(String::new()), |field| cell(&field.1)))
                .collect()
        }
        other => Ok(vec![cell(other)?]),
    }
}

fn write_csv(lines: &[Vec<String>]) -> Result<String, CliError> {
    let mut writer = csv::WriterBuilder::new().flexible(false).from_writer(Vec::new());
    for line in lines {
        writer.write_record(line).map_err(|error| unprintable(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| unprintable(&error))?;
    String::from_utf8(bytes).map_err(|error| unprintable(&error))
}

fn unprintable(error: &dyn std::fmt::Display) -> CliError {
    CliError::internal(format!("cannot print the result: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_protocol::json::JsonText;

    #[derive(Serialize)]
    struct Row {
        zulu: u64,
        alpha: &'static str,
        nested: JsonText,
    }

    impl Columns for Row {
        const FIELDS: &'static [&'static str] = &["zulu", "alpha", "sometimes", "nested"];
    }

    impl Columns for JsonText {
        const FIELDS: &'static [&'static str] = &[];
    }

    fn row() -> Row {
        let nested = JsonText::from_untrusted(r#"{"b":[1,"x"],"a":"\ud83d\ude00"}"#.to_owned());
        Row { zulu: 7, alpha: "a,\"b\"\nc", nested }
    }

    #[test]
    fn fields_keep_their_order_in_every_format() {
        assert_eq!(
            json(&row()).unwrap(),
            "{\n  \"zulu\": 7,\n  \"alpha\": \"a,\\\"b\\\"\\nc\",\n  \"nested\": {\n    \"b\": [\n      1,\n      \"x\"\n    ],\n    \"a\": \"😀\"\n  }\n}\n"
        );
        assert_eq!(
            yaml(&row()).unwrap(),
            "zulu: 7\nalpha: |-\n  a,\"b\"\n  c\nnested:\n  b:\n  - 1\n  - x\n  a: 😀\n"
        );
        assert_eq!(
            csv(&vec![row()]).unwrap(),
            "zulu,alpha,sometimes,nested\n7,\"a,\"\"b\"\"\nc\",,\"{\"\"b\"\":[1,\"\"x\"\"],\"\"a\"\":\"\"😀\"\"}\"\n"
        );
    }

    #[test]
    fn columns_of_csv_are_those_of_the_type_and_there_without_rows() {
        assert_eq!(csv(&Vec::<Row>::new()).unwrap(), "zulu,alpha,sometimes,nested\n");
        assert_eq!(csv(&vec!["fs".to_owned(), "db".to_owned()]).unwrap(), "value\nfs\ndb\n");
        assert_eq!(csv(&serde_json::json!({"id": null, "status": "ok"})).unwrap(), "id,status\n,ok\n");
    }

    #[test]
    fn a_document_that_is_not_json_is_an_error_and_not_broken_output() {
        let broken = JsonText::from_untrusted("{".to_owned());
        assert!(json(&broken).is_err() && yaml(&broken).is_err() && csv(&broken).is_err());
    }
}
