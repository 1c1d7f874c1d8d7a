//! Programs that are compared with what Node wrote: runs them, with a stored and restored state at each pause.

use vm_system_cvm::{
    CompileOptions, Level, PauseAnswer, RunOutcome, StateConfig, VmLimits, VmState, compile, resume_pause,
    run,
};

/// Runs a program: its lines with their levels, and how it ended.
pub(crate) fn lines(source: &str, args: &[String]) -> (Vec<(Level, String)>, String) {
    let program = match compile(source, &CompileOptions::default()) {
        Ok(program) => program,
        Err(errors) => return (Vec::new(), errors.to_string()),
    };
    let mut state = VmState::new(&program, &StateConfig { args: args.to_vec(), ..StateConfig::default() });
    let mut lines = Vec::new();
    loop {
        let outcome = run(&program, &mut state, u64::MAX);
        lines.extend(state.take_output().into_iter().map(|line| (line.level, line.text)));
        match outcome {
            RunOutcome::Pause { .. } => {
                let stored = state.pages_since(&program, 0).pages;
                let pages = stored.iter().map(|page| (page.number, page.bytes.as_slice()));
                state = VmState::restore(&program, VmLimits::default(), pages).expect("its own pages");
                let answer = PauseAnswer::Text("answer".to_owned());
                assert!(resume_pause(&program, &mut state, &answer));
            }
            end => return (lines, format!("{end:?}")),
        }
    }
}

/// The texts of a program's lines.
#[allow(dead_code, reason = "not every test that includes this file has such programs")]
pub(crate) fn texts(source: &str) -> Vec<String> {
    lines(source, &[]).0.into_iter().map(|line| line.1).collect()
}

/// Runs cases between lines of `=====` (the script, a line of `-----`, what Node's console wrote), except those with one of these
/// names; panics with the differences, and returns the number of cases.
#[allow(dead_code, reason = "not every test that includes this file has such cases")]
pub(crate) fn compare(cases: &[&str], without: &[&str]) -> usize {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for case in cases.iter().flat_map(|cases| cases.split("\n=====\n")).filter(|case| !case.trim().is_empty())
    {
        let (script, expected) = case.split_once("\n-----\n").expect("a script and its output");
        if without.iter().any(|name| script.contains(name)) {
            continue;
        }
        compared += 1;
        let (written, end) = lines(script, &[]);
        let written: Vec<String> = written.into_iter().map(|line| line.1).collect();
        if written.join("\n") != expected {
            wrong.push(format!("{script}\n--- node\n{expected}\n--- here {end}\n{}\n", written.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n======\n"));
    compared
}
