//! The escape suite: every attempt of `vm_system_tests::escape` in workers of a real daemon, as root and as an unprivileged user.
//! Writes and checks `docs/security/escape-suite.md`.

use std::path::{Path, PathBuf};
use vm_system_protocol::model::{EventPayload, ExecutionStatus, Session, SessionStatus, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::command::command;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::escape::{self, EscapeAttempt, EscapeProbe, Evidence, Inside};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::{as_both, observe, program, skip, watch};

as_both!(every_attempt_fails, worker_inherits_nothing_of_its_supervisor);

/// Growth of the supervisor's memory over the suite: allocator slack and caches (KiB).
const GROWTH_KIB: u64 = 16 * 1024;
/// Descriptors that are opened on first use.
const LAZY_DESCRIPTORS: usize = 8;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

fn daemon(user: User) -> Daemon {
    let options = DaemonOptions { program: program::HOSTILE_WORKER, ..DaemonOptions::default() };
    Daemon::start_with(TestDir::new(user), &options)
}

/// The report of a probe: the text that its execution logged.
fn report(client: &mut Client, session: &Session, source: &str) -> Option<String> {
    let execution = client.eval(session, source).ok()?;
    let events = client.events(&execution.id.to_string());
    events.into_iter().find_map(|event| match event.payload {
        EventPayload::Console { text, .. } => Some(text),
        _ => None,
    })
}

/// The outcome of a probe in a worker: the closing reason of its session, or its report. A session that goes on is used again.
fn inside(
    client: &mut Client,
    create: &dyn Fn(&mut Client) -> Session,
    session: &mut Session,
    source: &str,
    expected: Inside,
) -> String {
    let reported = report(client, session, source);
    // A report may come before the end that the probe causes.
    match reported {
        Some(text) if !matches!(expected, Inside::Ends(_)) => text,
        _ => {
            let ended = client.wait_for(session, SessionStatus::Crashed);
            *session = create(client);
            ended.close_reason.unwrap_or_default()
        }
    }
}

/// The report of a probe outside of the jail; `None`: the machine refuses the namespaces.
fn outside(place: &TestDir, attempt: &EscapeAttempt, probe: usize) -> Option<String> {
    let mut made = command(place, program::HOSTILE_WORKER);
    made.args([escape::OUTSIDE, &attempt.number.to_string(), &probe.to_string()]);
    made.env("PRESENT", "outside");
    let output = made.output().expect("it starts");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn expected(probe: &EscapeProbe) -> String {
    probe.reason().unwrap_or_else(|| probe.report())
}

mod cases {
    use super::*;

    pub(super) fn every_attempt_fails(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let worktree = daemon.place.worktree();
        let create = |client: &mut Client| client.session(&template, &worktree).expect("session");
        let sibling = create(&mut client);
        let keeper = daemon.info().keeper_pid;
        let mut session = create(&mut client);
        // One that ends first: one-time allocations are made before the count.
        let _ = client.eval(&session, "exits");
        client.wait_for(&session, SessionStatus::Crashed);
        session = create(&mut client);
        let (fds, memory) = (observe::descriptors(daemon.pid()), observe::anonymous_kib(daemon.pid()));

        let rows = escape::attempts();
        let (mut observed, mut failures) = (Vec::new(), Vec::new());
        for row in &rows {
            let mut seen = Vec::new();
            for (at, probe) in row.probes.iter().enumerate() {
                let source = escape::source(row, at);
                let found = inside(&mut client, &create, &mut session, &source, probe.inside);
                if found != expected(probe) {
                    failures.push(format!("{} {}, {}: {found}", row.number, row.name, probe.name));
                }
                seen.push(found);
                let status = client.eval(&sibling, "honest").expect("the sibling responds").status;
                assert_eq!(status, ExecutionStatus::Ok, "the sibling after {}, {}", row.name, probe.name);
            }
            observed.push(seen);
        }
        assert!(failures.is_empty(), "{} probes:\n{}", failures.len(), failures.join("\n"));
        assert_eq!(daemon.info().keeper_pid, keeper, "the keeper is the same");
        client.close(&session);
        let most = fds + LAZY_DESCRIPTORS;
        let now = || observe::descriptors(daemon.pid());
        watch::wait_until(|| now() <= most, || format!("{} descriptors, {fds} before", now()));
        let grown = observe::anonymous_kib(daemon.pid()).saturating_sub(memory);
        assert!(grown <= GROWTH_KIB, "the supervisor's memory grew by {grown} KiB");
        drop(client);
        daemon.stop();

        // The document is that of one architecture: others lack the calls that only it has.
        if !cfg!(target_arch = "x86_64") {
            return;
        }
        let page = escape::page::text(&rows, &observed);
        let path = repository().join(escape::page::PATH);
        if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
            std::fs::write(&path, &page).expect("the document");
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "see VM_SYSTEM_BLESS");
    }

    /// As the host sees the process: what it was started with.
    pub(super) fn worker_inherits_nothing_of_its_supervisor(user: User) {
        let daemon = daemon(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let session = client.session(&template, &daemon.place.worktree()).expect("session");
        let pid = client.inspect(&session).expect("live").pid;
        let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).expect(name);
        let status = file("status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
            line.unwrap_or_else(|| panic!("no {name}: {status}")).to_owned()
        };
        for (name, value) in [
            ("Umask", "0077"),
            ("Groups", ""),
            ("SigBlk", "0000000000000000"),
            ("CapEff", "0000000000000000"),
            ("CapBnd", "0000000000000000"),
            ("NoNewPrivs", "1"),
            ("Seccomp", "2"),
            ("TracerPid", "0"),
        ] {
            assert_eq!(field(name).trim(), value, "{name}");
        }
        // Behind the name in parentheses: state, parent, group, session, terminal; the 17th value is the nice value.
        let values = |stat: String| -> Vec<String> {
            stat.rsplit_once(") ").expect("a name").1.split(' ').map(str::to_owned).collect()
        };
        let stat = file("stat");
        let own = values(stat.clone());
        let supervisors = std::fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).expect("stat");
        let supervisors = values(supervisors);
        assert_eq!(
            (own[4].as_str(), &own[16]),
            ("0", &supervisors[16]),
            "no terminal, the same priority: {stat}"
        );
        let keeper = daemon.info().keeper_pid.expect("a jail").to_string();
        assert_eq!(own[1], keeper, "the keeper is its parent: {stat}");
        assert_ne!(own[3], supervisors[3], "a session of its own: {stat}");
        assert_eq!(file("oom_score_adj").trim(), "1000", "it is killed first when memory runs out");
        let network: Vec<String> = file("net/dev")
            .lines()
            .skip(2)
            .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
            .collect();
        assert!(network.iter().all(|name| name == "lo" || name.ends_with('0')), "{network:?}");
        assert!(file("net/route").lines().count() <= 1, "no route behind the head");
        assert!(file("net/unix").lines().count() <= 1, "no local socket of the host");
        let limits = file("limits");
        for name in ["Max core file size", "Max file size", "Max locked memory", "Max msgqueue size"] {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).expect(name);
            assert_eq!(line.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{name}");
        }
        drop(client);
        daemon.stop();
    }
}

