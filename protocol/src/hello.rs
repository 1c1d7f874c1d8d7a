//! The first message of every channel. Its encoding never changes, so that two processes of any versions can compare their
//! versions before they exchange other messages.

use std::ops::RangeInclusive;

/// The version of the first release.
pub const FIRST: u32 = 1;

/// Version of the worker, keeper and zygote protocols. It is raised by one with the first new variant after a release.
pub const PROTOCOL: u32 = RELEASED + cfg!(feature = "next-protocol") as u32;
/// The version of the product; tests have a build of the next one, too.
const RELEASED: u32 = FIRST;

/// The versions that this build speaks. What a peer of the build before does not know is not sent to it ([`crate::since`]).
pub const SUPPORTED: RangeInclusive<u32> = spoken_by(PROTOCOL);

/// The versions that a build of version `own` speaks: a supervisor adopts the jails of the build before it.
pub(crate) const fn spoken_by(own: u32) -> RangeInclusive<u32> {
    let before = if own > FIRST { own - 1 } else { FIRST };
    before..=own
}

/// A peer speaks a version outside of [`SUPPORTED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it speaks protocol version {0}, and this build speaks {spoken}", spoken = spoken_versions())]
pub struct UnsupportedProtocol(pub u32);

fn spoken_versions() -> String {
    let (first, last) = (SUPPORTED.start(), SUPPORTED.end());
    if first == last { last.to_string() } else { format!("{first} and {last}") }
}

impl UnsupportedProtocol {
    /// Whether the peer's build is newer than this one.
    pub fn is_newer(self) -> bool {
        self.0 > *SUPPORTED.end()
    }
}

/// `Hello` is one packet of 24 bytes: the four bytes `VMS1`, the version (u32 little endian), the build id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The sender's protocol version.
    pub protocol: u32,
    /// Identifies the sender's build; two processes of one binary have the same id.
    pub build_id: [u8; 16],
}

/// The first bytes of a hello packet.
pub const MAGIC: [u8; 4] = *b"VMS1";

/// The packet is not a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the first packet is not a hello")]
pub struct NotHello;

impl Hello {
    /// The hello of this build.
    pub const fn ours() -> Self {
        Self { protocol: PROTOCOL, build_id: build_id() }
    }

    /// The version, if this build speaks it.
    pub fn supported(self) -> Result<u32, UnsupportedProtocol> {
        if SUPPORTED.contains(&self.protocol) {
            Ok(self.protocol)
        } else {
            Err(UnsupportedProtocol(self.protocol))
        }
    }

    /// The packet's bytes.
    pub fn to_packet(self) -> [u8; 24] {
        let mut packet = [0; 24];
        packet[..4].copy_from_slice(&MAGIC);
        packet[4..8].copy_from_slice(&self.protocol.to_le_bytes());
        packet[8..].copy_from_slice(&self.build_id);
        packet
    }

    /// Reads a packet of exactly 24 bytes that begins with the magic.
    pub fn from_packet(packet: &[u8]) -> Result<Self, NotHello> {
        let packet: &[u8; 24] = packet.try_into().map_err(|_| NotHello)?;
        if packet[..4] != MAGIC {
            return Err(NotHello);
        }
        let mut protocol = [0; 4];
        protocol.copy_from_slice(&packet[4..8]);
        let mut build_id = [0; 16];
        build_id.copy_from_slice(&packet[8..]);
        Ok(Self { protocol: u32::from_le_bytes(protocol), build_id })
    }
}

/// The version text, padded: all processes of an installation run the same binary.
const fn build_id() -> [u8; 16] {
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let mut id = [0; 16];
    let mut at = 0;
    while at < version.len() && at < 16 {
        id[at] = version[at];
        at += 1;
    }
    id
}
