//! The keeper: pid 1 of the jail. It builds the jail and starts the first zygote. After that it holds everything that must outlive
//! a supervisor: every worker's channel, pidfd and wait status. It never runs JavaScript, and it starts no process after its filter
//! is installed: zygotes fork zygotes.
//!
//! - [`outside`]: up to the second exec
//! - [`inside`]: from the second exec until the jail is complete
//! - [`serve`]: orders, exits of children, new supervisors, the grace
//! - [`table`]: the kept workers and zygotes

pub(crate) mod inside;
pub(crate) mod outside;
mod serve;
mod table;

use std::os::fd::OwnedFd;
use vm_system_protocol::codec::encode;
use vm_system_protocol::keeper::{FromKeeper, JailFailure};
use vm_system_protocol::limits::KEEPER_MESSAGE_BYTES;
use vm_system_sandbox::step::StepError;
use vm_system_sandbox::{process, socket};

/// First argument of the keeper's process: `keeper WALLS UID GID FURTHER…`, where FURTHER are the names of the descriptors after the
/// first three.
pub(crate) const MODE: &str = "keeper";
/// First argument after the second exec: `keeper-inside WALLS CGROUP`.
pub(crate) const MODE_INSIDE: &str = "keeper-inside";

/// The descriptors that a keeper starts with, in this order from 3.
pub(crate) struct Inherited {
    /// To the supervisor.
    control: OwnedFd,
    /// The socket to which a new supervisor connects; bound, not listening yet.
    adoption: OwnedFd,
    /// The first zygote's channel.
    zygote: OwnedFd,
    /// The cgroup to join, if there is one.
    group: Option<OwnedFd>,
    /// The user namespace to enter, where this user may not make one.
    user_namespace: Option<OwnedFd>,
}

/// The names of further descriptors.
const GROUP: &str = "group";
const USER_NAMESPACE: &str = "user-namespace";

impl Inherited {
    /// `further`: the names of the descriptors after the first three.
    fn take(further: &[String]) -> std::io::Result<Self> {
        let first = process::FIRST_FD;
        let [control, adoption, zygote] = [0, 1, 2].map(|at| process::inherited(first + at));
        let named = |name: &str| {
            let at = (first + 3..).zip(further).find(|(_, further)| *further == name);
            at.map(|(at, _)| process::inherited(at)).transpose()
        };
        let (group, user_namespace) = (named(GROUP), named(USER_NAMESPACE));
        process::close_inherited();
        let (group, user_namespace) = (group?, user_namespace?);
        Ok(Self { control: control?, adoption: adoption?, zygote: zygote?, group, user_namespace })
    }
}

/// The requested walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walls {
    /// All.
    Full,
    /// Without namespaces, for hosts that refuse user namespaces: an operator's explicit choice.
    NoUserns,
}

impl Walls {
    fn from_argument(argument: Option<&String>) -> Option<Self> {
        match argument?.as_str() {
            "full" => Some(Self::Full),
            "no-userns" => Some(Self::NoUserns),
            _ => None,
        }
    }

    fn argument(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NoUserns => "no-userns",
        }
    }
}

const EXIT_FAILED: i32 = 1;

/// Reports the failed step to the supervisor and exits.
fn fail(control: &OwnedFd, error: StepError, detail: &str) -> ! {
    let hint = match detail {
        "" => error.step.knob(error.errno).to_owned(),
        _ => format!("{detail}; {}", error.step.knob(error.errno)),
    };
    let failure = JailFailure { step: error.step.name().to_owned(), errno: error.errno, hint };
    // If the report cannot be sent, the supervisor sees the end of the channel.
    let _ = send_message(control, &FromKeeper::Failed(failure), &[]);
    process::exit_now(EXIT_FAILED)
}

fn send_message(
    to: &OwnedFd,
    message: &FromKeeper,
    fds: &[std::os::fd::BorrowedFd<'_>],
) -> std::io::Result<()> {
    let bytes = encode(message, KEEPER_MESSAGE_BYTES).map_err(std::io::Error::other)?;
    socket::send(to, &[&bytes], fds, socket::Wait::Yes)
}
