//! A client that follows an execution and does not read for a while.

use crate::driver::Driver;
use std::io;
use std::path::Path;
use vm_system_protocol::control::{ExecEvents, ExecGet};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::model::Event;
use vm_system_tests::fragile::{Fragile, Incoming};
use vm_system_tests::watch::Watch;

/// It has sent its request, and nothing was read.
pub(crate) struct LateFollower {
    execution: ExecutionId,
    client: Fragile,
    sent: io::Result<()>,
}

impl LateFollower {
    pub(crate) fn begin(socket: &Path, execution: ExecutionId) -> Self {
        let mut client = Fragile::new(socket);
        let sent = client.send(follow(execution, 0));
        Self { execution, client, sent }
    }

    /// Reads everything, over several connections if the daemon is killed, and compares it with what is stored; `false` if the record
    /// of the execution is not complete.
    pub(crate) fn read(mut self, driver: &mut Driver<'_>) -> bool {
        let mut events: Vec<Event> = Vec::new();
        let mut sent = std::mem::replace(&mut self.sent, Ok(()));
        let mut watch = Watch::begin();
        while sent.and_then(|()| self.read_once(&mut events)).is_err() {
            self.client.disconnect();
            watch.pause(|| format!("{} does not end", self.execution));
            let last = events.last().map_or(0, |event| event.seq);
            sent = self.client.send(follow(self.execution, last));
        }
        let execution = self.execution.to_string();
        let is_degraded = match driver.patiently(&ExecGet { execution: execution.clone() }) {
            Ok(record) => record.degraded,
            other => panic!("{other:?}"),
        };
        if is_degraded {
            return false;
        }
        let all = ExecEvents { execution, after_seq: 0, limit: 0, follow: false };
        let stored = match driver.patiently(&all) {
            Ok(stored) => stored,
            other => panic!("{other:?}"),
        };
        assert_eq!(events, stored, "every event once");
        true
    }

    /// Over one connection, to the reply.
    fn read_once(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        loop {
            match self.client.receive()? {
                Incoming::Events(more) => events.extend(more),
                Incoming::Reply(Ok(_)) => return Ok(()),
                Incoming::Reply(Err(error)) => return Err(io::Error::other(format!("{error:?}"))),
            }
        }
    }
}

fn follow(execution: ExecutionId, after_seq: u64) -> ExecEvents {
    ExecEvents { execution: execution.to_string(), after_seq, limit: 0, follow: true }
}
