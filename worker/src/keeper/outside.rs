//! The keeper before its second exec: still has access to the host, drops root, enters the namespaces. Must not start a thread,
//! and must not read the environment, which is empty.

use super::{Inherited, MODE_INSIDE, Walls, fail};
use std::os::fd::OwnedFd;
use vm_system_protocol::hello::Hello;
use vm_system_sandbox::cgroup;
use vm_system_sandbox::namespaces::{self, Ids};
use vm_system_sandbox::process::{self, Fork};
use vm_system_sandbox::socket;
use vm_system_sandbox::step::{AtStep as _, JailStep, StepError};

/// `keeper WALLS UID GID FURTHER…`.
pub(crate) fn main(arguments: &[String]) -> ! {
    let Ok(mut fds) = Inherited::take(arguments.get(3..).unwrap_or_default()) else {
        process::exit_now(super::EXIT_FAILED)
    };
    let _ = socket::send(&fds.control, &[&Hello::ours().to_packet()], &[], socket::Wait::Yes);
    let Some((walls, service)) = parse(arguments) else {
        fail(&fds.control, StepError { step: JailStep::Channel, errno: 0 }, "unknown arguments")
    };
    let error = match enter(walls, service, &mut fds) {
        Ok(()) => process::exit_now(0),
        Err(error) => error,
    };
    fail(&fds.control, error, "")
}

fn parse(arguments: &[String]) -> Option<(Walls, Ids)> {
    let number = |at: usize| arguments.get(at)?.parse().ok();
    Some((Walls::from_argument(arguments.first())?, Ids { uid: number(1)?, gid: number(2)? }))
}

/// Returns `Ok` in the parent, which then exits; the first process of the jail continues in [`super::inside`].
fn enter(walls: Walls, service: Ids, fds: &mut Inherited) -> Result<(), StepError> {
    // First: whatever this process touches afterwards is charged to its group, and every child inherits that.
    if let Some(group) = fds.group.take() {
        cgroup::join(group).at_step(JailStep::Cgroup)?;
    }
    process::die_first_of_memory_shortage().at_step(JailStep::OomScore)?;
    let mut own_cgroup = false;
    match walls {
        Walls::Full => {
            namespaces::enter(service, fds.user_namespace.take().as_ref())?;
            own_cgroup = namespaces::enter_cgroup().is_ok();
        }
        Walls::NoUserns => namespaces::become_service_user(service)?,
    }
    match process::fork().at_step(JailStep::Fork)? {
        Fork::Parent(_) => Ok(()),
        Fork::Child => {
            // Only a second exec makes the new user namespace the owner of this process's memory: without it, a supervisor
            // that is not root could not read its `/proc` files.
            let arguments = [MODE_INSIDE, walls.argument(), if own_cgroup { "cgroup" } else { "-" }];
            let kept: [&OwnedFd; 3] = [&fds.control, &fds.adoption, &fds.zygote];
            let error = process::exec_self(&arguments, &kept);
            Err::<(), _>(error).at_step(JailStep::SecondExec)
        }
    }
}
