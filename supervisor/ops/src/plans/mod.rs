//! Plans: Markdown files whose tagged blocks a built-in program walks through with an agent, one task at a time.
//!
//! Owns: the grammar of plan files (version 1.1), errors with their lines, and the compiled plan. Must not: open files (the
//! client that named a plan reads it, with its own rights), run code, know APIs.
//!
//! A tag counts at the start of a trimmed line; everything outside of tags is prose and ignored.
//! ```text
//! plan    = mission block+                 one file
//!         | mission files                  an index; each listed file holds blocks, in the order of the list
//! mission = <mission> text </mission>
//! files   = <files> ("- " name)+ </files>
//! block   = <block id="NN-kebab"> [## TDDAB-N: title] intro (red | actions) success </block>
//! intro   = <intro> text </intro>
//! red     = <red> ("- test: " text)+ </red>
//! actions = <actions> ("- action: " text)+ </actions>
//! success = <success> ("- [ ] " text)+ </success>
//! ```

mod blocks;
mod gather;
mod lines;
mod stored;
#[cfg(test)]
mod tests;

use blocks::{MOST_PROBLEMS, ParsedPlanFile, PlanProblem, PlanProblems};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt::Write as _;
use vm_system_protocol::counted::counted;

pub use gather::gather;
pub use lines::{BLOCK_ID_BYTES, is_block_id};
pub use stored::done_blocks;

/// Files that one index may list.
pub const MOST_FILES: usize = 1000;
/// Longest text of a plan with all its files (bytes).
pub const PLAN_BYTES: usize = 4 << 20;
/// Longest name of a file (bytes).
pub const FILE_NAME_BYTES: usize = 4095;
/// Longest texts of a compiled plan together (bytes): each block names its file.
pub const COMPILED_BYTES: usize = 2 * PLAN_BYTES;
/// Longest message about one error (bytes).
const MESSAGE_BYTES: usize = 400;

/// How a block is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nature {
    /// Tests first: red, green, verify, cross-check, commit
    Tddab,
    /// Actions: execute, verify, commit
    Step,
}

/// One block of a compiled plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// Two digits and kebab-case, unique in the plan
    pub id: String,
    /// The text of its heading; the id without one
    pub title: String,
    /// How it is carried out
    #[serde(rename = "type")]
    pub nature: Nature,
    /// Introduction
    pub intro: String,
    /// Tests or actions, one item per line, as in the file
    pub red: String,
    /// The name of each test in code; empty for a block of actions
    pub red_keys: Vec<String>,
    /// Criteria of success, one item per line
    pub success: String,
    /// The block's position: `See FILE lines A-B`
    pub plan_ref: String,
}

/// A plan that the built-in program can walk through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// `step` if all blocks have actions, else `tddab`
    #[serde(rename = "type")]
    pub nature: Nature,
    /// The purpose of all blocks
    pub mission: String,
    /// The file that was named
    pub source_file: String,
    /// The files of an index
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_files: Option<Vec<String>>,
    /// In the order of execution
    pub blocks: Vec<Block>,
}

/// The errors of a plan: a heading for each file, then lines `line N: message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanErrors(String);

/// The files that a plan lists, if it is an index: [`compile`] will read them.
pub fn listed_files(text: &str) -> Vec<String> {
    blocks::read(text).files.into_iter().flatten().map(|(_, name)| name).collect()
}

/// The program that walks through plans, without its plan.
const EXECUTOR: &str = include_str!("executor.js");

/// The source of the built-in program for this plan: it skips the blocks whose ids are in `done`. Its result names the blocks
/// that are done; so does its variable `done` while it waits.
pub fn executor(plan: &Plan, done: &[String]) -> String {
    // JSON is JavaScript; the plan is at the end, so that positions in the program do not change.
    let plan = serde_json::to_string(plan).unwrap_or_default();
    let done = serde_json::to_string(done).unwrap_or_default();
    format!("{EXECUTOR}\nconst PLAN = {plan};\nconst DONE = {done};\n")
}

