//! The production worker behind the production walls: whatever JavaScript makes the engine do must stay within the
//! filter's rows. Every case runs as the test was started and, if that was root, once more as an unprivileged user.

#[path = "../spawn/jail.rs"]
#[allow(dead_code)]
mod jail;

use jail::{embedded, next, order, start, started};
use std::time::Duration;
use vm_system_protocol::model::EventPayload;
use vm_system_protocol::worker::{Done, FromWorker, HostReply, HostRequest, Outcome, ToWorker};
use vm_system_sandbox::namespaces::{self, Ids};
use vm_system_sandbox::process::ExitStatus;
use vm_system_sandbox::selftest;
use vm_system_spawn::{WorkerExitStatus, WorkerHandle};
use vm_system_tests::skip;
use vm_system_tests::watch;
use vm_system_worker::roles::{Modes, dispatch};

fn main() {
    dispatch(std::env::args_os(), Modes::production());
    let mut failed = false;
    // First of all: the cases start threads, and a process that has had threads does not fork.
    if namespaces::is_root() {
        let ending = selftest::in_child(|| {
            namespaces::become_service_user(Ids { uid: 65534, gid: 65534 }).expect("root may switch users");
            i32::from(run("as uid 65534"))
        });
        failed |= ending.expect("child") != ExitStatus::Exited(0);
    } else {
        skip("root", "the run as another user needs root");
    }
    failed |= run("as started");
    std::process::exit(i32::from(failed));
}

fn run(who: &str) -> bool {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("runtime");
    let result = std::panic::catch_unwind(|| {
        runtime.block_on(async {
            tokio::time::timeout(Duration::from_mins(2), cases()).await.expect("within two minutes");
        });
    });
    println!(
        "test javascript_stays_within_the_filter ({who}) ... {}",
        if result.is_ok() { "ok" } else { "FAILED" }
    );
    result.is_err()
}

