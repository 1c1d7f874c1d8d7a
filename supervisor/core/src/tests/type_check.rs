//! Files whose types are checked before they run.

use super::*;
use crate::CheckedTypes;
use vm_system_protocol::model::TypeCheck;

fn checking(typecheck: TypeCheck) -> Arc<EffectivePolicy> {
    rights(|snapshot| {
        snapshot.settings.runtime.typecheck = typecheck;
        snapshot.settings.limits.wall_ms = 10;
    })
}

/// A request to run a file, whose text has been read.
fn file(bench: &mut Bench, token: u64, kind: ExecutionKind, name: &str, format: SourceFormat) {
    let source = Source::File { path: name.to_owned(), format: Some(format) };
    let request = Box::new(ExecuteRequest { kind, source, ..request(EXECUTION) });
    let policy = Arc::clone(&bench.policy);
    bench.input(SessionInput::Execute { token: Token::new(token), request, policy });
    loaded(bench, format);
}

fn loaded(bench: &mut Bench, format: SourceFormat) {
    let result = Ok(LoadedSource { text: "1".to_owned(), format });
    bench.input(SessionInput::SourceLoaded { execution: EXECUTION, result });
}

/// A ready session that has the file `a.ts`, which is being checked.
fn checked(typecheck: TypeCheck) -> Bench {
    let mut bench = Bench::ready_with(checking(typecheck));
    file(&mut bench, 2, ExecutionKind::RunFile, "a.ts", SourceFormat::TypeScript);
    bench
}

fn found(errors: u64) -> CheckedTypes {
    let lines = (0..errors.max(1)).map(|line| format!("a.ts:{}:1: …", line + 1)).collect();
    CheckedTypes::Done { lines, errors }
}

fn failed() -> CheckedTypes {
    CheckedTypes::Failed { why: "no compiler".to_owned(), hint: Some("install one".to_owned()) }
}

fn is_checked(bench: &mut Bench, result: CheckedTypes) {
    bench.input(SessionInput::TypesChecked { execution: EXECUTION, result });
}

fn notices(bench: &Bench) -> Vec<(String, ConsoleLevel)> {
    let events = bench.writes.iter().filter_map(|write| match write {
        Write::Events(events) => Some(events.iter().cloned().collect::<Vec<_>>()),
        _ => None,
    });
    let notices = events.flatten().filter_map(|event| match event.payload {
        EventPayload::System { message, level, .. } => Some((message, level)),
        _ => None,
    });
    notices.collect()
}

#[test]
fn only_files_with_code_are_checked_and_only_if_the_template_wants_it() {
    for (typecheck, name, format, checks) in [
        (TypeCheck::Off, "a.ts", SourceFormat::TypeScript, 0),
        (TypeCheck::Warn, "a.ts", SourceFormat::TypeScript, 1),
        (TypeCheck::Error, "a.js", SourceFormat::CommonJs, 1),
        (TypeCheck::Error, "a.json", SourceFormat::Json, 0),
    ] {
        let mut bench = Bench::ready_with(checking(typecheck));
        file(&mut bench, 2, ExecutionKind::RunFile, name, format);
        assert_eq!((bench.checks, was_dispatched(&bench)), (checks, checks == 0), "{name}, {typecheck}");
    }
    let mut bench = Bench::ready_with(checking(TypeCheck::Error));
    bench.execute(2);
    assert!(bench.checks == 0 && was_dispatched(&bench), "a text that the client has sent");
}

#[test]
fn with_warn_errors_are_recorded_and_the_file_runs() {
    for (result, lines) in [
        (found(2), &["a.ts:1:1: …", "a.ts:2:1: …"][..]),
        (failed(), &["types were not checked: no compiler; install one"]),
    ] {
        let mut bench = checked(TypeCheck::Warn);
        assert!(!was_dispatched(&bench));
        is_checked(&mut bench, result);
        let warning = |line: &&str| ((*line).to_owned(), ConsoleLevel::Warn);
        assert_eq!(notices(&bench), lines.iter().map(warning).collect::<Vec<_>>());
        assert!(was_dispatched(&bench));
        bench.ends(Outcome::Ok);
        assert_eq!(bench.ended().status, ExecutionStatus::Ok);
        assert_eq!(bench.ended().metrics.events, lines.len() as u64);
    }
}

