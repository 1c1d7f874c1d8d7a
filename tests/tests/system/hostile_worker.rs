//! A worker that breaks the protocol, in every way that we could think of, is killed with a reason, which the record and the
//! caller get, without an effect on its sibling and the supervisor.

use vm_system_protocol::control::{
    ErrorCode, NewCapability, NewStartupFile, ProgramStart, TemplateAddCapability, TemplateAddStartup,
};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{
    CapabilityKind, EventPayload, ExecutionStatus, Limits, SessionStatus, Settings,
};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::observe;
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::watch::Watch;
use vm_system_tests::{as_both, program};

as_both!(
    every_violation_kills_that_session_only,
    floods_end_at_the_limits,
    a_worker_that_ignores_the_interruption_is_killed,
    a_worker_that_exits_is_no_success,
    workers_that_die_at_every_start_are_not_started_for_ever,
    messages_that_never_end_are_not_waited_for,
    descriptors_never_reach_the_supervisor,
    calls_without_a_grant_are_refused_whatever_the_worker_sends,
    a_forbidden_call_of_a_programs_worker_is_named_in_its_record,
    worker_that_sends_many_pages_waits_for_a_reservation_and_not_for_ever,
    programs_state_does_not_grow_beyond_its_limit_whatever_its_worker_sends,
);

/// Violations, each of which ends the session.
const VIOLATIONS: &[&str] = &[
    "events of an unknown execution",
    "end of an unknown execution",
    "no events",
    "an event that only the supervisor makes",
    "output of a command",
    "started twice",
    "an unrequested adoption",
    "ends twice",
    "a call number out of order",
    "a skipped sequence",
    "a repeated sequence",
    "garbage",
    "bytes behind the message",
    "a message above the cap",
    "a list of 2^60 entries",
    "a piece out of order",
    "an empty piece",
    "a packet above the cap",
    "a result that is no JSON",
    "sends when idle",
];

mod cases {
    use super::*;

    pub(super) fn calls_without_a_grant_are_refused_whatever_the_worker_sends(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        daemon.place.write("forged", "kept");
        let http = "ERR_NET_DENIED ERR_NET_EGRESS_LOST ERR_NET_EGRESS_LOST ERR_NET_EGRESS_LOST";
        let refused = "MODULE_NOT_ALLOWED MODULE_NOT_ALLOWED";
        let none = &format!("{refused} {refused} MODULE_NOT_ALLOWED {http}");
        let reads = &format!("let pass EACCES EACCES {refused} {http}");
        for (modules, expected) in [(&[][..], none), (&["fs"][..], reads)] {
            let template = client.template(Settings::default(), modules);
            let session = client.session(&template, &daemon.place.worktree()).expect("session");
            let execution = client.eval(&session, "calls what was not granted").expect("a response");
            let events = client.events(&execution.id.to_string());
            let codes = events.iter().find_map(|event| match &event.payload {
                EventPayload::Console { text, .. } => Some(text.as_str()),
                _ => None,
            });
            assert_eq!(codes, Some(expected.as_str()), "{modules:?}: {events:?}");
            client.close(&session);
        }
        let kept = std::fs::read_to_string(daemon.place.worktree().join("forged"));
        assert_eq!(kept.expect("still there"), "kept");
        drop(client);
        daemon.stop();
    }

    pub(super) fn a_forbidden_call_of_a_programs_worker_is_named_in_its_record(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        client.load("opens a file");
        let run = client.start_program(ProgramStart::default()).expect("an execution");
        let record = client.until_final(&run.execution);
        assert_eq!(record.status, ExecutionStatus::Error);
        let error = record.error.expect("an error");
        assert_eq!(
            (error.code.as_str(), error.reason.as_deref()),
            ("WORKER_DIED", Some("seccomp(openat)")),
            "{error:?}"
        );
        // As its owner sees it.
        let shown = daemon.cli(&["exec", "get", &record.id.to_string()]).ok();
        assert!(shown.contains("seccomp(openat)"), "{shown}");
        drop(client);
        daemon.stop();
    }

