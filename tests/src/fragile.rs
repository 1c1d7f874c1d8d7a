//! A client of a daemon that may be killed at any moment: failures of the connection are results.

use crate::PATIENCE;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::control::{
    CONTROL_PROTOCOL, ClientFrame, ClientHello, Op, OpError, Reply, ServerFrame, ServerHello, Verb,
};
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;
use vm_system_protocol::model::Event;

/// A frame of the daemon.
#[derive(Debug)]
pub enum Incoming {
    Events(Vec<Event>),
    Reply(Result<Reply, OpError>),
}

/// Connects again for the next request when the connection has failed.
#[derive(Debug)]
pub struct Fragile {
    socket: PathBuf,
    stream: Option<UnixStream>,
    next: u32,
}

impl Fragile {
    /// The connection is opened by the first request.
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), stream: None, next: 1 }
    }

    /// One request and its response. `sent` is called once the request is written.
    pub fn op<V: Verb>(&mut self, verb: V, sent: impl FnOnce()) -> io::Result<Result<V::Reply, OpError>> {
        let result = self.any(verb.into(), sent)?;
        Ok(result.map(|reply| V::reply_from(reply).expect("the reply of the verb")))
    }

    /// As [`Self::op`], of any verb.
    pub fn any(&mut self, op: Op, sent: impl FnOnce()) -> io::Result<Result<Reply, OpError>> {
        let result = self.try_op(op, sent);
        if result.is_err() {
            self.stream = None;
        }
        result
    }

    fn try_op(&mut self, op: Op, sent: impl FnOnce()) -> io::Result<Result<Reply, OpError>> {
        self.send(op)?;
        sent();
        loop {
            if let Incoming::Reply(result) = self.receive()? {
                return Ok(result);
            }
        }
    }

    /// Sends a request, of which [`Self::receive`] reads the events and the reply.
    pub fn send(&mut self, op: impl Into<Op>) -> io::Result<()> {
        let op = op.into();
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(connect(&self.socket)?),
        };
        let id = self.next;
        self.next += 1;
        let frame = ClientFrame::Request { id, idempotency_key: None, cancel_on_disconnect: false, op };
        write(stream, &encode(&frame, CONTROL_FRAME_BYTES).map_err(io::Error::other)?)
    }

    /// The next frame that arrives for the last request.
    pub fn receive(&mut self) -> io::Result<Incoming> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        match decode(&read(stream)?).map_err(io::Error::other)? {
            ServerFrame::Reply { id, result } if id + 1 == self.next => {
                Ok(Incoming::Reply(result.map_err(|error| *error)))
            }
            ServerFrame::Events { events, .. } => Ok(Incoming::Events(events)),
            other @ ServerFrame::Reply { .. } => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// The next request is made over a new connection.
    pub fn disconnect(&mut self) {
        self.stream = None;
    }
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let hello = ClientHello { protocol: CONTROL_PROTOCOL, version: "test".to_owned() };
    write(&mut stream, &encode(&hello, CONTROL_FRAME_BYTES).map_err(io::Error::other)?)?;
    let hello: ServerHello = decode(&read(&mut stream)?).map_err(io::Error::other)?;
    match hello.refusal {
        None => Ok(stream),
        Some(why) => Err(io::Error::other(format!("{why:?}"))),
    }
}

fn write(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&len.to_le_bytes(), bytes].concat())
}

fn read(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
