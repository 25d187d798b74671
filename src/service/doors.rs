//! The addresses the service listens on.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

use super::error::ServiceError;
use super::settings::Settings;
use crate::metrics::Listener;
use crate::web::wire;

/// The options that set them.
pub(super) const LISTEN: &str = "--listen";
pub(super) const CLUSTER_LISTEN: &str = "--cluster-listen";
pub(super) const METRICS_LISTEN: &str = "--metrics-listen";

/// Bound sockets: bound at startup, opened once the service can answer.
pub(super) struct Doors {
    pub(super) http: TcpSocket,
    pub(super) peers: Option<TcpSocket>,
    pub(super) figures: Option<(SocketAddr, std::net::TcpListener)>,
}

impl Doors {
    /// Binds the addresses.
    ///
    /// # Errors
    /// When one is in use or not permitted.
    pub(super) fn bind(settings: &Settings) -> Result<Self, ServiceError> {
        let http = wire::bind(settings.listen).map_err(Self::not_there(LISTEN, settings.listen))?;
        let figures = match settings.metrics_listen {
            Some(address) => {
                let socket = Listener::bind(address).map_err(Self::not_there(METRICS_LISTEN, address))?;
                Some((address, socket))
            }
            None => None,
        };
        let peers = match &settings.cluster {
            Some(cluster) => Some(wire::bind(cluster.listen).map_err(Self::not_there(CLUSTER_LISTEN, cluster.listen))?),
            None => None,
        };
        Ok(Self { http, peers, figures })
    }

    /// The error of an address that cannot be bound.
    pub(super) fn not_there(option: &'static str, address: SocketAddr) -> impl FnOnce(std::io::Error) -> ServiceError {
        move |error| ServiceError::Listen { option, address, error }
    }
}
