//! Commands of the `exec` module through the real daemon: what a command can do, what it cannot reach, and which programs run in its
//! jail.

use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use vm_system_protocol::control::ExecCancel;
use vm_system_protocol::model::{CapabilityKind, ExecutionStatus};
use vm_system_tests::as_both;
use vm_system_tests::daemon::DaemonOptions;
use vm_system_tests::place::User;
use vm_system_tests::program::{self, COMMAND_PROBE};
use vm_system_tests::rights::Bench;
use vm_system_tests::{observe, skip, watch};

as_both!(
    commands_run_in_a_jail_of_their_own,
    commands_reach_no_socket_file_and_learn_nothing_of_the_host,
    a_command_ends_with_its_execution_and_with_its_session,
    ordinary_programs_run
);

#[test]
fn commands_are_not_run_as_root() {
    if User::can_be_switched() {
        cases::commands_are_not_run_as_root();
    } else {
        skip("root", "the daemon is not root");
    }
}

mod cases {
    use super::*;

    /// A bench with these commands, whose worktree belongs to a user who may run them.
    fn with_commands(user: User, commands: &[(&str, PathBuf)]) -> Bench {
        let arguments = commands
            .iter()
            .flat_map(|(name, path)| ["--allow-exec".to_owned(), format!("{name}={}", path.display())]);
        let options = DaemonOptions { arguments: arguments.collect(), ..DaemonOptions::default() };
        let mut bench = Bench::with_modules(user, &["fs", "exec"], &options);
        bench.use_files_unprivileged();
        bench
    }