/// Each probe has an effect where there are no walls.
#[test]
fn every_probe_has_an_effect_outside_of_the_jail() {
    let place = TestDir::new(User::AsStarted);
    let mut failures = Vec::new();
    for row in escape::attempts() {
        for (at, probe) in row.probes.iter().enumerate() {
            let Some(report) = outside(&place, row, at) else {
                return skip("namespaces", "this machine refuses namespaces");
            };
            match escape::is_as_expected(probe, &report) {
                Some(true) => {}
                Some(false) => {
                    failures.push(format!("{} {}, {}: {report}", row.number, row.name, probe.name));
                }
                None => skip("kernel-call", &format!("{}: this kernel does not have it", probe.name)),
            }
        }
    }
    assert!(failures.is_empty(), "{} probes:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn attempts_are_complete_and_their_evidence_exists() {
    let rows = escape::attempts();
    let numbers: Vec<u8> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=70).collect::<Vec<u8>>());
    for row in rows {
        assert!(!row.probes.is_empty() || !row.evidence.is_empty(), "{}: nothing", row.number);
        for evidence in row.evidence {
            let (Evidence::Test(file, text) | Evidence::Document(file, text)) = evidence else { continue };
            let content = std::fs::read_to_string(repository().join(file));
            let content = content.unwrap_or_else(|error| panic!("{}: {file}: {error}", row.number));
            assert!(content.contains(text), "{}: {file} has no {text}", row.number);
        }
        for probe in row.probes {
            assert!(probe.inside != Inside::Forbidden || probe.reason().is_some(), "{}", probe.name);
        }
    }
}

