//! Resolution of host names when connecting.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Reach;

/// Maximum number of addresses per name that are tried, because each attempt may take a while.
const ADDRESSES_MAX: usize = 8;

/// A resolver of host names.
pub trait Lookup: Send + Sync + 'static {
    /// All addresses of a name.
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Returns only permitted addresses to the connector, which connects to these and resolves nothing itself.
pub(super) struct Guarded {
    lookup: Arc<dyn Lookup>,
    reach: Arc<Reach>,
    is_secure: bool,
}

/// None of the name's addresses is permitted.
#[derive(Debug, thiserror::Error)]
#[error("none of the host's addresses is allowed")]
pub(super) struct NotReached;

impl Guarded {
    pub(super) fn new(lookup: Arc<dyn Lookup>, reach: Arc<Reach>, is_secure: bool) -> Self {
        Self { lookup, reach, is_secure }
    }
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, is_secure) = (self.reach.clone(), self.is_secure);
        let found = self.lookup.addresses(name.as_str());
        Box::pin(async move {
            let found = found.await?;
            let is_known = !found.is_empty();
            let reached = found.into_iter().filter(|address| reach.permits(*address, is_secure));
            // The connector sets the port.
            let reached: Vec<SocketAddr> = reached.take(ADDRESSES_MAX).map(|ip| SocketAddr::new(ip, 0)).collect();
            match (reached.is_empty(), is_known) {
                (false, _) => Ok(Box::new(reached.into_iter()) as Addrs),
                (true, true) => Err(NotReached.into()),
                (true, false) => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into()),
            }
        })
    }
}
