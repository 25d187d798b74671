//! The address that a request comes from (the peer of the socket, unless that is a trusted proxy), and the origin that
//! it was sent to.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::{HOST, HeaderMap, HeaderValue, X_FORWARDED_FOR};
use ipnet::IpNet;

/// The address of the caller. In a trusted proxy's forwarding header, this is the last address that is not a trusted
/// proxy itself: the entries before it come from the caller and cannot be trusted.
pub fn of(peer: Option<SocketAddr>, headers: &HeaderMap, trusted: &[IpNet]) -> Option<IpAddr> {
    // A dual-stack socket reports an IPv4 peer as a mapped IPv6 address.
    let peer = peer?.ip().to_canonical();
    let is_trusted = |address: &IpAddr| trusted.iter().any(|range| range.contains(address));
    if trusted.is_empty() || !is_trusted(&peer) {
        return Some(peer);
    }
    let mut last_known = peer;
    // Parsed as bytes: the caller's part of a line may contain anything, and must not invalidate the proxy's part.
    let lines: Vec<&[u8]> = headers.get_all(X_FORWARDED_FOR).map(HeaderValue::as_bytes).collect();
    for entry in lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b',')) {
        // An entry that is not an address ends the chain: the proxy that wrote it is the last known hop.
        let Some(address) = std::str::from_utf8(entry).ok().and_then(|entry| parse_address(entry.trim())) else {
            break;
        };
        last_known = address;
        if !is_trusted(&address) {
            break;
        }
    }
    Some(last_known)
}

/// Bits of an IPv6 address that number the hosts of a /64 network.
const IPV6_HOST_BITS: u32 = 64;

/// The unit that limits count by: an IPv4 address, or a /64 network of IPv6, as one internet subscriber gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

impl Address {
    /// The unit that a caller's address belongs to.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(IpAddr::V4(address)),
            IpAddr::V6(address) => {
                let network = address.to_bits() >> IPV6_HOST_BITS << IPV6_HOST_BITS;
                Self(IpAddr::V6(Ipv6Addr::from_bits(network)))
            }
        }
    }
}

/// Whether a trusted proxy reports that it received the request over https.
pub fn is_https(request: &HttpRequest, trusted: &[IpNet]) -> bool {
    forwarded_value(request, trusted, "x-forwarded-proto").is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}

/// The headers that a proxy adds to a request.
const FORWARDING_HEADERS: [&str; 3] = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

/// How to configure the proxy in front so that it reports the origin of this page, as a part of an error message.
/// `None` when no proxy seems to be the cause.
pub fn proxy_advice(request: &HttpRequest, trusted: &[IpNet], page: &str) -> Option<&'static str> {
    let page = url::Url::parse(page).ok().filter(|page| page.has_host())?;
    let is_forwarded = FORWARDING_HEADERS.iter().any(|name| request.headers().contains_key(*name));
    if is_forwarded && !is_from_proxy(request, trusted) {
        return Some("`--trusted-proxy` must include the address of the proxy");
    }
    let own_site = url::Url::parse(&site(request, trusted)?).ok()?;
    if page.host() != own_site.host() {
        return Some("a proxy must forward the `Host` of the request");
    }
    (page.scheme() == "https" && own_site.scheme() == "http")
        .then_some("a proxy must send `X-Forwarded-Proto`, and `--trusted-proxy` must include its address")
}

/// Whether the peer is a trusted proxy.
fn is_from_proxy(request: &HttpRequest, trusted: &[IpNet]) -> bool {
    let peer = request.peer_addr().map(|peer| peer.ip().to_canonical());
    peer.is_some_and(|peer| trusted.iter().any(|range| range.contains(&peer)))
}

/// The value that a trusted proxy itself has added to a forwarding header: the last one. `None` if it is not ASCII: an
/// earlier value may come from the caller, and must not count in its place.
fn forwarded_value<'a>(request: &'a HttpRequest, trusted: &[IpNet], name: &str) -> Option<&'a str> {
    // Parsed as bytes, as in `of`.
    let line = request.headers().get_all(name).next_back()?.as_bytes();
    let last = line.rsplit(|byte| *byte == b',').next().filter(|last| last.is_ascii())?;
    std::str::from_utf8(last).ok().map(str::trim).filter(|_| is_from_proxy(request, trusted))
}

/// The origin that the client sent the request to, for links that it can follow. A trusted proxy forwards the origin at
/// which it received the request. `None` when the client named no host.
pub fn site(request: &HttpRequest, trusted: &[IpNet]) -> Option<String> {
    let scheme = if is_https(request, trusted) { "https" } else { "http" };
    let host =
        forwarded_value(request, trusted, "x-forwarded-host").or_else(|| request.headers().get(HOST)?.to_str().ok())?;
    let site = url::Url::parse(&format!("{scheme}://{host}/")).ok()?;
    // Accepts only a host and a port.
    let is_plain =
        site.path() == "/" && site.username().is_empty() && site.password().is_none() && site.query().is_none();
    is_plain.then(|| site.origin().ascii_serialization())
}

