//! Connection limits: in total, as the file descriptor limit allows, and per address.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hotline_persistence::limits::{KeyedPermit, KeyedPermits, PermitLimits};
use ipnet::IpNet;
use nix::sys::resource::{Resource, getrlimit};

use crate::web::connections::origin::Address;

/// File descriptors for everything but connections: the journal (its segment, spares, a reserve, its folder, and one to
/// read back), some 20 connections to PostgreSQL, the serving and sending threads, and a command-line call.
const DESCRIPTORS_RESERVED: u64 = 192;

/// One in this many of the remaining descriptors is reserved for what requests need besides their connection: files
/// being sent or received, and calls of providers.
const FILES_DIVISOR: u64 = 5;

/// Minimum number of connections, however low the descriptor limit is: with fewer, nothing could be served at all.
const CONNECTIONS_MIN: u64 = 16;

/// Number of equal parts of a cluster member's connections: from clients, from other processes, and to other processes.
/// A client's request may need a connection between processes, so connections from clients must not use those up.
pub(super) const MEMBER_PARTS: usize = 3;

/// Maximum connections of one serving thread, when all connections are divided into `parts` ([`MEMBER_PARTS`]): at most
/// `limit`, and so few that all threads together leave enough descriptors for everything else.
pub(super) fn worker_connections_max(limit: usize, workers: usize, parts: usize) -> usize {
    // A limit that cannot be read counts as unlimited.
    let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let share = connections_max(descriptors) / (workers * parts).max(1) as u64;
    limit.min(usize::try_from(share.max(1)).unwrap_or(usize::MAX))
}

fn connections_max(descriptors: u64) -> u64 {
    let remaining = descriptors.saturating_sub(DESCRIPTORS_RESERVED);
    (remaining - remaining / FILES_DIVISOR).max(CONNECTIONS_MIN)
}

/// Limits the open connections of each address. Cheap to clone.
#[derive(Clone)]
pub(super) struct ConnectionLimits {
    /// `None`: no limit.
    permits: Option<KeyedPermits<Address>>,
    /// Proxies, which open connections on behalf of many clients and are not counted.
    exempt: Arc<[IpNet]>,
}

/// A connection, counted unless its address is exempt.
pub(super) struct CountedConnection {
    #[allow(dead_code, reason = "held until the connection closes")]
    permit: Option<KeyedPermit<Address>>,
}

impl ConnectionLimits {
    /// Limits with this maximum per address; 0: no limit.
    pub(super) fn new(per_address: u32, exempt: Vec<IpNet>) -> Self {
        let per_address = usize::try_from(per_address).unwrap_or(usize::MAX);
        let permits = (per_address > 0).then(|| KeyedPermits::new(PermitLimits::of_key(per_address)));
        Self { permits, exempt: exempt.into() }
    }

    /// Counts a connection from this peer; `None` when its address has reached the limit.
    pub(super) fn admit(&self, peer: Option<SocketAddr>) -> Option<CountedConnection> {
        let address = peer.map(|peer| peer.ip().to_canonical());
        // The forwarding header is not known yet, so a proxy's connections cannot be attributed to clients.
        let is_exempt = |address: &IpAddr| self.exempt.iter().any(|range| range.contains(address));
        let address = address.filter(|address| !is_exempt(address)).map(Address::of);
        let permit = match self.permits.as_ref().zip(address) {
            Some((permits, address)) => Some(permits.try_acquire(address)?),
            None => None,
        };
        Some(CountedConnection { permit })
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    fn peer(address: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(address.parse().expect("an address"), 1))
    }

    #[test]
    fn the_descriptor_limit_bounds_all_connections() {
        assert_eq!(connections_max(20_480), 16_231);
        assert_eq!(connections_max(1024), 666);
        assert_eq!(connections_max(512), 256);
        assert_eq!((connections_max(64), connections_max(0)), (16, 16));
        for descriptors in 512..2000 {
            let remaining = descriptors - connections_max(descriptors);
            assert!(remaining >= DESCRIPTORS_RESERVED, "{remaining} of {descriptors} remain");
        }
    }

    #[test]
    fn connections_are_limited_by_address_until_they_close() {
        let limits = ConnectionLimits::new(2, vec!["10.0.0.0/8".parse().expect("a range")]);
        let first = limits.admit(peer("1.2.3.4"));
        let second = limits.admit(peer("::ffff:1.2.3.4"));
        assert!(first.is_some() && second.is_some());
        assert!(limits.admit(peer("1.2.3.4")).is_none(), "a mapped IPv6 address is the same address");
        let other_address = limits.admit(peer("1.2.3.5"));
        assert!(other_address.is_some(), "the limit is per address");
        let of_proxy: Vec<_> = (0..5).map(|_| limits.admit(peer("10.1.2.3"))).collect();
        assert!(of_proxy.iter().all(Option::is_some), "proxies have no limit");
        drop(first);
        assert!(limits.admit(peer("1.2.3.4")).is_some(), "one was closed");
        drop((second, other_address, of_proxy));
        assert_eq!(
            limits.permits.as_ref().map(KeyedPermits::key_count),
            Some(0),
            "addresses without connections use no memory"
        );
        let network: Vec<_> = (1..4).map(|host| limits.admit(peer(&format!("2001:db8::{host}")))).collect();
        assert!(network[1].is_some() && network[2].is_none(), "a /64 network counts as one address");
        let unlimited = ConnectionLimits::new(0, Vec::new());
        let many: Vec<_> = (0..100).map(|_| unlimited.admit(peer("1.2.3.4"))).collect();
        assert!(many.iter().all(Option::is_some) && unlimited.permits.is_none());
    }
}
