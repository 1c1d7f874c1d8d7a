//! Invalid requests, files and sockets at the daemon's APIs: each gets a clear error and changes nothing.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use vm_system_protocol::control::{ErrorCode, HealthGet};
use vm_system_protocol::model::{ExecutionStatus, Settings};
use vm_system_tests::client::{repl, value};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::User;
use vm_system_tests::scene::Scene;
use vm_system_tests::skip;
use vm_system_tests::watch::Watch;
use vm_system_tests::{as_both, observe};

as_both!(
    a_closed_session_accepts_no_execution,
    one_execution_at_a_time,
    paths_never_leave_the_worktree,
    files_are_read_through_the_broker_and_only_with_the_module,
    a_removed_worktree_is_an_error_and_no_crash,
    a_second_daemon_is_refused_by_name,
    a_stale_socket_file_is_replaced,
    client_that_disconnects_harms_no_other,
    garbage_on_the_socket_harms_no_other_client,
    the_same_idempotency_key_does_not_run_twice,
    locked_database_is_waited_for_or_reported,
);

mod cases {
    use super::*;

    pub(super) fn a_closed_session_accepts_no_execution(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        let pid = scene.client.inspect(&session).expect("live").pid;
        scene.client.close(&session);
        scene.client.close(&session);
        assert!(!observe::is_alive(pid));
        let error = scene.client.eval(&session, "1").expect_err("closed");
        assert_eq!(error.code, ErrorCode::SessionNotReady);
        let output = scene.daemon.cli(&["exec", "repl", &session.id.to_string(), "1"]);
        assert!(output.fails(1).starts_with("error: "));
        let record = scene.client.session_record(&session);
        assert_eq!((record.status.as_str(), record.close_reason.as_deref()), ("closed", Some("exited")));
        scene.end(&[]);
    }

    pub(super) fn one_execution_at_a_time(user: User) {
        let mut scene = Scene::with_settings(user, Settings::default());
        let session = scene.session();
        let running = scene.client.start(&session, "for (;;) {}");
        let error = scene.client.eval(&session, "1").expect_err("busy");
        assert_eq!(error.code, ErrorCode::SessionBusy);
        scene.daemon.cli(&["exec", "repl", &session.id.to_string(), "1"]).fails(75);
        assert_eq!(scene.client.execution_record(&running.id.to_string()).status, ExecutionStatus::Running);
        scene.client.close(&session);
        assert_eq!(scene.client.until_final(&running).status, ExecutionStatus::Cancelled);
        scene.end(&[]);
    }

    pub(super) fn paths_never_leave_the_worktree(user: User) {
        let mut scene = Scene::new(user);
        let place = &scene.daemon.place;
        std::fs::write(place.path("secret.js"), "'outside'").expect("secret");
        place.write("ok.js", "console.log('inside')");
        std::os::unix::fs::symlink("../secret.js", place.worktree().join("link.js")).expect("link");
        std::os::unix::fs::symlink("/etc", place.worktree().join("etc")).expect("link");
        nix::unistd::mkfifo(&place.worktree().join("pipe.js"), nix::sys::stat::Mode::S_IRWXU).expect("fifo");
        place.give(&place.worktree().join("pipe.js"));
        let session = scene.session();
        for (path, code) in [
            ("../secret.js", ErrorCode::InvalidPath),
            ("a/../../secret.js", ErrorCode::InvalidPath),
            ("/etc/passwd", ErrorCode::InvalidPath),
            ("link.js", ErrorCode::InvalidPath),
            ("etc/passwd", ErrorCode::InvalidPath),
            ("ok.js\0", ErrorCode::InvalidPath),
            ("", ErrorCode::InvalidPath),
            // Beneath the worktree, but no regular file: never opened to wait for a writer.
            ("pipe.js", ErrorCode::FileNotFound),
            ("missing.js", ErrorCode::FileNotFound),
        ] {
            let error = scene.client.run_file(&session, path).expect_err(path);
            assert_eq!(error.code, code, "{path:?}: {error:?}");
            assert!(!error.message.contains("outside"), "{path:?}: {error:?}");
        }
        for code in [
            "require('../secret.js')",
            "require('./link.js')",
            "await import('./link.js')",
            "require('/etc/passwd')",
        ] {
            scene.fails(&session, code, "EXCEPTION");
        }
        let execution = scene.client.run_file(&session, "ok.js").expect("inside");
        assert_eq!(execution.status, ExecutionStatus::Ok, "{:?}", execution.error);
        scene.assert_usable(&session);
        scene.end(&[&session]);
    }

