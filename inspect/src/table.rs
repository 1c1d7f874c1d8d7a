//! Owns `console.table`: rows and columns with borders, in Node's format.

use crate::text::width as display_width;
use crate::values::{EngineValues, IteratorItems, ObjectClass, OwnKey, Property};
use crate::{LineRules, cut_to, inspect_with};

/// Most rows and columns that are drawn.
const ROWS: usize = 1_000;
const COLUMNS: usize = 100;

/// A line length that no text reaches.
const ONE_LINE: usize = 1 << 40;

struct Row {
    index: String,
    cells: Vec<(String, String)>,
    value: Option<String>,
}

/// The table of an array or object; `None` for anything else.
pub(super) fn table<E: EngineValues>(engine: &E, data: &E::Value, only: Option<&E::Value>) -> Option<String> {
    if let Some(text) = collection(engine, data) {
        return Some(text);
    }
    let rows: Vec<Row> = entries(engine, data)?
        .into_iter()
        .take(ROWS)
        .map(|(index, value)| {
            let cells = match entries(engine, &value) {
                Some(cells) => {
                    cells.into_iter().take(COLUMNS).map(|(name, cell)| (name, short(engine, &cell))).collect()
                }
                None => Vec::new(),
            };
            let value =
                (!engine.is_object(&value) || engine.is_callable(&value)).then(|| short(engine, &value));
            Row { index, cells, value }
        })
        .collect();
    let chosen: Option<Vec<String>> = only.filter(|only| is_list(engine, only)).map(|only| {
        entries(engine, only)
            .unwrap_or_default()
            .into_iter()
            .filter(|(_, name)| engine.is_string(name))
            .map(|(_, name)| engine.string(&name))
            .collect()
    });
    let mut columns: Vec<String> = Vec::new();
    if let Some(chosen) = chosen {
        columns = chosen;
    } else {
        for (name, _) in rows.iter().flat_map(|row| &row.cells) {
            if columns.len() < COLUMNS && !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        // In the order of an object's keys: indices come first.
        columns.sort_by_key(|name| {
            name.parse::<u32>().ok().filter(|index| index.to_string() == *name).unwrap_or(u32::MAX)
        });
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
    Some(draw(&head, &body.collect::<Vec<_>>(), E::TEXT_BYTES))
}

fn is_list<E: EngineValues>(engine: &E, value: &E::Value) -> bool {
    engine.is_object(value) && engine.class(value) == ObjectClass::Array
}

/// The text of a cell: one line, three elements, and of objects with more than two properties only what they are.
fn short<E: EngineValues>(engine: &E, value: &E::Value) -> String {
    let rules = LineRules { break_length: ONE_LINE, elements: 3, ..LineRules::default() };
    let is_long = engine.is_object(value)
        && !engine.is_callable(value)
        && !matches!(engine.class(value), ObjectClass::Array | ObjectClass::Proxy)
        && engine.keys(value, false, 3).len() > 2;
    cut_to(inspect_with(engine, value, if is_long { -1 } else { 0 }, rules), E::TEXT_BYTES)
}

const ITERATED_KEYS: &[&str] = &["(iteration index)", "Key", "Values"];
const ITERATED: &[&str] = &["(iteration index)", "Values"];

/// The table of a map, a set or an iterator of one; its values are not drawn in columns.
fn collection<E: EngineValues>(engine: &E, data: &E::Value) -> Option<String> {
    if !engine.is_object(data) {
        return None;
    }
    let pair = |(key, value): &(E::Value, E::Value)| vec![short(engine, key), short(engine, value)];
    let alone = |value: &E::Value| vec![short(engine, value)];
    let class = engine.class(data);
    let (names, lines): (_, Vec<Vec<String>>) = match class {
        ObjectClass::Map => (ITERATED_KEYS, engine.map_entries(data, ROWS).0.iter().map(pair).collect()),
        ObjectClass::Set => (ITERATED, engine.set_values(data, ROWS).0.iter().map(alone).collect()),
        ObjectClass::MapIterator | ObjectClass::SetIterator => match engine.iterator_items(data, ROWS)?.0 {
            IteratorItems::Values(values) => (ITERATED, values.iter().map(alone).collect()),
            IteratorItems::Entries(pairs) if class == ObjectClass::MapIterator => {
                (ITERATED_KEYS, pairs.iter().map(pair).collect())
            }
            // Of a set, both parts of an entry are rows.
            IteratorItems::Entries(pairs) => {
                (ITERATED, pairs.iter().flat_map(pair).map(|cell| vec![cell]).collect())
            }
        },
        _ => return None,
    };
    let numbered = |(index, mut line): (usize, Vec<String>)| {
        line.insert(0, index.to_string());
        line
    };
    let head: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let body: Vec<Vec<String>> = lines.into_iter().enumerate().map(numbered).collect();
    Some(draw(&head, &body, E::TEXT_BYTES))
}

/// Own enumerable data properties.
fn entries<E: EngineValues>(engine: &E, value: &E::Value) -> Option<Vec<(String, E::Value)>> {
    if !engine.is_object(value)
        || engine.is_callable(value)
        || matches!(engine.class(value), ObjectClass::Proxy | ObjectClass::TypedArray(_))
    {
        return None;
    }
    let mut entries = Vec::new();
    for key in engine.keys(value, false, ROWS) {
        if let Ok(Some(OwnKey { property: Property::Data(own), .. })) = engine.own(value, &key) {
            entries.push((engine.key_text(&key)?, own));
        }
    }
    Some(entries)
}

fn draw(head: &[String], body: &[Vec<String>], most: usize) -> String {
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
        if text.len() > most {
            break;
        }
        text.push_str(&row(line));
        text.push('\n');
    }
    text.push_str(&rule('└', '┴', '┘'));
    text
}
