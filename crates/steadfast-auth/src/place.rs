//! How far inside an address is: out on the internet, in a private network, or on this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far inside something is. The order matters: a server may point as far inside as it is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Outside,
    PrivateNetwork,
    ThisMachine,
}

impl Place {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) if v4.is_loopback() => Self::ThisMachine,
            IpAddr::V4(v4) => {
                let [first, second, ..] = v4.octets();
                // 100.64.0.0/10 is shared by the customers of a carrier; 0.0.0.0/8 is this network, often this machine.
                let shared = first == 100 && (64..128).contains(&second);
                let inside = v4.is_private() || v4.is_link_local() || v4.is_multicast();
                // For protocols, for measurements, and for nothing yet.
                let reserved = matches!(v4.octets(), [192, 0, 0, _] | [198, 18 | 19, ..] | [240..=255, ..]);
                if inside || shared || reserved || first == 0 { Self::PrivateNetwork } else { Self::Outside }
            }
            IpAddr::V6(v6) if v6 == Ipv6Addr::LOCALHOST => Self::ThisMachine,
            IpAddr::V6(v6) => {
                let site_local = matches!(v6.segments(), [0xfec0..=0xfeff, ..]);
                let inside = v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast() || site_local;
                let itself = if inside { Self::PrivateNetwork } else { Self::Outside };
                embedded(v6).map_or(itself, |v4| Self::of(v4.into()))
            }
        }
    }

    /// What a name says by itself, without being looked up.
    pub(crate) fn of_name(name: &str) -> Self {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if name == "localhost" || name.ends_with(".localhost") { Self::ThisMachine } else { Self::Outside }
    }
}

/// The older address that one of IPv6 stands for: mapped, compatible, translated (RFC 6052) or tunnelled (RFC 3056).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(pair(high, low))
        }
        _ => None,
    }
}
