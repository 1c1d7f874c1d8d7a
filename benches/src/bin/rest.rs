//! Figures of the REST API compared with the control API: creating a session, and the round trip of a recorded execution, with
//! one client and with many that keep their connections. Starts the real binary (build it in the same profile first); never
//! asserts.

use serde_json::{Value, json};
use std::time::Instant;
use vm_system_benches::figure::{Figure, micros};
use vm_system_protocol::model::{Session, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::place::{TestDir, User};

const CREATES: usize = 300;
const EVALS: usize = 2_000;
const CLIENTS: usize = 64;
const EVALS_EACH: usize = 100;

fn main() {
    let arguments = ["--listen", "127.0.0.1:0", "--log-level", "warn,vm_system_daemon::http=info"];
    let arguments = arguments.map(str::to_owned).to_vec();
    let options = DaemonOptions { program: "vm-system", arguments, ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &options);
    let address = daemon.addresses()[0];
    let template = daemon.client().template(Settings::default(), &[]);

    let control = create_control(&daemon, &template);
    create_http(&mut daemon.http(), &daemon, &template, "unix").print(Some(&control));
    create_http(&mut Http::tcp(address), &daemon, &template, "tcp").print(Some(&control));
    control.print(None);

    let control = eval_control(&daemon, &template, 1, EVALS);
    eval_http(&|| daemon.http(), &daemon, &template, "unix", 1, EVALS).print(Some(&control));
    eval_http(&|| Http::tcp(address), &daemon, &template, "tcp", 1, EVALS).print(Some(&control));
    control.print(None);

    let control = eval_control(&daemon, &template, CLIENTS, EVALS_EACH);
    eval_http(&|| daemon.http(), &daemon, &template, "unix", CLIENTS, EVALS_EACH).print(Some(&control));
    eval_http(&|| Http::tcp(address), &daemon, &template, "tcp", CLIENTS, EVALS_EACH).print(Some(&control));
    control.print(None);
    daemon.stop();
}

fn create_control(daemon: &Daemon, template: &str) -> Figure {
    let mut client = daemon.client();
    let worktree = daemon.place.worktree();
    let samples = measured(CREATES, |_| {
        let begin = Instant::now();
        let created = client.session(template, &worktree).expect("session");
        let time = micros(begin.elapsed());
        client.close(&created);
        time
    });
    Figure::new("control: session create", "us", samples)
}

fn create_http(http: &mut Http, daemon: &Daemon, template: &str, transport: &str) -> Figure {
    let body = session_body(daemon, template);
    let samples = measured(CREATES, |_| {
        let begin = Instant::now();
        let response = http.post("/api/v1/sessions", &body);
        let time = micros(begin.elapsed());
        let id = response.json()["id"].as_str().map(str::to_owned).expect("a session");
        http.request("POST", &format!("/api/v1/sessions/{id}/close"), &[], None);
        time
    });
    Figure::new(format!("REST {transport}: session create"), "us", samples)
}

/// Samples after a warm-up of a tenth.
fn measured(count: usize, mut sample: impl FnMut(usize) -> f64) -> Vec<f64> {
    (0..count + count / 10).map(&mut sample).skip(count / 10).collect()
}

fn session_body(daemon: &Daemon, template: &str) -> Value {
    let worktree = daemon.place.worktree();
    json!({ "template_id": template, "workspace_id": "w", "base_commit_oid": "c", "worktree_path": worktree })
}

/// Runs `clients` at a time, each with its own session; returns the samples of all.
fn together(clients: usize, one: impl Fn() -> Vec<f64> + Sync) -> Vec<f64> {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..clients).map(|_| scope.spawn(&one)).collect();
        running.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    })
}

fn eval_control(daemon: &Daemon, template: &str, clients: usize, evals: usize) -> Figure {
    let samples = together(clients, || {
        let mut client: Client = daemon.client();
        let session: Session = client.session(template, &daemon.place.worktree()).expect("session");
        let samples = measured(evals, |_| {
            let begin = Instant::now();
            client.eval(&session, "1+2").expect("eval");
            micros(begin.elapsed())
        });
        client.close(&session);
        samples
    });
    Figure::new(format!("control: eval 1+2, {clients} clients"), "us", samples)
}

fn eval_http(
    connect: &(impl Fn() -> Http + Sync),
    daemon: &Daemon,
    template: &str,
    transport: &str,
    clients: usize,
    evals: usize,
) -> Figure {
    let samples = together(clients, || {
        let mut http = connect();
        let response = http.post("/api/v1/sessions", &session_body(daemon, template)).json();
        let session = response["id"].as_str().expect("a session").to_owned();
        let body = json!({ "session_id": session, "input": "1+2" });
        let samples = measured(evals, |_| {
            let begin = Instant::now();
            let response = http.post("/api/v1/executions/repl", &body);
            assert_eq!(response.status, 201, "{}", response.text());
            micros(begin.elapsed())
        });
        http.request("POST", &format!("/api/v1/sessions/{session}/close"), &[], None);
        samples
    });
    Figure::new(format!("REST {transport}: eval 1+2, {clients} clients"), "us", samples)
}
