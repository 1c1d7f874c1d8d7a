//! Plans that compile, and the errors of those that do not.

use super::blocks::MOST_PROBLEMS;
use super::{
    BLOCK_ID_BYTES, COMPILED_BYTES, FILE_NAME_BYTES, Nature, Plan, compile, done_blocks, done_in, executor,
    gather, listed_files, walked, walks,
};
use proptest::prelude::*;
use std::path::Path;

fn one(text: &str) -> Result<Plan, String> {
    compile("plan.md", text, |name| panic!("no file is listed, and {name} was requested"))
        .map_err(|e| e.to_string())
}

/// An index with these files.
fn index(text: &str, files: &[(&str, &str)]) -> Result<Plan, String> {
    let read = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned());
    compile("index.md", text, read).map_err(|e| e.to_string())
}

const PLAN: &str = "# Prose, also with <block> in the middle of a line

<mission>
  Make the parser
  fast.
</mission>

<block id=\"01-first-steps\">
## TDDAB-1: The first steps
<intro>Why it is needed</intro>
<red>
- test: reads an empty file (and says so!)
- test: refuses what is longer than forty characters of text, with a place
</red>
Prose.
<success>
- [ ] all tests pass
- [x] not counted
- [ ] no warning
</success>
</block>
<block id=\"02-more\">
<intro>
Text
over lines</intro>
<actions>

- action: write it down
</actions>
<success>- [ ] written</success>
</block>
";

#[test]
fn a_plan_is_compiled_with_keys_and_places() {
    let plan = one(PLAN).expect("the plan is valid");
    assert_eq!((plan.nature, plan.mission.as_str()), (Nature::Tddab, "Make the parser\nfast."));
    let [first, second] = &plan.blocks[..] else { panic!("two blocks: {plan:?}") };
    assert_eq!((first.id.as_str(), first.title.as_str()), ("01-first-steps", "The first steps"));
    assert_eq!(
        first.red,
        "- test: reads an empty file (and says so!)\n- test: refuses what is longer than forty characters of text, with a place"
    );
    assert_eq!(
        first.red_keys,
        ["reads_an_empty_file_and_says_so", "refuses_what_is_longer_than_forty_charac"]
    );
    assert_eq!(first.success, "- [ ] all tests pass\n- [ ] no warning");
    assert_eq!(first.plan_ref, "See plan.md lines 8-21");
    assert_eq!(
        (second.nature, second.title.as_str(), second.intro.as_str()),
        (Nature::Step, "02-more", "Text\nover lines")
    );
    assert_eq!((second.red.as_str(), second.red_keys.len()), ("- action: write it down", 0));
}

