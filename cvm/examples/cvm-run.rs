//! Runs a program file and prints its console output and outcome: a tool for development.
//!
//! `cvm-run FILE [ANSWER…]`: the answers are submitted to its pauses in turn; at each pause the state is stored and restored.

use vm_system_cvm::{
    CompileOptions, HostResult, Level, PauseAnswer, RunOutcome, StateConfig, VmLimits, VmState, compile,
    resume_host, resume_pause, run,
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
    let program = match compile(&source, &CompileOptions { filename: file, typescript, plain_script: false })
    {
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
        match outcome {
            RunOutcome::Done { text, .. } => {
                println!("=> {text}");
                return std::process::ExitCode::SUCCESS;
            }
            RunOutcome::Pause { prompt, .. } => {
                println!("? {prompt}");
                let stored = state.pages_since(&program, 0).pages;
                let pages = stored.iter().map(|page| (page.number, page.bytes.as_slice()));
                match VmState::restore(&program, VmLimits::default(), pages) {
                    Ok(restored) => state = restored,
                    Err(error) => {
                        eprintln!("the paused state cannot be restored: {error}");
                        return std::process::ExitCode::from(4);
                    }
                }
                let answer = PauseAnswer::Text(args.next().unwrap_or_else(|| "answer".to_owned()));
                resume_pause(&program, &mut state, &answer);
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
