//! Tables that fit a terminal: ids as short as they are unique, times relative to now, and the widest columns cut. Ids and times
//! are not cut: a part of an id that is not unique names nothing.

use std::collections::HashMap;
use unicode_width::UnicodeWidthStr as _;
use uuid::Uuid;
use vm_system_protocol::time::Timestamp;

/// The lengths to which an id may be cut: at its hyphens. The first two groups of ours are the time in milliseconds.
const ID_LENGTHS: [usize; 4] = [13, 18, 23, 36];
/// Between two columns.
pub(super) const GAP: usize = 2;
/// A column is not cut below this width, nor below that of its name.
const NARROWEST: usize = 6;

/// A terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fit {
    /// In columns of the terminal.
    pub(crate) width: usize,
    /// Times are relative to it.
    pub(crate) now: Timestamp,
}

impl Fit {
    /// The terminal of stdout.
    pub(crate) fn detect() -> Option<Self> {
        let (width, _) = terminal_size::terminal_size()?;
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(Self { width: usize::from(width.0), now: Timestamp(i64::try_from(since.as_millis()).ok()?) })
    }

    /// Shortens the cells in place. Returns whether the table fits; where it does not, only ids and times are shortened.
    pub(super) fn shorten(self, header: &[String], rows: &mut [Vec<String>]) -> bool {
        let mut whole = vec![false; header.len()];
        for (column, whole) in whole.iter_mut().enumerate() {
            *whole = shorten_ids(rows, column);
            for cell in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
                if let Some(time) = time(cell) {
                    *cell = relative(time, self.now);
                    *whole = true;
                }
            }
        }
        self.cut(header, rows, &whole)
    }

    /// Cuts the widest columns until the table fits; never the first one, which names the row, nor those of ids and times.
    fn cut(self, header: &[String], rows: &mut [Vec<String>], whole: &[bool]) -> bool {
        let widest = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
            cells.chain(header.get(column).map(|name| name.width())).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..header.len()).map(widest).collect();
        let least: Vec<usize> = header.iter().map(|name| name.width().max(NARROWEST)).collect();
        while widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) > self.width {
            let may_be_cut = |column: usize| column > 0 && !whole[column] && widths[column] > least[column];
            let widest =
                (0..widths.len()).filter(|column| may_be_cut(*column)).max_by_key(|column| widths[*column]);
            let Some(widest) = widest else { return false };
            widths[widest] -= 1;
        }
        for row in rows {
            for (cell, width) in row.iter_mut().zip(&widths) {
                if cell.width() > *width {
                    *cell = cut_to(cell, *width);
                }
            }
        }
        true
    }
}

/// The beginning of a text with `…`, at most `width` columns wide.
fn cut_to(text: &str, width: usize) -> String {
    let mut short = String::new();
    for c in text.chars() {
        short.push(c);
        if short.width() >= width {
            short.pop();
            break;
        }
    }
    short.push('…');
    short
}

/// Cuts the ids of a column to one length at which they differ. Returns whether it has ids.
fn shorten_ids(rows: &mut [Vec<String>], column: usize) -> bool {
    let is_id = |cell: &str| cell.len() == 36 && Uuid::try_parse(cell).is_ok();
    let ids: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.get(column))
        .map(String::as_str)
        .filter(|cell| is_id(cell))
        .collect();
    let differ = |length: usize| {
        let mut known: HashMap<&str, &str> = HashMap::new();
        ids.iter().all(|id| *known.entry(&id[..length]).or_insert(id) == *id)
    };
    let any = !ids.is_empty();
    let Some(length) = ID_LENGTHS.into_iter().find(|length| differ(*length)) else { return any };
    for cell in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
        if is_id(cell) {
            cell.truncate(length);
        }
    }
    any
}

/// The moment in a cell that is nothing else.
fn time(cell: &str) -> Option<Timestamp> {
    let looks_so = cell.len() == 24 && cell.ends_with('Z') && cell.as_bytes().get(10) == Some(&b'T');
    looks_so.then(|| serde_json::from_str(&format!("\"{cell}\"")).ok()).flatten()
}

/// `5 s ago`, `in 3 min`.
fn relative(time: Timestamp, now: Timestamp) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let seconds = time.0.abs_diff(now.0) / 1_000;
    let (count, unit) = UNITS
        .into_iter()
        .find(|(length, _)| seconds >= 2 * length)
        .map_or((seconds, "s"), |(length, unit)| (seconds / length, unit));
    match time.0.cmp(&now.0) {
        std::cmp::Ordering::Greater => format!("in {count} {unit}"),
        _ if count == 0 => "now".to_owned(),
        _ => format!("{count} {unit} ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(width: usize, rows: &[&[&str]]) -> Vec<Vec<String>> {
        let now = Timestamp(1_767_225_600_000);
        let mut rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        let header: Vec<String> = rows[0].iter().map(|_| "NAME".to_owned()).collect();
        Fit { width, now }.shorten(&header, &mut rows);
        rows
    }

    #[test]
    fn ids_and_times_are_not_cut() {
        let id = "01a2073e-f0aa-7639-937e-f0a8f223f968";
        let cells: &[&[&str]] = &[&[id, id, "some text that is long", "2026-01-01T00:00:00.000Z"]];
        let (id, now) = (&id[..13], "now");
        assert_eq!(shortened(50, cells)[0], [id, id, "some text tha…", now]);
        assert_eq!(shortened(42, cells)[0], [id, id, "some …", now], "the narrowest that fits");
        assert_eq!(shortened(41, cells)[0], [id, id, cells[0][2], now], "does not fit");
    }

    #[test]
    fn ids_are_as_short_as_they_are_unique_and_times_are_relative() {
        let rows = shortened(
            100,
            &[
                &[
                    "01a2073e-f0aa-7639-937e-f0a8f223f968",
                    "01a2073e-f0aa-7639-937e-000000000000",
                    "2026-01-01T00:00:00.000Z",
                ],
                &[
                    "01a2073e-f0ab-7639-937e-f0a8f223f968",
                    "01a2073e-f0aa-7639-937f-000000000000",
                    "2025-12-31T23:57:00.000Z",
                ],
                &["-", "-", "2026-01-04T00:00:00.000Z"],
            ],
        );
        assert_eq!(rows[0], ["01a2073e-f0aa", "01a2073e-f0aa-7639-937e", "now"]);
        assert_eq!(rows[1], ["01a2073e-f0ab", "01a2073e-f0aa-7639-937f", "3 min ago"]);
        assert_eq!(rows[2], ["-", "-", "in 3 d"]);
    }

    #[test]
    fn the_widest_columns_are_cut_and_the_first_is_not() {
        let long = "x".repeat(50);
        let rows = shortened(60, &[&[&long[..20], &long, "short", &long[..30]]]);
        assert_eq!(rows[0][0], long[..20]);
        assert_eq!(rows[0][2], "short");
        assert!(rows[0][1].ends_with('…'), "{rows:?}");
        let all: usize = rows[0].iter().map(|cell| cell.width()).sum();
        assert_eq!(all + 3 * GAP, 60);
        // Wide characters count twice.
        let wide = shortened(30, &[&["a", &"世".repeat(40)]]);
        assert!(wide[0][1].width() <= 27, "{wide:?}");
    }
}
