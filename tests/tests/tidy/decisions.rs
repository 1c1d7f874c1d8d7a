//! Rules about `docs/decisions`: each record has a status, and each record that a file cites exists.

use super::tree::{SourceFile, Tree};

const FOLDER: &str = "docs/decisions/";

/// The beginnings that the line `Status:` of a record may have.
const STATUSES: &[&str] = &["given", "accepted", "superseded by "];

/// How a citation begins: in prose and as a path.
const CITATIONS: &[&str] = &["decision ", "decisions ", "decisions/"];

/// Records without a status, and citations of records that do not exist.
pub(crate) fn lost_records(tree: &Tree) -> Vec<String> {
    let records: Vec<&SourceFile> = tree.files.iter().filter(|file| file.is_in(&[FOLDER])).collect();
    let numbers: Vec<&str> = records.iter().filter_map(|file| file.name().get(..3)).collect();
    let mut found = Vec::new();
    for record in &records {
        let status = record.text.lines().find_map(|line| line.strip_prefix("Status: "));
        if !status.is_some_and(|status| STATUSES.iter().any(|known| status.starts_with(known))) {
            found.push(format!("{} has no line `Status:` that begins with one of {STATUSES:?}", record.path));
        }
        let links = record.text.match_indices('(').filter_map(|(at, _)| number(&record.text[at + 1..]));
        for lost in links.filter(|link| !numbers.contains(link)) {
            found.push(format!("{} refers to decision {lost}, which does not exist", record.path));
        }
    }
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            for cited in CITATIONS.iter().flat_map(|begin| cited(line, begin)) {
                if !numbers.contains(&cited) {
                    found.push(format!(
                        "{}:{} cites decision {cited}, which does not exist",
                        file.path,
                        index + 1
                    ));
                }
            }
        }
        for path in file
            .text
            .match_indices("decisions/")
            .filter_map(|(at, begin)| page(&file.text[at + begin.len()..]))
        {
            if !records.iter().any(|record| record.name() == path) {
                found.push(format!("{} links to {path}, which does not exist", file.path));
            }
        }
    }
    found
}

/// Numbers of records that follow `begin` in a line.
fn cited<'a>(line: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(begin).filter_map(move |(at, _)| number(&line[at + begin.len()..]))
}

/// The three digits with which a text begins, if no fourth one follows.
fn number(text: &str) -> Option<&str> {
    let digits = text.get(..3)?;
    let more = text[3..].starts_with(|c: char| c.is_ascii_alphanumeric());
    (digits.bytes().all(|byte| byte.is_ascii_digit()) && !more).then_some(digits)
}

/// The file name of a record with which a text begins.
fn page(text: &str) -> Option<&str> {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|end| text[*end..].starts_with(".md"))?;
    number(text).map(|_| &text[..end + ".md".len()])
}
