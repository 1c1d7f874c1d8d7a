//! Path patterns: which names beneath the worktree a right covers.
//!
//! A pattern consists of names separated by `/`. In a name `*` matches any characters and `?` one; a name
//! `**` matches any number of names, none included, so that `data/**` covers `data` itself. There is no other
//! syntax: `[`, `{`, `!` and `\` are refused, so that no pattern of another notation is misread.
//!
//! Patterns are compared with the path as written, after `.` and `..` are resolved in the
//! text; the broker then refuses symbolic links, so that a file has no other name.
//!
//! Patterns come from a template and paths from a script: a comparison has a budget, and a path that exhausts it is not covered.

use std::fmt;
use std::str::Chars;

/// Most patterns of one list.
pub const MAX_PATTERNS: usize = 64;
/// Longest pattern (bytes).
pub const MAX_PATTERN_BYTES: usize = 1_024;
/// Most names of a pattern, `**` included.
pub const MAX_PARTS: usize = 32;
/// Most names of a path that is compared with patterns.
pub const MAX_NAMES: usize = 256;

/// The steps that the comparisons for one call may take: about one per name and part that can match it, and one per character of
/// names with wildcards.
#[derive(Debug, Clone, Copy)]
pub struct PathBudget(u32);

/// A path was not compared with all patterns: it has too many names, or the budget is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the path takes too long to compare with the patterns of the template")]
pub struct PathTooLong;

impl PathBudget {
    /// For one path of one call: some tenths of a millisecond. 64 patterns of six parts and a path of ten names take a tenth of it.
    pub const fn one_path() -> Self {
        Self(1 << 16)
    }

    /// For all candidates of a module together.
    pub const fn candidates() -> Self {
        Self(1 << 20)
    }

    fn spend(&mut self, steps: usize) -> Result<(), PathTooLong> {
        let left = u32::try_from(steps).ok().and_then(|steps| self.0.checked_sub(steps));
        self.0 = left.unwrap_or(0);
        left.map(drop).ok_or(PathTooLong)
    }

