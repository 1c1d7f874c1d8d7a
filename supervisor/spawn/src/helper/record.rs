//! Records between supervisor and spawn helper: 16 bytes, little-endian: kind (4), value (4), number of the agent (8).

/// Length of a record.
pub(super) const RECORD_BYTES: usize = 16;

/// A record. `agent` is the number that the supervisor gave the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HelperRecord {
    /// From the supervisor, with the agent's end of its channel.
    StartAgent { agent: u64, uid: u32 },
    /// From the supervisor: make a user namespace for it. `agent` is a number of the same sequence.
    MakeNamespace { agent: u64 },
    /// From the supervisor. No effect on an agent that has ended.
    Kill { agent: u64 },
    /// The first record of the helper, with its pidfd: it has given up what it does not need. Once more from each process that takes the
    /// place of a killed one: what was ordered before and has no reply is void.
    Ready,
    /// The agent was started. The record carries the agent's pidfd.
    Started { agent: u64 },
    /// The namespace was made. The record carries its descriptor.
    Made { agent: u64 },
    /// The agent was not started, or the namespace not made; as the first record, with number 0: the helper cannot work.
    Refused { agent: u64, errno: i32 },
    /// The agent was reaped; its raw wait status.
    Ended { agent: u64, status: i32 },
}

impl HelperRecord {
    pub(super) fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let (kind, value, agent) = match self {
            Self::StartAgent { agent, uid } => (1, uid, agent),
            Self::Kill { agent } => (2, 0, agent),
            Self::Ready => (3, 0, 0),
            Self::Started { agent } => (4, 0, agent),
            Self::Refused { agent, errno } => (5, errno.cast_unsigned(), agent),
            Self::Ended { agent, status } => (6, status.cast_unsigned(), agent),
            Self::MakeNamespace { agent } => (7, 0, agent),
            Self::Made { agent } => (8, 0, agent),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[..4].copy_from_slice(&u32::to_le_bytes(kind));
        bytes[4..8].copy_from_slice(&value.to_le_bytes());
        bytes[8..].copy_from_slice(&agent.to_le_bytes());
        bytes
    }

    /// `None`: not a record.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; RECORD_BYTES] = bytes.try_into().ok()?;
        let (kind, rest) = bytes.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_first_chunk::<4>()?;
        let (kind, value) = (u32::from_le_bytes(*kind), u32::from_le_bytes(*value));
        let agent = u64::from_le_bytes(rest.try_into().ok()?);
        Some(match kind {
            1 => Self::StartAgent { agent, uid: value },
            2 => Self::Kill { agent },
            3 => Self::Ready,
            4 => Self::Started { agent },
            5 => Self::Refused { agent, errno: value.cast_signed() },
            6 => Self::Ended { agent, status: value.cast_signed() },
            7 => Self::MakeNamespace { agent },
            8 => Self::Made { agent },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_nothing_else_is_one() {
        let agent = u64::MAX - 1;
        for record in [
            HelperRecord::StartAgent { agent, uid: u32::MAX },
            HelperRecord::Kill { agent },
            HelperRecord::Ready,
            HelperRecord::Started { agent },
            HelperRecord::Refused { agent, errno: 13 },
            HelperRecord::Ended { agent, status: -1 },
            HelperRecord::MakeNamespace { agent },
            HelperRecord::Made { agent },
        ] {
            assert_eq!(HelperRecord::from_bytes(&record.to_bytes()), Some(record));
        }
        for wrong in [&[0; RECORD_BYTES][..], &[9; RECORD_BYTES], &[1; 15], &[1; 17], &[]] {
            assert_eq!(HelperRecord::from_bytes(wrong), None);
        }
    }
}
