//! `hotline health`: asks a running service for its health, so that a container needs no other client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::{Cli, Failure, GlobalArgs, Refusal, failure};
use crate::config::public_url;
use crate::exit_code::Exit;
use crate::tls;

/// Timeout of the answer: the health endpoints never wait for anything.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

#[derive(Args)]
pub struct HealthArgs {
    /// URL of the service; by default the address that `serve` listens on, as the environment and the file set it
    #[arg(long, value_name = "URL", value_parser = public_url)]
    url: Option<String>,
    /// Check only whether the process runs, for restarts
    #[arg(long)]
    live: bool,
}

/// What the service answered.
#[derive(Serialize)]
struct HealthReport {
    url: String,
    status: String,
    reasons: Vec<String>,
}

/// Prints the state of the service.
///
/// # Errors
/// When it does not answer, or must not get requests.
pub async fn run(args: HealthArgs, global: &GlobalArgs) -> Result<(), Failure> {
    match request_health(args).await {
        Ok(health) => global.output.one(health),
        // One exit code for all failures: container runtimes distinguish only healthy from unhealthy.
        Err(failure) => Err(Refusal::new(Exit::Finding, failure::message_with_causes(&*failure)).into()),
    }
}

async fn request_health(args: HealthArgs) -> Result<HealthReport, Failure> {
    let base = match args.url {
        Some(url) => url,
        None => format!("http://{}", reachable_address(Cli::read_service()?.args.network.listen)),
    };
    let url = format!("{base}{}", if args.live { "/health/live" } else { "/health/ready" });
    let client = tls::client().timeout(ANSWER_TIME_MAX).build()?;
    let response = client.get(&url).send().await?;
    let is_healthy = response.status().is_success();
    let code = response.status();
    let body: Value = response.json().await?;
    let status = body["status"].as_str().map_or_else(|| code.to_string(), str::to_owned);
    let reasons = body["reasons"].as_array().into_iter().flatten();
    let reasons: Vec<String> = reasons.filter_map(|reason| Some(reason["message"].as_str()?.to_owned())).collect();
    if !is_healthy {
        return Err(format!("{url}: {status}: {}", reasons.join("; ")).into());
    }
    Ok(HealthReport { url, status, reasons })
}

/// The address at which this machine reaches a listener on `listen`.
fn reachable_address(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_the_loopback_interface() {
        for (listen, expected) in
            [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80"), ("10.0.0.1:80", "10.0.0.1:80")]
        {
            let listen = listen.parse().expect("an address");
            assert_eq!(reachable_address(listen).to_string(), expected);
        }
    }
}
