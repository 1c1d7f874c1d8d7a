//! Which addresses a request may connect to. Every address is checked after its name was resolved, and the connection is made to the
//! address that was checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use vm_system_protocol::egress::AddressReach;

/// An IPv4 network and what it is for.
const V4: &[([u8; 4], u8, Kind)] = &[
    ([0, 0, 0, 0], 8, Kind::Never),
    ([10, 0, 0, 0], 8, Kind::Private),
    ([100, 64, 0, 0], 10, Kind::Private),
    ([127, 0, 0, 0], 8, Kind::Private),
    ([169, 254, 0, 0], 16, Kind::LinkLocal),
    ([172, 16, 0, 0], 12, Kind::Private),
    ([192, 0, 0, 0], 24, Kind::Reserved),
    ([192, 0, 2, 0], 24, Kind::Reserved),
    // Relays of 6to4.
    ([192, 88, 99, 0], 24, Kind::Reserved),
    ([192, 168, 0, 0], 16, Kind::Private),
    ([198, 18, 0, 0], 15, Kind::Reserved),
    ([198, 51, 100, 0], 24, Kind::Reserved),
    ([203, 0, 113, 0], 24, Kind::Reserved),
    ([224, 0, 0, 0], 4, Kind::Never),
    ([255, 255, 255, 255], 32, Kind::Never),
    ([240, 0, 0, 0], 4, Kind::Reserved),
];

/// Networks within `2000::/3`, the only public unicast addresses, that are not for servers: `2001::/23` has Teredo, `2002::/16` (6to4)
/// any IPv4 address.
const V6: &[([u16; 8], u8)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// Where clouds give the credentials of a machine to every process on it, apart from link-local addresses.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Public,
    /// Loopback, private and shared networks.
    Private,
    /// Link-local, and the metadata of clouds.
    LinkLocal,
    /// Documentation, benchmarks, translation: IPv4 addresses within IPv6 ones too.
    Reserved,
    /// Unspecified, broadcast and multicast.
    Never,
}

/// Why a request may not connect to this address; `None`: it may.
pub fn refusal(address: IpAddr, reach: AddressReach) -> Option<&'static str> {
    match (kind(address), reach) {
        (Kind::Public, _)
        | (Kind::Private, AddressReach::Private | AddressReach::Named)
        | (Kind::LinkLocal | Kind::Reserved, AddressReach::Named) => None,
        (Kind::Private, AddressReach::Public) => {
            Some("a private or loopback address, which needs \"private\": true in the capability")
        }
        (Kind::LinkLocal, _) => Some(
            "a link-local address or one of a cloud's metadata, reached only by a capability with \"private\": true that names the address",
        ),
        (Kind::Reserved, _) => Some(
            "a reserved address, reached only by a capability with \"private\": true that names the address",
        ),
        (Kind::Never, _) => {
            Some("an unspecified, broadcast or multicast address, which no capability reaches")
        }
    }
}

/// Whether a request to this host may end at a server of this machine or of its networks. A name may have any address by the time of the
/// connection.
pub fn may_be_near(host: &str, reach: AddressReach) -> bool {
    reach != AddressReach::Public && host.parse().map_or(true, |address| kind(address) != Kind::Public)
}

/// Whether this is a port of the daemon itself, over loopback.
pub fn is_own(address: SocketAddr, own_ports: &[u16]) -> bool {
    address.ip().to_canonical().is_loopback() && own_ports.contains(&address.port())
}

fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Kind {
    let bits = address.to_bits();
    let within = |net: [u8; 4], length: u8| {
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        bits & mask == u32::from_be_bytes(net)
    };
    V4.iter().find(|(net, length, _)| within(*net, *length)).map_or(Kind::Public, |(_, _, kind)| *kind)
}

fn kind_v6(address: Ipv6Addr) -> Kind {
    let segments = address.segments();
    let first = segments[0];
    if address == METADATA || first & 0xffc0 == 0xfe80 {
        return Kind::LinkLocal;
    }
    if address.is_unspecified() || address.is_multicast() {
        return Kind::Never;
    }
    if address.is_loopback() || first & 0xfe00 == 0xfc00 {
        return Kind::Private;
    }
    let bits = address.to_bits();
    let within = |net: &[u16; 8], length: u8| {
        let mask = u128::MAX << (128 - u32::from(length));
        bits & mask == Ipv6Addr::from(*net).to_bits()
    };
    if first & 0xe000 != 0x2000 || V6.iter().any(|(net, length)| within(net, *length)) {
        // IPv4 within IPv6 (::ffff:0:0/96, 64:ff9b::/96, …) is not judged by the inner address: it would be one more way to write each.
        return Kind::Reserved;
    }
    Kind::Public
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(address: &str, reach: AddressReach) -> bool {
        refusal(address.parse().expect("an address"), reach).is_none()
    }

    #[test]
    fn public_requests_reach_public_unicast_addresses_only() {
        for address in
            ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
        {
            assert!(allowed(address, AddressReach::Public), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.19.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::7f00:1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:808:808::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!allowed(address, AddressReach::Public), "{address}");
        }
    }

    #[test]
    fn private_requests_reach_no_link_local_address_and_no_metadata() {
        for address in ["127.0.0.1", "::1", "10.0.0.1", "192.168.0.1", "fd12::1", "100.64.0.1", "1.1.1.1"] {
            assert!(allowed(address, AddressReach::Private), "{address}");
        }
        for address in
            ["169.254.169.254", "fd00:ec2::254", "fe80::1", "0.0.0.0", "224.0.0.1", "::ffff:10.0.0.1"]
        {
            assert!(!allowed(address, AddressReach::Private), "{address}");
        }
    }

    #[test]
    fn named_addresses_are_reached_unless_they_are_no_servers() {
        for address in ["169.254.169.254", "fd00:ec2::254", "::ffff:10.0.0.1", "198.18.0.1"] {
            assert!(allowed(address, AddressReach::Named), "{address}");
        }
        for address in ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"] {
            assert!(!allowed(address, AddressReach::Named), "{address}");
        }
    }
}
