//! The source of a program of several files, as one text: it is stored, hashed, shown and exported as any other source.
//!
//! ```text
//! //@vm-system-program 1
//! //@file 41 main.ts
//! import { tax } from "./lib/tax.ts"; …
//! //@file 22 lib/tax.ts
//! export const tax = 7;
//! ```
//!
//! The number is the length of the file's text in bytes; a line feed follows the text. The first file is the entry, where the
//! program begins; the others are sorted by name, so that equal files have equal sources. A name is relative to the folder of the
//! entry: `lib/tax.ts`, `../shared/money.ts`. A text without the first line is a program of one file.

/// First line of the source of a program of several files.
const HEADER: &str = "//@vm-system-program 1\n";
const FILE: &str = "//@file ";

/// Most files of a program.
pub const PROGRAM_FILES: usize = 1_000;
/// Longest name of a program's file (characters).
pub const PROGRAM_FILE_NAME_CHARS: usize = 1_000;

/// Why files are no source of a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramSourceError {
    #[error("a program has at most {PROGRAM_FILES} files")]
    TooMany,
    #[error(
        "{0:?} is no name of a program's file: it is a path relative to the folder of the program's source"
    )]
    Name(String),
    #[error("the file {0:?} is there twice")]
    Twice(String),
    #[error("the source of several files is damaged at byte {0}")]
    Damaged(usize),
}

/// A name without `.` and with `..` only at its beginning; none if it names no file. The description of the REST API has the same
/// rule as a pattern, so it depends on the last part alone.
fn normal(name: &str) -> Option<String> {
    let is_text = name.chars().count() <= PROGRAM_FILE_NAME_CHARS && !name.chars().any(char::is_control);
    let last = name.rsplit('/').next().unwrap_or_default();
    if !is_text || name.starts_with('/') || matches!(last, "" | "." | "..") {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split('/') {
        match part {
            "" => return None,
            "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The source of a program with the text `source` in the file `entry`, which may import the other files.
pub fn joined(
    entry: &str,
    source: &str,
    others: impl IntoIterator<Item = (String, String)>,
) -> Result<String, ProgramSourceError> {
    let named = |name: &str| normal(name).ok_or_else(|| ProgramSourceError::Name(name.to_owned()));
    let entry = named(entry)?;
    let mut files = Vec::new();
    for (name, text) in others {
        files.push((named(&name)?, text));
    }
    if files.len() >= PROGRAM_FILES {
        return Err(ProgramSourceError::TooMany);
    }
    files.sort();
    let names = files.iter().map(|(name, _)| name);
    let twice = files.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| &pair[0].0);
    if let Some(name) = twice.or_else(|| names.clone().find(|name| **name == entry)) {
        return Err(ProgramSourceError::Twice(name.clone()));
    }
    let mut out = HEADER.to_owned();
    let files = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    for (name, text) in std::iter::once((entry.as_str(), source)).chain(files) {
        out.push_str(FILE);
        out.push_str(&text.len().to_string());
        out.push(' ');
        out.push_str(name);
        out.push('\n');
        out.push_str(text);
        out.push('\n');
    }
    Ok(out)
}

/// Names and texts of the files, the entry first; none for a program of one file.
pub fn files(source: &str) -> Result<Option<Vec<(&str, &str)>>, ProgramSourceError> {
    let Some(mut rest) = source.strip_prefix(HEADER) else { return Ok(None) };
    let mut files: Vec<(&str, &str)> = Vec::new();
    while !rest.is_empty() || files.is_empty() {
        let at = source.len() - rest.len();
        let file = file(rest).ok_or(ProgramSourceError::Damaged(at))?;
        let (name, text, after) = file;
        if normal(name).as_deref() != Some(name) {
            return Err(ProgramSourceError::Name(name.chars().take(PROGRAM_FILE_NAME_CHARS).collect()));
        }
        // The others are in order: none is there twice.
        if files.len() > 1 && files.last().is_some_and(|(last, _)| *last >= name)
            || files.first().is_some_and(|(entry, _)| *entry == name)
        {
            return Err(ProgramSourceError::Twice(name.to_owned()));
        }
        files.push((name, text));
        if files.len() > PROGRAM_FILES {
            return Err(ProgramSourceError::TooMany);
        }
        rest = after;
    }
    Ok(Some(files))
}

/// Name, text, and what follows.
fn file(text: &str) -> Option<(&str, &str, &str)> {
    let (line, rest) = text.strip_prefix(FILE)?.split_once('\n')?;
    let (bytes, name) = line.split_once(' ')?;
    // As `joined` writes it: no sign, no zeros before it.
    let length: usize = bytes.parse().ok().filter(|length: &usize| length.to_string() == bytes)?;
    let (text, after) = rest.split_at_checked(length)?;
    Some((name, text, after.strip_prefix('\n')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn files_come_back_in_a_fixed_order() {
        let others =
            [("./lib/b.js", "//@file 3 evil.js\nx"), ("lib/./a.js", "é\n"), ("x/../../out.json", "")];
        let source = joined("main.ts", "1\n", owned(&others)).unwrap();
        let parts = files(&source).unwrap().unwrap();
        let expected = [
            ("main.ts", "1\n"),
            ("../out.json", ""),
            ("lib/a.js", "é\n"),
            ("lib/b.js", "//@file 3 evil.js\nx"),
        ];
        assert_eq!(parts, expected);
        let mut reversed = owned(&others);
        reversed.reverse();
        assert_eq!(joined("./main.ts", "1\n", reversed).unwrap(), source);
        assert_eq!(files("let a = 1;"), Ok(None));
    }

    #[test]
    fn names_that_are_no_files_and_names_that_are_there_twice_are_refused() {
        for name in [
            "",
            "/etc/x.js",
            "a/",
            "..",
            "a/..",
            "a/b/..",
            "a/.",
            "a//b",
            "a\nb",
            "a/../..",
            &"x".repeat(1_001),
        ] {
            let refused = joined("main.js", "", owned(&[(name, "")]));
            assert_eq!(refused, Err(ProgramSourceError::Name(name.to_owned())), "{name}");
        }
        let twice = |name: &str| Err(ProgramSourceError::Twice(name.to_owned()));
        assert_eq!(joined("main.js", "", owned(&[("./main.js", "")])), twice("main.js"));
        assert_eq!(joined("main.js", "", owned(&[("a.js", ""), ("./a.js", "x")])), twice("a.js"));
        let many = (0..PROGRAM_FILES).map(|n| (format!("{n}.js"), String::new()));
        assert_eq!(joined("main.js", "", many), Err(ProgramSourceError::TooMany));
    }

    #[test]
    fn damage_is_found() {
        let source = joined("main.js", "12345", owned(&[("a.js", "é")])).unwrap();
        assert!(files(&source).is_ok());
        for cut in (HEADER.len()..source.len()).filter(|cut| source.is_char_boundary(*cut)) {
            // A source may end after each of its files.
            let ends_after_file = source[..cut].ends_with("12345\n");
            assert_eq!(files(&source[..cut]).is_err(), !ends_after_file, "{cut}");
        }
        for (from, to) in
            [("file 5", "file 4"), ("file 5", "file +5"), ("file 2", "file 1"), ("a.js", "../a/")]
        {
            assert!(files(&source.replace(from, to)).is_err(), "{from} {to}");
        }
        assert!(files(&source.replace("a.js", "main.js")).is_err());
    }
}
