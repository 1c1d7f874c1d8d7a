//! The usual scene of a fault: a daemon, a template with small limits, a session to harm and a sibling that must not be
//! affected. Memory and descriptors of the supervisor are measured before and after.

use crate::client::{Client, value};
use crate::daemon::{Daemon, DaemonOptions};
use crate::observe;
use crate::place::{TestDir, User};
use crate::watch;
use vm_system_protocol::model::{Execution, ExecutionStatus, Limits, Session, SessionStatus, Settings};

/// Growth of a supervisor's memory that a test allows: allocator slack and caches, no sessions (KiB).
const GROWTH_KIB: u64 = 36 * 1024;

/// Growth of a supervisor's descriptors that a test allows: the store opens more readers when reads are concurrent. A leak
/// of one in each round of a fault is more.
const LAZY_DESCRIPTORS: usize = 8;

/// Limits that end a faulty execution soon.
pub fn small() -> Settings {
    let limits = Limits { cpu_ms: 1_000, wall_ms: 4_000, mem_mb: 48, ..Limits::default() };
    Settings { limits, ..Settings::default() }
}

/// The scene.
#[derive(Debug)]
pub struct Scene {
    /// The daemon.
    pub daemon: Daemon,
    /// A connection to it.
    pub client: Client,
    /// The template of the sessions.
    pub template: String,
    sibling: Session,
    descriptors: usize,
    memory_kib: u64,
}

impl Scene {
    /// A scene with [`small`] limits and the `fs` module.
    pub fn new(user: User) -> Self {
        Self::with_settings(user, small())
    }

    /// A scene with these settings.
    pub fn with_settings(user: User, settings: Settings) -> Self {
        Self::on_daemon(Daemon::start_with(TestDir::new(user), &DaemonOptions::default()), settings)
    }

    /// A scene with a daemon that runs already.
    pub fn on_daemon(daemon: Daemon, settings: Settings) -> Self {
        let mut client = daemon.client();
        let template = client.template(settings, &["fs"]);
        let worktree = daemon.place.worktree();
        let sibling = client.session(&template, &worktree).expect("sibling");
        client.eval(&sibling, "var kept = 41").expect("sibling");
        // One session first: one-time allocations are made before the count.
        let warm = client.session(&template, &worktree).expect("session");
        client.eval(&warm, "1").expect("warm");
        client.close(&warm);
        let (descriptors, memory_kib) =
            (observe::descriptors(daemon.pid()), observe::anonymous_kib(daemon.pid()));
        Self { daemon, client, template, sibling, descriptors, memory_kib }
    }

    /// A new session.
    pub fn session(&mut self) -> Session {
        self.client.session(&self.template, &self.daemon.place.worktree()).expect("session")
    }

    /// Runs code in a session to its end; the response and the stored record must agree.
    #[track_caller]
    pub fn run(&mut self, session: &Session, code: &str) -> Execution {
        let returned = self.client.eval(session, code).expect("a response");
        let stored = self.client.execution_record(&returned.id.to_string());
        assert_eq!(stored.status, returned.status, "the record differs from the response");
        assert_eq!(stored.error, returned.error, "the record differs from the response");
        assert!(!stored.degraded);
        returned
    }

    /// Runs code that must fail with this code; the execution.
    #[track_caller]
    pub fn fails(&mut self, session: &Session, code: &str, with: &str) -> Execution {
        let execution = self.run(session, code);
        let error = execution.error.clone().unwrap_or_else(|| panic!("no error: {execution:?}"));
        assert_eq!(error.code, with, "{error:?}");
        execution
    }

    /// The session must still execute code.
    #[track_caller]
    pub fn assert_usable(&mut self, session: &Session) {
        let execution = self.run(session, "6 * 7");
        assert_eq!(execution.status, ExecutionStatus::Ok, "{:?}", execution.error);
        let events = self.client.events(&execution.id.to_string());
        assert_eq!(value(&events), Some("42"));
    }

    /// The session must end as crashed, with this reason.
    #[track_caller]
    pub fn crashed(&mut self, session: &Session, reason: &str) {
        let record = self.client.wait_for(session, SessionStatus::Crashed);
        assert_eq!(record.close_reason.as_deref(), Some(reason));
        assert!(record.closed_at.is_some());
    }

    /// The sibling must still execute code and have its state.
    #[track_caller]
    pub fn sibling_is_unharmed(&mut self) {
        let sibling = self.sibling.clone();
        let execution = self.run(&sibling, "kept + 1");
        let events = self.client.events(&execution.id.to_string());
        assert_eq!(value(&events), Some("42"));
    }

    /// The sibling is not affected, and the supervisor's memory and descriptors have not grown. Stops the daemon.
    #[track_caller]
    pub fn end(mut self, sessions: &[&Session]) {
        self.sibling_is_unharmed();
        for session in sessions {
            self.client.close(session);
        }
        let pid = self.daemon.pid();
        // A broker exits after its session ended, without a notification.
        let most = self.descriptors + LAZY_DESCRIPTORS;
        let too_many = || format!("{} descriptors, {} before", observe::descriptors(pid), self.descriptors);
        watch::wait_until(|| observe::descriptors(pid) <= most, too_many);
        let grown = observe::anonymous_kib(pid).saturating_sub(self.memory_kib);
        assert!(grown <= GROWTH_KIB, "the supervisor's memory grew by {grown} KiB");
        drop(self.client);
        self.daemon.stop();
    }
}