/// The beginning of the built-in program's source, in all its versions.
const MARK: &str = "// @planexecutor";
/// Prefixes of output lines: for a block that was finished now, and for one that was finished before.
const DONE_PREFIXES: [&str; 2] = ["done: ", "done before: "];

/// Whether a program is the built-in one.
pub fn walks(source: &str) -> bool {
    source.starts_with(MARK)
}

/// The plan in such a program's source, and the blocks that were done when it was loaded.
pub fn walked(source: &str) -> Option<(Plan, Vec<String>)> {
    let last =
        |name: &str| source.lines().rev().take(2).find_map(|line| line.strip_prefix(name)?.strip_suffix(';'));
    Some((Plan::from_json(last("const PLAN = ")?)?, done_blocks(last("const DONE = ")?)))
}

/// The finished block, if this line of such a program's output reports one.
pub fn done_in(line: &str) -> Option<&str> {
    DONE_PREFIXES.iter().find_map(|prefix| line.strip_prefix(prefix)).filter(|id| is_block_id(id))
}

/// Compiles a plan. `read` returns the text of a file that an index lists, by the name in the index, relative to it.
pub fn compile(
    file: &str,
    text: &str,
    mut read: impl FnMut(&str) -> Option<String>,
) -> Result<Plan, PlanErrors> {
    let mut found = blocks::read(text);
    let Some(files) = found.files.take() else { return one_file(file, found) };
    let mut problems = mission_problems(&found);
    if files.is_empty() {
        problems.add(found.files_line, || "<files> has no \"- \" lines".to_owned());
    }
    if files.len() > MOST_FILES {
        problems.add(found.files_line, || format!("<files> has more than {MOST_FILES} lines"));
    }
    if let Some(block) = found.blocks.first() {
        problems.add(block.first_line, || "an index with <files> has no <block> tags of its own".to_owned());
    }
    let (mut ids, mut blocks, mut of_files) =
        (HashSet::new(), CompiledBlocks::default(), ErrorReport::default());
    let mut seen = HashSet::new();
    for (line, name) in files.iter().take(MOST_FILES) {
        if name.len() > FILE_NAME_BYTES {
            problems.add(*line, || format!("The name of a file has more than {FILE_NAME_BYTES} bytes"));
            continue;
        }
        if !seen.insert(name) {
            problems.add(*line, || format!("File listed twice: {name}"));
            continue;
        }
        let Some(text) = read(name) else {
            problems.add(*line, || format!("Sub-file not found: {name}"));
            continue;
        };
        let mut part = blocks::read(&text);
        let wrong = block_problems(&mut part);
        of_files.add(|| format!("Plan validation failed in {name}:"), &wrong);
        let reported: HashSet<usize> = wrong.first().iter().map(|problem| problem.line).collect();
        for block in part.blocks {
            if !ids.insert(block.id.clone()) && !reported.contains(&block.first_line) {
                problems.add(*line, || format!("Duplicate block id \"{}\" in {name}", block.id));
            }
            blocks.add(block.compiled(name));
        }
    }
    problems.sort();
    let mut errors = ErrorReport::default();
    errors.add(|| "Index plan validation failed:".to_owned(), &problems);
    errors.append(&of_files);
    errors.result()?;
    let names = files.into_iter().map(|(_, name)| name).collect();
    Ok(plan(file, found.mission.map(|(_, text)| text).unwrap_or_default(), Some(names), blocks.whole()?))
}

fn one_file(file: &str, mut found: ParsedPlanFile) -> Result<Plan, PlanErrors> {
    let mut problems = block_problems(&mut found);
    let mission = mission_problems(&found);
    for problem in mission.first() {
        problems.add_first(problem.clone());
    }
    let mut errors = ErrorReport::default();
    errors.add(|| "Plan validation failed:".to_owned(), &problems);
    errors.result()?;
    let mut blocks = CompiledBlocks::default();
    for block in found.blocks {
        blocks.add(block.compiled(file));
    }
    Ok(plan(file, found.mission.map(|(_, text)| text).unwrap_or_default(), None, blocks.whole()?))
}

