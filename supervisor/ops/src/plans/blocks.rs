//! Parses the blocks of one plan file.
//!
//! Owns: the tags with their positions, and the errors of a block. Must not: know other files.

use super::lines::{BLOCK_ID_BYTES, PlanLines, Section, block_id, is_block_id, red_key};
use super::{Block, Nature};

/// An error with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanProblem {
    pub line: usize,
    pub message: String,
}

/// Most errors of one file that are formatted.
pub(super) const MOST_PROBLEMS: usize = 200;

/// The errors of one file: the first ones by line, and the number of all. The others are never formatted: there may be as many as
/// the file has lines, and each one repeats an id.
#[derive(Default)]
pub(super) struct PlanProblems {
    first: Vec<PlanProblem>,
    all: usize,
    /// The line from which on further errors are only counted.
    counted_from: Option<usize>,
}

impl PlanProblems {
    pub(super) fn add(&mut self, line: usize, message: impl FnOnce() -> String) {
        self.all += 1;
        if self.counted_from.is_some_and(|from| line >= from) {
            return;
        }
        self.first.push(PlanProblem { line, message: message() });
        if self.first.len() >= 2 * MOST_PROBLEMS {
            self.sort();
        }
    }

    /// Puts the errors in the order of their lines; those of one line stay as they were added.
    pub(super) fn sort(&mut self) {
        self.first.sort_by_key(|problem| problem.line);
        self.first.truncate(MOST_PROBLEMS);
        if self.first.len() == MOST_PROBLEMS {
            self.counted_from = self.first.last().map(|problem| problem.line);
        }
    }

    /// Puts an error of the whole file among the others, before those of its line.
    pub(super) fn add_first(&mut self, problem: PlanProblem) {
        self.all += 1;
        self.first.insert(0, problem);
        self.sort();
    }

    pub(super) fn first(&self) -> &[PlanProblem] {
        &self.first
    }

    pub(super) fn all(&self) -> usize {
        self.all
    }
}

/// The content of one file.
#[derive(Default)]
pub(super) struct ParsedPlanFile {
    /// Line and text of the first mission
    pub mission: Option<(usize, String)>,
    /// Line and name of the listed files; none if the file is no index
    pub files: Option<Vec<(usize, String)>>,
    /// Line of `<files>`
    pub files_line: usize,
    pub blocks: Vec<FoundBlock>,
    /// Errors outside of complete blocks
    pub problems: PlanProblems,
}

/// The tests or actions of a block.
struct Work {
    tag: &'static str,
    line: usize,
    /// Whole lines, and the text behind their marker
    items: Vec<(String, String)>,
    unparseable: Vec<(usize, String)>,
    closed: bool,
}

/// A block of a file.
pub(super) struct FoundBlock {
    pub id: String,
    pub first_line: usize,
    last_line: usize,
    closed: bool,
    title: Option<String>,
    intro: Option<(usize, String, bool)>,
    red: Option<Work>,
    actions: Option<Work>,
    /// Line, items, closed
    success: Option<(usize, Vec<String>, bool)>,
}

/// Line starts that end an unclosed section of a block.
const STOPS: &[&str] = &["<block", "</block>", "<intro>", "<red>", "<actions>", "<success>"];
/// The same outside of blocks.
const OUTER_STOPS: &[&str] = &["<block", "<mission>", "<files>"];

/// Reads a file.
pub(super) fn read(text: &str) -> ParsedPlanFile {
    let mut lines = PlanLines::new(text);
    let mut found = ParsedPlanFile::default();
    let mut pending = None;
    while let Some((number, line)) = pending.take().or_else(|| lines.next()) {
        if let Some(id) = block_id(line) {
            let (block, next) = read_block(&mut lines, number, id);
            found.blocks.push(block);
            pending = next;
        } else if let Some(section) = lines.section(line, "mission", OUTER_STOPS) {
            unclosed(&mut found.problems, "mission", &section);
            found.mission.get_or_insert((number, section.text()));
        } else if let Some(section) = lines.section(line, "files", OUTER_STOPS) {
            unclosed(&mut found.problems, "files", &section);
            if found.files.is_none() {
                found.files_line = number;
            }
            let names = section.lines.iter().filter_map(|(number, line)| {
                let name = line.strip_prefix("- ")?.trim();
                (!name.is_empty()).then(|| (*number, name.to_owned()))
            });
            found.files.get_or_insert_default().extend(names);
        }
    }
    found
}

fn unclosed(problems: &mut PlanProblems, tag: &str, section: &Section<'_>) {
    if !section.closed {
        problems.add(section.line, || format!("<{tag}> never closed with </{tag}>"));
    }
}