    pub(super) fn files_are_read_through_the_broker_and_only_with_the_module(user: User) {
        let mut scene = Scene::new(user);
        scene.daemon.place.write("data/table.csv", "a,b\n1,2\n");
        std::fs::write(scene.daemon.place.path("secret"), "outside").expect("secret");
        let session = scene.session();
        let execution = scene.run(
            &session,
            "const fs = require('fs'); [fs.readFileSync('data/table.csv', 'utf8').length, fs.existsSync('no'), \
             fs.readdirSync('data').join(), fs.statSync('data').isDirectory()].join(' ')",
        );
        let events = scene.client.events(&execution.id.to_string());
        assert_eq!(value(&events), Some("'8 false table.csv true'"), "{:?}", execution.error);
        // A path from the root is one from the worktree.
        for (path, refused) in [
            ("../secret", "'EACCES'"),
            ("/etc/passwd", "'ENOENT'"),
            ("/../secret", "'EACCES'"),
            ("data/../../secret", "'EACCES'"),
            ("/proc/self/environ", "'ENOENT'"),
        ] {
            let code = format!("try {{ fs.readFileSync('{path}') }} catch (error) {{ error.code }}");
            let execution = scene.run(&session, &code);
            let events = scene.client.events(&execution.id.to_string());
            assert_eq!(value(&events), Some(refused), "{path}");
        }
        // A template without the module grants no call of it.
        let template = scene.client.template(Settings::default(), &[]);
        let worktree = scene.daemon.place.worktree();
        let ungranted = scene.client.session(&template, &worktree).expect("session");
        scene.fails(&ungranted, "require('fs').readFileSync('data/table.csv')", "EXCEPTION");
        scene.end(&[&session, &ungranted]);
    }

    pub(super) fn a_removed_worktree_is_an_error_and_no_crash(user: User) {
        let mut scene = Scene::new(user);
        scene.daemon.place.write("a.js", "1");
        let session = scene.session();
        std::fs::remove_dir_all(scene.daemon.place.worktree()).expect("remove");
        let error = scene.client.run_file(&session, "a.js").expect_err("gone");
        assert_eq!(error.code, ErrorCode::FileNotFound, "{error:?}");
        scene.assert_usable(&session);
        let execution =
            scene.run(&session, "try { require('fs').readdirSync('.') } catch (error) { error.code }");
        assert!(execution.status.is_final());
        let template = scene.template.clone();
        let error = scene.client.session(&template, &scene.daemon.place.worktree()).expect_err("no folder");
        assert_eq!(error.code, ErrorCode::ValidationError, "{error:?}");
        scene.end(&[&session]);
    }

    pub(super) fn a_second_daemon_is_refused_by_name(user: User) {
        let daemon = Daemon::start(user);
        let socket = daemon.place.path("run/second.sock");
        let state = daemon.place.path("state");
        let arguments =
            ["serve", "--state-dir", &state.to_string_lossy(), "--socket", &socket.to_string_lossy()]
                .map(str::to_owned);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let stderr = daemon.cli(&arguments).fails(75);
        assert!(stderr.contains(&*state.to_string_lossy()), "{stderr}");
        assert!(stderr.contains(&daemon.pid().to_string()), "names the daemon that has it: {stderr}");
        assert!(!socket.exists());
        daemon.cli(&["ops", "health"]).ok();
        daemon.stop();
    }

    pub(super) fn a_stale_socket_file_is_replaced(user: User) {
        let (place, family) = Daemon::start(user).kill();
        assert!(place.socket().exists(), "a killed daemon leaves its socket file");
        let output = vm_system_tests::command::vm_system(&place, &["ops", "health"]);
        assert!(output.fails(69).contains("hint: "));
        let daemon = Daemon::start_with(place, &DaemonOptions::default());
        observe::all_end(&family);
        daemon.cli(&["ops", "health"]).ok();
        let place = daemon.stop();
        assert!(!place.socket().exists(), "a stopped daemon does not");
    }

