//! Path patterns: which names beneath the worktree a right covers.
//!
//! A pattern consists of names separated by `/`. In a name `*` matches any characters and `?` one; a name
//! `**` matches any number of names, none included, so that `data/**` covers `data` itself. There is no other
//! syntax: `[`, `{`, `!` and `\` are refused, so that no pattern of another notation is misread.
//!
//! Patterns are compared with the path as written, after `.` and `..` are resolved in the
//! text; the broker then refuses symbolic links, so that a file has no other name.

use std::fmt;

/// Most patterns of one list.
pub const MAX_PATTERNS: usize = 64;
/// Longest pattern (bytes).
pub const MAX_PATTERN_BYTES: usize = 1_024;

/// One pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `**`.
    AnyNames,
    /// A name, possibly with `*` and `?`.
    Name(String),
}

impl Pattern {
    /// Parses a pattern; the error is a message for users.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > MAX_PATTERN_BYTES {
            return Err(format!("a pattern has 1 to {MAX_PATTERN_BYTES} bytes"));
        }
        if let Some(strange) = text.chars().find(|char| "[]{}!\\".contains(*char) || char.is_control()) {
            return Err(format!("{text:?}: {strange:?} has no meaning in a pattern; there are *, ? and **"));
        }
        if text.starts_with('/') {
            return Err(format!("{text:?}: patterns are relative to the worktree"));
        }
        let mut parts = Vec::new();
        for name in text.trim_end_matches('/').split('/') {
            match name {
                "" | "." => {}
                ".." => return Err(format!("{text:?}: a pattern does not leave the worktree")),
                "**" if parts.last() == Some(&Part::AnyNames) => {}
                "**" => parts.push(Part::AnyNames),
                name if name.contains("**") => {
                    return Err(format!("{text:?}: ** matches whole names, between slashes"));
                }
                name => parts.push(Part::Name(name.to_owned())),
            }
        }
        Ok(Self(parts))
    }

    /// Whether the pattern covers a path, given by its names. Takes time in proportion to names × parts.
    fn covers(&self, names: &[&str]) -> bool {
        wildcard(
            &self.0,
            names,
            |part| *part == Part::AnyNames,
            |part, name| match part {
                Part::AnyNames => true,
                Part::Name(pattern) => name_matches(pattern, name),
            },
        )
    }

    /// Whether the pattern surely covers a path and everything beneath it: the pattern ends in `**` and covers
    /// the path, so that `**` also matches everything beneath.
    fn covers_tree(&self, names: &[&str]) -> bool {
        self.0.last() == Some(&Part::AnyNames) && self.covers(names)
    }

    /// Whether the pattern covers the first 0, 1, 2… names of a path. Computed together in time names × parts: separately it
    /// would be names × names × parts.
    fn covers_prefixes(&self, names: &[&str]) -> Vec<bool> {
        let parts = &self.0;
        // The numbers of first parts of the pattern that can match the names so far.
        let mut reached = vec![false; parts.len() + 1];
        reached[0] = true;
        let pass_any = |reached: &mut [bool]| {
            for (at, part) in parts.iter().enumerate() {
                reached[at + 1] |= reached[at] && *part == Part::AnyNames;
            }
        };
        pass_any(&mut reached);
        let mut covered = vec![reached[parts.len()]];
        for name in names {
            let mut next = vec![false; parts.len() + 1];
            for (at, part) in parts.iter().enumerate().filter(|(at, _)| reached[*at]) {
                match part {
                    Part::AnyNames => next[at] = true,
                    Part::Name(pattern) => next[at + 1] |= name_matches(pattern, name),
                }
            }
            pass_any(&mut next);
            covered.push(next[parts.len()]);
            reached = next;
        }
        covered
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        for (index, part) in self.0.iter().enumerate() {
            let slash = if index == 0 { "" } else { "/" };
            match part {
                Part::AnyNames => write!(f, "{slash}**")?,
                Part::Name(name) => write!(f, "{slash}{name}")?,
            }
        }
        Ok(())
    }
}

fn name_matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == name;
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    wildcard(&pattern, &name, |part| *part == '*', |part, char| *part == '?' || part == char)
}