/// Reads to the end of the block, or to the line that begins another one.
fn read_block<'t>(
    lines: &mut PlanLines<'t>,
    first_line: usize,
    id: String,
) -> (FoundBlock, Option<(usize, &'t str)>) {
    let mut block = FoundBlock {
        id,
        first_line,
        last_line: first_line,
        closed: false,
        title: None,
        intro: None,
        red: None,
        actions: None,
        success: None,
    };
    while let Some((number, line)) = lines.next() {
        if block_id(line).is_some() {
            return (block, Some((number, line)));
        }
        if line.starts_with("</block>") {
            block.closed = true;
            block.last_line = number;
            break;
        }
        if let Some(section) = lines.section(line, "intro", STOPS) {
            block.intro.get_or_insert((number, section.text(), section.closed));
        } else if let Some(section) = lines.section(line, "red", STOPS) {
            block.red.get_or_insert(Work::of_section("red", "- test:", &section));
        } else if let Some(section) = lines.section(line, "actions", STOPS) {
            block.actions.get_or_insert(Work::of_section("actions", "- action:", &section));
        } else if let Some(section) = lines.section(line, "success", STOPS) {
            let items = section.lines.iter().filter(|(_, line)| item(line, "- [ ]").is_some());
            let items = items.map(|(_, line)| (*line).to_owned()).collect();
            block.success.get_or_insert((number, items, section.closed));
        } else if let Some(title) = line.strip_prefix("## TDDAB-").and_then(|rest| rest.split_once(':')) {
            block.title.get_or_insert(title.1.trim().to_owned());
        }
        block.last_line = lines.number();
    }
    (block, None)
}

/// The text behind an item's marker.
fn item<'t>(line: &'t str, marker: &str) -> Option<&'t str> {
    let text = line.strip_prefix(marker)?.trim();
    (!text.is_empty()).then_some(text)
}

impl Work {
    fn of_section(tag: &'static str, marker: &str, section: &Section<'_>) -> Work {
        let mut work = Work {
            tag,
            line: section.line,
            items: Vec::new(),
            unparseable: Vec::new(),
            closed: section.closed,
        };
        for (number, line) in section.lines.iter().filter(|(_, line)| !line.is_empty()) {
            match item(line, marker) {
                Some(text) => work.items.push(((*line).to_owned(), text.to_owned())),
                None => work.unparseable.push((*number, (*line).to_owned())),
            }
        }
        work
    }

    fn check(&self, id: &str, problems: &mut PlanProblems) {
        let tag = self.tag;
        let marker = if tag == "red" { "- test:" } else { "- action:" };
        for (line, text) in &self.unparseable {
            problems.add(*line, || format!("Block \"{id}\" has unparseable line in {tag}: \"{text}\""));
        }
        if self.items.is_empty() {
            problems.add(self.line, || format!("Block \"{id}\" has <{tag}> but no \"{marker}\" lines"));
        }
    }
}

impl FoundBlock {
    /// Adds the errors of the block.
    pub(super) fn check(&self, problems: &mut PlanProblems) {
        let Self { id, first_line, .. } = self;
        if id.len() > BLOCK_ID_BYTES {
            problems.add(*first_line, || format!("Block id \"{id}…\" has more than {BLOCK_ID_BYTES} bytes"));
        } else if !is_block_id(id) {
            problems.add(*first_line, || format!("Block id \"{id}\" must be two digits, a hyphen and lower-case words with hyphens, such as \"01-read-files\""));
        }
        if !self.closed {
            problems.add(*first_line, || format!("Block \"{id}\" never closed with </block>"));
        }
        let unclosed = [
            self.intro.as_ref().map(|(line, _, closed)| ("intro", *line, *closed)),
            self.red.as_ref().map(|work| ("red", work.line, work.closed)),
            self.actions.as_ref().map(|work| ("actions", work.line, work.closed)),
            self.success.as_ref().map(|(line, _, closed)| ("success", *line, *closed)),
        ];
        for (tag, line, _) in unclosed.into_iter().flatten().filter(|(_, _, closed)| !closed) {
            problems.add(line, || format!("Block \"{id}\" has <{tag}> that is never closed with </{tag}>"));
        }
        match &self.intro {
            None => problems.add(*first_line, || format!("Block \"{id}\" missing <intro> tag")),
            Some((line, text, _)) if text.is_empty() => {
                problems.add(*line, || format!("Block \"{id}\" has empty <intro> tag"));
            }
            Some(_) => {}
        }
        match (&self.red, &self.actions) {
            (None, None) => {
                problems.add(*first_line, || format!("Block \"{id}\" missing <red> or <actions> tag"));
            }
            (Some(_), Some(actions)) => {
                problems.add(actions.line, || format!("Block \"{id}\" has both <red> and <actions>"));
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        match &self.success {
            None => problems.add(*first_line, || format!("Block \"{id}\" missing <success> tag")),
            Some((line, items, _)) if items.is_empty() => {
                problems.add(*line, || format!("Block \"{id}\" has <success> but no \"- [ ]\" items"));
            }
            Some(_) => {}
        }
        for work in self.red.iter().chain(&self.actions) {
            work.check(id, problems);
        }
    }

    /// The compiled block; only for blocks without errors.
    pub(super) fn compiled(self, file: &str) -> Block {
        let nature = if self.red.is_some() { Nature::Tddab } else { Nature::Step };
        let items = self.red.or(self.actions).map(|work| work.items).unwrap_or_default();
        let red_keys = match nature {
            Nature::Tddab => items.iter().map(|(_, text)| red_key(text)).collect(),
            Nature::Step => Vec::new(),
        };
        let red: Vec<String> = items.into_iter().map(|(line, _)| line).collect();
        Block {
            title: self.title.filter(|title| !title.is_empty()).unwrap_or_else(|| self.id.clone()),
            nature,
            intro: self.intro.map(|(_, text, _)| text).unwrap_or_default(),
            red: red.join("\n"),
            red_keys,
            success: self.success.map(|(_, items, _)| items.join("\n")).unwrap_or_default(),
            plan_ref: format!("See {file} lines {}-{}", self.first_line, self.last_line),
            id: self.id,
        }
    }
}
