//! The built-in program for plans, with scripted agents: the order of its tasks, bounded retries, answers in a wrong form, blocks
//! that were done before. The state is stored and loaded at every task.

use vm_system_cvm::{
    CompileOptions, CompiledProgram, PauseAnswer, RunOutcome, StateConfig, VmLimits, VmState, compile,
    resume_pause, run,
};

const EXECUTOR: &str = include_str!("../../../supervisor/ops/src/plans/executor.js");

const PLAN: &str = r#"{"type":"tddab","mission":"Make it fast","sourceFile":"plan.md","blocks":[
    {"id":"01-parse","title":"The parser","type":"tddab","intro":"Why","red":"- test: reads\n- test: refuses","redKeys":["reads","refuses"],"success":"- [ ] all pass","planRef":"See plan.md lines 3-9"},
    {"id":"02-write","title":"The text","type":"step","intro":"What","red":"- action: write it","redKeys":[],"success":"- [ ] written","planRef":"See plan.md lines 10-19"}]}"#;

fn executor(done: &str) -> CompiledProgram {
    let source = format!("{EXECUTOR}\nconst PLAN = {PLAN};\nconst DONE = {done};\n");
    match compile(&source, &CompileOptions::default()) {
        Ok(program) => program,
        Err(errors) => panic!("{errors}"),
    }
}

/// The phase in the heading of a task.
fn phase(prompt: &str) -> String {
    let line = prompt.lines().next().unwrap_or_default();
    line.split(" (block").next().unwrap_or_default().to_owned()
}

/// Runs the plan with an agent; returns the requested phases and the result.
fn walk(done: &str, mut agent: impl FnMut(&str) -> String) -> (Vec<String>, String) {
    let program = executor(done);
    let mut state = VmState::new(&program, &StateConfig::default());
    let mut phases = Vec::new();
    loop {
        match run(&program, &mut state, u64::MAX) {
            RunOutcome::Pause { prompt, .. } => {
                phases.push(phase(&prompt));
                assert!(phases.len() < 200, "the walk has no end");
                let stored = state.pages_since(&program, 0).pages;
                let pages = stored.iter().map(|page| (page.number, page.bytes.as_slice()));
                state = VmState::restore(&program, VmLimits::default(), pages).expect("its own pages");
                assert!(resume_pause(&program, &mut state, &PauseAnswer::Text(agent(&prompt))));
            }
            RunOutcome::Done { json, .. } => return (phases, json),
            other => panic!("{other:?}"),
        }
    }
}

/// Answers every task successfully at the first attempt.
fn obliging(prompt: &str) -> String {
    match phase(prompt).split_once("] ").map_or("", |(_, phase)| phase) {
        "VERIFY" | "RE-VERIFY" => "Passed: all of it".to_owned(),
        "CROSS-CHECK" => "```json\n{\"reads\": true, \"refuses\": true}\n```".to_owned(),
        "NOTES" => "mind the gap".to_owned(),
        _ => "did it".to_owned(),
    }
}

#[test]
fn each_block_is_run_according_to_its_kind_and_reviewed_at_the_end() {
    let (phases, result) = walk("[]", obliging);
    assert_eq!(
        phases,
        [
            "[01-parse] RED",
            "[01-parse] GREEN",
            "[01-parse] VERIFY",
            "[01-parse] CROSS-CHECK",
            "[01-parse] NOTES",
            "[01-parse] COMMIT",
            "[02-write] EXECUTE",
            "[02-write] VERIFY",
            "[02-write] NOTES",
            "[02-write] COMMIT",
            "FINAL REVIEW",
        ]
    );
    assert_eq!(
        result,
        r#"{"state":"completed","done":["01-parse","02-write"],"notes":[{"id":"01-parse","text":"mind the gap"},{"id":"02-write","text":"mind the gap"}],"review":"did it"}"#
    );
}

#[test]
fn tasks_name_their_position_in_the_plan_and_carry_notes() {
    let mut seen = Vec::new();
    walk("[]", |prompt| {
        seen.push(prompt.to_owned());
        obliging(prompt)
    });
    assert!(seen[0].starts_with(
        "[01-parse] RED (block 1 of 2: The parser)\nSee plan.md lines 3-9\nMission: Make it fast\n"
    ));
    assert!(seen[0].contains("- test: reads\n- test: refuses"));
    assert!(seen[6].contains("[01-parse] mind the gap"), "{}", seen[6]);
}

#[test]
fn a_failed_check_is_fixed_and_repeated() {
    let mut verified = 0;
    let (phases, _) = walk("[\"02-write\"]", |prompt| {
        if phase(prompt).ends_with("VERIFY") {
            verified += 1;
            return if verified < 3 { "no, it is not passed".to_owned() } else { "PASSED".to_owned() };
        }
        obliging(prompt)
    });
    assert_eq!(
        phases[2..7],
        [
            "[01-parse] VERIFY",
            "[01-parse] FIX 1 of 10",
            "[01-parse] RE-VERIFY",
            "[01-parse] FIX 2 of 10",
            "[01-parse] RE-VERIFY"
        ]
    );
}

#[test]
fn a_cross_check_needs_an_answer_in_its_form_and_names_the_missing_parts() {
    let mut answers = [
        "passed",
        "{\"reads\": true}",
        "{\"reads\": true, \"refuses\": false}",
        "{\"reads\":true,\"refuses\":true}",
    ]
    .into_iter();
    let mut fixes = Vec::new();
    let (phases, _) = walk("[\"02-write\"]", |prompt| {
        if phase(prompt).ends_with("CROSS-CHECK") {
            return answers.next().unwrap_or_default().to_owned();
        }
        if phase(prompt).contains("FIX") {
            fixes.push(prompt.to_owned());
        }
        obliging(prompt)
    });
    assert_eq!(phases.iter().filter(|phase| phase.ends_with("CROSS-CHECK")).count(), 4);
    assert_eq!(fixes.len(), 1);
    assert!(fixes[0].contains("\nrefuses\n") && !fixes[0].contains("\nreads\n"), "{}", fixes[0]);
}

#[test]
fn a_run_without_progress_stops_with_the_blocks_that_are_done() {
    let (phases, result) = walk("[]", |prompt| {
        if phase(prompt).starts_with("[02-write]") { "still wrong".to_owned() } else { obliging(prompt) }
    });
    assert_eq!(phases.iter().filter(|phase| phase.starts_with("[02-write] FIX")).count(), 10);
    assert!(result.starts_with(
        r#"{"state":"stopped","block":"02-write","reason":"it was not right after 10 fixes: still wrong","done":["01-parse"]"#
    ));
    let (_, result) = walk("[]", |prompt| {
        if phase(prompt).ends_with("CROSS-CHECK") { "passed".to_owned() } else { obliging(prompt) }
    });
    assert!(result.contains("the cross-check was not answered in its form: passed"), "{result}");
}

#[test]
fn blocks_that_were_done_are_skipped() {
    let (phases, result) = walk("[\"01-parse\", \"02-write\", \"99-gone\"]", obliging);
    assert_eq!(phases, ["FINAL REVIEW"]);
    assert!(result.starts_with(r#"{"state":"completed","done":["01-parse","02-write"]"#));
}