    pub(super) fn programs_state_does_not_grow_beyond_its_limit_whatever_its_worker_sends(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let limits = Limits { max_state_mb: 1, ..Limits::default() };
        let template = client.program_template(Settings { limits, ..Settings::default() });
        let start = || ProgramStart { template: Some(template.clone()), ..ProgramStart::default() };
        for (how, expected) in [
            ("writes new pages at every checkpoint", "MEMORY_LIMIT"),
            ("writes a page that no state has", "WORKER_DIED"),
        ] {
            client.load(how);
            let run = client.start_program(start()).expect("an execution");
            let record = client.until_final(&run.execution);
            let error = record.error.unwrap_or_else(|| panic!("{how}: {:?}", record.status));
            assert_eq!((record.status, error.code.as_str()), (ExecutionStatus::Error, expected), "{error:?}");
            let kept = client.checkpoints(&record.id.to_string());
            let bytes: u64 = kept.iter().map(|checkpoint| checkpoint.bytes).sum();
            assert!(bytes <= 20 << 20, "{how}: {bytes} bytes are kept");
        }
        client.load("honest");
        let run = client.start_program(start()).expect("an execution");
        assert_eq!(client.until_final(&run.execution).status, ExecutionStatus::Ok);
        drop(client);
        daemon.stop();
    }