/// Compiled blocks, and how long their texts are together: each has the name of its file.
#[derive(Default)]
struct CompiledBlocks {
    blocks: Vec<Block>,
    bytes: usize,
}

impl CompiledBlocks {
    /// One that makes them too long is counted and not kept.
    fn add(&mut self, block: Block) {
        let Block { id, title, nature: _, intro, red, red_keys, success, plan_ref } = &block;
        let texts = [id, title, intro, red, success, plan_ref];
        self.bytes += texts.into_iter().chain(red_keys).map(String::len).sum::<usize>();
        if self.bytes <= COMPILED_BYTES {
            self.blocks.push(block);
        }
    }

    fn whole(self) -> Result<Vec<Block>, PlanErrors> {
        if self.bytes > COMPILED_BYTES {
            return Err(PlanErrors(too_large()));
        }
        Ok(self.blocks)
    }
}

/// The error of a plan whose compiled form is too large.
pub fn too_large() -> String {
    format!(
        "the compiled plan has more than {COMPILED_BYTES} bytes: each block names its file, so use short names, or make several plans"
    )
}

fn plan(file: &str, mission: String, source_files: Option<Vec<String>>, blocks: Vec<Block>) -> Plan {
    let steps = blocks.iter().all(|block| block.nature == Nature::Step);
    let nature = if steps { Nature::Step } else { Nature::Tddab };
    Plan { nature, mission, source_file: file.to_owned(), source_files, blocks }
}

fn mission_problems(found: &ParsedPlanFile) -> PlanProblems {
    let mut problems = PlanProblems::default();
    match &found.mission {
        None => problems.add(1, || "Missing <mission> tag".to_owned()),
        Some((line, text)) if text.is_empty() => problems.add(*line, || "<mission> tag is empty".to_owned()),
        Some(_) => {}
    }
    problems
}

/// The errors of the blocks of one file, by line.
fn block_problems(found: &mut ParsedPlanFile) -> PlanProblems {
    let mut problems = std::mem::take(&mut found.problems);
    if found.blocks.is_empty() && problems.all() == 0 {
        problems.add(1, || "No <block> tags found".to_owned());
    }
    let mut ids = HashSet::new();
    for block in &found.blocks {
        block.check(&mut problems);
        if !ids.insert(block.id.as_str()) {
            problems.add(block.first_line, || format!("Duplicate block id \"{}\"", block.id));
        }
    }
    problems.sort();
    problems
}

/// The text of errors: at most [`MOST_PROBLEMS`] of all files together; the others are counted.
#[derive(Default)]
struct ErrorReport {
    text: String,
    shown: usize,
    more_files: usize,
}

impl ErrorReport {
    fn add(&mut self, heading: impl FnOnce() -> String, problems: &PlanProblems) {
        if problems.all() == 0 {
            return;
        }
        let left = MOST_PROBLEMS.saturating_sub(self.shown);
        if left == 0 {
            self.more_files += 1;
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&heading());
        let first = problems.first();
        let first = &first[..first.len().min(left)];
        for PlanProblem { line, message } in first {
            // Lines of the file have no length limit.
            let (short, rest) = message.split_at(message.floor_char_boundary(MESSAGE_BYTES));
            let _ = write!(self.text, "\nline {line}: {short}{}", if rest.is_empty() { "" } else { "…" });
        }
        self.shown += first.len();
        if let Some(more) = problems.all().checked_sub(first.len()).filter(|more| *more > 0) {
            let _ = write!(self.text, "\nand {more} more");
        }
    }

    fn append(&mut self, other: &Self) {
        if !self.text.is_empty() && !other.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&other.text);
        self.more_files += other.more_files;
    }

    fn result(mut self) -> Result<(), PlanErrors> {
        if self.more_files > 0 {
            let _ = write!(self.text, "\nand errors in {}", counted(self.more_files, "more file"));
        }
        if self.text.is_empty() { Ok(()) } else { Err(PlanErrors(self.text)) }
    }
}
