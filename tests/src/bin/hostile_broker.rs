//! A broker that misbehaves in the way that the file `behaviour` in its worktree names; without one it is honest.
//! Started by the supervisor like the real one: mode as first argument, channel as 3, worktree as 4.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use vm_system_protocol::broker::{BrokerReply, DatabaseReply, FromBroker, FsReply, ToBroker};
use vm_system_protocol::codec;
use vm_system_protocol::limits::HOST_MESSAGE_BYTES;
use vm_system_sandbox::process;

fn main() -> ExitCode {
    // The worktree is read through /proc, so that the honest role can still take the descriptor.
    let behaviour = std::fs::read_to_string("/proc/self/fd/4/behaviour").unwrap_or_default();
    if behaviour.is_empty() {
        return vm_system_broker::dispatch(std::env::args_os()).unwrap_or(ExitCode::FAILURE);
    }
    let Ok(channel) = process::inherited(3) else { return ExitCode::FAILURE };
    let mut channel = File::from(channel);
    match misbehave(behaviour.trim(), &mut channel) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn misbehave(behaviour: &str, channel: &mut File) -> std::io::Result<()> {
    match behaviour {
        "never ready" => return wait_for_the_end(channel),
        "exits at once" => return Ok(()),
        "cannot be jailed" => {
            send(channel, &FromBroker::Failed { message: "the wall is too low".to_owned() })?;
            return wait_for_the_end(channel);
        }
        "answers before a call" => {
            send(channel, &FromBroker::Reply { call: 1, reply: Ok(BrokerReply::Fs(FsReply::Bool(true))) })?;
            return wait_for_the_end(channel);
        }
        "without walls" => {
            send(channel, &FromBroker::Ready)?;
            return wait_for_the_end(channel);
        }
        _ => {}
    }
    // From here on behind walls that pass the supervisor's check.
    let writes = behaviour.starts_with("writes");
    if writes {
        // As the honest one does before it opens files by name.
        nix::unistd::fchdir(process::inherited(4)?)?;
    }
    let rows = vm_system_sandbox::seccomp::table_broker::rows(writes, writes);
    vm_system_sandbox::privileges::drop_all().and_then(|()| vm_system_sandbox::seccomp::install(&rows))?;
    send(channel, &FromBroker::Ready)?;
    loop {
        let call = receive_call(channel)?;
        match behaviour {
            "writes in a call" => return write_for_ever(),
            "writes after a call" => {
                let reply = Ok(BrokerReply::Database(DatabaseReply::Done));
                send(channel, &FromBroker::Reply { call, reply })?;
                // The supervisor counts once after the reply.
                receive_call(channel).ok();
                return write_for_ever();
            }
            "never answers" => return wait_for_the_end(channel),
            "exits in a call" => process::exit_now(3),
            "sends garbage" => channel.write_all(&[4, 0, 0, 0, 9, 9, 9, 9])?,
            "announces too much" => channel.write_all(&u32::MAX.to_le_bytes())?,
            "announces and waits" => channel.write_all(&[0, 0, 0, 4, 1])?,
            "answers another call" => {
                send(
                    channel,
                    &FromBroker::Reply { call: call + 1, reply: Ok(BrokerReply::Fs(FsReply::Bool(true))) },
                )?;
            }
            "answers another kind" => {
                send(
                    channel,
                    &FromBroker::Reply { call, reply: Ok(BrokerReply::Fs(FsReply::Entries(Vec::new()))) },
                )?;
            }
            "answers ready" => send(channel, &FromBroker::Ready)?,
            _ => send(channel, &FromBroker::Reply { call, reply: Ok(BrokerReply::Fs(FsReply::Bool(true))) })?,
        }
    }
}

/// Files of 1 MiB, one after the other.
fn write_for_ever() -> std::io::Result<()> {
    let bytes = vec![1; 1 << 20];
    for number in 0_u64.. {
        let mut file = File::create(number.to_string())?;
        file.write_all(&bytes)?;
    }
    Ok(())
}

fn send(channel: &mut File, message: &FromBroker) -> std::io::Result<()> {
    let bytes = codec::encode(message, HOST_MESSAGE_BYTES).map_err(std::io::Error::other)?;
    channel.write_all(&(bytes.len() as u32).to_le_bytes())?;
    channel.write_all(&bytes)
}

fn receive_call(channel: &mut File) -> std::io::Result<u64> {
    let mut len = [0; 4];
    channel.read_exact(&mut len)?;
    let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
    channel.read_exact(&mut bytes)?;
    match codec::decode(&bytes).map_err(std::io::Error::other)? {
        ToBroker::Call { call, .. } => Ok(call),
        ToBroker::ExecutionEnded | ToBroker::Shutdown => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads and sends nothing until the supervisor has closed the channel.
fn wait_for_the_end(channel: &mut File) -> std::io::Result<()> {
    std::io::copy(channel, &mut std::io::sink()).map(drop)
}