    pub(super) fn client_that_disconnects_harms_no_other(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        for _ in 0..20 {
            // In the middle of a reply: much of it is in flight when the stream closes.
            let mut client = scene.daemon.client();
            client.send(repl(&session, "'x'.repeat(200_000)", true));
            client.send(vm_system_protocol::control::SessionList::default());
            drop(client);
            // In the middle of a request.
            let mut client = scene.daemon.client();
            client.stream.write_all(&[200, 0, 0, 0, 1, 2, 3]).expect("half a frame");
            drop(client);
        }
        let mut watch = Watch::begin();
        while let Err(error) = scene.client.eval(&session, "1") {
            assert_eq!(error.code, ErrorCode::SessionBusy, "{error:?}");
            watch.pause(|| "an execution without a client does not end".to_owned());
        }
        scene.assert_usable(&session);
        scene.end(&[&session]);
    }

    pub(super) fn garbage_on_the_socket_harms_no_other_client(user: User) {
        let scene = Scene::new(user);
        for bytes in [&[0_u8; 64][..], &[255; 64], b"GET / HTTP/1.1\r\n\r\n", &[3, 0, 0, 0, 9, 9, 9]] {
            let mut stream = UnixStream::connect(scene.daemon.place.socket()).expect("connect");
            stream.write_all(bytes).expect("write");
            stream.shutdown(std::net::Shutdown::Write).expect("shutdown");
            stream.set_read_timeout(Some(vm_system_tests::PATIENCE)).expect("deadline");
            // The server closes the connection, with or without a response.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
        scene.end(&[]);
    }

    pub(super) fn the_same_idempotency_key_does_not_run_twice(user: User) {
        let mut scene = Scene::new(user);
        let session = scene.session();
        scene.run(&session, "var times = 0");
        let once = scene.client.send_with_key(repl(&session, "++times", true), Some("key"));
        let once = scene.client.response(once).1.expect("first");
        let again = scene.client.send_with_key(repl(&session, "++times", true), Some("key"));
        assert_eq!(scene.client.response(again).1.expect("second"), once);
        let other = scene.client.send_with_key(repl(&session, "times += 10", true), Some("key"));
        let error = scene.client.response(other).1.expect_err("another request");
        assert_eq!(error.code, ErrorCode::IdempotencyMismatch);
        let execution = scene.run(&session, "times");
        let events = scene.client.events(&execution.id.to_string());
        assert_eq!(value(&events), Some("1"));
        scene.end(&[&session]);
    }

    pub(super) fn locked_database_is_waited_for_or_reported(user: User) {
        // Another process holds the write lock: a request meanwhile gets an error, or its response after the lock is released.
        let mut scene = Scene::new(user);
        let session = scene.session();
        let database = scene.daemon.place.path("state/vm-system.db");
        assert!(database.exists(), "the database is not at the documented path");
        let mut holder = std::process::Command::new("python3")
            .args(["-c", HOLD_LOCK])
            .arg(&database)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn();
        let Ok(holder) = &mut holder else {
            skip("python3", "a locked database needs python3 to lock it");
            return scene.end(&[&session]);
        };
        let mut ready = [0; 1];
        std::io::Read::read_exact(holder.stdout.as_mut().expect("stdout"), &mut ready).expect("locked");
        let mut other = scene.daemon.client();
        let id = other.send(repl(&session, "1 + 1", true));
        // The reader does not need the writer's lock.
        scene.client.op(HealthGet).expect("alive");
        drop(holder.stdin.take());
        holder.wait().expect("unlocked");
        // Both are correct: the lock is released before or after the store's busy timeout.
        match other.response(id).1 {
            Ok(_) => {}
            Err(error) => assert_eq!(error.code, ErrorCode::StorageUnavailable),
        }
        scene.assert_usable(&session);
        scene.end(&[&session]);
    }

    const HOLD_LOCK: &str = "import sqlite3, sys\n\
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
        connection.execute('BEGIN IMMEDIATE')\n\
        sys.stdout.write('L'); sys.stdout.flush()\n\
        sys.stdin.read()\n\
        connection.execute('ROLLBACK')\n";
}
