//! Owns `console.table`: rows and columns with borders, in Node's format.

use super::inspect::{Inspector, LineRules, ObjectClass, display_width};
use super::sys::{self, Property};
use rquickjs::{Object, Value};
use vm_system_protocol::limits::EVENT_TEXT_BYTES;

/// Most rows and columns that are drawn.
const ROWS: usize = 1_000;
const COLUMNS: usize = 100;

const MAP_HEAD: [&str; 3] = ["(iteration index)", "Key", "Values"];
const SET_HEAD: [&str; 2] = ["(iteration index)", "Values"];

struct Row {
    index: String,
    cells: Vec<(String, String)>,
    value: Option<String>,
}

/// The table of an array or object; `None` for anything else.
pub(super) fn table<'js>(
    inspector: &Inspector<'js>,
    data: &Value<'js>,
    only: Option<&Value<'js>>,
) -> Option<String> {
    let object = data.as_object().filter(|object| !object.is_proxy() && !object.is_function())?;
    match inspector.classes.kind(object) {
        ObjectClass::Map => return Some(draw(&MAP_HEAD.map(str::to_owned), &items(inspector, object, true))),
        ObjectClass::Set => {
            return Some(draw(&SET_HEAD.map(str::to_owned), &items(inspector, object, false)));
        }
        _ => {}
    }
    let rows: Vec<Row> = entries(inspector, data)?
        .into_iter()
        .take(ROWS)
        .map(|(index, value)| {
            let cells = match entries(inspector, &value) {
                Some(cells) => cells
                    .into_iter()
                    .take(COLUMNS)
                    .map(|(name, cell)| (name, inspector.inspect_to_depth(&cell, 0)))
                    .collect(),
                None => Vec::new(),
            };
            let value =
                (!value.is_object() || value.is_function()).then(|| inspector.inspect_to_depth(&value, 0));
            Row { index, cells, value }
        })
        .collect();
    let chosen: Option<Vec<String>> = only.and_then(Value::as_array).map(|only| {
        (0..only.len()).filter_map(|at| only.get::<Value>(at).ok()?.as_string()?.to_string().ok()).collect()
    });
    let mut columns: Vec<String> = Vec::new();
    match chosen {
        Some(chosen) => columns = chosen,
        None => {
            for (name, _) in rows.iter().flat_map(|row| &row.cells) {
                if columns.len() < COLUMNS && !columns.contains(name) {
                    columns.push(name.clone());
                }
            }
        }
    }
    let values = rows.iter().any(|row| row.value.is_some());
    let mut head = vec!["(index)".to_owned()];
    head.extend(columns.iter().cloned());
    if values {
        head.push("Values".to_owned());
    }
    let body = rows.into_iter().map(|row| {
        let mut line = vec![row.index];
        for column in &columns {
            let cell = row.cells.iter().find(|(name, _)| name == column);
            line.push(cell.map_or_else(String::new, |(_, cell)| cell.clone()));
        }
        if values {
            line.push(row.value.unwrap_or_default());
        }
        line
    });
    Some(draw(&head, &body.collect::<Vec<_>>()))
}

/// The lines of a map or set.
fn items<'js>(inspector: &Inspector<'js>, collection: &Object<'js>, pairs: bool) -> Vec<Vec<String>> {
    let (iterate, next) = if pairs { ("mapEntries", "mapNext") } else { ("setValues", "setNext") };
    let mut lines = Vec::new();
    let Some(iterator) = inspector.call::<Object>(iterate, collection.as_value()) else { return lines };
    while lines.len() < ROWS {
        let Some(step) = inspector.call::<Object>(next, iterator.as_value()) else { break };
        let Some(value) = inspector.own_data(&step, "value") else { break };
        if inspector.own_data(&step, "done").and_then(|done| done.as_bool()) != Some(false) {
            break;
        }
        let mut line = vec![lines.len().to_string()];
        if pairs {
            let pair = value.as_object();
            let part = |index: &str| pair.and_then(|pair| inspector.own_data(pair, index));
            line.extend(
                ["0", "1"].map(|index| part(index).map_or_else(String::new, |part| cell(inspector, &part))),
            );
        } else {
            line.push(cell(inspector, &value));
        }
        lines.push(line);
    }
    lines
}

/// A value in a cell of a map or set: objects with more than two keys are only named.
fn cell<'js>(inspector: &Inspector<'js>, value: &Value<'js>) -> String {
    let keys = value.as_object().filter(|object| !object.is_array() && !object.is_proxy());
    let keys = keys.and_then(|object| sys::own_keys(object, sys::Keys::EnumerableStrings, ROWS).ok());
    let depth = if keys.is_some_and(|(keys, _)| keys.len() > 2) { -1 } else { 0 };
    inspector.inspect_with(value, depth, LineRules::default())
}

/// Own enumerable data properties; for maps and sets nothing is drawn in columns.
fn entries<'js>(inspector: &Inspector<'js>, value: &Value<'js>) -> Option<Vec<(String, Value<'js>)>> {
    let object = value.as_object()?;
    if matches!(
        inspector.classes.kind(object),
        ObjectClass::Proxy | ObjectClass::Function | ObjectClass::TypedArray(_)
    ) {
        return None;
    }
    let mut entries = Vec::new();
    for key in sys::own_keys(object, sys::Keys::EnumerableStrings, ROWS).ok()?.0 {
        if let Ok(Some(sys::OwnKey { property: Property::Data(value), .. })) = sys::own_property(object, &key)
        {
            entries.push((inspector.key_text(&key)?, value));
        }
    }
    Some(entries)
}

fn draw(head: &[String], body: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| display_width(cell) + 2).collect();
    for line in body {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(display_width(cell) + 2);
        }
    }
    let rule = |left: char, middle: char, right: char| {
        let parts: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        format!("{left}{}{right}", parts.join(&middle.to_string()))
    };
    let row = |cells: &[String]| {
        let parts: Vec<String> = widths
            .iter()
            .zip(cells)
            .map(|(width, cell)| {
                let space = width - display_width(cell);
                let left = 1;
                format!("{}{cell}{}", " ".repeat(left), " ".repeat(space - left))
            })
            .collect();
        format!("│{}│", parts.join("│"))
    };
    let mut text = format!("{}\n{}\n{}\n", rule('┌', '┬', '┐'), row(head), rule('├', '┼', '┤'));
    for line in body {
        if text.len() > EVENT_TEXT_BYTES {
            break;
        }
        text.push_str(&row(line));
        text.push('\n');
    }
    text.push_str(&rule('└', '┴', '┘'));
    text
}
