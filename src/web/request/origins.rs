//! The websites that may embed a webchat: a single origin, or all subdomains of a domain (`https://*.shop.example`).

use url::{Host, Url};

use crate::web_address::is_valid_host;

/// The prefix that stands for any subdomain.
const WILDCARD: &str = "*.";

/// Replaces the wildcard while the origin is parsed as a URL.
const SAMPLE: &str = "any.";

/// Normalizes an origin to the form that browsers send: the host in lower case, without the scheme's default port. A
/// trailing slash, as copied from an address bar, is removed.
///
/// # Errors
/// A phrase that follows the field's name.
pub fn normalize(text: &str) -> Result<String, String> {
    const INVALID: &str =
        "must be an origin such as https://shop.example or https://*.shop.example, with an optional port";
    let text = text.strip_suffix('/').unwrap_or(text);
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme)) else {
        return Err(INVALID.to_owned());
    };
    // The URL parser is made for browsers and silently corrects mistakes; these are reported instead.
    let is_forbidden = |character: char| character.is_whitespace() || "\\@/?#%".contains(character);
    let (is_wildcard, host) = match rest.strip_prefix(WILDCARD) {
        Some(domain) => (true, format!("{SAMPLE}{domain}")),
        None => (false, rest.to_owned()),
    };
    if host.contains(is_forbidden) || host.contains('*') {
        return Err(INVALID.to_owned());
    }
    let url = Url::parse(&format!("{scheme}://{host}")).map_err(|_| INVALID.to_owned())?;
    let origin = url.origin().ascii_serialization();
    if !is_wildcard {
        return if url.host().is_some_and(is_valid_host) { Ok(origin) } else { Err(INVALID.to_owned()) };
    }
    let Some(Host::Domain(domain)) = url.host() else { return Err(INVALID.to_owned()) };
    let domain = domain.strip_prefix(SAMPLE).unwrap_or_default();
    if !is_domain_name(domain) {
        return Err(INVALID.to_owned());
    }
    if !domain.contains('.') && domain != "localhost" {
        return Err(format!("would allow every website under .{domain}"));
    }
    Ok(origin.replacen(SAMPLE, WILDCARD, 1))
}

/// Whether the origin that a browser sends is the allowed one, or a subdomain of it. Browsers send an origin in exactly
/// the normalized form, so it is compared as it is.
pub fn allows(allowed: &str, origin_bytes: &[u8]) -> bool {
    let Some((scheme, domain)) = allowed.split_once("://*.") else { return allowed.as_bytes() == origin_bytes };
    let host_and_port =
        std::str::from_utf8(origin_bytes).ok().and_then(|origin| origin.strip_prefix(scheme)?.strip_prefix("://"));
    // The port is compared too: another port is another website.
    let subdomain = host_and_port.and_then(|host| host.strip_suffix(domain)?.strip_suffix('.'));
    subdomain.is_some_and(is_domain_name)
}

/// Labels separated by dots: lower-case letters, digits, hyphens and, as some hosts have them, underscores.
fn is_domain_name(text: &str) -> bool {
    let is_character = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    text.split('.').all(|label| !label.is_empty() && label.bytes().all(is_character))
}

#[cfg(test)]
mod tests {
    use super::{allows, normalize};

    #[test]
    fn an_origin_is_stored_as_browsers_send_it() {
        for (input, expected) in [
            ("https://Shop.Example", "https://shop.example"),
            ("https://shop.example/", "https://shop.example"),
            ("https://shop.example:443", "https://shop.example"),
            ("https://shop.example:443/", "https://shop.example"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("https://[::1]:8443", "https://[::1]:8443"),
            ("https://münchen.example", "https://xn--mnchen-3ya.example"),
            ("https://*.shop.example", "https://*.shop.example"),
            ("https://*.Shop.Example/", "https://*.shop.example"),
            ("https://*.shop.example:443", "https://*.shop.example"),
            ("https://*.shop.example:8443", "https://*.shop.example:8443"),
            ("https://*.a.shop.example", "https://*.a.shop.example"),
            ("http://*.localhost:3000", "http://*.localhost:3000"),
            ("https://*.münchen.example", "https://*.xn--mnchen-3ya.example"),
        ] {
            assert_eq!(normalize(input).as_deref(), Ok(expected));
        }
        for bad in [
            "shop.example",
            "https://",
            "https:///",
            "https:shop.example",
            "https://.",
            "https://shop..example",
            "https://shop.example//",
            "https://shop.example/page",
            "https://shop.example?a=b",
            "https://shop.example#a",
            "https://user@shop.example",
            "https://a b.example",
            "https://shop.example\\",
            "https://shop.example:99999",
            "ftp://shop.example",
            "null",
            "*",
            "*.shop.example",
            "https://*",
            "https://*.",
            "https://*.example",
            "https://*.com",
            "https://*.*.shop.example",
            "https://a.*.shop.example",
            "https://a*.shop.example",
            "https://*shop.example",
            "https://*.shop.example*",
            "https://*.user@shop.example",
            "https://*.192.0.2.1",
            "https://*.[::1]",
            "https://*..shop.example",
        ] {
            assert!(normalize(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wildcard_allows_only_subdomains() {
        let allowed = "https://*.shop.example";
        for good in ["https://www.shop.example", "https://a.b.shop.example", "https://x-1.shop.example"] {
            assert!(allows(allowed, good.as_bytes()), "{good}");
        }
        for bad in [
            "https://shop.example",
            "https://.shop.example",
            "https://..shop.example",
            "https://a..shop.example",
            "https://evilshop.example",
            "https://www.shop.example.evil.example",
            "https://www.shop.example.",
            "https://evil.example/.shop.example",
            "https://evil.example#.shop.example",
            "https://evil.example?.shop.example",
            "https://evil.example\\.shop.example",
            "https://user@www.shop.example",
            "https://evil.example:1@www.shop.example",
            "https://evil.example:443.shop.example",
            "https://WWW.shop.example",
            "https://www.shop.example:8443",
            "https://www.shop.example:443",
            "http://www.shop.example",
            "https://*.shop.example",
            "www.shop.example",
            "null",
            "",
        ] {
            assert!(!allows(allowed, bad.as_bytes()), "{bad}");
        }
        assert!(!allows(allowed, b"https://\xff.shop.example"));
        assert!(allows("https://*.shop.example:8443", b"https://www.shop.example:8443"));
        assert!(!allows("https://*.shop.example:8443", b"https://www.shop.example"));
        assert!(!allows("https://*.shop.example:443", b"https://www.shop.example:8443"));
        assert!(allows("https://shop.example", b"https://shop.example"));
        assert!(!allows("https://shop.example", b"https://www.shop.example"));
    }
}