/// Matching with one kind of wildcard. Backtracking to the last wildcard is sufficient: at worst quadratic.
fn wildcard<P, T>(
    pattern: &[P],
    text: &[T],
    is_any: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut last_any: Option<(usize, usize)> = None;
    while seen < text.len() {
        if at < pattern.len() && is_any(&pattern[at]) {
            last_any = Some((at, seen));
            at += 1;
        } else if at < pattern.len() && fits(&pattern[at], &text[seen]) {
            at += 1;
            seen += 1;
        } else if let Some((any, from)) = last_any {
            last_any = Some((any, from + 1));
            at = any + 1;
            seen = from + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(is_any)
}

/// The paths of one right: every layer must cover a path by one of its patterns. Layers come from the intersection of
/// the session's copy and the template as it is now, and from rows that narrow each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathRules(Vec<Vec<Pattern>>);

impl PathRules {
    /// The whole worktree.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The paths that one list of patterns covers.
    pub fn one(patterns: Vec<Pattern>) -> Self {
        let all = patterns.iter().any(|pattern| pattern.0 == [Part::AnyNames]);
        Self(if all { Vec::new() } else { vec![patterns] })
    }

    /// The paths that both cover.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for layer in &other.0 {
            if !self.0.contains(layer) {
                self.0.push(layer.clone());
            }
        }
        self
    }

    /// Whether everything is covered, so that links may be followed.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a path is covered.
    pub fn cover(&self, path: &CleanPath) -> bool {
        let names = path.names();
        self.0.iter().all(|layer| layer.iter().any(|pattern| pattern.covers(&names)))
    }

    /// Whether a path and everything that could be beneath it is covered.
    pub fn cover_tree(&self, path: &CleanPath) -> bool {
        let names = path.names();
        self.0.iter().all(|layer| layer.iter().any(|pattern| pattern.covers_tree(&names)))
    }

    /// The number of first names of a path that are not covered as folders themselves: these folders must exist already when
    /// the path is created with its folders.
    pub fn uncovered_levels(&self, path: &CleanPath) -> u32 {
        let names = path.names();
        let layers: Vec<Vec<Vec<bool>>> = self
            .0
            .iter()
            .map(|layer| layer.iter().map(|pattern| pattern.covers_prefixes(&names)).collect())
            .collect();
        let covered = |len: usize| layers.iter().all(|layer| layer.iter().any(|prefixes| prefixes[len]));
        let levels = (1..=names.len()).rev().take_while(|len| covered(*len)).count();
        u32::try_from(names.len() - levels).unwrap_or(u32::MAX)
    }
}

impl fmt::Display for PathRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("**");
        }
        for (index, layer) in self.0.iter().enumerate() {
            let patterns: Vec<String> = layer.iter().map(ToString::to_string).collect();
            write!(f, "{}{}", if index == 0 { "" } else { " and " }, patterns.join(", "))?;
        }
        Ok(())
    }
}

/// A path without `.`, `..` and empty names; empty for the worktree itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanPath(String);

