//! Option values: parsers of addresses, networks and URLs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use ipnet::IpNet;
use lettre::message::Mailbox;
use url::Url;

use crate::web_address;
use crate::webhooks::WebhookOptions;

/// Parses the URL of an OpenTelemetry collector.
pub(super) fn collector(text: &str) -> Result<Url, String> {
    let url = web_address::parse(text).ok().filter(|url| url.query().is_none() && url.fragment().is_none());
    url.ok_or_else(|| "must be an http or https URL without a query, for example http://localhost:4318".to_owned())
}

/// Parses `https://support.example`, or `http://host:port`.
pub fn public_url(text: &str) -> Result<String, String> {
    let url = web_address::parse(text).map_err(|_| "must be an http or https URL".to_owned())?;
    let is_origin = url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    if is_origin {
        Ok(url.origin().ascii_serialization())
    } else {
        Err("must be only scheme, host and port, for example https://support.example".to_owned())
    }
}

/// Parses an address with a port in the common notations: `:8080` means all IPv4 addresses, `localhost:8080` this
/// machine's own, and a host name is resolved by the system.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let error = || "must be an address with a port, for example 127.0.0.1:8080, localhost:8080 or :8080".to_owned();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
    let port: u16 = port.parse().map_err(|_| error())?;
    match host {
        "" | "*" => Ok(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
        // Always IPv4, so that the address is the same on every system: some resolve `localhost` to `::1` first.
        "localhost" => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        host if host.contains(':') => Err(error()),
        host => {
            let addresses = (host, port).to_socket_addrs().map_err(|error| format!("`{host}`: {error}"))?;
            addresses.into_iter().next().ok_or_else(error)
        }
    }
}

/// Parses `desk@acme.example`, or `Acme <desk@acme.example>`.
pub(super) fn mailbox(text: &str) -> Result<Mailbox, String> {
    text.parse().map_err(|_| "must be an e-mail address, for example Acme <desk@acme.example>".to_owned())
}

/// The settings of deliveries to webhooks. `networks` are private networks that endpoints may be in.
pub fn webhook_options(networks: &[IpNet]) -> WebhookOptions {
    WebhookOptions { allowed_networks: networks.to_vec(), ..WebhookOptions::default() }
}

/// Parses a network; a single address is a range of one.
pub fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| format!("`{text}` is not an IP address or range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_accepted_as_people_write_it() {
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:8080", "[::1]:8080"),
            (":8080", "0.0.0.0:8080"),
            ("*:8080", "0.0.0.0:8080"),
            ("localhost:0", "127.0.0.1:0"),
        ] {
            assert_eq!(address(text), Ok(expected.parse().expect("address")), "{text}");
        }
        for bad in ["8080", "", ":", "localhost", "localhost:", "localhost:65536", "::1:8080", "http://localhost:8080"]
        {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
