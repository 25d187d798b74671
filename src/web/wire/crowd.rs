//! How many connections there may be: all together, by what the system lends, and of one address.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use dashmap::DashMap;
use ipnet::IpNet;
use nix::sys::resource::{Resource, getrlimit};

use crate::web::origin::Address;

/// File descriptors that are no connection's: the journal's (its segment, spares, a reserve, its folder, one that is read
/// back), some 20 connections to PostgreSQL, those of the threads that serve and send, and of a command that looks in.
const DESCRIPTORS_HELD: u64 = 192;

/// Of the others, one in so many is left for what a connection may need beside itself: a file that is sent or comes in,
/// a call of a provider.
const BESIDE: u64 = 5;

/// Connections there may be however little the system lends: fewer could not be served at all.
const CONNECTIONS_MIN: u64 = 16;

/// Connections of one thread that serves, so that all together leave enough descriptors for everything else.
pub(super) fn connections_of_worker(limit: usize, workers: usize) -> usize {
    // A system that does not say is taken to lend as many as are asked for.
    let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let share = connections(descriptors) / workers.max(1) as u64;
    limit.min(usize::try_from(share.max(1)).unwrap_or(usize::MAX))
}

fn connections(descriptors: u64) -> u64 {
    let others = descriptors.saturating_sub(DESCRIPTORS_HELD);
    (others - others / BESIDE).max(CONNECTIONS_MIN)
}

/// Who has how many.
pub(super) struct Crowd {
    open: DashMap<Address, u32>,
    /// Of one address; 0: as many as it likes.
    per_address: u32,
    /// Those who bring the connections of many.
    excepted: Vec<IpNet>,
}

/// A connection that is counted.
pub(super) struct Counted {
    crowd: Arc<Crowd>,
    address: Option<Address>,
}

impl Crowd {
    pub(super) fn new(per_address: u32, excepted: Vec<IpNet>) -> Arc<Self> {
        Arc::new(Self { open: DashMap::new(), per_address, excepted })
    }

    /// None when the address has as many as it may.
    pub(super) fn admit(self: &Arc<Self>, peer: Option<SocketAddr>) -> Option<Counted> {
        let address = peer.map(|peer| peer.ip().to_canonical());
        // At this point nobody has said yet for whom a proxy has made the connection.
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
