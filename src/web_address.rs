//! Strict parsing of web addresses. The URL parser is made for browsers and corrects mistakes: it accepts `https:x` and
//! `https:\\x` as `https://x`, removes line breaks, and accepts almost any text as a host. Such an address may lead to
//! a host other than the one that a person reads in it, or to none, so it is refused here.

use url::{Host, Url};

/// Maximum length of a host's name and of a part of it, in bytes. <https://www.rfc-editor.org/rfc/rfc1035#section-2.3.4>
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Why a string is not a valid web address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidWebAddress {
    /// The text does not begin with `https://` or `http://`.
    Scheme,
    /// The rest is not an address, or its host cannot exist.
    Host,
}

/// Parses an `https` or `http` address; surrounding whitespace is ignored.
///
/// # Errors
/// When the address is not valid.
pub fn parse(text: &str) -> Result<Url, InvalidWebAddress> {
    let text = text.trim();
    let strip_scheme = |scheme: &str| {
        let (prefix, rest) = text.split_at_checked(scheme.len())?;
        prefix.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let rest = strip_scheme("https://").or_else(|| strip_scheme("http://")).ok_or(InvalidWebAddress::Scheme)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_invalid = |character: char| character.is_whitespace() || character == '\\';
    if authority.is_empty() || authority.contains(is_invalid) || text.contains(char::is_control) {
        return Err(InvalidWebAddress::Host);
    }
    let url = Url::parse(text).map_err(|_| InvalidWebAddress::Host)?;
    if url.host().is_some_and(is_valid_host) { Ok(url) } else { Err(InvalidWebAddress::Host) }
}

/// Whether a host can exist: an IP address, or labels of ASCII letters, digits, hyphens and, because some hosts have
/// them, underscores. The URL parser has already encoded other letters.
pub fn is_valid_host(host: Host<&str>) -> bool {
    let Host::Domain(name) = host else { return true };
    // The DNS root may be named by a final dot.
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let is_bounded = !label.is_empty() && label.len() <= LABEL_BYTES_MAX;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    is_bounded && label.bytes().all(is_allowed) && !label.starts_with('-') && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_with_a_scheme_and_a_possible_host_is_valid() {
        let long = |label: usize| format!("https://{}.example/", "a".repeat(label));
        let labels = |count: usize| format!("https://{}", vec!["a"; count].join("."));
        for valid in [
            "https://example.com",
            "HTTP://Example.COM:8080/a b?c=d#e",
            " https://example.com/ ",
            "https://example.com./",
            "https://a_b.c-d.example",
            "https://münchen.example/ü",
            "https://127.0.0.1:9",
            "https://[::1]/",
            "http://localhost",
            "https://example.com/a\\b//c",
            "https://example.com?a",
            &long(63),
            &labels(127),
        ] {
            assert!(parse(valid).is_ok(), "{valid}");
        }
        for (invalid, error) in [
            ("", InvalidWebAddress::Scheme),
            ("example.com", InvalidWebAddress::Scheme),
            ("https:x", InvalidWebAddress::Scheme),
            ("https:/x", InvalidWebAddress::Scheme),
            ("https:\\\\x", InvalidWebAddress::Scheme),
            ("https:/\\x", InvalidWebAddress::Scheme),
            ("ht\ttps://x", InvalidWebAddress::Scheme),
            ("ftp://example.com", InvalidWebAddress::Scheme),
            ("//example.com", InvalidWebAddress::Scheme),
            ("https://", InvalidWebAddress::Host),
            ("https:///example.com", InvalidWebAddress::Host),
            ("https://\\example.com", InvalidWebAddress::Host),
            ("https://?example.com", InvalidWebAddress::Host),
            ("https://#example.com", InvalidWebAddress::Host),
            ("https://./", InvalidWebAddress::Host),
            ("https://../", InvalidWebAddress::Host),
            ("https://a..b/", InvalidWebAddress::Host),
            ("https://.a/", InvalidWebAddress::Host),
            ("https://a../", InvalidWebAddress::Host),
            ("https://-a.example/", InvalidWebAddress::Host),
            ("https://a-.example/", InvalidWebAddress::Host),
            ("https://a!b.example/", InvalidWebAddress::Host),
            ("https://{a}.example/", InvalidWebAddress::Host),
            ("https://exa mple.com/", InvalidWebAddress::Host),
            ("https://exa\tmple.com/", InvalidWebAddress::Host),
            ("https://example.com/a\nb", InvalidWebAddress::Host),
            ("https://example.com\\@other.example/", InvalidWebAddress::Host),
            ("https://example.com:99999/", InvalidWebAddress::Host),
            ("https://:443/", InvalidWebAddress::Host),
            ("https://user@/", InvalidWebAddress::Host),
            (&long(64), InvalidWebAddress::Host),
            (&labels(128), InvalidWebAddress::Host),
        ] {
            assert_eq!(parse(invalid).map(|url| url.to_string()), Err(error), "{invalid:?}");
        }
    }
}