    pub(super) fn commands_are_not_run_as_root() {
        let mut bench = with_commands(User::AsStarted, &[("sh", PathBuf::from("/bin/sh"))]);
        bench.as_user = None;
        bench.row(CapabilityKind::Module, "exec", r#"{"commands":["sh"]}"#);
        let session = bench.session();
        let run = "try { require('exec').run('sh', ['-c', 'id']).stdout } catch (error) { error.message }";
        let thrown = bench.eval(&session, run);
        assert!(thrown.contains("commands are not run as root") && thrown.contains("--as-user"), "{thrown}");
        bench.end();
    }

    pub(super) fn commands_run_in_a_jail_of_their_own(user: User) {
        let mut bench =
            with_commands(user, &[("sh", PathBuf::from("/bin/sh")), ("other", PathBuf::from("/bin/sh"))]);
        bench.daemon.place.write("in.txt", "in the worktree");
        bench.daemon.place.write("a/empty.txt", "");
        std::os::unix::fs::symlink("/usr", bench.daemon.place.worktree().join("outside")).expect("a link");
        let none = bench.session();
        assert_eq!(
            bench.code(&none, "require('exec').run('sh')"),
            "'COMMAND_NOT_ALLOWED'",
            "no row, no command"
        );
        let limits = r#"{"commands":["sh","ls"],"timeout_ms":1500,"max_output_kb":16}"#;
        bench.row(CapabilityKind::Module, "exec", limits);
        let session = bench.session();
        let first = bench.eval(
            &session,
            "const { run } = require('exec'); const sh = (script, more) => run('sh', ['-c', script], more); \
             try { JSON.stringify(sh('echo out; echo err >&2; exit 3')) } catch (error) { error.message }",
        );
        if first.contains("user namespace") {
            skip("namespaces", &format!("this machine refuses user namespaces: {first}"));
            return bench.end();
        }
        let expected = r#"'{"code":3,"signal":null,"stdout":"out\\n","stderr":"err\\n","truncated":false,"timedOut":false}'"#;
        assert_eq!(first, expected);
        for (script, shown) in [
            ("sh('cat', { input: 'fed' }).stdout", "'fed'"),
            ("sh('cat in.txt').stdout", "'in the worktree'"),
            (
                "sh('pwd; echo $PATH | cut -c1-4; echo $X', { env: { X: 'y' } }).stdout",
                "'/work\\n/usr\\ny\\n'",
            ),
            ("sh('echo x > new').code === 0", "false"),
            ("sh('cat /etc/passwd').code === 0", "false"),
            ("sh('ls /home /root /var /run').code === 0", "false"),
            ("sh('ls /proc/sys /proc/sysrq-trigger /proc/meminfo').stdout", "''"),
            // Files of the host that are visible cannot be changed, nor their modes and times.
            (
                "sh('for path in / /usr /usr/bin/env /bin/sh /etc/ld.so.cache /dev/null /dev/urandom /proc/self /work; \
                 do [ ! -e $path ] || touch -c $path 2>&1 | grep -q Read-only || echo $path; done').stdout",
                "''",
            ),
            ("sh('head -c 3 /dev/zero | tee /dev/null | wc -c').stdout.trim()", "'3'"),
            ("sh('ulimit -v').stdout", "'4194304\\n'"),
            ("sh('kill -9 1; echo alive').stdout", "'alive\\n'"),
            ("sh('echo $$').stdout.trim().length < 3", "true"),
            ("sh('kill -9 $$').signal", "'SIGKILL'"),
            // Our processes ignore it, a program must not: it ends when nobody reads on.
            ("sh('kill -PIPE $$').signal", "'SIGPIPE'"),
            ("sh('sleep 60 & sleep 60').timedOut", "true"),
            (
                "((r) => [r.truncated, r.stdout.length])(sh('while :; do echo 0123456789; done')).join()",
                "'true,16384'",
            ),
            ("((r) => r.timedOut || r.code !== 0)(sh(':(){ :|:& };:; sleep 60'))", "true"),
        ] {
            assert_eq!(bench.eval(&session, script), shown, "{script}");
        }
        bench.eval(&session, "sh('pwd', { cwd: '.' }).code === 0 || (() => { throw 'cwd' })()");
        for (cwd, code) in [
            ("..", "'EACCES'"),
            ("../..", "'EACCES'"),
            ("/../..", "'EACCES'"),
            ("a/../../usr", "'EACCES'"),
            ("outside", "'EACCES'"),
            ("outside/bin", "'EACCES'"),
            ("nothing", "'ENOENT'"),
            ("in.txt", "'ENOTDIR'"),
        ] {
            let call = format!("sh('pwd', {{ cwd: '{cwd}' }})");
            assert_eq!(bench.code(&session, &call), code, "{cwd}");
        }
        for (call, code) in [
            ("run('ls')", "'COMMAND_NOT_ALLOWED'"),
            ("run('other')", "'COMMAND_NOT_ALLOWED'"),
            ("run('/bin/sh')", "'COMMAND_NOT_ALLOWED'"),
            ("run('../bin/sh')", "'COMMAND_NOT_ALLOWED'"),
            ("run('sh', [], { env: { LD_PRELOAD: '/work/x.so' } })", "'ERR_INVALID_ARG_VALUE'"),
            ("run('sh', [], { env: { PATH: '/work' } })", "'ERR_INVALID_ARG_VALUE'"),
            ("run('sh', [], { env: { NODE_OPTIONS: '--require=/work/x.js' } })", "'ERR_INVALID_ARG_VALUE'"),
            ("run('sh', ['a\\0b'])", "'ERR_INVALID_ARG_VALUE'"),
            ("run('sh', ['x'.repeat(200000)])", "'E2BIG'"),
            ("run('sh', 'text')", "'ERR_INVALID_ARG_TYPE'"),
        ] {
            assert_eq!(bench.code(&session, call), code, "{call}");
        }
        bench.row(CapabilityKind::Fs, "write", "{}");
        let writer = bench.session();
        let write = "require('exec').run('sh', ['-c', 'echo made > made.txt']).code";
        assert_eq!(bench.eval(&writer, write), "0");
        let made = std::fs::read_to_string(bench.daemon.place.worktree().join("made.txt"));
        assert_eq!(made.expect("made"), "made\n");
        // A program that runs as the worktree's owner for all users of the host.
        let lend = "require('exec').run('sh', ['-c', 'umask 0; cp /bin/sh s; mkdir d; chmod 4755 s || \
            chmod 2755 s || chmod u+s s || chmod g+s d || chmod 755 s && echo $?']).stdout";
        assert_eq!(bench.eval(&writer, lend), "'0\\n'", "all but the last are refused");
        for name in ["s", "d"] {
            let found = std::fs::metadata(bench.daemon.place.worktree().join(name)).expect("made");
            assert_eq!(std::os::unix::fs::MetadataExt::mode(&found) & 0o6000, 0, "{name}");
        }
        bench.end();
    }

    pub(super) fn commands_reach_no_socket_file_and_learn_nothing_of_the_host(user: User) {
        // Not where the build put it: beneath /work, for example, a command sees its worktree.
        let folder = tempfile::tempdir().expect("folder");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("chmod");
        let probe = folder.path().join("probe");
        std::fs::copy(program::path(COMMAND_PROBE, User::AsStarted), &probe).expect("copy");
        let mut bench = with_commands(user, &[("sh", PathBuf::from("/bin/sh")), ("probe", probe.clone())]);
        bench.row(CapabilityKind::Module, "exec", r#"{"commands":["sh","probe"]}"#);
        bench.row(CapabilityKind::Fs, "write", "{}");
        let Some(session) = bench.session_with_commands() else { return bench.end() };
        let worktree = bench.daemon.place.worktree();
        let (datagram, stream) = (worktree.join("datagram"), worktree.join("stream"));
        let listening = UnixDatagram::bind(&datagram).expect("a socket of the host");
        let _stream = UnixListener::bind(&stream).expect("a socket of the host");
        for path in [&datagram, &stream] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("chmod");
        }
        listening.set_nonblocking(true).expect("nonblocking");
        let host = nix::sys::utsname::uname().expect("Linux").nodename().to_owned();
        bench.daemon.place.write("host", host.to_str().expect("UTF-8"));
        let mut message = [0; 64];

        // Outside of a jail every attempt succeeds.
        let outside = Command::new(&probe).args(["datagram", "stream"]).current_dir(&worktree).output();
        let outside = String::from_utf8(outside.expect("the probe").stdout).expect("text");
        let attempts: Vec<&str> = outside.lines().filter(|line| !line.starts_with("control")).collect();
        assert!(attempts.len() > 10, "{outside}");
        for line in attempts {
            // Not every file system has it.
            if line.starts_with("a device in place") && line.contains("Invalid argument") {
                continue;
            }
            assert!(line.ends_with(": reached") || line == "streams: pair", "outside: {line}");
        }
        while listening.recv(&mut message).is_ok() {}

        let inside = bench.eval(
            &session,
            "require('exec').run('probe', ['datagram', 'stream']).stdout.replaceAll('\\n', ';')",
        );
        let inside: Vec<&str> = inside.trim_matches('\'').split_terminator(';').collect();
        assert!(inside.contains(&"streams: pair"), "{inside:?}");
        assert!(inside.contains(&"control groups: a root"), "{inside:?}");
        let reached: Vec<&&str> = inside.iter().filter(|line| line.ends_with(": reached")).collect();
        assert!(reached.is_empty(), "{reached:?}");
        assert_eq!(inside.len(), outside.lines().count(), "{inside:?}");
        assert!(listening.recv(&mut message).is_err(), "a message of the command arrived");
        bench.end();
    }

    pub(super) fn a_command_ends_with_its_execution_and_with_its_session(user: User) {
        let mut bench = with_commands(user, &[("sh", PathBuf::from("/bin/sh"))]);
        // Longer than the test waits.
        bench.row(CapabilityKind::Module, "exec", r#"{"commands":["sh"],"timeout_ms":50000}"#);
        let Some(session) = bench.session_with_commands() else { return bench.end() };
        for end in ["cancel", "agent", "close"] {
            let marker = format!("a-command-to-{end}-{}", std::process::id());
            let code = format!("require('exec').run('sh', ['-c', 'sleep 90; : {marker}'])");
            let execution = bench.client.start(&session, &code);
            let mut found = Vec::new();
            watch::wait_until(
                || {
                    found = observe::with_argument(bench.daemon.pid(), &format!("sleep 90; : {marker}"));
                    !found.is_empty()
                },
                || format!("{marker}: no command"),
            );
            let since = Instant::now();
            if end == "close" {
                bench.client.close(&session);
            } else {
                if end == "agent" {
                    for agent in observe::in_mode(bench.daemon.pid(), "files-agent") {
                        agent.kill().expect("killed");
                    }
                }
                bench.client.op(ExecCancel { execution: execution.id.to_string() }).expect("cancelled");
                assert_eq!(bench.client.until_final(&execution).status, ExecutionStatus::Cancelled);
            }
            observe::all_end(&found);
            assert!(since.elapsed() < Duration::from_secs(30), "{end}: it ended at its timeout");
            if end != "close" {
                assert_eq!(
                    bench.eval(&session, "require('exec').run('sh', ['-c', 'echo next']).stdout"),
                    "'next\\n'"
                );
            }
        }
        bench.end();
    }

    /// Each script uses what sessions need of a program, removes what it made and prints `ok`.
    const SCRIPTS: &[(&str, &str, &str, &[&str])] = &[
        ("bash", "shell.sh", include_str!("shell.sh"), &[]),
        ("bash", "git.sh", include_str!("git.sh"), &["git"]),
        ("bash", "build.sh", include_str!("build.sh"), &["gcc", "make"]),
        ("node", "event_loop.js", include_str!("event_loop.js"), &[]),
        ("python3", "event_loop.py", include_str!("event_loop.py"), &[]),
        ("perl", "text.pl", include_str!("text.pl"), &[]),
    ];

    pub(super) fn ordinary_programs_run(user: User) {
        let mut commands = vec![("sh", PathBuf::from("/bin/sh"))];
        for (program, ..) in SCRIPTS {
            if !commands.iter().any(|(name, _)| name == program) {
                commands.extend(installed(program).map(|path| (*program, path)));
            }
        }
        let mut bench = with_commands(user, &commands);
        let names: Vec<&str> = commands.iter().map(|(name, _)| *name).collect();
        let row = json!({ "commands": names, "timeout_ms": 50_000, "memory_mb": 1024, "processes": 64 });
        bench.row(CapabilityKind::Module, "exec", &row.to_string());
        bench.row(CapabilityKind::Fs, "write", "{}");
        let Some(session) = bench.session_with_commands() else { return bench.end() };
        for (program, file, script, others) in SCRIPTS {
            let missing = std::iter::once(program).chain(*others).find(|name| installed(name).is_none());
            if let Some(missing) = missing {
                skip(&format!("program-{missing}"), "the program is not installed");
                continue;
            }
            bench.daemon.place.write(file, script);
            let call = format!(
                "((r) => [r.code, r.signal, r.timedOut, r.stdout, r.stderr].join('|'))\
                 (require('exec').run('{program}', ['{file}']))"
            );
            assert_eq!(bench.eval(&session, &call), "'0||false|ok\\n|'", "{file}");
        }
        bench.end();
    }

    fn installed(program: &str) -> Option<PathBuf> {
        let folders = ["/usr/bin", "/usr/local/bin", "/bin"];
        folders.iter().map(|folder| Path::new(folder).join(program)).find(|path| path.is_file())
    }
}
