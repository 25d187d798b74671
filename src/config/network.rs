//! The options of listeners and of clients' addresses.

use std::net::SocketAddr;

use clap::Args;
use ipnet::IpNet;

use super::values::{address, network, public_url};
use crate::web::connections::CONNECTIONS_PER_ADDRESS;

/// Listeners, and addresses of clients and of the service.
#[derive(Args, Clone, Debug)]
pub struct NetworkArgs {
    /// Address and port for HTTP; `:8080` listens on all IPv4 addresses
    #[arg(long, env = "HOTLINE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT",
        value_parser = address)]
    pub listen: SocketAddr,
    /// Public URL of the service (scheme, host and port); file URLs begin with it, and the panel accepts changes from its
    /// pages. Without it, file URLs are paths
    #[arg(long, env = "HOTLINE_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,
    /// Address and port for Prometheus metrics; without it, metrics are disabled
    #[arg(long, env = "HOTLINE_METRICS_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub metrics_listen: Option<SocketAddr>,
    /// Address or range of a reverse proxy whose headers `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host` are
    /// trusted (repeatable or comma-separated)
    #[arg(long, alias = "trusted-proxies", env = "HOTLINE_TRUSTED_PROXY", value_delimiter = ',', value_parser = network,
        value_name = "CIDR")]
    pub trusted_proxy: Vec<IpNet>,
    /// Maximum open connections per client address, except trusted proxies; 0 for no limit
    #[arg(long, alias = "connections-per-address", env = "HOTLINE_MAX_CONNECTIONS_PER_ADDRESS",
        default_value_t = CONNECTIONS_PER_ADDRESS, value_name = "COUNT")]
    pub max_connections_per_address: u32,
}
