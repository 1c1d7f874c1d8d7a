//! The cost of a library: creating sessions with one, compared with sessions without. Starts the real binary (build it in the
//! same profile first); never asserts. `library FILE.js` uses that file; the default is a generated one of half a megabyte.

use std::fmt::Write as _;
use std::time::Instant;
use vm_system_benches::figure::{Figure, micros};
use vm_system_protocol::control::{LibraryInstall, TemplateAddLibrary};
use vm_system_protocol::model::Settings;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};

const CREATES: usize = 300;
/// Functions of the generated library: about as much code as lodash.
const FUNCTIONS: usize = 3_000;

fn main() -> anyhow::Result<()> {
    let source = match std::env::args_os().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => generated(),
    };
    let options = DaemonOptions { program: "vm-system", ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &options);
    let mut client = daemon.client();
    let bytes = source.len();
    let library = LibraryInstall {
        id: "bench".to_owned(),
        version: "1.0.0".to_owned(),
        global: None,
        source,
        unchecked: false,
    };
    client.op(library)?;
    let plain = client.template(Settings::default(), &[]);
    let with = client.template(Settings::default(), &[]);
    client.op(TemplateAddLibrary { template: with.clone(), name: "bench".to_owned() })?;

    let begin = Instant::now();
    let first = client.session(&with, &daemon.place.worktree())?;
    let first_ms = micros(begin.elapsed()) / 1e3;
    client.eval(&first, "require('bench')")?;
    // Alternating, so that both have the same noise.
    let (mut without_us, mut with_us) = (Vec::new(), Vec::new());
    for round in 0..CREATES + CREATES / 10 {
        let pair = [create(&mut client, &daemon, &plain)?, create(&mut client, &daemon, &with)?];
        if round >= CREATES / 10 {
            without_us.push(pair[0]);
            with_us.push(pair[1]);
        }
    }
    println!("first session of a set, {bytes} bytes of source    {first_ms:.1} ms");
    let without = Figure::new("session create, no library", "us", without_us);
    without.print(None);
    Figure::new("session create, from the set's zygote", "us", with_us).print(Some(&without));
    let seen = client.inspect(&first)?;
    println!("session with the library: USS {:?} KiB, PSS {:?} KiB", seen.uss_kib, seen.pss_kib);
    daemon.stop();
    Ok(())
}

fn create(client: &mut Client, daemon: &Daemon, template: &str) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let session = client.session(template, &daemon.place.worktree())?;
    let time = micros(begin.elapsed());
    client.close(&session);
    Ok(time)
}

fn generated() -> String {
    let mut source = String::from("'use strict';\n");
    for number in 0..FUNCTIONS {
        // Writing to a String cannot fail.
        let _ = writeln!(
            source,
            "exports.f{number} = function (a, b) {{ const all = [a, b, {number}]; for (const one of all) {{ if (one > {number}) return \
             {{ one, all }}; }} return all.map((one) => one + {number}).filter(Boolean); }};"
        );
    }
    source
}
