//! Whole-system tests: real processes, driven through the real binary. The library has what the tests share; it knows nothing
//! of the supervisor's internals and is a client like any other.
//!
//! - [`place`]: a folder for each test, and the user it runs as
//! - [`program`]: where the binaries are
//! - [`command`]: one command of the CLI, with a deadline
//! - [`daemon`]: `vm-system serve`, ready when it reports READY
//! - [`client`]: the control socket, one frame at a time; [`http`]: the REST API, one request at a time
//! - [`records`]: rows for tests and figures of the store
//! - [`scene`]: a daemon, a session to harm, a sibling that must not notice
//! - [`rights`]: a template with rights that a test sets
//! - [`programs`]: durable programs over the control socket; [`fragile`]: a client of a daemon that may be killed at any moment
//! - [`killer`]: kills processes of a daemon at random moments; [`small_disk`]: a disk that it fills
//! - [`mcp`]: an agent on standard streams
//! - [`other_user`]: programs with another uid
//! - [`escape`]: what native code in a worker tries, with what must happen
//! - [`observe`]: processes, descriptors and memory as the kernel reports them
//! - [`watch`]: polling of what sends no notification

pub mod client;
pub mod command;
pub mod daemon;
pub mod database_lock;
pub mod escape;
pub mod fragile;
pub mod http;
pub mod killer;
pub mod mcp;
pub mod observe;
pub mod other_user;
pub mod place;
pub mod program;
pub mod programs;
pub mod records;
pub mod rights;
pub mod scene;
pub mod small_disk;
pub mod watch;

use std::time::Duration;
pub use vm_system_testkit::{SeededRandom, skip};

/// Longer than any wait of a test, unless the system hangs (two shared cores, debug build).
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Declares tests that run as the user who started them, and once more as uid 65534: `as_both!(name, body);` where
/// `body` is a function of a [`User`](place::User).
#[macro_export]
macro_rules! as_both {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn as_started() {
                super::cases::$name($crate::place::User::AsStarted);
            }
            #[test]
            fn as_uid_65534() {
                if $crate::place::User::can_be_switched() {
                    super::cases::$name($crate::place::User::Unprivileged);
                } else {
                    $crate::skip("root", "tests as uid 65534 need root");
                }
            }
        }
    )+ };
}