/// The regions of a process that it can write to.
fn writable_memory(pid: u32) -> Vec<u8> {
    use std::os::unix::fs::FileExt as _;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("mem");
    let mut all = Vec::new();
    for line in maps.lines() {
        let mut fields = line.split(' ');
        let (range, rights) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (from, to) = range.split_once('-').expect("a range");
        let address = |text: &str| u64::from_str_radix(text, 16).expect("an address");
        let mut bytes = vec![0; (address(to) - address(from)) as usize];
        // Special regions cannot be read.
        if rights.starts_with("rw") && memory.read_exact_at(&mut bytes, address(from)).is_ok() {
            all.extend(bytes);
        }
    }
    all
}

fn has(memory: &[u8], text: &str) -> bool {
    memory.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn no_worker_has_text_of_another_session_or_of_the_supervisor() {
    if !User::can_be_switched() {
        return skip("root", "only root may read the memory of a worker");
    }
    // Of the product: the engine that holds text for long.
    let daemon = Daemon::start(User::AsStarted);
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &[]);
    let worktree = daemon.place.worktree();
    // Put together at run time, so that no binary has it.
    let secret = |of: &str| format!("{of}-secret-{:x}", std::process::id());
    let mut workers = Vec::new();
    for name in ["first", "second"] {
        let session = client.session(&template, &worktree).expect("session");
        let code = format!("globalThis.kept = '{}'; 1", secret(name));
        assert_eq!(client.preview_of(&session, &code), "1");
        workers.push((name, client.inspect(&session).expect("live").pid));
    }
    let third = client.session(&template, &worktree).expect("session");
    let state = daemon.place.path("state").to_string_lossy().into_owned();
    assert!(has(&writable_memory(daemon.pid()), &state), "the supervisor has its own path");
    workers.push(("third", client.inspect(&third).expect("live").pid));
    for (name, pid) in &workers {
        let memory = writable_memory(*pid);
        for other in ["first", "second"] {
            assert_eq!(has(&memory, &secret(other)), other == *name, "text of {other} in {name}");
        }
        assert!(!has(&memory, &state), "{name} has the supervisor's path");
    }
    drop(client);
    daemon.stop();
}

#[test]
fn each_keeper_has_other_addresses() {
    const KEEPERS: usize = 16;
    let mut bases: [Vec<String>; 3] = Default::default();
    for _ in 0..KEEPERS {
        let daemon = Daemon::start(User::AsStarted);
        let keeper = daemon.info().keeper_pid.expect("a jail");
        let maps = std::fs::read_to_string(format!("/proc/{keeper}/maps")).expect("maps");
        let first = |what: &str| maps.lines().find(|line| line.ends_with(what)).expect(what).to_owned();
        let start = |line: &str| line.split('-').next().unwrap_or_default().to_owned();
        for (known, line) in bases.iter_mut().zip([
            maps.lines().next().expect("text").to_owned(),
            first("[heap]"),
            first("[stack]"),
        ]) {
            known.push(start(&line));
        }
        daemon.stop();
    }
    for mut known in bases {
        known.sort();
        known.dedup();
        assert_eq!(known.len(), KEEPERS, "{known:?}");
    }
}
