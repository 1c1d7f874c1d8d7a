//! One greedy owner beside two others: it grows programs, holds all sessions that it gets, lets workers be killed one after the other,
//! floods output, and holds connections and streams. The requests of the others must succeed, and what the supervisor holds must
//! come back when the greedy owner is gone. Their waits are printed, not judged, but for a stall.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::{Http, Response};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::{observe, watch};

/// The owners with the SHA-256 of their tokens (`NAME-token`).
const OWNERS: &[(&str, &str)] = &[
    ("first", "55b4b48f529c3d2daa027cbffa6cfb6a03690424550f22109e39917406c8243b"),
    ("second", "7a35833597e6687c599a0988b7a53b9b6a7ec18b88ca2a8e60f3265c8be6d527"),
    ("greedy", "afce6be4f36b15f626380e3d5f54f900a890b1ea948e57e5caeedb92518fd8a3"),
];
const GREEDY: &str = "greedy";
/// The part of the time before the greedy owner begins.
const CALM: u32 = 8;
/// Growing programs at a time.
const PROGRAMS: usize = 6;
/// Idle connections of the greedy owner, and streams of events.
const CONNECTIONS: usize = 200;
/// A wait of another owner that is a failure.
const STALL: Duration = Duration::from_secs(20);
/// Variation of the memory by caches and the allocator, once the daemon has given back what it does not need (KiB).
const SLACK_KIB: u64 = 48 * 1_024;
/// Descriptors that are opened on first use.
const SLACK_DESCRIPTORS: usize = 16;
/// The database's limit, of which one owner has four fifths (MiB).
const QUOTA_MB: u32 = 512;

const GROWS: &str = "
const kept = [];
for (;;) { kept.push('x'.repeat(2000) + kept.length); if (kept.length % 25000 === 0) kept.length = 5000; }
function main() {}
";
/// Takes longer than any limit in one call that does not poll: its worker is killed.
const NEVER_POLLS: &str = "var o = { length: 2 ** 53 - 1 }; Array.prototype.reverse.call(o)";
const FLOOD: &str = "for (;;) console.log('x'.repeat(1000))";

/// The actors and figures of a run, which goes on until it is stopped.
struct Scene<'a> {
    socket: PathBuf,
    worktree: String,
    stopped: &'a AtomicBool,
    /// The greedy owner's acts, and how often each was done.
    done: Mutex<BTreeMap<String, u64>>,
}

impl Scene<'_> {
    fn http(&self, owner: &str) -> Http {
        Http::unix(&self.socket).bearer(&format!("{owner}-token"))
    }

    fn runs(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    fn note(&self, what: &str, status: u16) {
        let mut done = self.done.lock().expect("no thread panics with it");
        *done.entry(format!("{what} {status}")).or_default() += 1;
    }

    fn session(&self, http: &mut Http, template: &str) -> Response {
        let body = json!({
            "template_id": template, "workspace_id": "soak", "base_commit_oid": "none",
            "worktree_path": self.worktree,
        });
        http.post("/api/v1/sessions", &body)
    }
}

fn created(response: &Response) -> Result<String> {
    ensure!(matches!(response.status, 200..=202), "{}: {}", response.status, response.text());
    Ok(response.json()["id"].as_str().context("an id")?.to_owned())
}

fn template(http: &mut Http, name: &str, engine: &str, limits: &Value) -> Result<String> {
    let id = created(&http.post("/api/v1/templates", &json!({ "name": name, "engine": engine })))?;
    let body = json!({ "limits": limits }).to_string();
    let changed = http.request("PATCH", &format!("/api/v1/templates/{id}"), &[], Some(&body));
    ensure!(changed.status == 200, "{}", changed.text());
    Ok(id)
}

fn repl(http: &mut Http, session: &str, input: &str) -> Response {
    http.post("/api/v1/executions/repl", &json!({ "session_id": session, "input": input }))
}

/// An owner with ordinary requests; the waits of all of them. Any failure is an error.
fn ordinary(scene: &Scene<'_>, owner: &str, waits: &Mutex<Vec<(Instant, Duration)>>) -> Result<()> {
    let mut http = scene.http(owner);
    let template = template(&mut http, "ordinary", "quickjs", &json!({}))?;
    let session = created(&scene.session(&mut http, &template))?;
    for turn in 0_u64.. {
        if !scene.runs() {
            break;
        }
        let begin = Instant::now();
        let response = match turn % 20 {
            7 => {
                let id = created(&scene.session(&mut http, &template)).context("a session")?;
                http.post(&format!("/api/v1/sessions/{id}/close"), &json!({}))
            }
            13 => http.get("/api/v1/sessions?limit=5"),
            _ => repl(&mut http, &session, "1 + 1"),
        };
        ensure!(matches!(response.status, 200..=202), "{owner}: {}: {}", response.status, response.text());
        let wait = begin.elapsed();
        ensure!(wait < STALL, "{owner} waited {wait:?}");
        waits.lock().expect("no thread panics with it").push((begin, wait));
        watch::moment();
    }
    Ok(())
}

