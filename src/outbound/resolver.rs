//! Resolves host names to permitted addresses when connecting.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::NetworkPolicy;

/// Maximum number of a name's addresses that the connector may try, because each attempt may take a while.
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
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}

/// Returns only permitted addresses to the connector, which connects to these and resolves nothing itself.
pub(super) struct FilteringResolver {
    lookup: Arc<dyn Lookup>,
    policy: Arc<NetworkPolicy>,
    /// Whether the connections use TLS.
    is_secure: bool,
}

/// None of the name's addresses is permitted.
#[derive(Debug, thiserror::Error)]
#[error("none of the host's addresses is allowed")]
pub(super) struct NoPermittedAddress;

impl FilteringResolver {
    pub(super) fn new(lookup: Arc<dyn Lookup>, policy: Arc<NetworkPolicy>, is_secure: bool) -> Self {
        Self { lookup, policy, is_secure }
    }
}

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, is_secure) = (self.policy.clone(), self.is_secure);
        let addresses = self.lookup.addresses(name.as_str());
        Box::pin(async move {
            let addresses = addresses.await?;
            if addresses.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into());
            }
            let permitted = addresses.into_iter().filter(|address| policy.permits(*address, is_secure));
            // The connector sets the port.
            let permitted: Vec<SocketAddr> = permitted.take(ADDRESSES_MAX).map(|ip| SocketAddr::new(ip, 0)).collect();
            if permitted.is_empty() {
                return Err(NoPermittedAddress.into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}