/// Parses an IP address with or without a port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let without_port = text.parse::<IpAddr>().ok();
    let address = without_port.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::X_FORWARDED_PROTO;
    use actix_web::test::TestRequest;

    use super::*;

    fn address_of(peer: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        let lines: Vec<&[u8]> = forwarded.iter().map(|line| line.as_bytes()).collect();
        address_of_bytes(peer, &lines, trusted)
    }

    fn address_of_bytes(peer: &str, forwarded: &[&[u8]], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(line).expect("header"));
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|range| range.parse().expect("range")).collect();
        let peer = format!("{peer}:4711").parse().expect("peer");
        of(Some(peer), &headers, &trusted).expect("address").to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(address_of("10.0.0.1", &["1.2.3.4"], &[]), "10.0.0.1");
        assert_eq!(address_of("10.0.0.1", &["1.2.3.4"], &["10.9.0.0/16"]), "10.0.0.1");
        assert_eq!(address_of("10.0.0.1", &["1.2.3.4"], &["10.0.0.0/8"]), "1.2.3.4");
        assert_eq!(address_of("10.0.0.1", &[], &["10.0.0.0/8"]), "10.0.0.1");
    }

    #[test]
    fn entries_before_that_of_the_proxy_are_ignored() {
        let trusted = &["10.0.0.0/8"];
        assert_eq!(address_of("10.0.0.1", &["9.9.9.9, 1.2.3.4"], trusted), "1.2.3.4");
        assert_eq!(address_of("10.0.0.1", &["9.9.9.9", "1.2.3.4, 10.0.0.7"], trusted), "1.2.3.4");
        assert_eq!(address_of("10.0.0.1", &["9.9.9.9, nonsense, 10.0.0.7"], trusted), "10.0.0.7");
        assert_eq!(address_of("10.0.0.1", &["1.2.3.4:80"], trusted), "1.2.3.4");
    }

    #[test]
    fn a_byte_outside_ascii_ends_the_chain_and_entries_of_the_proxy_still_count() {
        let trusted = &["10.0.0.0/8"];
        let address_of = |lines: &[&[u8]]| address_of_bytes("10.0.0.1", lines, trusted);
        assert_eq!(address_of(&[b"\xe9, 1.2.3.4"]), "1.2.3.4");
        assert_eq!(address_of(&["é, 1.2.3.4".as_bytes()]), "1.2.3.4");
        assert_eq!(address_of(&[b"9.9.9.9\xff, 1.2.3.4, 10.0.0.7"]), "1.2.3.4");
        assert_eq!(address_of(&[b"9.9.9.9, \xff, 10.0.0.7"]), "10.0.0.7");
        assert_eq!(address_of(&[b"9.9.9.9", b"\xff"]), "10.0.0.1", "earlier lines are ignored as well");
    }

    #[test]
    fn only_the_value_of_the_proxy_itself_counts() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().expect("range")];
        let forwarded = |peer: &str, lines: &[&[u8]]| {
            let mut request = TestRequest::default().peer_addr(format!("{peer}:4711").parse().expect("peer"));
            for line in lines {
                let value = HeaderValue::from_bytes(line).expect("header");
                request = request.append_header((X_FORWARDED_PROTO, value));
            }
            forwarded_value(&request.to_http_request(), &trusted, "x-forwarded-proto").map(str::to_owned)
        };
        assert_eq!(forwarded("10.0.0.1", &[b"https"]).as_deref(), Some("https"));
        assert_eq!(forwarded("192.0.2.1", &[b"https"]), None, "not a trusted proxy");
        assert_eq!(forwarded("10.0.0.1", &[b"https", b"https, http"]).as_deref(), Some("http"));
        assert_eq!(forwarded("10.0.0.1", &[b"\xff, https"]).as_deref(), Some("https"));
        assert_eq!(forwarded("10.0.0.1", &[b"https", b"\xff"]), None, "an earlier line is ignored");
        assert_eq!(forwarded("10.0.0.1", &[b"https", b"https, \xff"]), None, "an earlier entry is ignored");
        assert_eq!(forwarded("10.0.0.1", &[]), None);
    }

    #[test]
    fn an_ipv6_network_is_one_address_and_a_mapped_ipv4_address_is_itself() {
        let address = |text: &str| Address::of(text.parse().expect("address"));
        assert_eq!(address("2001:db8:1:2:3:4:5:6"), address("2001:db8:1:2::1"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.1"), address("192.0.2.2"));
    }
}
