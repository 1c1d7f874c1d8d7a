//! Since which protocol version a message exists. A supervisor adopts keepers and workers of the build before it: what they do not
//! know is never sent to them, and what they send is decoded, because enums only grow at their end and structs never change.
//!
//! All messages of [`FIRST`] are known to every build. A new variant gets the next version in [`Since::first_version`] of the message that has
//! it, and [`PROTOCOL`](crate::hello::PROTOCOL) is raised to that. Rows of a version that no build speaks any more are removed.
//!
//! Zygotes and workers of durable programs are not adopted: what only they receive needs no rows.

use crate::hello::FIRST;
use crate::keeper::ToKeeper;
use crate::worker::ToWorker;

/// A message with its parts.
pub trait Since {
    /// The version since which a peer can decode this value.
    fn first_version(&self) -> u32 {
        FIRST
    }
}

/// A peer cannot decode a message: it was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message exists since protocol version {since}, and the other process speaks version {spoken}")]
pub struct NotSpoken {
    pub since: u32,
    /// By the peer.
    pub spoken: u32,
}

/// Refuses a message that a peer of this version cannot decode.
pub fn check(message: &impl Since, spoken: u32) -> Result<(), NotSpoken> {
    let since = message.first_version();
    if since <= spoken { Ok(()) } else { Err(NotSpoken { since, spoken }) }
}

impl Since for ToKeeper {}

impl Since for ToWorker {
    #[cfg(feature = "next-protocol")]
    fn first_version(&self) -> u32 {
        match self {
            Self::Announce { .. } => crate::hello::PROTOCOL,
            _ => FIRST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NotSpoken, Since, check};
    use crate::hello::{FIRST, PROTOCOL, UnsupportedProtocol, spoken_by};
    use crate::worker::ToWorker;

    /// A message with a variant of a made-up version.
    enum MadeUp {
        Old,
        New,
    }

    impl Since for MadeUp {
        fn first_version(&self) -> u32 {
            match self {
                Self::Old => FIRST,
                Self::New => FIRST + 1,
            }
        }
    }

    #[test]
    fn a_peer_that_does_not_know_a_message_does_not_get_it() {
        let (first, next) = (FIRST, FIRST + 1);
        assert_eq!(check(&ToWorker::Shutdown, first), Ok(()));
        assert_eq!((check(&MadeUp::Old, first), check(&MadeUp::Old, next)), (Ok(()), Ok(())));
        assert_eq!(check(&MadeUp::New, next), Ok(()));
        assert_eq!(check(&MadeUp::New, first), Err(NotSpoken { since: next, spoken: first }));
    }

    #[test]
    fn a_build_speaks_its_version_and_the_one_before_if_there_was_one() {
        assert_eq!(spoken_by(FIRST), FIRST..=FIRST);
        assert_eq!(spoken_by(FIRST + 1), FIRST..=FIRST + 1);
        assert_eq!(spoken_by(FIRST + 4), FIRST + 3..=FIRST + 4);
    }

    #[test]
    fn other_versions_are_refused_by_name() {
        let version = |protocol| crate::hello::Hello { protocol, ..crate::hello::Hello::ours() }.supported();
        assert_eq!(version(PROTOCOL), Ok(PROTOCOL));
        let older = version(FIRST - 1).expect_err("too old");
        let newer = version(PROTOCOL + 1).expect_err("too new");
        assert_eq!((older.is_newer(), newer.is_newer()), (false, true));
        let spoken = match PROTOCOL {
            FIRST => FIRST.to_string(),
            _ => format!("{} and {PROTOCOL}", PROTOCOL - 1),
        };
        assert_eq!(
            UnsupportedProtocol(PROTOCOL + 1).to_string(),
            format!("it speaks protocol version {}, and this build speaks {spoken}", PROTOCOL + 1)
        );
    }
}
