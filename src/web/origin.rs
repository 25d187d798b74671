//! Where a request comes from: the socket's other end, unless that is a proxy whose word is believed.

use std::net::{IpAddr, SocketAddr};

use actix_web::http::header::{HeaderMap, X_FORWARDED_FOR};
use ipnet::IpNet;

/// The address of the caller. Of a trusted proxy's forwarding header the last address counts that is no trusted proxy
/// itself: those before it are the caller's own words.
pub fn of(peer: Option<SocketAddr>, headers: &HeaderMap, trusted: &[IpNet]) -> Option<IpAddr> {
    // A socket that listens on both families shows an IPv4 peer as a mapped IPv6 address.
    let peer = peer?.ip().to_canonical();
    let is_trusted = |address: &IpAddr| trusted.iter().any(|range| range.contains(address));
    if trusted.is_empty() || !is_trusted(&peer) {
        return Some(peer);
    }
    let mut nearest = peer;
    let lines: Vec<&str> = headers.get_all(X_FORWARDED_FOR).filter_map(|line| line.to_str().ok()).collect();
    for named in lines.iter().rev().flat_map(|line| line.split(',').rev()) {
        // What is no address ends the chain: whoever wrote it is the last one known.
        let Some(address) = address(named.trim()) else { break };
        nearest = address;
        if !is_trusted(&address) {
            break;
        }
    }
    Some(nearest)
}

/// An address with or without its port.
fn address(text: &str) -> Option<IpAddr> {
    let alone = text.parse::<IpAddr>().ok();
    alone.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip())).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn seen(peer: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_str(line).expect("header"));
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|range| range.parse().expect("range")).collect();
        let peer = format!("{peer}:4711").parse().expect("peer");
        of(Some(peer), &headers, &trusted).expect("address").to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(seen("10.0.0.1", &["1.2.3.4"], &[]), "10.0.0.1");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4"], &["10.9.0.0/16"]), "10.0.0.1");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4"], &["10.0.0.0/8"]), "1.2.3.4");
        assert_eq!(seen("10.0.0.1", &[], &["10.0.0.0/8"]), "10.0.0.1");
    }

    #[test]
    fn what_a_caller_wrote_before_the_proxy_counts_for_nothing() {
        let trusted = &["10.0.0.0/8"];
        assert_eq!(seen("10.0.0.1", &["9.9.9.9, 1.2.3.4"], trusted), "1.2.3.4");
        assert_eq!(seen("10.0.0.1", &["9.9.9.9", "1.2.3.4, 10.0.0.7"], trusted), "1.2.3.4");
        assert_eq!(seen("10.0.0.1", &["9.9.9.9, nonsense, 10.0.0.7"], trusted), "10.0.0.7");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4:80"], trusted), "1.2.3.4");
    }
}
