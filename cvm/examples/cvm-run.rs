//! Runs a program file and prints its console output and outcome: a tool for development.
//!
//! `cvm-run FILE [ANSWER…]`: the answers are submitted to its pauses and to the oldest of its items in turn; at each stop the state is
//! stored and restored.

use vm_system_cvm::{
    CompileOptions, CompiledProgram, FormatError, HostResult, ItemAnswer, ItemKind, Level, PauseAnswer,
    RunOutcome, StateConfig, VmLimits, VmState, compile, resume_host, resume_item, resume_pause, run,
};

fn main() -> std::process::ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(file) = args.next() else {
        eprintln!("usage: cvm-run FILE [ANSWER…]");
        return std::process::ExitCode::from(2);
    };
    let source = match std::fs::read_to_string(&file) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("{file}: {error}");
            return std::process::ExitCode::from(2);
        }
    };
    let typescript = std::path::Path::new(&file).extension().is_some_and(|e| e == "ts");
    let options = CompileOptions { filename: file, typescript, plain_script: false, items: true };
    let program = match compile(&source, &options) {
        Ok(program) => program,
        Err(errors) => {
            eprintln!("{errors}");
            return std::process::ExitCode::from(3);
        }
    };
    if let Err(error) = program.verify() {
        eprintln!("the compiled program is not valid: {error}");
    }
    let mut state = VmState::new(&program, &StateConfig::default());
    loop {
        let outcome = run(&program, &mut state, u64::MAX);
        for line in state.take_output() {
            if line.level == Level::Error { eprintln!("{}", line.text) } else { println!("{}", line.text) }
        }
        for item in state.take_new_items() {
            println!("+ {item:?}");
        }
        if matches!(outcome, RunOutcome::Pause { .. } | RunOutcome::Wait { .. }) {
            match stored_and_restored(&program, &mut state) {
                Ok(restored) => state = restored,
                Err(error) => {
                    eprintln!("the waiting state cannot be restored: {error}");
                    return std::process::ExitCode::from(4);
                }
            }
        }
        let mut answer = || PauseAnswer::Text(args.next().unwrap_or_else(|| "answer".to_owned()));
        match outcome {
            RunOutcome::Done { text, .. } => {
                println!("=> {text}");
                return std::process::ExitCode::SUCCESS;
            }
            RunOutcome::Pause { prompt, .. } => {
                println!("? {prompt}");
                resume_pause(&program, &mut state, &answer());
            }
            RunOutcome::Wait { rejections } => {
                for text in rejections {
                    eprintln!("rejected: {text}");
                }
                if let Some(oldest) = state.open_items().first() {
                    println!("? {oldest:?}");
                    let settled = match oldest.kind {
                        ItemKind::Timer => ItemAnswer::Elapsed,
                        ItemKind::Question | ItemKind::Event => ItemAnswer::Answer(answer()),
                    };
                    resume_item(&program, &mut state, oldest.number, &settled);
                }
            }
            RunOutcome::Host { .. } => {
                resume_host(&program, &mut state, &HostResult::Json("null".to_owned()));
            }
            other => {
                println!("{other:?}");
                return std::process::ExitCode::from(1);
            }
        }
    }
}

fn stored_and_restored(program: &CompiledProgram, state: &mut VmState) -> Result<VmState, FormatError> {
    let stored = state.pages_since(program, 0).pages;
    let pages = stored.iter().map(|page| (page.number, page.bytes.as_slice()));
    VmState::restore(program, VmLimits::default(), pages)
}