    #[cfg(test)]
    fn left(self) -> u32 {
        self.0
    }
}

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
        if parts.len() > MAX_PARTS {
            return Err(format!("a pattern has at most {MAX_PARTS} names, and this one has {}", parts.len()));
        }
        Ok(Self(parts))
    }

    /// Whether the pattern covers a path, given by its names.
    fn covers(&self, names: &[&str], budget: &mut PathBudget) -> Result<bool, PathTooLong> {
        self.each_prefix(names, budget, |_| {})
    }

    /// Whether the pattern surely covers a path and everything beneath it: the pattern ends in `**` and covers
    /// the path, so that `**` also matches everything beneath.
    fn covers_tree(&self, names: &[&str], budget: &mut PathBudget) -> Result<bool, PathTooLong> {
        Ok(self.0.last() == Some(&Part::AnyNames) && self.covers(names, budget)?)
    }

    /// Reports whether the pattern covers the first 0, 1, 2… names of a path, and returns the last one. All are computed together,
    /// in time names × parts: separately it would be names × names × parts.
    fn each_prefix(
        &self,
        names: &[&str],
        budget: &mut PathBudget,
        mut report: impl FnMut(bool),
    ) -> Result<bool, PathTooLong> {
        let parts = &self.0;
        // One bit for each number of first parts that can match the names so far; a pattern has fewer than 64.
        let whole = 1_u64 << parts.len();
        let pass_any = |mut reached: u64| {
            for (at, part) in parts.iter().enumerate() {
                if *part == Part::AnyNames && reached & (1 << at) != 0 {
                    reached |= 1 << (at + 1);
                }
            }
            reached
        };
        budget.spend(1 + parts.len() / 8)?;
        let mut reached = pass_any(1);
        report(reached & whole != 0);
        for (index, name) in names.iter().enumerate() {
            if reached == 0 {
                // Nothing longer is covered either.
                names[index..].iter().for_each(|_| report(false));
                return Ok(false);
            }
            let mut next = 0;
            for (at, part) in parts.iter().enumerate().filter(|(at, _)| reached & (1 << at) != 0) {
                match part {
                    Part::AnyNames => {
                        budget.spend(1)?;
                        next |= 1 << at;
                    }
                    Part::Name(pattern) if name_matches(pattern, name, budget)? => next |= 1 << (at + 1),
                    Part::Name(_) => {}
                }
            }
            reached = pass_any(next);
            report(reached & whole != 0);
        }
        Ok(reached & whole != 0)
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

/// Whether a name with `*` and `?` matches. Backtracking to the last `*` is sufficient: at worst quadratic, within the budget.
fn name_matches(pattern: &str, name: &str, budget: &mut PathBudget) -> Result<bool, PathTooLong> {
    if !pattern.contains(['*', '?']) {
        budget.spend(1)?;
        return Ok(pattern == name);
    }
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // The pattern behind the last `*`, and the rest of the name from which on it was tried.
    let mut last_any: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        budget.spend(1)?;
        let Some(char) = name.clone().next() else { return Ok(pattern.all(|part| part == '*')) };
        match (pattern.next(), &mut last_any) {
            (Some('*'), _) => last_any = Some((pattern.clone(), name.clone())),
            (Some(part), _) if part == '?' || part == char => {
                name.next();
            }
            (_, Some((after, from))) => {
                from.next();
                (pattern, name) = (after.clone(), from.clone());
            }
            (_, None) => return Ok(false),
        }
    }
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

    /// Whether a path is covered; one that takes too long to compare is not.
    pub fn cover(&self, path: &CleanPath) -> bool {
        self.covers(path, &mut PathBudget::one_path()) == Ok(true)
    }

    /// Whether a path is covered, within a budget.
    pub fn covers(&self, path: &CleanPath, budget: &mut PathBudget) -> Result<bool, PathTooLong> {
        self.in_each_layer(path, |pattern, names| pattern.covers(names, budget))
    }

    /// Whether a path and everything that could be beneath it is covered.
    pub fn covers_tree(&self, path: &CleanPath, budget: &mut PathBudget) -> Result<bool, PathTooLong> {
        self.in_each_layer(path, |pattern, names| pattern.covers_tree(names, budget))
    }

    /// Whether each layer has a pattern for which this holds.
    fn in_each_layer(
        &self,
        path: &CleanPath,
        mut holds: impl FnMut(&Pattern, &[&str]) -> Result<bool, PathTooLong>,
    ) -> Result<bool, PathTooLong> {
        let names = self.names_of(path)?;
        for layer in &self.0 {
            let mut any = false;
            for pattern in layer {
                any = any || holds(pattern, &names)?;
            }
            if !any {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The names of a path, if they are to be compared with patterns and are not too many.
    fn names_of<'p>(&self, path: &'p CleanPath) -> Result<Vec<&'p str>, PathTooLong> {
        if self.is_everything() {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = path.names().take(MAX_NAMES + 1).collect();
        if names.len() > MAX_NAMES { Err(PathTooLong) } else { Ok(names) }
    }

    /// The number of first names of a path that are not covered as folders themselves: these folders must exist already when
    /// the path is created with its folders.
    pub fn uncovered_levels(&self, path: &CleanPath, budget: &mut PathBudget) -> Result<u32, PathTooLong> {
        let names = self.names_of(path)?;
        // By number of names: whether all layers so far cover them.
        let mut covered = vec![true; names.len() + 1];
        for layer in &self.0 {
            let mut any = vec![false; names.len() + 1];
            for pattern in layer {
                let mut len = 0;
                pattern.each_prefix(&names, budget, |covers| {
                    any[len] |= covers;
                    len += 1;
                })?;
            }
            covered.iter_mut().zip(any).for_each(|(all, any)| *all &= any);
        }
        let levels = covered.iter().skip(1).rev().take_while(|covered| **covered).count();
        Ok(u32::try_from(names.len() - levels).unwrap_or(u32::MAX))
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
    pub fn parse(path: &str) -> Option<Self> {
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

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
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
        CleanPath::parse(text).expect(text)
    }

    fn tree(rules: &PathRules, text: &str) -> bool {
        rules.covers_tree(&path(text), &mut PathBudget::one_path()).expect("a short path")
    }

    fn levels(rules: &PathRules, text: &str) -> u32 {
        rules.uncovered_levels(&path(text), &mut PathBudget::one_path()).expect("a short path")
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
        assert!(tree(&rules(&["out/**"]), "out"));
        assert!(tree(&rules(&["out/**"]), "out/deep/er"));
        assert!(tree(&rules(&["*/tmp/**"]), "a/tmp/x"));
        for (pattern, text) in [("out/*", "out/a"), ("out/a", "out/a"), ("out/**/x", "out"), ("out/**", ".")]
        {
            assert!(!tree(&rules(&[pattern]), text), "{pattern} {text}");
        }
        assert!(tree(&PathRules::everything(), "."));
    }

    #[test]
    fn uncovered_levels_are_counted_from_the_worktree() {
        assert_eq!(levels(&rules(&["a/b/**"]), "a/b/c/d"), 1);
        assert_eq!(levels(&rules(&["a/b/*"]), "a/b/c"), 2);
        assert_eq!(levels(&PathRules::everything(), "a/b"), 0);
        assert_eq!(levels(&rules(&["a/**"]), "x"), 1);
    }

    #[test]
    fn prefixes_are_covered_as_paths_of_their_own() {
        let path = path("a/b/a/a/b/c");
        let names: Vec<&str> = path.names().collect();
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
            let mut budget = PathBudget::one_path();
            let one_by_one: Vec<bool> = (0..=names.len())
                .map(|len| pattern.covers(&names[..len], &mut budget).expect("a short path"))
                .collect();
            let mut together = Vec::new();
            pattern.each_prefix(&names, &mut budget, |covers| together.push(covers)).expect("a short path");
            assert_eq!(together, one_by_one, "{text}");
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
            assert_eq!(CleanPath::parse(text), None, "{text:?}");
        }
        assert_eq!(path("./a//b/../c/").as_str(), "a/c");
        assert_eq!(path("a/..").as_str(), ".");
    }

    #[test]
    fn patterns_with_too_many_names_are_refused() {
        assert!(Pattern::parse(&["a"; MAX_PARTS].join("/")).is_ok());
        let refused = Pattern::parse(&format!("**/{}z", "?/".repeat(500))).expect_err("too many");
        assert!(refused.contains("at most 32 names"), "{refused}");
    }

    #[test]
    fn hostile_patterns_and_paths_are_not_covered_within_the_budget() {
        let long = path(&format!("{}a", "a/".repeat(MAX_NAMES)));
        let list = |pattern: &str| rules(&vec![pattern; MAX_PATTERNS]);
        let budget = &mut PathBudget::one_path();
        assert_eq!(list("**/z").covers(&long, budget), Err(PathTooLong));
        assert_eq!(budget.left(), 1 << 16, "refused before the comparison");
        assert!(PathRules::everything().cover(&long), "nothing is compared");
        // As many names as there may be, and patterns that can match each in many ways.
        let names = path(&format!("{}b", "a/".repeat(MAX_NAMES - 1)));
        for hostile in [format!("**/{}z", "?/".repeat(30)), format!("{}z", "**/?/".repeat(15))] {
            let rules = list(&hostile);
            assert_eq!(rules.covers(&names, &mut PathBudget::one_path()), Err(PathTooLong));
            assert_eq!(rules.covers_tree(&names, &mut PathBudget::one_path()), Ok(false));
            let levels = rules.uncovered_levels(&names, &mut PathBudget::one_path());
            assert_eq!(levels, Err(PathTooLong));
            assert!(!rules.cover(&names));
        }
        // One name, quadratic.
        let stars = list(&"*a".repeat(500));
        let name = path(&"ab".repeat(127));
        assert_eq!(stars.covers(&name, &mut PathBudget::one_path()), Ok(false));
        assert!(!list(&format!("{}b", "*a".repeat(200))).cover(&path(&"a".repeat(4_000))));
    }

    #[test]
    fn large_lists_and_deep_paths_fit_into_the_budget() {
        let patterns: Vec<String> =
            (0..MAX_PATTERNS).map(|n| format!("packages/*/src/**/part-{n}/*.generated.ts")).collect();
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let rules = rules(&patterns);
        let mut budget = PathBudget::one_path();
        let file = path("packages/some-name/src/deep/er/and/still/deeper/part-63/file.generated.ts");
        assert_eq!(rules.covers(&file, &mut budget), Ok(true));
        assert_eq!(rules.covers_tree(&file, &mut budget), Ok(false));
        assert_eq!(rules.uncovered_levels(&file, &mut budget), Ok(9));
        assert!(budget.left() > 1 << 15, "{}", budget.left());
    }
}
