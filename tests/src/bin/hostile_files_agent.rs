//! A files agent that misbehaves in the way that the name of the folder says which it is to open; in a folder `honest` every file has
//! the content `fake`. Started by the supervisor like the real one, with its channel as 3.

use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;
use vm_system_protocol::codec;
use vm_system_protocol::files_agent::{FromFilesAgent, ReadTarget, ToFilesAgent};
use vm_system_protocol::limits::{FILES_AGENT_ORDER_BYTES, FILES_AGENT_REPLY_BYTES};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::process;
use vm_system_sandbox::socket::{self, Wait};

fn main() -> ExitCode {
    // Also the spawn helper, which starts its own program as the agent.
    if let Some(code) = vm_system_spawn::helper::dispatch(std::env::args_os(), |_| Vec::new()) {
        return code;
    }
    let Ok(channel) = process::inherited(3) else { return ExitCode::FAILURE };
    match serve(&channel) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(channel: &OwnedFd) -> std::io::Result<()> {
    send(channel, &FromFilesAgent::Ready)?;
    let mut behaviour = String::new();
    loop {
        let mut buffer = vec![0; FILES_AGENT_ORDER_BYTES];
        let packet = socket::receive(channel, &mut buffer, Wait::Yes)?;
        if packet.len == 0 {
            return Ok(());
        }
        let order = codec::decode(&buffer[..packet.len]).map_err(std::io::Error::other)?;
        if let ToFilesAgent::Open { path, .. } = &order {
            let path = String::from_utf8_lossy(path);
            behaviour = path.rsplit('/').next().map(str::to_owned).unwrap_or_default();
        }
        if behaviour != "honest" {
            misbehave(channel, &behaviour, &order)?;
            continue;
        }
        match order {
            ToFilesAgent::Open { call, .. } => send(channel, &opened(call))?,
            ToFilesAgent::Read { call, .. } => {
                send(channel, &FromFilesAgent::Read { call, target: ReadTarget::File(b"fake".to_vec()) })?;
            }
            ToFilesAgent::Start { call, .. } => {
                send(channel, &FromFilesAgent::Failed { call, errno: libc::EIO })?;
            }
            ToFilesAgent::Ping { call } => send(channel, &FromFilesAgent::Pong { call })?,
            ToFilesAgent::Kill { .. } | ToFilesAgent::Close { .. } => {}
        }
    }
}

fn opened(call: u64) -> FromFilesAgent {
    FromFilesAgent::Opened { call, device: 1, inode: 1, handle: None }
}

fn misbehave(channel: &OwnedFd, behaviour: &str, order: &ToFilesAgent) -> std::io::Result<()> {
    let call = match order {
        ToFilesAgent::Open { call, .. } => *call,
        ToFilesAgent::Read { call, .. } => return misread(channel, behaviour, *call),
        _ => return Ok(()),
    };
    match behaviour {
        "exits" => process::exit_now(3),
        "replies to no call" => send(channel, &opened(call + 1)),
        "replies with another kind" => send(channel, &FromFilesAgent::Pong { call }),
        "greets twice" => send(channel, &FromFilesAgent::Ready),
        "sends garbage" => socket::send(channel, &[&[9; 40]], &[], Wait::Yes),
        "sends half a message" => socket::send(channel, &[&[2, 1]], &[], Wait::Yes),
        "sends too much" => socket::send(channel, &[&vec![0; 2 * FILES_AGENT_REPLY_BYTES]], &[], Wait::Yes),
        "sends a descriptor" => send_with(channel, &opened(call), channel),
        "sends a process" => send_with(channel, &opened(call), &PidFd::open(std::process::id())?.into()),
        "ends an unknown process" => send(channel, &FromFilesAgent::Ended { process: call, wait_status: 9 }),
        "starts an unknown process" => send(channel, &FromFilesAgent::Started { call: call + 7 }),
        "never replies" => Ok(()),
        _ => send(channel, &opened(call)),
    }
}

fn misread(channel: &OwnedFd, behaviour: &str, call: u64) -> std::io::Result<()> {
    match behaviour {
        "sends empty pieces" => send(channel, &FromFilesAgent::Piece { call, bytes: Vec::new() }),
        "sends more than the cap" => loop {
            send(channel, &FromFilesAgent::Piece { call, bytes: vec![b'x'; 60_000] })?;
        },
        "sends a larger file" => {
            send(channel, &FromFilesAgent::Read { call, target: ReadTarget::File(vec![b'x'; 60_000]) })
        }
        _ => send(channel, &opened(call)),
    }
}

fn send(channel: &OwnedFd, message: &FromFilesAgent) -> std::io::Result<()> {
    let bytes = codec::encode(message, FILES_AGENT_REPLY_BYTES).map_err(std::io::Error::other)?;
    socket::send(channel, &[&bytes], &[], Wait::Yes)
}

fn send_with(channel: &OwnedFd, message: &FromFilesAgent, descriptor: &OwnedFd) -> std::io::Result<()> {
    let bytes = codec::encode(message, FILES_AGENT_REPLY_BYTES).map_err(std::io::Error::other)?;
    socket::send(channel, &[&bytes], &[descriptor.as_fd()], Wait::Yes)
}