/// Runs a source; host calls fail, except one module; the end and the texts of all events.
async fn execute(worker: &mut WorkerHandle, source: &str) -> (Done, Vec<String>) {
    worker.sender.send(&order(source)).await.expect("order");
    let mut texts = Vec::new();
    loop {
        let received = match next(worker).await {
            Ok(received) => received,
            Err(error) => panic!("{source}: {error}: {:?}", worker.process.exited().await),
        };
        worker.sender.send(&ToWorker::Ack { seq: received.seq }).await.expect("ack");
        match received.message {
            FromWorker::Events { events, .. } => {
                texts.extend(events.into_iter().map(|event| text(&event.payload)));
            }
            FromWorker::HostCall { call, request, .. } => {
                let reply = host_reply(&request);
                worker.sender.send(&ToWorker::HostReply { call, reply }).await.expect("reply");
            }
            FromWorker::Done(mut done) => {
                texts.extend(std::mem::take(&mut done.events).iter().map(|event| text(&event.payload)));
                return (*done, texts);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn host_reply(request: &HostRequest) -> HostReply {
    match request {
        HostRequest::LoadModule { candidates, .. } if candidates[0] == "answer.js" => HostReply::Module {
            path: "answer.js".to_owned(),
            source: "module.exports = 42".to_owned(),
            format: vm_system_protocol::worker::SourceFormat::CommonJs,
            package: None,
        },
        _ => HostReply::Failed(vm_system_protocol::worker::HostError {
            code: "MODULE_NOT_FOUND".to_owned(),
            message: "no such module".to_owned(),
        }),
    }
}

fn text(payload: &EventPayload) -> String {
    match payload {
        EventPayload::Console { text, .. } => text.clone(),
        EventPayload::Value(value) => value.preview.clone(),
        EventPayload::Exception { message, .. } => message.clone(),
        other => format!("{other:?}"),
    }
}

async fn cases() {
    let begun = std::time::Instant::now();
    let (spawner, _events) = embedded().await;
    println!("jail up in {} µs", begun.elapsed().as_micros());
    let mut worker = started(&spawner, 1).await;
    worker.sender.send(&start(1)).await.expect("start");
    assert!(matches!(next(&mut worker).await.expect("started").message, FromWorker::Started { .. }));
    for (source, last) in [
        ("1 + 2", "3"),
        ("var x = 41; x + 1", "42"),
        ("x", "41"),
        ("[1, 2, 3].map(n => n * 2)", "[ 2, 4, 6 ]"),
        ("typeof new Date(2026, 6, 1, 12).toString()", "'string'"),
        ("Math.random() !== Math.random()", "true"),
        ("await new Promise(done => setTimeout(() => done('late'), 30))", "'late'"),
        ("'x'.repeat(3000000).length", "3000000"),
        ("new Uint8Array(20000000).length", "20000000"),
        (
            "(() => { const all = []; for (let i = 0; i < 300000; i++) all.push({ i }); return all.length })()",
            "300000",
        ),
        ("require('./answer.js')", "42"),
        ("try { require('./none.js') } catch (error) { error.code }", "'MODULE_NOT_FOUND'"),
        ("/(a+)+b/.test('a'.repeat(18))", "false"),
        ("BigInt(2) ** 20000n > 0n", "true"),
    ] {
        let (done, texts) = execute(&mut worker, source).await;
        assert_eq!(done.outcome, Outcome::Ok, "{source}: {texts:?}");
        assert_eq!(texts.last().map(String::as_str), Some(last), "{source}");
    }
    for source in ["(function f() { f() })()", "throw new Error('as ordered')", "let let = 1"] {
        let (done, _) = execute(&mut worker, source).await;
        assert!(!matches!(done.outcome, Outcome::Ok), "{source}");
    }
    let memory = worker.process.memory().expect("memory");
    println!("after some work: uss {} pss {} KiB", memory.uss >> 10, memory.pss >> 10);
    let (done, texts) = execute(&mut worker, "for (let i = 0; i < 900; i++) console.log('line', i)").await;
    assert_eq!(
        (done.outcome, texts.iter().filter(|text| text.starts_with("line")).count()),
        (Outcome::Ok, 900)
    );
    interrupted_while_busy(&mut worker).await;
    interrupted_while_waiting(&mut worker, "setTimeout(() => 0, 60000)").await;
    interrupted_while_waiting(&mut worker, "require('./never-answered.js')").await;
    let (bomb, _) =
        execute(&mut worker, "const all = []; for (;;) all.push(new Array(100000).fill(1))").await;
    assert!(!matches!(bomb.outcome, Outcome::Ok));
    assert_eq!(
        execute(&mut worker, "1 + 2").await.1.last().map(String::as_str),
        Some("3"),
        "the session continues"
    );
    worker.sender.send(&ToWorker::Shutdown).await.expect("shutdown");
    assert_eq!(worker.process.exited().await, WorkerExitStatus::Exited(0));
}

/// An interrupt ends a wait for a host call's reply or for a distant timer at once; a late reply is ignored.
async fn interrupted_while_waiting(worker: &mut WorkerHandle, source: &str) {
    worker.sender.send(&order(source)).await.expect("order");
    let mut unanswered = None;
    let done = loop {
        match tokio::time::timeout(Duration::from_millis(300), worker.receiver.recv()).await {
            // The worker waits.
            Err(_) => worker.process.interrupt().expect("interrupt"),
            Ok(received) => {
                let received = received.expect("a message");
                worker.sender.send(&ToWorker::Ack { seq: received.seq }).await.expect("ack");
                match received.message {
                    FromWorker::HostCall { call, .. } => unanswered = Some(call),
                    FromWorker::Done(done) => break done,
                    other => panic!("{other:?}"),
                }
            }
        }
    };
    assert_eq!(done.outcome, Outcome::Interrupted, "{source}");
    if let Some(call) = unanswered {
        let reply = host_reply(&HostRequest::LoadModule {
            candidates: vec![String::new()],
            import: false,
            package: false,
        });
        worker.sender.send(&ToWorker::HostReply { call, reply }).await.expect("late reply");
    }
}

async fn interrupted_while_busy(worker: &mut WorkerHandle) {
    worker.sender.send(&order("for (;;) {}")).await.expect("order");
    let before = worker.process.cpu_time().expect("cpu time");
    let spins = || worker.process.cpu_time().expect("cpu time") >= before + Duration::from_millis(5);
    watch::until_async(spins, "it does not spin").await;
    worker.process.interrupt().expect("interrupt");
    let received = next(worker).await.expect("done");
    worker.sender.send(&ToWorker::Ack { seq: received.seq }).await.expect("ack");
    let FromWorker::Done(done) = received.message else { panic!("{received:?}") };
    assert_eq!(done.outcome, Outcome::Interrupted);
}
