//! Which IP addresses [`super::Outbound`] may connect to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(first: u16, second: u16, third: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0), bits)
}

/// IPv4 networks that are not public. <https://www.iana.org/assignments/iana-ipv4-special-registry>
const NOT_PUBLIC_V4: [Ipv4Net; 17] = [
    v4(0, 0, 0, 0, 8),       // this network, and unspecified
    v4(10, 0, 0, 0, 8),      // private
    v4(100, 64, 0, 0, 10),   // shared by customers of a provider (CGNAT)
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link-local, with the metadata services of clouds
    v4(172, 16, 0, 0, 12),   // private
    v4(192, 0, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 31, 196, 0, 24), // AS112
    v4(192, 52, 193, 0, 24), // AMT
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(192, 168, 0, 0, 16),  // private
    v4(192, 175, 48, 0, 24), // AS112
    v4(198, 18, 0, 0, 15),   // benchmarks
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 3),     // multicast, reserved, broadcast
];

/// The global unicast range of IPv6. Loopback, unspecified, unique local, link-local, multicast, and addresses with an
/// embedded IPv4 address (mapped, compatible, NAT64) are outside of it.
const PUBLIC_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// Parts of [`PUBLIC_V6`] that are not public. <https://www.iana.org/assignments/iana-ipv6-special-registry>
const NOT_PUBLIC_V6: [Ipv6Net; 5] = [
    v6(0x2001, 0, 0, 23), // protocol assignments: Teredo, which contains an IPv4 address, benchmarks, ORCHID
    v6(0x2001, 0xDB8, 0, 32), // documentation
    v6(0x2002, 0, 0, 16), // 6to4, which contains an IPv4 address
    v6(0x2620, 0x4F, 0x8000, 48), // AS112
    v6(0x3FFF, 0, 0, 20), // documentation
];

/// Which IP addresses may be reached: public ones, and those the operator has allowed.
#[derive(Debug)]
pub struct NetworkPolicy {
    /// The networks that the operator has allowed.
    allowed: Vec<IpNet>,
    /// Whether plain `http` is limited to this machine.
    is_strict: bool,
}

impl NetworkPolicy {
    /// Allows these networks in addition to public ones.
    pub fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed, is_strict: false }
    }

    /// Allows these networks in addition to public ones, with TLS required except on this machine.
    pub fn strict(allowed: Vec<IpNet>) -> Self {
        Self { allowed, is_strict: true }
    }

    /// Whether the operator has allowed any network.
    pub fn has_allowed_networks(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// Whether an address may be reached. Without TLS, it must be in an allowed network, and with a strict policy also
    /// belong to this machine.
    pub fn permits(&self, address: IpAddr, is_secure: bool) -> bool {
        if is_secure {
            return self.is_allowed(address) || is_public(address);
        }
        let may_use_http = !self.is_strict || address.to_canonical().is_loopback();
        may_use_http && self.is_allowed(address)
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        // An IPv4-mapped address counts as the IPv4 address it contains.
        let address = address.to_canonical();
        self.allowed.iter().any(|network| network.contains(&address))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            PUBLIC_V6.contains(&address) && !NOT_PUBLIC_V6.iter().any(|network| network.contains(&address))
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn special_purpose_networks_are_not_public() {
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.170",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::10.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a00:1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address(special)), "{special}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.167.255.255",
            "192.169.0.1",
            "223.255.255.255",
            "157.240.0.35",
            "2606:4700:4700::1111",
            "2a03:2880:f12f:83:face:b00c:0:25de",
            "2001:4860:4860::8888",
        ] {
            assert!(is_public(address(public)), "{public}");
        }
    }

    #[test]
    fn a_strict_policy_permits_plain_http_only_to_this_machine() {
        let allowed = ["10.1.0.0/16", "127.0.0.0/8", "::1/128"].map(|network| network.parse().expect("a range"));
        let policy = NetworkPolicy::strict(allowed.into());
        for (text, over_https, over_http) in [
            ("127.0.0.1", true, true),
            ("::ffff:127.0.0.1", true, true),
            ("::1", true, true),
            ("10.1.2.3", true, false),
            ("10.2.0.1", false, false),
            ("8.8.8.8", true, false),
        ] {
            let permitted = (policy.permits(address(text), true), policy.permits(address(text), false));
            assert_eq!(permitted, (over_https, over_http), "{text}");
        }
        assert!(!NetworkPolicy::strict(Vec::new()).permits(address("127.0.0.1"), false));
    }

    #[test]
    fn allowed_networks_are_permitted_even_over_plain_http() {
        let policy =
            NetworkPolicy::new(vec!["10.1.0.0/16".parse().expect("a range"), "fd00::/8".parse().expect("a range")]);
        for (text, over_https, over_http) in [
            ("10.1.2.3", true, true),
            ("::ffff:10.1.2.3", true, true),
            ("fd12::1", true, true),
            ("10.2.0.1", false, false),
            ("127.0.0.1", false, false),
            ("8.8.8.8", true, false),
        ] {
            assert_eq!(
                (policy.permits(address(text), true), policy.permits(address(text), false)),
                (over_https, over_http),
                "{text}"
            );
        }
    }
}
