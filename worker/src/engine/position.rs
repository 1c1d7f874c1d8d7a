//! Owns the mapping of positions in evaluated text to positions in the original text: edits on a line, and TypeScript's mappings.
//! Lines and columns count from 1, columns in characters, as QuickJS reports them.

use std::collections::HashMap;

/// Text that was inserted into a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Insertion {
    /// Line in the original.
    pub(super) line: u32,
    /// Column of the original before which the text was inserted.
    pub(super) column: u32,
    /// In characters.
    pub(super) length: u32,
}

/// The map from one evaluated text to its original.
#[derive(Debug, Default, Clone)]
pub(super) struct FileMap {
    /// In order of line and column.
    pub(super) insertions: Vec<Insertion>,
    /// Generated (line, column) to original (line, column), ordered by generated position; empty: no such step.
    pub(super) tokens: Vec<((u32, u32), (u32, u32))>,
}

impl FileMap {
    /// The original position.
    pub(super) fn original(&self, line: u32, column: u32) -> (u32, u32) {
        let first = self.insertions.partition_point(|insertion| insertion.line < line);
        let mut column = column;
        let mut shift = 0;
        for insertion in self.insertions[first..].iter().take_while(|insertion| insertion.line == line) {
            let generated = insertion.column + shift;
            if column < generated {
                break;
            }
            shift += insertion.length;
            if column < generated + insertion.length {
                column = generated + insertion.length;
                break;
            }
        }
        column -= shift.min(column.saturating_sub(1));
        let after = self.tokens.partition_point(|(generated, _)| *generated <= (line, column));
        match after.checked_sub(1).map(|index| self.tokens[index]) {
            Some(((generated_line, generated_column), (to_line, to_column))) if generated_line == line => {
                (to_line, to_column + (column - generated_column))
            }
            Some((_, original)) => original,
            None => (line, column),
        }
    }
}

/// Separates a file's name from the number of its evaluated text in the names that QuickJS gets.
const MARK: char = '\u{1}';

/// All maps of a session, by the name that QuickJS has for the text.
#[derive(Default)]
pub(super) struct SourceMaps {
    maps: HashMap<String, FileMap>,
    last: u64,
}

impl SourceMaps {
    /// Stores a map; returns the name under which to evaluate the text.
    pub(super) fn add(&mut self, file_name: &str, map: FileMap) -> String {
        if map.insertions.is_empty() && map.tokens.is_empty() {
            return file_name.to_owned();
        }
        self.add_always(file_name, map)
    }

    /// Stores a map under a unique name.
    pub(super) fn add_always(&mut self, file_name: &str, map: FileMap) -> String {
        self.last += 1;
        let name = format!("{file_name}{MARK}{}", self.last);
        self.maps.insert(name.clone(), map);
        name
    }

    /// Stores a map under the file's name.
    pub(super) fn set(&mut self, file_name: &str, map: FileMap) {
        if map.insertions.is_empty() && map.tokens.is_empty() {
            self.maps.remove(file_name);
        } else {
            self.maps.insert(file_name.to_owned(), map);
        }
    }

    /// The map under a name.
    pub(super) fn get(&self, name: &str) -> Option<&FileMap> {
        self.maps.get(name)
    }

    /// A position in the original text.
    pub(super) fn original<'a>(&self, name: &'a str, line: u32, column: u32) -> (&'a str, u32, u32) {
        let (line, column) = self.maps.get(name).map_or((line, column), |map| map.original(line, column));
        (shown_name(name), line, column)
    }
}

/// A file's name without the number of its text.
pub(super) fn shown_name(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{FileMap, Insertion};

    #[test]
    fn columns_after_an_insertion_are_mapped_back() {
        let map = FileMap {
            insertions: vec![
                Insertion { line: 2, column: 1, length: 4 },
                Insertion { line: 2, column: 10, length: 2 },
            ],
            tokens: Vec::new(),
        };
        assert_eq!(map.original(1, 7), (1, 7));
        assert_eq!(map.original(2, 1), (2, 1));
        assert_eq!(map.original(2, 5), (2, 1));
        assert_eq!(map.original(2, 8), (2, 4));
        assert_eq!(map.original(2, 16), (2, 10));
        assert_eq!(map.original(3, 2), (3, 2));
    }

    #[test]
    fn tokens_map_to_the_line_before_the_types_were_removed() {
        let map = FileMap {
            insertions: Vec::new(),
            tokens: vec![((1, 1), (3, 1)), ((1, 7), (3, 20)), ((2, 1), (9, 1))],
        };
        assert_eq!(map.original(1, 9), (3, 22));
        assert_eq!(map.original(2, 4), (9, 4));
    }
}
