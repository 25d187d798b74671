//! What a name means, in the moment of the connection.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Reach;

/// Addresses of a name that are tried at most: nobody needs more, and each may take its time.
const ADDRESSES_MAX: usize = 8;

/// Where names are looked up.
pub trait Lookup: Send + Sync + 'static {
    /// Every address of a name.
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's own.
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

/// Answers the connector only what may be reached. The connector connects to what it is answered, and asks nobody else.
pub(super) struct Guarded {
    lookup: Arc<dyn Lookup>,
    reach: Arc<Reach>,
    is_secure: bool,
}

/// None of a name's addresses may be reached.
#[derive(Debug, thiserror::Error)]
#[error("none of its addresses may be reached")]
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
            // The connector puts the port in.
            let reached: Vec<SocketAddr> = reached.take(ADDRESSES_MAX).map(|ip| SocketAddr::new(ip, 0)).collect();
            match (reached.is_empty(), is_known) {
                (false, _) => Ok(Box::new(reached.into_iter()) as Addrs),
                (true, true) => Err(NotReached.into()),
                (true, false) => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into()),
            }
        })
    }
}
