//! Properties of the session's variables, for completion.
//!
//! They are found by an execution in the session, which reads descriptors along a path of names (`a.b.c`) and calls no getter: completion
//! changes nothing. Such an execution is recorded as any other; it ends after a short time.

use crate::backend::Backend;
use crate::commands::exec::repl::new_execution;
use crate::target::DaemonTarget;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use vm_system_daemon::Embedded;
use vm_system_protocol::control::{ExecStart, ExecutionState};

/// The user waits for the result of a key.
const PATIENCE: Duration = Duration::from_secs(1);

/// Finds properties of a session's variables.
pub(super) struct Properties {
    session: String,
    place: Place,
}

enum Place {
    None,
    Daemon(DaemonTarget),
    Embedded(Arc<Embedded>, Handle),
}

impl Properties {
    pub(super) fn none() -> Self {
        Self { session: String::new(), place: Place::None }
    }

    /// Must be called inside the runtime.
    pub(super) fn new(backend: &Backend, session: &str) -> Self {
        let place = match backend {
            Backend::Daemon { target, .. } => Place::Daemon(target.clone()),
            Backend::Embedded(embedded) => Place::Embedded(Arc::clone(embedded), Handle::current()),
        };
        Self { session: session.to_owned(), place }
    }

    /// The names of the properties of `a.b.c`; none if the session does not respond in time. Blocks; the runtime is not used, whose
    /// thread waits for the terminal.
    pub(super) fn names_of(&self, object: &str) -> Vec<String> {
        let is_name = |name: &str| !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
        if !object.split('.').all(is_name) {
            return Vec::new();
        }
        let names: Vec<&str> = object.split('.').collect();
        let new = new_execution(self.session.clone(), script(&names), None);
        let reply = match &self.place {
            Place::None => None,
            Place::Daemon(target) => {
                let target = target.clone();
                let call = std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
                    let daemon = Backend::daemon(target);
                    runtime.block_on(in_time(&daemon, new))
                });
                call.join().ok().flatten()
            }
            Place::Embedded(embedded, handle) => {
                let (sender, receiver) = std::sync::mpsc::channel();
                let embedded = Arc::clone(embedded);
                handle.spawn(async move {
                    let (events, _) = Embedded::follower(1);
                    let reply = tokio::time::timeout(PATIENCE, embedded.call(new, None, events)).await;
                    // The shell may have given up.
                    drop(sender.send(reply.ok().and_then(Result::ok)));
                });
                receiver.recv_timeout(2 * PATIENCE).ok().flatten()
            }
        };
        match reply {
            Some(ExecutionState::Execution(execution)) => {
                let found = execution.result_json().and_then(|json| serde_json::from_str(json).ok());
                found.unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

async fn in_time(backend: &Backend, new: ExecStart) -> Option<ExecutionState> {
    tokio::time::timeout(PATIENCE, backend.call(new, None)).await.ok()?.ok()
}

/// An expression whose value is the names of the properties; without getters, and without declarations.
fn script(names: &[&str]) -> String {
    let (first, rest) = names.split_first().unwrap_or((&"undefined", &[]));
    let rest = serde_json::to_string(rest).unwrap_or_else(|_| "[]".to_owned());
    format!(
        "((value, names) => {{
            const {{ getOwnPropertyDescriptor, getOwnPropertyNames, getPrototypeOf }} = Object;
            const found = (object, name) => {{
                for (let at = object; at !== null && at !== undefined; at = getPrototypeOf(at)) {{
                    const own = getOwnPropertyDescriptor(at, name);
                    if (own) return own;
                }}
            }};
            for (const name of names) {{
                if (value === null || value === undefined) return [];
                value = found(Object(value), name)?.value;
            }}
            const all = new Set();
            if (value === null || value === undefined) return [];
            for (let at = Object(value), level = 0; at !== null && level < 16; at = getPrototypeOf(at), level++) {{
                for (const name of getOwnPropertyNames(at)) {{
                    if (all.size < 1000 && /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name)) all.add(name);
                }}
            }}
            return [...all];
        }})(typeof {first} === 'undefined' ? undefined : {first}, {rest})"
    )
}
