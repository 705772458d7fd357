//! The network zone of an address: the public internet, a private network, or this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The network zone of an address, ordered: a server may refer clients to its own zone and to more public ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NetworkZone {
    Public,
    Private,
    Loopback,
}

impl NetworkZone {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) if v4.is_loopback() => Self::Loopback,
            IpAddr::V4(v4) => {
                let [first, second, ..] = v4.octets();
                // 100.64.0.0/10 is shared by the customers of a carrier; 0.0.0.0/8 is this network, often this machine.
                let shared = first == 100 && (64..128).contains(&second);
                let inside = v4.is_private() || v4.is_link_local() || v4.is_multicast();
                // IETF protocol assignments, benchmarking, and future use.
                let reserved = matches!(v4.octets(), [192, 0, 0, _] | [198, 18 | 19, ..] | [240..=255, ..]);
                if inside || shared || reserved || first == 0 { Self::Private } else { Self::Public }
            }
            IpAddr::V6(v6) if v6 == Ipv6Addr::LOCALHOST => Self::Loopback,
            IpAddr::V6(v6) => {
                let site_local = matches!(v6.segments(), [0xfec0..=0xfeff, ..]);
                let inside = v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast() || site_local;
                let itself = if inside { Self::Private } else { Self::Public };
                embedded(v6).map_or(itself, |v4| Self::of(v4.into()))
            }
        }
    }

    /// The network zone that a host name implies without a DNS lookup.
    pub(crate) fn of_name(name: &str) -> Self {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if name == "localhost" || name.ends_with(".localhost") { Self::Loopback } else { Self::Public }
    }
}

/// The IPv4 address embedded in an IPv6 address: mapped, compatible, translated (RFC 6052) or tunnelled (RFC 3056).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(pair(high, low))
        }
        _ => None,
    }
}