#[test]
fn the_stored_form_has_the_names_that_plan_files_have_had() {
    let plan = one(PLAN).expect("the plan is valid");
    let json = serde_json::to_value(&plan).expect("a plan is JSON");
    let names = |value: &serde_json::Value| {
        value.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    assert_eq!(names(&json), ["blocks", "mission", "sourceFile", "type"]);
    assert_eq!(json["type"], "tddab");
    assert_eq!(
        names(&json["blocks"][0]),
        ["id", "intro", "planRef", "red", "redKeys", "success", "title", "type"]
    );
    assert_eq!(json["blocks"][1]["type"], "step");
}

#[test]
fn line_ends_and_a_byte_order_mark_make_no_difference() {
    let other = format!("\u{feff}{}", PLAN.replace('\n', "\r\n"));
    assert_eq!(one(&other), one(PLAN));
}

#[test]
fn every_error_is_reported_with_its_line() {
    let wrong = "<mission></mission>
<block id=\"1-x\">
<intro></intro>
</block>
<block id=\"02-a\">
<red>
- test: fine
nonsense
</red>
<success>
done
</success>
</block>
<block id=\"02-a\">
<intro>x</intro>
<actions>
</actions>
<success>
- [ ] y
</success>
<block id=\"03-never\">
<intro>x
<red>
- test: x
</red>
<actions>- action: y</actions>
<success>- [ ] z</success>
";
    let errors = "Plan validation failed:
line 1: <mission> tag is empty
line 2: Block id \"1-x\" must be two digits, a hyphen and lower-case words with hyphens, such as \"01-read-files\"
line 2: Block \"1-x\" missing <red> or <actions> tag
line 2: Block \"1-x\" missing <success> tag
line 3: Block \"1-x\" has empty <intro> tag
line 5: Block \"02-a\" missing <intro> tag
line 8: Block \"02-a\" has unparseable line in red: \"nonsense\"
line 10: Block \"02-a\" has <success> but no \"- [ ]\" items
line 14: Block \"02-a\" never closed with </block>
line 14: Duplicate block id \"02-a\"
line 16: Block \"02-a\" has <actions> but no \"- action:\" lines
line 21: Block \"03-never\" never closed with </block>
line 22: Block \"03-never\" has <intro> that is never closed with </intro>
line 26: Block \"03-never\" has both <red> and <actions>";
    assert_eq!(one(wrong), Err(errors.to_owned()));
    let nothing = "Plan validation failed:\nline 1: Missing <mission> tag\nline 1: No <block> tags found";
    assert_eq!(one("only prose"), Err(nothing.to_owned()));
}

#[test]
fn ids_are_two_digits_and_words() {
    for (id, good) in [
        ("01-a", true),
        ("99-a1-b2", true),
        ("1-a", false),
        ("001-a", false),
        ("01", false),
        ("01-", false),
        ("01-A", false),
        ("01-a--b", false),
        ("01-ä", false),
        ("", false),
    ] {
        assert_eq!(super::lines::is_block_id(id), good, "{id}");
    }
}

const INDEX: &str = "<mission>All of it</mission>\n<files>\n- one.md\n- parts/two.md\n</files>\n";

fn block(id: &str) -> String {
    format!(
        "<mission>ignored</mission>\n<block id=\"{id}\">\n<intro>x</intro>\n<actions>\n- action: a\n</actions>\n<success>\n- [ ] s\n</success>\n</block>\n"
    )
}

#[test]
fn an_index_has_the_blocks_of_its_files_in_their_order() {
    let plan =
        index(INDEX, &[("parts/two.md", &block("01-second")), ("one.md", &block("02-first"))]).expect("fine");
    assert_eq!((plan.nature, plan.mission.as_str()), (Nature::Step, "All of it"));
    assert_eq!(plan.source_files.as_deref(), Some(&["one.md".to_owned(), "parts/two.md".to_owned()][..]));
    let seen: Vec<_> = plan.blocks.iter().map(|b| (b.id.as_str(), b.plan_ref.as_str())).collect();
    assert_eq!(seen, [("02-first", "See one.md lines 2-10"), ("01-second", "See parts/two.md lines 2-10")]);
    assert_eq!(listed_files(INDEX), ["one.md", "parts/two.md"]);
    assert_eq!(listed_files(PLAN), Vec::<String>::new());
}

#[test]
fn an_index_reports_missing_and_invalid_files_and_duplicate_ids() {
    let errors = index(INDEX, &[("one.md", &block("01-a"))]).expect_err("a file is missing");
    assert_eq!(errors, "Index plan validation failed:\nline 4: Sub-file not found: parts/two.md");
    let errors =
        index(INDEX, &[("one.md", &block("01-a")), ("parts/two.md", &block("01-a"))]).expect_err("twice");
    assert_eq!(errors, "Index plan validation failed:\nline 4: Duplicate block id \"01-a\" in parts/two.md");
    let errors = index(INDEX, &[("one.md", &block("01-a")), ("parts/two.md", "")]).expect_err("no block");
    assert_eq!(errors, "Plan validation failed in parts/two.md:\nline 1: No <block> tags found");
    let errors = index("<files>\n</files>\n", &[]).expect_err("an empty index");
    assert_eq!(
        errors,
        "Index plan validation failed:\nline 1: Missing <mission> tag\nline 1: <files> has no \"- \" lines"
    );
    let both = format!("{INDEX}{}", block("01-own"));
    let errors =
        index(&both, &[("one.md", &block("02-a")), ("parts/two.md", &block("03-b"))]).expect_err("both");
    assert!(errors.contains("line 7: an index with <files> has no <block> tags of its own"), "{errors}");
}

#[test]
fn long_files_of_open_tags_take_time_by_their_length() {
    let many = "<block id=\"01-a\">\n<red>\n".repeat(50_000);
    assert!(one(&many).is_err());
    let lines = format!("<mission>m</mission>\n<block id=\"01-a\">\n<intro>\n{}", "x\n".repeat(200_000));
    assert!(one(&lines).is_err());
}

#[test]
fn a_stored_plan_is_the_plan_and_an_earlier_one_has_blocks_by_their_keys() {
    let plan = one(PLAN).expect("the plan is valid");
    let mut stored = serde_json::to_value(&plan).expect("a plan is JSON");
    assert_eq!(Plan::from_json(&stored.to_string()).as_ref(), Some(&plan));
    for block in stored["blocks"].as_array_mut().expect("a list") {
        block.as_object_mut().expect("an object").remove("type");
    }
    assert_eq!(Plan::from_json(&stored.to_string()), Some(plan));
    for wrong in ["", "[]", "{}", "{\"blocks\": [1]}", "{\"blocks\": [{}]}"] {
        assert_eq!(Plan::from_json(wrong), None, "{wrong}");
    }
}

#[test]
fn progress_is_read_from_lists_and_from_names_of_something_true() {
    let text =
        r#"{"done": ["01-a", "not an id", "02-b"], "03-c": true, "04-d": false, "more": {"05-e": true}}"#;
    assert_eq!(done_blocks(text), ["01-a", "02-b", "03-c", "05-e"]);
    assert_eq!(done_blocks("[\"01-a\"]"), ["01-a"]);
    assert_eq!(done_blocks("no JSON"), Vec::<String>::new());
}

#[test]
fn the_program_of_a_plan_ends_with_the_plan_and_what_is_done() {
    let plan = one(PLAN).expect("the plan is valid");
    let source = executor(&plan, &["01-first-steps".to_owned()]);
    assert!(walks(&source) && !walks("function main() {}"));
    assert_eq!(walked(&source), Some((plan, vec!["01-first-steps".to_owned()])));
    assert_eq!(walked("const PLAN = 1;\nconst DONE = [];\n"), None);
    assert_eq!(done_in("done: 01-a"), Some("01-a"));
    assert_eq!(done_in("done before: 02-b-c"), Some("02-b-c"));
    assert_eq!((done_in("done: everything"), done_in("well done: 01-a")), (None, None));
    let mut last = source.lines().rev();
    assert_eq!(last.next(), Some("const DONE = [\"01-first-steps\"];"));
    assert!(last.next().is_some_and(|line| line.starts_with("const PLAN = {\"type\":\"tddab\",")));
}

#[test]
fn the_texts_of_a_plan_are_read_once_each_and_within_what_a_plan_may_have() {
    let text = "<mission>m</mission>\n<files>\n- a.md\n- b/c.md\n- a.md\n- gone.md\n</files>\n";
    let mut requested = Vec::new();
    let read = |path: &Path, most: usize| {
        requested.push((path.display().to_string(), most));
        Ok::<_, ()>(match path.to_str() {
            Some("dir/index.md") => Some(text.to_owned()),
            Some("dir/gone.md") => None,
            _ => Some("1234567890".to_owned()),
        })
    };
    let plan = gather("dir/index.md", read).expect("readable").expect("there");
    let names: Vec<&str> = plan.parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a.md", "b/c.md"]);
    let left: Vec<usize> = requested.iter().map(|(_, most)| requested[0].1 - most).collect();
    assert_eq!(left, [0, text.len(), text.len() + 10, text.len() + 20]);
    assert_eq!(gather("none.md", |_, _| Ok::<_, ()>(None)), Ok(None));
    assert_eq!(gather("none.md", |_, _| Err("denied")), Err("denied"));
}

#[test]
fn a_file_that_is_listed_twice_is_wrong() {
    let errors =
        index("<mission>m</mission>\n<files>\n- one.md\n- one.md\n</files>", &[("one.md", &block("01-a"))]);
    assert_eq!(
        errors.expect_err("twice"),
        "Index plan validation failed:\nline 4: File listed twice: one.md"
    );
}

#[test]
fn number_and_length_of_errors_are_bounded() {
    let long = format!("<block id=\"{}\">\n", "x".repeat(100_000)).repeat(20);
    assert!(one(&long).expect_err("wrong").len() < 60_000);
    let many = "<block id=\"01-a\">\n</block>\n".repeat(50_000);
    let errors = one(&many).expect_err("wrong");
    assert_eq!(errors.lines().count(), MOST_PROBLEMS + 2);
    assert!(errors.ends_with(" more"), "{}", &errors[errors.len() - 30..]);
    // Every id of the second file is a duplicate.
    let files = [("one.md", many.as_str()), ("parts/two.md", many.as_str())];
    assert!(index(INDEX, &files).is_err());
}

#[test]
fn what_is_repeated_for_each_line_or_block_is_bounded() {
    // The id would be in the error of each line, and the name of the file in each block.
    let id = format!("01-{}", "x".repeat(100_000));
    let wrong = format!("<mission>m</mission>\n<block id=\"{id}\">\n<red>\n{}", "x\n".repeat(10_000));
    let found = super::blocks::read(&wrong);
    assert!(found.blocks[0].id.len() <= BLOCK_ID_BYTES + 4);
    let mut problems = super::blocks::PlanProblems::default();
    found.blocks[0].check(&mut problems);
    assert!(problems.all() > 10_000, "each line is counted");
    assert!(problems.first().len() < 2 * MOST_PROBLEMS, "and the first ones are formatted");
    let errors = one(&wrong).expect_err("wrong");
    assert!(errors.contains(&format!("…\" has more than {BLOCK_ID_BYTES} bytes")), "{errors}");
    // A long name alone is fine; in each of many blocks it is too much.
    let name = "n".repeat(FILE_NAME_BYTES);
    let blocks = |count: usize| (0..count).map(|n| block(&format!("01-b{n}"))).collect::<String>();
    let compiled = |text: &str| compile(&name, text, |_| None).map_err(|error| error.to_string());
    assert_eq!(compiled(&blocks(100)).map(|plan| plan.blocks.len()), Ok(100));
    let errors = compiled(&blocks(COMPILED_BYTES / FILE_NAME_BYTES + 1)).expect_err("too large");
    assert!(errors.contains(&format!("more than {COMPILED_BYTES} bytes")), "{errors}");
}

#[test]
fn errors_of_all_files_together_are_bounded() {
    let names: Vec<String> = (0..1000).map(|n| format!("{n}.md")).collect();
    let index_text = format!("<mission>m</mission>\n<files>\n- {}\n</files>", names.join("\n- "));
    let wrong = "<block id=\"01-a\">\n".repeat(50);
    let errors = compile("index.md", &index_text, |_| Some(wrong.clone())).expect_err("wrong").to_string();
    // Of the index, and of its files.
    assert!(errors.lines().count() < 2 * MOST_PROBLEMS + 10, "{errors}");
    assert!(errors.ends_with(" more files"), "{errors}");
}

#[test]
fn errors_are_shown_by_line_however_many_there_are() {
    // Reported at the end of its block, and among the first by its line.
    let text = format!(
        "<mission>m</mission>\n<block id=\"01-a\">\n<intro></intro>\n{}</block>\n{}",
        "<red>\n</red>\n<success>\n</success>\n",
        "<block id=\"02\">\n".repeat(5_000)
    );
    let errors = one(&text).expect_err("wrong");
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines[1], "line 3: Block \"01-a\" has empty <intro> tag");
    assert_eq!(lines.len(), MOST_PROBLEMS + 2);
    let last = lines.last().and_then(|line| line.strip_prefix("and ")).and_then(|l| l.strip_suffix(" more"));
    let more: usize = last.and_then(|more| more.parse().ok()).expect("a count");
    assert!(more > 15_000, "{more}");
}

proptest! {
    /// Any text: a plan, or an error.
    #[test]
    fn any_text_is_a_plan_or_an_error(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "<mission>", "</mission>", "<files>", "</files>", "<block id=\"01-a\">", "<block id=\"", "<block", "</block>",
                "<intro>", "</intro>", "<red>", "</red>", "<actions>", "</actions>", "<success>", "</success>", "- test: t",
                "- action: a", "- [ ] s", "- one.md", "## TDDAB-1: t", "\n", "\n", "\n", "\r", " ", "ä\u{2028}", "\"", ">",
            ]),
            0..80,
        ),
        noise in ".{0,40}",
    ) {
        let text = parts.concat() + &noise;
        let compiled = compile("plan.md", &text, |_| Some(text.clone()));
        if let Ok(plan) = compiled {
            let source = executor(&plan, &[]);
            prop_assert_eq!(walked(&source), Some((plan, Vec::new())));
        }
        let _ = (Plan::from_json(&text), done_blocks(&text), walked(&text));
    }
}
