//! Owns the line breaking of entries: Node's `reduceToSingleString` and `groupArrayElements` with `compact: 3`.

use crate::text::{units, width};

/// How many entries are shown, and how they are put on lines.
#[derive(Debug, Clone, Copy)]
pub struct LineRules {
    /// Column at which lines break.
    pub break_length: usize,
    /// Levels that are put on one line.
    pub compact: usize,
    /// Elements of a list that are shown.
    pub elements: usize,
}

impl Default for LineRules {
    fn default() -> Self {
        Self { break_length: 80, compact: 3, elements: 100 }
    }
}

/// Puts entries on one line if they fit and are not too deep, else one line each.
pub(super) fn reduce(
    mut entries: Vec<String>,
    base: &str,
    braces: (&str, &str),
    indentation: usize,
    depth_below: usize,
    (group, rules): (Option<Grouping>, LineRules),
) -> String {
    let count = entries.len();
    if let Some(grouping) = group
        && count > 6
        && rules.compact > 0
    {
        entries = group_elements(entries, indentation, &grouping, rules);
    }
    let base_and_space = if base.is_empty() { String::new() } else { format!("{base} ") };
    if depth_below < rules.compact && entries.len() == count {
        let start = entries.len() + indentation + units(braces.0) + units(base) + 10;
        if is_below_break_length(&entries, start, base, rules.break_length) {
            let joined = entries.join(", ");
            if !joined.contains('\n') {
                return format!("{base_and_space}{} {joined} {}", braces.0, braces.1);
            }
        }
    }
    let line = format!("\n{}", " ".repeat(indentation));
    let joined = entries.join(&format!(",{line}  "));
    format!("{base_and_space}{}{line}  {joined}{line}{}", braces.0, braces.1)
}

fn is_below_break_length(entries: &[String], start: usize, base: &str, break_length: usize) -> bool {
    let mut total = entries.len() + start;
    if total + entries.len() > break_length {
        return false;
    }
    for entry in entries {
        total += units(entry);
        if total > break_length {
            return false;
        }
    }
    base.is_empty() || !base.contains('\n')
}

/// The arrangement of a list's elements in columns.
pub(super) struct Grouping {
    /// The last entry is `... n more items` and stays alone.
    pub(super) more: bool,
    /// All elements are numbers: they align to the right.
    pub(super) numbers: bool,
}

fn group_elements(
    entries: Vec<String>,
    indentation: usize,
    grouping: &Grouping,
    LineRules { break_length, compact, .. }: LineRules,
) -> Vec<String> {
    const SEPARATOR: usize = 2;
    let elements = entries.len() - usize::from(grouping.more);
    let widths: Vec<usize> = entries[..elements].iter().map(|entry| width(entry)).collect();
    let total: usize = widths.iter().map(|width| width + SEPARATOR).sum();
    let longest = widths.iter().copied().max().unwrap_or(0);
    let actual = longest + SEPARATOR;
    let fits = actual * 3 + indentation < break_length;
    if !fits || !(total as f64 / actual as f64 > 5.0 || longest <= 6) {
        return entries;
    }
    let average_bias = (actual as f64 - total as f64 / entries.len() as f64).sqrt();
    let biased = (actual as f64 - 3.0 - average_bias).max(1.0);
    let square = (2.5 * biased * elements as f64).sqrt() / biased;
    let columns =
        [(square + 0.5).floor() as usize, break_length.saturating_sub(indentation) / actual, compact * 4, 15]
            .into_iter()
            .min()
            .unwrap_or(1);
    if columns <= 1 {
        return entries;
    }
    let column_widths: Vec<usize> = (0..columns)
        .map(|column| widths.iter().skip(column).step_by(columns).copied().max().unwrap_or(0) + SEPARATOR)
        .collect();
    let mut lines = Vec::with_capacity(elements.div_ceil(columns) + 1);
    for (row, cells) in entries[..elements].chunks(columns).enumerate() {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let last = column + 1 == cells.len();
            let space = column_widths[column] - SEPARATOR - widths[row * columns + column];
            if grouping.numbers {
                line.push_str(&" ".repeat(space));
                line.push_str(cell);
                line.push_str(if last { "" } else { ", " });
            } else {
                line.push_str(cell);
                if !last {
                    line.push_str(", ");
                    line.push_str(&" ".repeat(space));
                }
            }
        }
        lines.push(line);
    }
    lines.extend(entries.into_iter().skip(elements));
    lines
}