/// Programs that grow until a limit ends them; each is replaced.
fn grow(scene: &Scene<'_>) -> Result<()> {
    let mut http = scene.http(GREEDY);
    let limits = json!({ "cpu_ms": 5_000, "wall_ms": 30_000 });
    let template = template(&mut http, "grows", "cvm", &limits)?;
    let program = created(&http.post("/api/v1/programs", &json!({ "name": "grows", "source": GROWS })))?;
    let mut alive: Vec<String> = Vec::new();
    while scene.runs() {
        if alive.len() < PROGRAMS {
            let body = json!({ "program_id": program, "template_id": template });
            let response = http.post("/api/v1/executions/program?wait=false", &body);
            scene.note("programs", response.status);
            alive.extend(created(&response));
        }
        alive.retain(|id| {
            let status = http.get(&format!("/api/v1/executions/{id}")).json()["status"].clone();
            status == "running" || status == "waiting"
        });
        watch::let_pass(Duration::from_millis(50));
    }
    for id in alive {
        http.request("DELETE", &format!("/api/v1/executions/{id}"), &[], None);
    }
    Ok(())
}

/// Sessions until they are refused, then none, and again.
fn hoard(scene: &Scene<'_>) -> Result<()> {
    let mut http = scene.http(GREEDY);
    let template = template(&mut http, "hoards", "quickjs", &json!({}))?;
    while scene.runs() {
        let mut held = Vec::new();
        while scene.runs() && held.len() < 300 {
            let response = scene.session(&mut http, &template);
            scene.note("sessions", response.status);
            match created(&response) {
                Ok(id) => held.push(id),
                Err(_) => break,
            }
        }
        for id in held {
            http.post(&format!("/api/v1/sessions/{id}/close"), &json!({}));
        }
    }
    Ok(())
}

/// Sessions whose code is ended by force, one after the other.
fn crash(scene: &Scene<'_>, name: &str, code: &str, limits: &Value) -> Result<()> {
    let mut http = scene.http(GREEDY);
    let template = template(&mut http, name, "quickjs", limits)?;
    while scene.runs() {
        let response = scene.session(&mut http, &template);
        let Ok(session) = created(&response) else {
            scene.note(&format!("{name}, sessions"), response.status);
            watch::let_pass(Duration::from_millis(50));
            continue;
        };
        let ended = repl(&mut http, &session, code);
        scene.note(name, ended.status);
        http.post(&format!("/api/v1/sessions/{session}/close"), &json!({}));
    }
    Ok(())
}

/// Connections that send a part of a request, and requests without a pause.
fn crowd(scene: &Scene<'_>) {
    let mut http = scene.http(GREEDY);
    while scene.runs() {
        let mut idle: Vec<Http> = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut one = scene.http(GREEDY);
            one.send(b"POST /api/v1/programs HTTP/1.1\r\nhost: local");
            idle.push(one);
            scene.note("lists", http.get("/api/v1/programs?limit=50").status);
            if !scene.runs() {
                break;
            }
        }
    }
}

fn daemon() -> Result<Daemon> {
    let place = TestDir::new(User::AsStarted);
    let entry = |(name, hash): &(&str, &str)| {
        format!("[[token]]\nname = \"{name}\"\nrole = \"user\"\nsha256 = \"{hash}\"\n")
    };
    let tokens = OWNERS.iter().map(entry).collect::<Vec<_>>().concat();
    let file = place.path("tokens.toml");
    std::fs::write(&file, tokens)?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
    place.give_to_daemon(&file);
    let arguments = vec!["--tokens".to_owned(), file.to_string_lossy().into_owned()];
    let names: Vec<&str> = OWNERS.iter().map(|(name, _)| *name).collect();
    let config = format!(
        "[[worktree_root]]\npath = \"{}\"\nowners = {names:?}\n[retention]\nquota_mb = {QUOTA_MB}\n",
        place.path("").display()
    );
    Ok(Daemon::start_with(place, &DaemonOptions { arguments, config, ..DaemonOptions::default() }))
}

