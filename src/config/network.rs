//! The options of listeners and of clients' addresses.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;

use super::units::{self, SECOND};
use super::values::{address, network, public_url};
use crate::service::StopSettings;
use crate::web::connections::CONNECTIONS_PER_ADDRESS;

/// Maximum delay of a stop: much longer than load balancers need, which check every few seconds.
const NOTICE_MAX: Duration = Duration::from_secs(600);

/// Default delay of a stop in a cluster, where other processes take the requests. The delay of a standalone process is
/// 0 by default: no other process could take its requests, and its restart would only take longer.
const CLUSTER_NOTICE: Duration = Duration::from_secs(5);

/// Listeners, and addresses of clients and of the service.
#[derive(Args, Clone, Debug)]
pub struct NetworkArgs {
    /// Address and port for HTTP; `:8080` listens on all IPv4 addresses
    #[arg(long, env = "HOTLINE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT",
        value_parser = address)]
    pub listen: SocketAddr,
    /// Public URL of the service (scheme, host and port); file URLs begin with it, and the panel accepts changes from
    /// its pages. Without it, file URLs are paths
    #[arg(long, env = "HOTLINE_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,
    /// Address and port for Prometheus metrics; without it, metrics are disabled
    #[arg(long, env = "HOTLINE_METRICS_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub metrics_listen: Option<SocketAddr>,
    /// Address or range of a reverse proxy whose headers `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`
    /// are trusted (repeatable or comma-separated)
    #[arg(long, alias = "trusted-proxies", env = "HOTLINE_TRUSTED_PROXY", value_delimiter = ',', value_parser = network,
        value_name = "CIDR")]
    pub trusted_proxy: Vec<IpNet>,
    /// Maximum open connections per client address, except trusted proxies; 0 for no limit
    #[arg(long, alias = "connections-per-address", env = "HOTLINE_MAX_CONNECTIONS_PER_ADDRESS",
        default_value_t = CONNECTIONS_PER_ADDRESS, value_name = "COUNT")]
    pub max_connections_per_address: u32,
    /// Time for which a stopping process still accepts requests after /health/ready answers 503, so that load balancers
    /// can remove it; by default 5s in a cluster, otherwise 0
    #[arg(long, alias = "cluster-notice", alias = "cluster-notice-s", env = "HOTLINE_STOP_NOTICE",
        value_name = "DURATION", value_parser = units::durations(SECOND, Duration::ZERO..=NOTICE_MAX))]
    pub stop_notice: Option<Duration>,
}

impl NetworkArgs {
    /// How the service stops.
    pub(super) fn stop(&self, is_member: bool) -> StopSettings {
        let default = if is_member { CLUSTER_NOTICE } else { Duration::ZERO };
        StopSettings { notice: self.stop_notice.unwrap_or(default), quiet: StopSettings::QUIET }
    }
}
