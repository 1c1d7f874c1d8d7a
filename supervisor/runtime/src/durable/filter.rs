//! Patterns of `fs.listFiles`. A program is not trusted: its pattern has a bounded length,
//! and matching takes time in proportion to the lengths of pattern and path, from a budget of the whole list.
//! Must not know files.

/// Longest pattern (bytes); a longer one is not needed for any path.
const PATTERN_BYTES: usize = 4096;
/// Budget of one list: characters of its paths times pieces of its pattern.
const WORK: u64 = 50_000_000;

/// A piece of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// This character.
    Is(char),
    /// `?`: one character of a name.
    One,
    /// `*`: any characters of a name.
    Star,
    /// `**`: any characters.
    All,
    /// `**/`, which also matches nothing.
    Folders,
    /// After [`Piece::Folders`]: names, up to the end of one of them.
    Through,
}

/// A pattern, and the rest of its budget.
#[derive(Debug)]
pub(super) struct Filter {
    pieces: Vec<Piece>,
    /// The pieces that may come next; the entry after the last piece means a complete match.
    now: Vec<bool>,
    next: Vec<bool>,
    left: u64,
}

impl Filter {
    /// `*` and `?` within a part of the path, `**` over parts. `None`: too long.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        if pattern.len() > PATTERN_BYTES {
            return None;
        }
        let mut pieces = Vec::new();
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            let (length, piece) = match first {
                '*' if rest.starts_with("**/") => (3, Piece::Folders),
                '*' if rest.starts_with("**") => (2, Piece::All),
                '*' => (1, Piece::Star),
                '?' => (1, Piece::One),
                other => (other.len_utf8(), Piece::Is(other)),
            };
            // A second star changes nothing.
            let again = matches!(piece, Piece::Star | Piece::All) && pieces.last() == Some(&piece);
            if !again {
                pieces.push(piece);
            }
            if piece == Piece::Folders {
                pieces.push(Piece::Through);
            }
            rest = &rest[length..];
        }
        let places = pieces.len() + 1;
        Some(Self { pieces, now: vec![false; places], next: vec![false; places], left: WORK })
    }

    /// Whether a path matches. `None`: the budget is used up.
    pub(super) fn fits(&mut self, path: &str) -> Option<bool> {
        self.now.fill(false);
        self.now[0] = true;
        self.skip();
        for character in path.chars() {
            self.left = self.left.checked_sub(self.now.len() as u64)?;
            if !self.take(character) {
                return Some(false);
            }
            self.skip();
        }
        Some(self.now[self.pieces.len()])
    }

    /// After a piece that may match nothing the next piece is possible too.
    fn skip(&mut self) {
        for (at, piece) in self.pieces.iter().enumerate() {
            if self.now[at] {
                match piece {
                    Piece::Star | Piece::All => self.now[at + 1] = true,
                    Piece::Folders => (self.now[at + 1], self.now[at + 2]) = (true, true),
                    Piece::Is(_) | Piece::One | Piece::Through => {}
                }
            }
        }
    }

    /// Consumes one character; returns whether a match is still possible.
    fn take(&mut self, character: char) -> bool {
        self.next.fill(false);
        let name = character != '/';
        let mut alive = false;
        for (at, piece) in self.pieces.iter().enumerate().filter(|(at, _)| self.now[*at]) {
            let (stays, goes_on) = match piece {
                Piece::Is(wanted) => (false, *wanted == character),
                Piece::One => (false, name),
                Piece::Star => (name, false),
                Piece::All => (true, false),
                Piece::Folders => (false, false),
                Piece::Through => (true, !name),
            };
            self.next[at] |= stays;
            self.next[at + 1] |= goes_on;
            alive |= stays || goes_on;
        }
        std::mem::swap(&mut self.now, &mut self.next);
        alive
    }
}

#[cfg(test)]
mod tests {
    use super::{Filter, PATTERN_BYTES, WORK};

    fn fits(pattern: &str, path: &str) -> bool {
        Filter::new(pattern).expect("not too long").fits(path).expect("within its budget")
    }

    #[test]
    fn stars_stay_in_a_part_of_the_path_and_two_do_not() {
        for (pattern, path) in [
            ("*.ts", "a.ts"),
            ("**/*.ts", "a.ts"),
            ("**/*.ts", "x/y/a.ts"),
            ("src/**/a.ts", "src/a.ts"),
            ("src/**/a.ts", "src/x/y/a.ts"),
            ("src/*/a?.js", "src/x/ab.js"),
            ("**", "x/y"),
            ("src**", "src/x/y"),
            ("*", "x"),
            ("a*b*c", "aXbYbc"),
            ("?", "ü"),
        ] {
            assert!(fits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.ts", "x/a.ts"),
            ("*", "x/y"),
            ("a?c", "a/c"),
            ("src/*.js", "src/x/a.js"),
            ("**/a.ts", "xa.ts"),
            ("", "a"),
            ("a", ""),
            ("a", "ab"),
        ] {
            assert!(!fits(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_has_a_length() {
        assert!(Filter::new(&"*".repeat(PATTERN_BYTES)).is_some());
        assert!(Filter::new(&format!("a{}b", "*".repeat(7_000_000))).is_none());
    }

    #[test]
    fn stars_cost_at_most_the_product_of_both_lengths() {
        let pattern = "**/*a?*b*".repeat(PATTERN_BYTES / 16);
        let path = "aaab/".repeat(PATTERN_BYTES / 5);
        let mut filter = Filter::new(&pattern).expect("not too long");
        assert!(filter.fits(&path).is_some());
        assert!(WORK - filter.left <= (pattern.len() * path.len()) as u64);
    }

    #[test]
    fn list_has_a_budget() {
        let mut filter = Filter::new("*a?").expect("not too long");
        filter.left = 4 * 2 * 3;
        assert_eq!([(); 3].map(|()| filter.fits("aaa")), [Some(true), Some(true), None]);
    }
}
