//! The first message of every channel. Its encoding never changes, so that two processes of any versions can compare their
//! versions before they exchange other messages.

/// Version of the worker, keeper, zygote and broker protocols.
pub const PROTOCOL: u32 = 7;

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