#[test]
fn with_error_they_end_the_execution_before_anything_runs() {
    for (result, code, message, lines) in [
        (found(1), "TYPE_ERRORS", "a.ts:1:1: …", 0),
        (found(2), "TYPE_ERRORS", "a.ts:1:1: … (and 1 more error)", 2),
        (found(9), "TYPE_ERRORS", "a.ts:1:1: … (and 8 more errors)", 9),
        (failed(), "TYPE_CHECK_FAILED", "types were not checked: no compiler; install one", 0),
    ] {
        let mut bench = checked(TypeCheck::Error);
        is_checked(&mut bench, result);
        let ended = bench.ended();
        assert_eq!((ended.status, bench.code().as_str()), (ExecutionStatus::Error, code));
        assert_eq!(ended.error.map(|error| error.message).as_deref(), Some(message));
        assert_eq!(notices(&bench).len(), lines, "what the error lacks");
        assert!(matches!(bench.reply(2), Some(Ok(Answer::Executed(_)))) && !was_dispatched(&bench));
        bench.execute(3);
        assert!(was_dispatched(&bench), "the session is free");
    }
    for nothing in [CheckedTypes::Done { lines: Vec::new(), errors: 0 }, found(0)] {
        let mut bench = checked(TypeCheck::Error);
        is_checked(&mut bench, nothing);
        assert!(was_dispatched(&bench), "a warning is no error");
    }
}

#[test]
fn its_clocks_begin_after_the_check() {
    let mut bench = checked(TypeCheck::Error);
    bench.pass_ms(60_000);
    is_checked(&mut bench, found(0));
    bench.pass_ms(9);
    assert_eq!(bench.interrupts, 0);
    bench.pass_ms(1);
    assert_eq!(bench.interrupts, 1);
}

#[test]
fn one_that_is_cancelled_or_whose_worker_ends_gives_the_check_up() {
    let mut bench = checked(TypeCheck::Error);
    bench.input(SessionInput::Cancel { token: Token::new(3), execution: EXECUTION, abandoned: false });
    assert_eq!((bench.ended().status, bench.dropped_work), (ExecutionStatus::Cancelled, 1));
    is_checked(&mut bench, found(0));
    assert!(!was_dispatched(&bench), "the result is late");

    let mut bench = checked(TypeCheck::Error);
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(11)));
    assert_eq!((bench.code().as_str(), bench.dropped_work), ("WORKER_DIED", 1));
    is_checked(&mut bench, found(0));
    assert!(!was_dispatched(&bench));

    let mut bench = checked(TypeCheck::Error);
    bench.ends(Outcome::Ok);
    assert!(bench.killed && bench.dropped_work == 1, "the worker does not have it yet");
}

#[test]
fn one_with_a_key_waits_for_its_commit_and_for_the_check() {
    for commit_first in [true, false] {
        let mut bench = Bench::ready_with(checking(TypeCheck::Error));
        bench.held = Some(Vec::new());
        let source = Source::File { path: "a.ts".to_owned(), format: Some(SourceFormat::TypeScript) };
        let request =
            ExecuteRequest { stored_first: true, kind: ExecutionKind::RunFile, source, ..request(EXECUTION) };
        let policy = Arc::clone(&bench.policy);
        bench.input(SessionInput::Execute { token: Token::new(2), request: Box::new(request), policy });
        loaded(&mut bench, SourceFormat::TypeScript);
        for is_commit in [commit_first, !commit_first] {
            assert!(!was_dispatched(&bench));
            if is_commit {
                bench.keeps();
            } else {
                is_checked(&mut bench, CheckedTypes::Done { lines: Vec::new(), errors: 0 });
            }
        }
        assert!(was_dispatched(&bench));
    }
}

#[test]
fn a_startup_file_with_errors_ends_its_session() {
    let policy = checking(TypeCheck::Error);
    let mut bench = Bench::new(Arc::clone(&policy), 0);
    let source = Source::File { path: "setup.ts".to_owned(), format: Some(SourceFormat::TypeScript) };
    let startup = ExecuteRequest { kind: ExecutionKind::Startup, source, ..request(EXECUTION) };
    bench.machine = SessionMachine::new(SessionSpec { startup: vec![startup], ..spec(&policy, 0) });
    bench.input(SessionInput::Create { token: Token::new(1) });
    bench.input(SessionInput::Spawned);
    bench.on_worker_message(FromWorker::Started { heap_bytes: 1 });
    loaded(&mut bench, SourceFormat::TypeScript);
    is_checked(&mut bench, found(1));
    assert!(bench.killed && !was_dispatched(&bench));
    bench.input(SessionInput::Exited(WorkerExitStatus::Signaled(9)));
    assert_eq!(bench.reason(), "startup_failed(setup.ts: a.ts:1:1: …)");
}
