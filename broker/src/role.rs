//! The broker's process: takes its two descriptors, puts up the jail, then answers requests until the channel ends.
//! Blocking and single-threaded; no logging, no clock, no environment.

use crate::channel::{Channel, ChannelError};
use crate::{fs, jail};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use vm_system_protocol::broker::{FromBroker, ToBroker};
use vm_system_sandbox::process;

/// The channel to the supervisor.
const CHANNEL: i32 = process::FIRST_FD;
/// The worktree's directory.
const WORKTREE: i32 = process::FIRST_FD + 1;

/// The whole life of a broker. Ends the process itself: nothing of the runtime's tear-down is in the filter.
pub(crate) fn run() -> ExitCode {
    let Ok((channel, worktree)) = descriptors() else {
        // Started by hand: there is nobody to talk to.
        return ExitCode::from(2);
    };
    let mut channel = Channel::new(File::from(channel));
    if let Err(failure) = jail::enter(&worktree) {
        let _ = channel.send(&FromBroker::Failed { message: failure.to_string() });
        process::exit_now(1);
    }
    match serve(&mut channel, &worktree) {
        Ok(()) => process::exit_now(0),
        Err(_) => process::exit_now(1),
    }
}

fn descriptors() -> io::Result<(OwnedFd, OwnedFd)> {
    let pair = (process::inherited(CHANNEL)?, process::inherited(WORKTREE)?);
    process::close_from(WORKTREE as u32 + 1)?;
    Ok(pair)
}

fn serve(channel: &mut Channel, worktree: &OwnedFd) -> Result<(), ChannelError> {
    channel.send(&FromBroker::Ready)?;
    loop {
        match channel.receive()? {
            Some(ToBroker::Call { call, request }) => {
                let reply = fs::answer(worktree, &request);
                channel.send(&FromBroker::Reply { call, reply })?;
            }
            Some(ToBroker::Shutdown) | None => return Ok(()),
        }
    }
}
