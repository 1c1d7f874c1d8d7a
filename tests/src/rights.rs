//! A daemon with a template with rights that a test sets, and the results of scripts under them.

use crate::client::{Client, value};
use crate::daemon::{Daemon, DaemonOptions};
use crate::place::{TestDir, UNPRIVILEGED_UID, User};
use crate::skip;
use std::path::Path;
use vm_system_protocol::broker::FsTerms;
use vm_system_protocol::control::{NewCapability, OpError, TemplateAddCapability, TemplateRemoveCapability};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{CapabilityKind, EventPayload, ExecutionStatus, Session, Settings};
use vm_system_runtime::worktree::{Roots, Worktree, WorktreeClient};

/// Terms of a broker without restrictions.
pub const WIDE: FsTerms =
    FsTerms { links: true, tree: true, existing_levels: 0, max_file_bytes: 1 << 20, max_entries: 100 };

/// A folder as the supervisor opens it for an administrator.
///
/// # Panics
/// The folder does not exist.
pub fn worktree(folder: &Path) -> Worktree {
    let roots = Roots::of_this_process().expect("there is a root");
    Worktree::open(folder, &roots, &WorktreeClient::Administrator).expect("a folder")
}

/// A daemon, a connection, a template.
#[derive(Debug)]
pub struct Bench {
    /// The daemon.
    pub daemon: Daemon,
    /// A connection to it.
    pub client: Client,
    /// The template of all sessions.
    pub template: String,
    /// The user with whose rights sessions use their files; `None`: the test's own.
    pub as_user: Option<String>,
}

impl Bench {
    /// A bench whose template exposes these modules.
    pub fn new(user: User, modules: &[&str]) -> Self {
        Self::with_modules(user, modules, &DaemonOptions::default())
    }

    /// A bench whose template exposes these modules, with these options of the daemon.
    pub fn with_modules(user: User, modules: &[&str], options: &DaemonOptions) -> Self {
        let daemon = Daemon::start_with(TestDir::new(user), options);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), modules);
        Self { daemon, client, template, as_user: None }
    }

    /// Adds a capability row; its id.
    pub fn try_row(
        &mut self,
        kind: CapabilityKind,
        name: &str,
        enabled: bool,
        config: &str,
    ) -> Result<String, OpError> {
        let config = JsonText::from_untrusted(config.to_owned());
        let capability = NewCapability { kind, name: name.to_owned(), enabled, config };
        let op = TemplateAddCapability { template: self.template.clone(), capability };
        self.client.op(op).map(|row| row.id.to_string())
    }

    /// Adds an enabled row; its id.
    pub fn row(&mut self, kind: CapabilityKind, name: &str, config: &str) -> String {
        self.try_row(kind, name, true, config).expect("a row")
    }

    /// Removes a row.
    pub fn remove_row(&mut self, capability: String) {
        let op = TemplateRemoveCapability { template: self.template.clone(), capability };
        self.client.op(op).expect("removed");
    }

    /// A new session of the template.
    pub fn session(&mut self) -> Session {
        let worktree = self.daemon.place.worktree();
        self.client.session_as(&self.template, &worktree, self.as_user.as_deref()).expect("session")
    }

    /// Gives the worktree to a user who may run commands, and has sessions use it with that user's rights: commands are not run as
    /// root.
    ///
    /// # Panics
    /// The owner of the folder cannot be changed.
    pub fn use_files_unprivileged(&mut self) {
        if User::can_be_switched() {
            // The user that a daemon of root becomes has no files agent.
            let uid = if self.daemon.place.user == User::AsStarted { 1 } else { UNPRIVILEGED_UID };
            std::os::unix::fs::chown(self.daemon.place.worktree(), Some(uid), Some(uid)).expect("chown");
            self.as_user = Some(uid.to_string());
        }
    }

    /// A session in which the command `sh` runs; `None` where the machine refuses user namespaces.
    ///
    /// # Panics
    /// The command does not run for another reason.
    pub fn session_with_commands(&mut self) -> Option<Session> {
        let session = self.session();
        let first =
            "try { require('exec').run('sh', ['-c', 'echo ok']).stdout } catch (error) { error.message }";
        let said = self.eval(&session, first);
        if said.contains("user namespace") {
            skip("namespaces", &format!("this machine refuses user namespaces: {said}"));
            return None;
        }
        assert_eq!(said, "'ok\\n'");
        Some(session)
    }

    /// Runs code that must succeed; the preview of its value.
    #[track_caller]
    pub fn eval(&mut self, session: &Session, code: &str) -> String {
        let execution = self.client.eval(session, code).expect("a response");
        let events = self.client.events(&execution.id.to_string());
        match value(&events) {
            Some(value) if execution.status == ExecutionStatus::Ok => value.to_owned(),
            _ => panic!("{code}: {:?} {events:?}", execution.error),
        }
    }

    /// The preview of the code of the error that a piece of code throws.
    #[track_caller]
    pub fn code(&mut self, session: &Session, code: &str) -> String {
        self.eval(
            session,
            &format!("try {{ {code}; 'nothing' }} catch (error) {{ error.code ?? String(error) }}"),
        )
    }

    /// The system's messages about a piece of code.
    #[track_caller]
    pub fn console_lines(&mut self, session: &Session, code: &str) -> Vec<String> {
        let execution = self.client.eval(session, code).expect("a response");
        let events = self.client.events(&execution.id.to_string());
        let lines = events.into_iter().filter_map(|event| match event.payload {
            EventPayload::System { message, .. } => Some(message),
            _ => None,
        });
        lines.collect()
    }

    /// Stops the daemon.
    pub fn end(self) {
        drop(self.client);
        self.daemon.stop();
    }
}
