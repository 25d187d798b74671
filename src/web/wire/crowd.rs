//! Connection limits: in total, from the file descriptor limit, and per address.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use dashmap::DashMap;
use ipnet::IpNet;
use nix::sys::resource::{Resource, getrlimit};

use crate::web::origin::Address;

/// File descriptors that are not used by connections: the journal's (its segment, spares, a reserve, its folder, one
/// for reading back), some 20 connections to PostgreSQL, those of the serving and sending threads, and of a
/// command-line call.
const DESCRIPTORS_HELD: u64 = 192;

/// One in this many of the remaining descriptors is reserved for what connections need besides themselves: files being
/// sent or received, and calls of providers.
const BESIDE: u64 = 5;

/// Minimum number of connections, however low the descriptor limit is: fewer could not be served at all.
const CONNECTIONS_MIN: u64 = 16;

/// What the connections of a cluster member are shared between, in equal parts: clients, the other processes' requests,
/// and requests to the other processes, each of which a client's request waits for.
pub(super) const SIDES_OF_MEMBER: usize = 3;

/// Connections of one serving thread on one of `sides`, so that all threads together leave enough descriptors for
/// everything else.
pub(super) fn connections_of_worker(limit: usize, workers: usize, sides: usize) -> usize {
    // If the system reports no limit, it is taken as unlimited.
    let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let share = connections(descriptors) / (workers * sides).max(1) as u64;
    limit.min(usize::try_from(share.max(1)).unwrap_or(usize::MAX))
}

fn connections(descriptors: u64) -> u64 {
    let others = descriptors.saturating_sub(DESCRIPTORS_HELD);
    (others - others / BESIDE).max(CONNECTIONS_MIN)
}

/// Counts open connections by address.
pub(super) struct Crowd {
    open: DashMap<Address, u32>,
    /// Maximum per address; 0: no limit.
    per_address: u32,
    /// Proxies, which open connections on behalf of many clients and are not counted.
    excepted: Vec<IpNet>,
}

/// A counted connection.
pub(super) struct Counted {
    crowd: Arc<Crowd>,
    address: Option<Address>,
}

impl Crowd {
    pub(super) fn new(per_address: u32, excepted: Vec<IpNet>) -> Arc<Self> {
        Arc::new(Self { open: DashMap::new(), per_address, excepted })
    }

    /// `None` when the address has reached its limit.
    pub(super) fn admit(self: &Arc<Self>, peer: Option<SocketAddr>) -> Option<Counted> {
        let address = peer.map(|peer| peer.ip().to_canonical());
        // The forwarding header is not known yet, so a proxy's connections cannot be attributed to clients.
        let is_excepted = |address: &IpAddr| self.excepted.iter().any(|range| range.contains(address));
        let address = address.filter(|address| self.per_address > 0 && !is_excepted(address)).map(Address::of);
        if let Some(address) = address {
            let mut open = self.open.entry(address).or_insert(0);
            if *open >= self.per_address {
                return None;
            }
            *open += 1;
        }
        Some(Counted { crowd: self.clone(), address })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        self.crowd.open.remove_if_mut(&address, |_, open| {
            *open = open.saturating_sub(1);
            *open == 0
        });
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    fn from(address: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(address.parse().expect("an address"), 1))
    }

    #[test]
    fn what_the_system_lends_bounds_all_connections_together() {
        assert_eq!(connections(20_480), 16_231);
        assert_eq!(connections(1024), 666);
        assert_eq!(connections(512), 256);
        assert_eq!((connections(64), connections(0)), (16, 16));
        for descriptors in 512..2000 {
            let beside = descriptors - connections(descriptors);
            assert!(beside >= DESCRIPTORS_HELD, "{descriptors} leave {beside}");
        }
    }

    #[test]
    fn an_address_has_its_share_and_gets_it_back() {
        let crowd = Crowd::new(2, vec!["10.0.0.0/8".parse().expect("a range")]);
        let first = crowd.admit(from("1.2.3.4"));
        let second = crowd.admit(from("::ffff:1.2.3.4"));
        assert!(first.is_some() && second.is_some());
        assert!(crowd.admit(from("1.2.3.4")).is_none(), "however the address is written");
        let other = crowd.admit(from("1.2.3.5"));
        assert!(other.is_some(), "others have their own");
        let of_proxy: Vec<_> = (0..5).map(|_| crowd.admit(from("10.1.2.3"))).collect();
        assert!(of_proxy.iter().all(Option::is_some), "a proxy brings many");
        drop(first);
        assert!(crowd.admit(from("1.2.3.4")).is_some(), "one has gone");
        drop((second, other, of_proxy));
        assert!(crowd.open.is_empty(), "nothing is remembered of those who have gone");
        let network: Vec<_> = (1..4).map(|host| crowd.admit(from(&format!("2001:db8::{host}")))).collect();
        assert!(network[1].is_some() && network[2].is_none(), "a network of IPv6 is one address");
        let free = Crowd::new(0, Vec::new());
        let many: Vec<_> = (0..100).map(|_| free.admit(from("1.2.3.4"))).collect();
        assert!(many.iter().all(Option::is_some) && free.open.is_empty());
    }
}
