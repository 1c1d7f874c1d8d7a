//! `vm-system serve` in a test's folder: ready when it notifies its service manager, which is the test.

use crate::PATIENCE;
use crate::client::Client;
use crate::command::{CommandOutput, command, command_of, readable, vm_system, wait};
use crate::http::Http;
use crate::observe;
use crate::place::{TestDir, User};
use crate::program;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use vm_system_protocol::control::{RuntimeInfo, RuntimeInfoGet};
use vm_system_sandbox::pidfd::PidFd;

/// How to start a daemon.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// One of the package's binaries.
    pub program: &'static str,
    /// More arguments of `serve`.
    pub arguments: Vec<String>,
    /// Content of the operator's configuration file; no file if empty.
    pub config: String,
    /// An existing file or pipe for its log; `daemon.log` in its folder if `None`.
    pub log: Option<PathBuf>,
    /// Variables of its environment.
    pub environment: Vec<(&'static str, String)>,
    /// A file that it finds as /etc/passwd, in a mount namespace of its own; needs root.
    pub passwd: Option<PathBuf>,
    /// Descriptors that it may have (hard limit).
    pub descriptors: Option<u64>,
    /// A listening socket that it gets as a service manager passes it, and its name.
    pub passed: Option<(&'static str, Arc<OwnedFd>)>,
    /// The cgroup in which it is started, alone: what another test starts meanwhile is not ended with that group.
    pub group: Option<PathBuf>,
}

impl Default for DaemonOptions {
    fn default() -> Self {
        Self {
            program: program::PRODUCT,
            arguments: Vec::new(),
            config: String::new(),
            log: None,
            environment: Vec::new(),
            passwd: None,
            descriptors: None,
            passed: None,
            group: None,
        }
    }
}

/// Settings of a daemon of root: tests use system users, and root's own files.
const OF_ROOT: &str = "min_uid = 1\nroot_files = true\n";

/// A running daemon. Killed with all its processes when the test ends, if it was not stopped before.
#[derive(Debug)]
pub struct Daemon {
    /// The daemon's folder.
    pub place: TestDir,
    child: Child,
    pidfd: PidFd,
}

impl Daemon {
    /// Starts with an empty state directory.
    pub fn start(user: User) -> Self {
        Self::start_with(TestDir::new(user), &DaemonOptions::default())
    }

    /// Starts in a folder that may have an earlier daemon's state.
    pub fn start_with(place: TestDir, options: &DaemonOptions) -> Self {
        Self::try_start(place, options).unwrap_or_else(|(_, log)| panic!("the daemon did not start:\n{log}"))
    }

    /// As [`Daemon::start_with`]; the folder and the log if it exits before it is ready.
    pub fn try_start(place: TestDir, options: &DaemonOptions) -> Result<Self, (TestDir, String)> {
        let notify = place.path("notify");
        let _ = std::fs::remove_file(&notify);
        let manager = UnixDatagram::bind(&notify).expect("notify socket");
        std::fs::set_permissions(&notify, std::fs::Permissions::from_mode(0o777)).expect("chmod");
        let log = if let Some(path) = &options.log {
            std::fs::OpenOptions::new().write(true).open(path).expect("log")
        } else {
            keep_log(&place);
            std::fs::File::create(place.path("daemon.log")).expect("log")
        };
        let mut serve = command(&place, options.program);
        if let Some(passwd) = &options.passwd {
            let program = serve.get_program().to_owned();
            let bind = "mount --bind \"$0\" /etc/passwd && exec \"$@\"";
            serve = command_of(&place, "/usr/bin/unshare");
            serve.args(["-m", "sh", "-c", bind]).arg(passwd).arg(program);
        }
        if let Some(most) = options.descriptors {
            let program = serve.get_program().to_owned();
            serve = command_of(&place, "/bin/sh");
            serve.args(["-c", &format!("ulimit -n {most} && exec \"$0\" \"$@\"")]).arg(program);
        }
        if let Some((name, socket)) = &options.passed {
            let program = serve.get_program().to_owned();
            serve = command_of(&place, "/bin/sh");
            let pass = "export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$0\" \"$@\" 3<&0 </dev/null";
            serve.args(["-c", pass]).arg(program).env("LISTEN_FDNAMES", name);
            serve.stdin(socket.try_clone().expect("a descriptor"));
        }
        if let Some(group) = &options.group {
            let program = serve.get_program().to_owned();
            serve = command_of(&place, "/bin/sh");
            // The right to move a process is that of the opener, which is root.
            serve.args(["-c", "echo 0 >&0; exec \"$0\" \"$@\" </dev/null"]).arg(program);
            serve.stdin(
                std::fs::OpenOptions::new().write(true).open(group.join("cgroup.procs")).expect("a group"),
            );
        }
        serve
            .arg("serve")
            .arg("--state-dir")
            .arg(place.path("state"))
            .arg("--socket")
            .arg(place.socket())
            .args(&options.arguments);
        let config = if Self::is_roots(&place) {
            OF_ROOT.to_owned() + &options.config
        } else {
            options.config.clone()
        };
        if !config.is_empty() && !options.arguments.iter().any(|argument| argument == "--config") {
            let file = place.path("config.toml");
            std::fs::write(&file, &config).expect("config");
            place.give(&file);
            serve.arg("--config").arg(file);
        }
        serve.env("NOTIFY_SOCKET", &notify).env("RUST_BACKTRACE", "1");
        serve.envs(options.environment.iter().map(|(name, value)| (name, value)));
        serve.stdout(Stdio::null()).stderr(log);
        // A process that another test is just starting may still have the new file of a program open for writing (ETXTBSY).
        let mut started = None;
        crate::watch::wait_until(
            || {
                started = Some(serve.spawn());
                !matches!(&started, Some(Err(error)) if error.kind() == std::io::ErrorKind::ExecutableFileBusy)
            },
            || "the program stays open for writing".to_owned(),
        );
        let child = started.expect("it was tried").expect("start of the daemon");
        let pidfd = PidFd::open(child.id()).expect("our own child");
        let daemon = Self { place, child, pidfd };
        if daemon.is_ready(&manager) { Ok(daemon) } else { Err(daemon.give_up()) }
    }

    /// Whether root starts a daemon there, which then becomes uid 65534.
    fn is_roots(place: &TestDir) -> bool {
        place.user == User::AsStarted && User::can_be_switched()
    }

    /// Waits for `READY=1` or the end of the process, whichever comes first.
    fn is_ready(&self, manager: &UnixDatagram) -> bool {
        use nix::poll::{PollFd, PollFlags, poll};
        use std::os::fd::AsFd as _;
        let mut fds = [
            PollFd::new(manager.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN),
        ];
        let timeout = nix::poll::PollTimeout::try_from(PATIENCE).expect("a minute");
        let ready = poll(&mut fds, timeout).expect("poll");
        assert!(ready > 0, "the daemon is not ready and has not exited:\n{}", self.log());
        let mut message = [0; 256];
        manager.set_nonblocking(true).expect("nonblocking");
        match manager.recv(&mut message) {
            Ok(len) if message[..len].starts_with(b"WATCHDOG=1") => self.is_ready(manager),
            Ok(len) => message[..len].starts_with(b"READY=1"),
            Err(_) => false,
        }
    }

    fn give_up(self) -> (TestDir, String) {
        let mut this = self;
        assert!(
            wait(&mut this.child, PATIENCE).is_some(),
            "it is not ready and does not exit:\n{}",
            this.log()
        );
        let log = this.log();
        (std::mem::replace(&mut this.place, TestDir::new(User::AsStarted)), log)
    }

    /// The log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.place.path("daemon.log")).unwrap_or_default()
    }

    /// The daemon's pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A new connection to its control socket.
    pub fn client(&self) -> Client {
        Client::connect(&self.place.socket())
    }

    /// A new connection to its HTTP socket.
    pub fn http(&self) -> Http {
        Http::unix(&self.place.http_socket())
    }

    /// The addresses of HTTP over TCP (`--listen`), in the order of the flags.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let log = self.log();
        let lines = log.lines().filter(|line| line.contains("HTTP over TCP"));
        let address = |line: &str| line.rsplit_once("address=")?.1.trim_end().parse().ok();
        lines.filter_map(address).collect()
    }

    /// Makes it read its tokens and its configuration again (SIGHUP).
    pub fn hang_up(&self) {
        self.pidfd.signal(nix::libc::SIGHUP).expect("SIGHUP");
    }

    /// One command of the CLI against it.
    pub fn cli(&self, arguments: &[&str]) -> CommandOutput {
        vm_system(&self.place, arguments)
    }

    /// The response of `ops runtime`.
    pub fn info(&self) -> RuntimeInfo {
        self.client().op(RuntimeInfoGet).expect("runtime info")
    }

    /// Every process that belongs to it: its descendants, and those of the jail (the keeper is no descendant).
    pub fn family(&self) -> Vec<PidFd> {
        let mut family = observe::descendants(self.pid());
        if let Some(keeper) = self.info().keeper_pid {
            family.extend(PidFd::open(keeper));
            family.extend(observe::descendants(keeper));
        }
        family
    }

    /// Stops it with SIGTERM; it must exit with 0 and leave no process behind.
    pub fn stop(mut self) -> TestDir {
        let family = self.family();
        self.pidfd.signal(nix::libc::SIGTERM).expect("SIGTERM");
        let code = wait(&mut self.child, PATIENCE);
        assert_eq!(code, Some(Some(0)), "end of the daemon:\n{}", self.log());
        observe::all_end(&family);
        std::mem::replace(&mut self.place, TestDir::new(User::AsStarted))
    }

    /// Kills it and its jail, as a power loss does; its folder.
    pub fn kill_everything(self) -> TestDir {
        let (place, family) = self.kill();
        for process in &family {
            let _ = process.kill();
        }
        observe::all_end(&family);
        place
    }

    /// Kills it; its folder and the processes that it leaves behind, which wait for another one.
    pub fn kill(mut self) -> (TestDir, Vec<PidFd>) {
        let family = self.family();
        self.pidfd.kill().expect("SIGKILL");
        self.child.wait().expect("reaped");
        (std::mem::replace(&mut self.place, TestDir::new(User::AsStarted)), family)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.pidfd.is_alive() {
            let family = observe::descendants(self.pid());
            let _ = self.pidfd.kill();
            let _ = self.child.wait();
            for process in family {
                let _ = process.kill();
                readable(&process, PATIENCE);
            }
        }
        if std::thread::panicking() {
            for log in earlier_logs(&self.place).filter_map(|path| std::fs::read_to_string(path).ok()) {
                eprintln!("---- the log of an earlier daemon ----\n{log}");
            }
            eprintln!("---- the daemon's log ----\n{}", self.log());
        }
    }
}

/// The logs of earlier daemons in this folder, the first one first.
fn earlier_logs(place: &TestDir) -> impl Iterator<Item = PathBuf> {
    (1..).map(|number| place.path(&format!("daemon.{number}.log"))).take_while(|path| path.exists())
}

/// Renames the log of the last daemon in this folder.
fn keep_log(place: &TestDir) {
    let number = earlier_logs(place).count() + 1;
    // There is none before the first start.
    let _ = std::fs::rename(place.path("daemon.log"), place.path(&format!("daemon.{number}.log")));
}