fn percentiles(waits: &mut [Duration]) -> String {
    waits.sort_unstable();
    let at = |per_mille: usize| waits.get(waits.len().saturating_sub(1) * per_mille / 1_000);
    let ms = |wait: Option<&Duration>| wait.map_or(0.0, |wait| wait.as_secs_f64() * 1_000.0);
    let (half, most, last) = (ms(at(500)), ms(at(990)), ms(waits.last()));
    format!("{} requests, p50 {half:.1} ms, p99 {most:.1}, max {last:.1}", waits.len())
}

fn size_mib(path: &Path) -> u64 {
    path.metadata().map_or(0, |data| data.len() >> 20)
}

/// Runs for this time.
pub(crate) fn apart(time: Duration) -> Result<()> {
    let daemon = daemon()?;
    let (stopped, greedy_stopped) = (AtomicBool::new(false), AtomicBool::new(false));
    let scene = |stopped| Scene {
        socket: daemon.place.http_socket(),
        worktree: daemon.place.worktree().to_string_lossy().into_owned(),
        stopped,
        done: Mutex::default(),
    };
    let (calm, greedy) = (scene(&stopped), scene(&greedy_stopped));
    let waits = Mutex::new(Vec::new());
    let (most_kib, most_descriptors, most_mib) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let database = daemon.place.path("state/vm-system.db");
    let (base, begun) = std::thread::scope(|threads| -> Result<_> {
        let others: Vec<_> = ["first", "second"]
            .map(|owner| {
                let (calm, waits) = (&calm, &waits);
                threads.spawn(move || ordinary(calm, owner, waits))
            })
            .into();
        watch::let_pass(time / CALM);
        let base = (observe::anonymous_kib(daemon.pid()), observe::descriptors(daemon.pid()));
        let begun = Instant::now();
        let short = json!({ "cpu_ms": 300, "wall_ms": 5_000 });
        let greedy = &greedy;
        let mut takers = vec![
            threads.spawn(move || grow(greedy)),
            threads.spawn(move || hoard(greedy)),
            threads.spawn(move || {
                crowd(greedy);
                Ok(())
            }),
        ];
        for (name, code) in [("never polls", NEVER_POLLS), ("floods", FLOOD)] {
            let short = short.clone();
            takers.push(threads.spawn(move || crash(greedy, name, code, &short)));
        }
        let rest = time.saturating_sub(time / CALM);
        while begun.elapsed() < rest && !others.iter().any(ScopedJoinHandle::is_finished) {
            most_kib.fetch_max(observe::anonymous_kib(daemon.pid()), Ordering::Relaxed);
            most_descriptors.fetch_max(observe::descriptors(daemon.pid()) as u64, Ordering::Relaxed);
            most_mib.fetch_max(size_mib(&database), Ordering::Relaxed);
            watch::let_pass(Duration::from_millis(250));
        }
        greedy_stopped.store(true, Ordering::Relaxed);
        for taker in takers {
            taker.join().map_err(|_| anyhow::anyhow!("the greedy owner got no response"))??;
        }
        stopped.store(true, Ordering::Relaxed);
        for other in others {
            other.join().map_err(|_| anyhow::anyhow!("another owner got no response"))??;
        }
        Ok((base, begun))
    })?;
    let waits = waits.into_inner().expect("no thread panics with it");
    let (mut before, mut beside): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for (at, wait) in waits {
        if at < begun { before.push(wait) } else { beside.push(wait) }
    }
    println!("other owners, alone:  {}", percentiles(&mut before));
    println!("beside a greedy one:  {}", percentiles(&mut beside));
    println!(
        "the greedy owner's requests: {:?}",
        greedy.done.into_inner().expect("no thread panics with it")
    );
    let (kib, descriptors) = base;
    println!(
        "supervisor: {kib} KiB and {descriptors} descriptors alone, at most {most_kib:?} KiB and {most_descriptors:?} beside; \
         database at most {most_mib:?} MiB of {QUOTA_MB}"
    );
    ensure!(!beside.is_empty(), "the other owners made no request");
    ensure!(most_mib.into_inner() <= u64::from(QUOTA_MB) * 105 / 100, "the database outgrew its quota");
    // Connections and brokers end without a notification, and memory is given back while nothing is requested; only while there
    // is a client is that looked at.
    let client = daemon.client();
    let held = || (observe::anonymous_kib(daemon.pid()), observe::descriptors(daemon.pid()));
    let fits = |now: (u64, usize)| now.0 <= kib + SLACK_KIB && now.1 <= descriptors + SLACK_DESCRIPTORS;
    watch::wait_until(|| fits(held()), || format!("the supervisor holds {:?}, before {base:?}", held()));
    let (kib, descriptors) = held();
    println!("supervisor at the end: {kib} KiB and {descriptors} descriptors");
    drop(client);
    daemon.stop();
    Ok(())
}
