//! Figures of the spine: making sessions, their idle memory, the round trip of an execution that is on record, and how
//! many per second. Starts the real binary (build it in the same profile first); never asserts.

use std::time::Instant;
use vm_system_benches::figure::{Figure, micros};
use vm_system_benches::peer;
use vm_system_protocol::model::{Session, Settings};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, Options};
use vm_system_tests::place::{Place, User};

const CREATES: usize = 300;
const LIVE: usize = 200;
const EVALS: usize = 2_000;
const CLIENTS: usize = 8;
const PEER_STARTS: usize = 20;

fn main() {
    let peers = peer::measure(PEER_STARTS, EVALS);
    let peer = peers.first();
    let normal = daemon("normal");
    let full = daemon("full");

    let create = create(&full);
    create.print(peer.map(|peer| &peer.create));
    let (uss, pss) = idle_memory(&full);
    uss.print(peer.map(|peer| &peer.uss));
    pss.print(None);
    let (eval_normal, eval_full) = round_trips(&normal, &full);
    eval_normal.print(peer.map(|peer| &peer.eval));
    eval_full.print(peer.map(|peer| &peer.eval));
    throughput(&normal, "NORMAL").print(None);
    throughput(&full, "FULL").print(None);
    for peer in &peers {
        peer.create.print(None);
        peer.uss.print(None);
        peer.eval.print(None);
    }
    normal.stop();
    full.stop();
}

fn daemon(durability: &str) -> Daemon {
    let options = Options {
        program: "vm-system",
        arguments: vec!["--durability".to_owned(), durability.to_owned()],
        ..Options::default()
    };
    Daemon::start_with(Place::new(User::AsStarted), &options)
}

fn session(client: &mut Client, daemon: &Daemon, template: &str) -> Session {
    client.session(template, &daemon.place.worktree()).expect("session")
}

fn create(daemon: &Daemon) -> Figure {
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &[]);
    let mut samples = Vec::with_capacity(CREATES);
    for round in 0..CREATES + CREATES / 10 {
        let begin = Instant::now();
        let made = session(&mut client, daemon, &template);
        let time = micros(begin.elapsed());
        client.close(&made);
        if round >= CREATES / 10 {
            samples.push(time);
        }
    }
    Figure::new("session create, row committed (FULL)", "us", samples)
}

fn idle_memory(daemon: &Daemon) -> (Figure, Figure) {
    let mut client = daemon.client();
    let template = client.template(Settings::default(), &[]);
    let live: Vec<Session> = (0..LIVE).map(|_| session(&mut client, daemon, &template)).collect();
    for session in &live {
        client.eval(session, "1+2").expect("eval");
    }
    let seen: Vec<_> = live.iter().map(|session| client.inspect(session).expect("live")).collect();
    for session in &live {
        client.close(session);
    }
    let kib = |values: Vec<Option<u64>>| values.into_iter().flatten().map(|kib| kib as f64).collect();
    let uss = kib(seen.iter().map(|session| session.uss_kib).collect());
    let pss = kib(seen.iter().map(|session| session.pss_kib).collect());
    let name = |what: &str| format!("idle session after one eval, {LIVE} live: {what}");
    (Figure::new(name("USS"), "KiB", uss), Figure::new(name("PSS"), "KiB", pss))
}

/// Alternates between the two daemons, so that both see the same noise.
fn round_trips(normal: &Daemon, full: &Daemon) -> (Figure, Figure) {
    let mut sides: Vec<(Client, Session, Vec<f64>)> = [normal, full]
        .into_iter()
        .map(|daemon| {
            let mut client = daemon.client();
            let template = client.template(Settings::default(), &[]);
            let session = session(&mut client, daemon, &template);
            (client, session, Vec::with_capacity(EVALS))
        })
        .collect();
    for round in 0..EVALS + EVALS / 10 {
        for (client, session, samples) in &mut sides {
            let begin = Instant::now();
            client.eval(session, "1+2").expect("eval");
            if round >= EVALS / 10 {
                samples.push(micros(begin.elapsed()));
            }
        }
    }
    let mut samples = sides.into_iter().map(|(mut client, session, samples)| {
        client.close(&session);
        samples
    });
    let mut figure = |name: &str| {
        let samples = samples.next().unwrap_or_default();
        Figure::new(format!("eval 1+2, record and events committed ({name})"), "us", samples)
    };
    (figure("NORMAL"), figure("FULL"))
}

fn throughput(daemon: &Daemon, durability: &str) -> Figure {
    let template = daemon.client().template(Settings::default(), &[]);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = daemon.client();
                let session = session(&mut client, daemon, &template);
                for _ in 0..EVALS {
                    client.eval(&session, "1+2").expect("eval");
                }
                client.close(&session);
            });
        }
    });
    let rate = (CLIENTS * EVALS) as f64 / begin.elapsed().as_secs_f64();
    Figure::new(format!("executions with {CLIENTS} sessions ({durability})"), "per s", vec![rate])
}