impl CleanPath {
    /// `None`: the text leaves the worktree, or is not a path. Only correct if no name of the path is a symbolic
    /// link.
    pub fn of(path: &str) -> Option<Self> {
        if path.is_empty() || path.starts_with('/') || path.contains('\0') {
            return None;
        }
        let mut names: Vec<&str> = Vec::new();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop()?;
                }
                name => names.push(name),
            }
        }
        Some(Self(names.join("/")))
    }

    fn names(&self) -> Vec<&str> {
        if self.0.is_empty() { Vec::new() } else { self.0.split('/').collect() }
    }

    /// The form for the broker.
    pub fn as_str(&self) -> &str {
        if self.0.is_empty() { "." } else { &self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: &[&str]) -> PathRules {
        PathRules::one(patterns.iter().map(|text| Pattern::parse(text).expect(text)).collect())
    }

    fn path(text: &str) -> CleanPath {
        CleanPath::of(text).expect(text)
    }

    #[test]
    fn patterns_match_their_paths() {
        for (pattern, covered, not) in [
            (
                "data/**",
                &["data", "data/a", "data/a/b.csv", "data/./x", "x/../data/y"][..],
                &["dat", "datax", "x/data"][..],
            ),
            ("*.csv", &["a.csv", ".csv", "ä.csv"], &["a.csv/b", "d/a.csv", "csv"]),
            ("**/*.js", &["a.js", "d/a.js", "d/e/a.js"], &["a.ts", "a.js/x"]),
            ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["a", "b", "a/b/c"]),
            ("a?c/*", &["abc/x", "aäc/x"], &["ac/x", "abc", "abc/x/y"]),
            ("**/a/**/b/**", &["a/b", "x/a/y/b/z"], &["b/a", "a"]),
        ] {
            let rules = rules(&[pattern]);
            for text in covered {
                assert!(rules.cover(&path(text)), "{pattern} covers {text}");
            }
            for text in not {
                assert!(!rules.cover(&path(text)), "{pattern} does not cover {text}");
            }
        }
        assert!(rules(&["**"]).is_everything() && rules(&["x", "**"]).is_everything());
        assert!(!rules(&[]).cover(&path("a")), "no pattern covers nothing");
    }

    #[test]
    fn trees_are_covered_only_by_a_last_double_star() {
        assert!(rules(&["out/**"]).cover_tree(&path("out")));
        assert!(rules(&["out/**"]).cover_tree(&path("out/deep/er")));
        assert!(rules(&["*/tmp/**"]).cover_tree(&path("a/tmp/x")));
        for (pattern, text) in [("out/*", "out/a"), ("out/a", "out/a"), ("out/**/x", "out"), ("out/**", ".")]
        {
            assert!(!rules(&[pattern]).cover_tree(&path(text)), "{pattern} {text}");
        }
        assert!(PathRules::everything().cover_tree(&path(".")));
    }

    #[test]
    fn uncovered_levels_are_counted_from_the_worktree() {
        assert_eq!(rules(&["a/b/**"]).uncovered_levels(&path("a/b/c/d")), 1);
        assert_eq!(rules(&["a/b/*"]).uncovered_levels(&path("a/b/c")), 2);
        assert_eq!(PathRules::everything().uncovered_levels(&path("a/b")), 0);
        assert_eq!(rules(&["a/**"]).uncovered_levels(&path("x")), 1);
    }

    #[test]
    fn prefixes_are_covered_as_paths_of_their_own() {
        let path = path("a/b/a/a/b/c");
        let names = path.names();
        for text in [
            "**",
            "a/**",
            "**/a",
            "**/a/**",
            "a/**/b",
            "a/*/**/?/b",
            "*/b/a/a/b/c",
            "**/a/**/b/**/c",
            "x",
            "*",
        ] {
            let pattern = Pattern::parse(text).expect(text);
            let one_by_one: Vec<bool> = (0..=names.len()).map(|len| pattern.covers(&names[..len])).collect();
            assert_eq!(pattern.covers_prefixes(&names), one_by_one, "{text}");
        }
    }

    #[test]
    fn unsupported_patterns_are_refused() {
        for text in ["", "/etc/**", "../x", "a/../b", "a[b]", "{a,b}", "!x", "a\\b", "a**b", "x\n"] {
            assert!(Pattern::parse(text).is_err(), "{text:?}");
        }
        assert!(Pattern::parse(&"a".repeat(MAX_PATTERN_BYTES + 1)).is_err());
    }

    #[test]
    fn paths_that_leave_the_worktree_have_no_clean_form() {
        for text in ["", "/", "/a", "..", "a/../..", "../a", "a\0b"] {
            assert_eq!(CleanPath::of(text), None, "{text:?}");
        }
        assert_eq!(path("./a//b/../c/").as_str(), "a/c");
        assert_eq!(path("a/..").as_str(), ".");
    }

    #[test]
    fn pattern_with_many_stars_takes_no_exponential_time() {
        let rules = rules(&[&"*a".repeat(200), &"**/a/".repeat(100)]);
        assert!(!rules.cover(&path(&"a".repeat(2_000).replace("aa", "ab"))));
        assert!(!rules.cover(&path(&"b/".repeat(2_000))));
    }
}
