//! The context of every command: global flags, output, and access to a supervisor.

use crate::args::GlobalArgs;
use crate::backend::Backend;
use crate::error::CliError;
use crate::output::{Output, Style};
use crate::paths::Environment;
use crate::reconnect::Reconnect;
use crate::target::DaemonTarget;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use vm_system_protocol::control::Verb;
use vm_system_sandbox::heap;

/// The context of a command.
pub(crate) struct Context {
    pub(crate) global: GlobalArgs,
    pub(crate) environment: Environment,
    pub(crate) out: Output,
    /// Where the daemon is.
    pub(crate) target: DaemonTarget,
    daemon: Backend,
}

impl Context {
    pub(crate) fn new(global: GlobalArgs, style: Style) -> Self {
        let environment = Environment::detect();
        let target = DaemonTarget::new(
            global.socket.as_deref(),
            global.state_dir.as_deref(),
            global.remote.clone(),
            &environment,
        );
        let out = Output::new(&global, style);
        Self { global, environment, out, daemon: Backend::daemon(target.clone()), target }
    }

    /// The reconnections of a command that waits.
    pub(crate) fn reconnect(&self) -> Reconnect {
        Reconnect::new(Duration::from_secs(u64::from(self.global.reconnect)))
    }

    pub(crate) fn daemon(&self) -> &Backend {
        &self.daemon
    }

    /// Runs one verb in the daemon.
    pub(crate) async fn call<V: Verb>(&self, verb: V) -> Result<V::Reply, CliError> {
        self.daemon.call(verb, None).await
    }

    /// Who listens at the socket of the last verb; none behind a URL.
    pub(crate) async fn listener(&self) -> Option<u32> {
        self.daemon.listener().await
    }

    /// Runs one verb in the daemon, at most once per key.
    pub(crate) async fn call_once<V: Verb>(
        &self,
        verb: V,
        key: Option<String>,
    ) -> Result<V::Reply, CliError> {
        self.daemon.call(verb, key).await
    }

    /// Runs a command that only talks to a daemon.
    #[expect(clippy::unused_self, reason = "commands reach all they need through the context")]
    pub(crate) fn block_on<T>(
        &self,
        command: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CliError::internal(format!("cannot start the runtime: {error}")))?
            .block_on(boxed(command))
    }

    /// Runs a command with an embedded supervisor, which works on a second thread, so that it continues while the command
    /// waits for its terminal.
    #[expect(clippy::unused_self, reason = "commands reach all they need through the context")]
    pub(crate) fn block_on_embedded<T>(
        &self,
        command: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        // Before there is another thread. An arena besides the first grows by the page, with a call of the kernel each time: 300 of them
        // for `run -e 1`, and these threads rarely allocate at the same time.
        heap::limit_arenas(1);
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| CliError::internal(format!("cannot start the runtime: {error}")))?
            .block_on(boxed(command))
    }
}

/// A command as one type for all: with its own type, each runtime's loop would be compiled again for each command, with all that the
/// command awaits.
fn boxed<'a, T>(command: impl Future<Output = T> + 'a) -> Pin<Box<dyn Future<Output = T> + 'a>> {
    Box::pin(command)
}