    pub(super) fn worker_that_sends_many_pages_waits_for_a_reservation_and_not_for_ever(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let write = NewCapability {
            kind: CapabilityKind::Fs,
            name: "write".to_owned(),
            enabled: true,
            config: JsonText::from_untrusted("{}".to_owned()),
        };
        let start = |client: &mut Client, how: &str, wall_ms: u32, number: usize| {
            let template = client.program_template(short(wall_ms));
            let capability = write.clone();
            client.op(TemplateAddCapability { template: template.clone(), capability }).expect("a row");
            client.load(how);
            let worktree_path = Some(daemon.place.worktree().to_string_lossy().into_owned());
            let (template, args) = (Some(template), vec![number.to_string()]);
            let new = ProgramStart { template, worktree_path, args, wait: false, ..ProgramStart::default() };
            client.start_program(new).expect("an execution").execution
        };
        // As many as the memory budget of 1 GiB allows: each may send 144 MiB.
        let holding: Vec<_> = (0..7)
            .map(|n| start(&mut client, "sends pages without an end, and writes a mark", 5_000, n))
            .collect();
        let marked = |entry: &std::io::Result<std::fs::DirEntry>| {
            entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("marked-"))
        };
        let mut watch = Watch::begin();
        while std::fs::read_dir(daemon.place.worktree()).expect("a folder").filter(marked).count() < 7 {
            watch.pause(|| "some have not sent their pages".to_owned());
        }
        // The last one's wall time is longer than those of the others, one of which ends before it has its reservation: the wait
        // counts.
        let last = start(&mut client, "has a large state", 30_000, 7);
        let record = client.until_final(&last);
        assert_eq!(record.status, ExecutionStatus::Ok, "{:?}", record.error);
        let ended =
            holding.iter().filter(|held| client.get_run(&held.id.to_string()).execution.status.is_final());
        assert!(ended.count() > 0, "it had no reservation before one of them had ended");
        drop(client);
        daemon.stop();
    }

    fn daemon(user: User) -> Daemon {
        let options = DaemonOptions { program: program::HOSTILE_WORKER, ..DaemonOptions::default() };
        Daemon::start_with(TestDir::new(user), &options)
    }

    fn short(wall_ms: u32) -> Settings {
        // The CPU limit is out of reach: only the wall limit can end it.
        Settings { limits: Limits { wall_ms, cpu_ms: 60_000, ..Limits::default() }, ..Settings::default() }
    }

    pub(super) fn every_violation_kills_that_session_only(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let worktree = daemon.place.worktree();
        let sibling = client.session(&template, &worktree).expect("sibling");
        // One session first: one-time allocations are made before the count.
        let warm = client.session(&template, &worktree).expect("session");
        let _ = client.eval(&warm, "garbage");
        let sibling_pid = inspected_pid(&daemon, &sibling);
        let (fds, memory) = (observe::descriptors(daemon.pid()), observe::anonymous_kib(daemon.pid()));
        for how in VIOLATIONS {
            let session = client.session(&template, &worktree).expect("session");
            let pid = inspected_pid(&daemon, &session);
            let execution = client.eval(&session, how);
            let ended = wait_until_crashed(&daemon, &session);
            let reason = ended.close_reason.unwrap_or_default();
            assert!(reason.starts_with("protocol_violation("), "{how}: {reason}");
            assert!(!observe::is_alive(pid), "{how}: its worker is running");
            // An execution that had ended before the violation keeps its result; others are lost with the worker.
            if !["ends twice", "sends when idle"].contains(how) {
                let execution = execution.unwrap_or_else(|error| panic!("{how}: {error:?}"));
                assert_eq!(execution.status, ExecutionStatus::Error, "{how}");
                let error = execution.error.unwrap_or_else(|| panic!("{how}: no error"));
                assert_eq!(
                    (error.code.as_str(), error.reason.as_deref()),
                    ("WORKER_DIED", Some(reason.as_str())),
                    "{how}"
                );
            }
            let status = client.eval(&sibling, "honest").expect("sibling").status;
            assert_eq!(status, ExecutionStatus::Ok, "after {how}");
        }
        assert_eq!(inspected_pid(&daemon, &sibling), sibling_pid);
        assert!(observe::descriptors(daemon.pid()) <= fds + 2, "descriptors leak");
        let grown = observe::anonymous_kib(daemon.pid()).saturating_sub(memory);
        assert!(grown < 8 * 1024, "memory grew by {grown} KiB");
        daemon.stop();
    }

    pub(super) fn floods_end_at_the_limits(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        for (how, reason) in
            [("more events than allowed", "limit(events)"), ("more output than allowed", "limit(output)")]
        {
            let session = client.session(&template, &daemon.place.worktree()).expect("session");
            let execution = client.eval(&session, how).expect("a response");
            assert_eq!(execution.status, ExecutionStatus::Error, "{how}");
            let ended = wait_until_crashed(&daemon, &session);
            assert_eq!(ended.close_reason.as_deref(), Some(reason), "{how}");
            let stored = client.events(&execution.id.to_string());
            let bytes: u64 = stored.iter().map(|event| event.payload.output_bytes()).sum();
            let limits = Limits::default();
            assert!(stored.len() <= limits.max_events as usize + 2, "{how}: {} events", stored.len());
            assert!(bytes <= u64::from(limits.max_output_kb + 600) * 1024, "{how}: {bytes} bytes");
        }
        daemon.stop();
    }

    pub(super) fn a_worker_that_ignores_the_interruption_is_killed(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let template = client.template(short(300), &[]);
        let session = client.session(&template, &daemon.place.worktree()).expect("session");
        let execution = client.eval(&session, "neither reads nor sends").expect("a response");
        assert_eq!(execution.status, ExecutionStatus::Timeout, "{:?}", execution.error);
        let ended = wait_until_crashed(&daemon, &session);
        assert_eq!(ended.close_reason.as_deref(), Some("limit(wall)"));
        daemon.stop();
    }

    pub(super) fn workers_that_die_at_every_start_are_not_started_for_ever(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let worktree = daemon.place.worktree();
        daemon.place.write("begin.js", "exits");
        let template = client.template(Settings::default(), &[]);
        let file = NewStartupFile { path: "begin.js".to_owned(), order_index: 1, mode: "eval".to_owned() };
        client.op(TemplateAddStartup { template: template.clone(), file }).expect("added");
        let errors: Vec<_> =
            (0..100).map(|_| client.session(&template, &worktree).expect_err("its worker dies")).collect();
        for error in &errors[..5] {
            assert_eq!(error.code, ErrorCode::SessionNotReady, "{error:?}");
            assert!(error.message.contains("exited(0)"), "{error:?}");
        }
        for error in &errors[5..] {
            assert_eq!(error.code, ErrorCode::CapacityExceeded, "{error:?}");
            assert!(
                error.message.contains("died at their start") && error.message.contains("exited(0)"),
                "{error:?}"
            );
            assert!(error.hint.is_some(), "{error:?}");
        }
        let other = client.template(Settings::default(), &[]);
        let session = client.session(&other, &worktree).expect("another template");
        assert_eq!(client.eval(&session, "honest").expect("it runs").status, ExecutionStatus::Ok);
        daemon.stop();
    }

    pub(super) fn a_worker_that_exits_is_no_success(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let session = client.session(&template, &daemon.place.worktree()).expect("session");
        let execution = client.eval(&session, "exits").expect("a response");
        assert_eq!(execution.status, ExecutionStatus::Error);
        assert_eq!(execution.error.expect("error").code, "WORKER_DIED");
        let ended = wait_until_crashed(&daemon, &session);
        assert_eq!(ended.close_reason.as_deref(), Some("exited(0)"));
        daemon.stop();
    }

    pub(super) fn messages_that_never_end_are_not_waited_for(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        for (how, reason) in [
            ("the beginning of a message", "protocol_violation("),
            ("the beginning of a message, and exits", "exited(0)"),
        ] {
            let session = client.session(&template, &daemon.place.worktree()).expect("session");
            let execution = client.eval(&session, how).expect("a response");
            assert_eq!(execution.error.expect("an error").code, "WORKER_DIED", "{how}");
            let stored = client.events(&execution.id.to_string());
            let texts = stored.iter().filter(|event| matches!(event.payload, EventPayload::Console { .. }));
            assert_eq!(texts.count(), 0, "{how}: {stored:?}");
            let ended = wait_until_crashed(&daemon, &session);
            let found = ended.close_reason.unwrap_or_default();
            assert!(found.starts_with(reason), "{how}: {found}");
        }
        daemon.stop();
    }

    pub(super) fn descriptors_never_reach_the_supervisor(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let worktree = daemon.place.worktree();
        let warm = client.session(&template, &worktree).expect("session");
        client.eval(&warm, "honest").expect("a response");
        client.close(&warm);
        let before = observe::descriptors(daemon.pid());
        let session = client.session(&template, &worktree).expect("session");
        let execution = client.eval(&session, "descriptors").expect("a response");
        if execution.status == ExecutionStatus::Ok {
            let events = client.events(&execution.id.to_string());
            let refused = events.iter().any(|event| {
                matches!(&event.payload, EventPayload::Console { text, .. } if text == "refused by the kernel")
            });
            assert!(refused, "{events:?}");
        } else {
            let ended = wait_until_crashed(&daemon, &session);
            assert!(ended.close_reason.unwrap_or_default().starts_with("protocol_violation("));
        }
        client.close(&session);
        let now = observe::descriptors(daemon.pid());
        assert!(now <= before + 1, "{now} descriptors, {before} before");
        daemon.stop();
    }

    fn inspected_pid(daemon: &Daemon, session: &vm_system_protocol::model::Session) -> u32 {
        daemon.client().inspect(session).expect("live").pid
    }

    fn wait_until_crashed(
        daemon: &Daemon,
        session: &vm_system_protocol::model::Session,
    ) -> vm_system_protocol::model::Session {
        daemon.client().wait_for(session, SessionStatus::Crashed)
    }
}
