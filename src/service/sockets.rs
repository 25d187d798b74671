//! The addresses the service listens on.

use std::net::{SocketAddr, TcpListener};

use tokio::net::TcpSocket;

use super::error::ServiceError;
use super::settings::Settings;
use crate::metrics::Listener;
use crate::web::connections;

/// The options that set the addresses.
pub(super) const LISTEN: &str = "--listen";
pub(super) const CLUSTER_LISTEN: &str = "--cluster-listen";
pub(super) const METRICS_LISTEN: &str = "--metrics-listen";

/// Sockets that are bound at startup. Those of peers and metrics accept connections once the service is ready.
pub(super) struct BoundSockets {
    pub(super) http: TcpListener,
    pub(super) peers: Option<TcpSocket>,
    pub(super) metrics: Option<(SocketAddr, TcpListener)>,
}

impl BoundSockets {
    /// Binds the addresses.
    ///
    /// # Errors
    /// When an address is in use or not permitted.
    pub(super) fn bind(settings: &Settings) -> Result<Self, ServiceError> {
        let http = connections::bind_listener(settings.listen, settings.limits.backlog)
            .map_err(Self::listen_error(LISTEN, settings.listen))?;
        let metrics = match settings.metrics_listen {
            Some(address) => {
                let socket = Listener::bind(address).map_err(Self::listen_error(METRICS_LISTEN, address))?;
                Some((address, socket))
            }
            None => None,
        };
        let peers = match &settings.cluster {
            Some(cluster) => {
                Some(connections::bind(cluster.listen).map_err(Self::listen_error(CLUSTER_LISTEN, cluster.listen))?)
            }
            None => None,
        };
        Ok(Self { http, peers, metrics })
    }

    /// The error of an address that cannot be bound.
    pub(super) fn listen_error(
        option: &'static str,
        address: SocketAddr,
    ) -> impl FnOnce(std::io::Error) -> ServiceError {
        move |error| ServiceError::Listen { option, address, error }
    }
}
