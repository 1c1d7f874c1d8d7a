//! Who holds shares: an owner, or a client of which only the origin is known.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use vm_system_record::Owner;

/// Who holds something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Clients before it is known who they are; together they have one share.
    Unidentified(Origin),
    Owner(Owner),
    Administrator(Owner),
}

/// All that is known of an unidentified client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    Unknown,
    /// A local user, who may have no rights here.
    User(u32),
    /// A client on another machine, or the network of a client with an IPv6 address.
    Address(IpAddr),
}

impl Origin {
    /// The origin of a connection from an address. One machine can have all IPv6 addresses of its network (RFC 4291, section 2.5.1).
    pub fn of_address(address: IpAddr) -> Self {
        const NETWORK: u128 = !0 << 64;
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl Holder {
    /// A client of which nothing is known.
    pub const UNKNOWN: Self = Self::Unidentified(Origin::Unknown);

    /// An owner, with or without the rights of an administrator.
    pub fn new(owner: Owner, admin: bool) -> Self {
        if admin { Self::Administrator(owner) } else { Self::Owner(owner) }
    }

    pub(super) const fn is_unidentified(&self) -> bool {
        matches!(self, Self::Unidentified(_))
    }

    /// Whether both have one share together.
    pub(super) fn shares_with(&self, other: &Self) -> bool {
        self == other || (self.is_unidentified() && other.is_unidentified())
    }

    /// The owner, once it is known.
    pub const fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Unidentified(_) => None,
            Self::Owner(owner) | Self::Administrator(owner) => Some(owner),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unidentified(_) => f.write_str("all clients that are not identified yet"),
            Self::Owner(owner) | Self::Administrator(owner) => owner.fmt(f),
        }
    }
}
