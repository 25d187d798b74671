//! Addresses of the web as they are written. The URL parser is made for browsers, and corrects what people mistype: it takes
//! `https:x` and `https:\\x` for `https://x`, drops line breaks, and has almost any text for a host. Such an address leads
//! elsewhere than its reader sees, or nowhere, and is refused.

use url::{Host, Url};

/// Maximum length of a host's name and of a part of it, in bytes. <https://www.rfc-editor.org/rfc/rfc1035#section-2.3.4>
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Why a text is no address of the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAddress {
    /// It does not begin with `https://` or `http://`.
    Scheme,
    /// What follows is no address, or names no host that can exist.
    Host,
}

/// Reads an `https` or `http` address; blanks around it do not count.
///
/// # Errors
/// When it is none.
pub fn parse(text: &str) -> Result<Url, NoAddress> {
    let text = text.trim();
    let after = |scheme: &str| {
        let (given, rest) = text.split_at_checked(scheme.len())?;
        given.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let rest = after("https://").or_else(|| after("http://")).ok_or(NoAddress::Scheme)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_strange = |character: char| character.is_whitespace() || character == '\\';
    if authority.is_empty() || authority.contains(is_strange) || text.contains(char::is_control) {
        return Err(NoAddress::Host);
    }
    let url = Url::parse(text).map_err(|_| NoAddress::Host)?;
    if url.host().is_some_and(is_sound) { Ok(url) } else { Err(NoAddress::Host) }
}

/// Whether a host can exist: an IP address, or labels of letters, digits, hyphens and, as some hosts have them, underscores.
/// Letters beyond ASCII are encoded already.
pub fn is_sound(host: Host<&str>) -> bool {
    let Host::Domain(name) = host else { return true };
    // The root may be named.
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let is_bounded = !label.is_empty() && label.len() <= LABEL_BYTES_MAX;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    is_bounded && label.bytes().all(is_letter) && !label.starts_with('-') && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_begins_as_it_is_read_and_names_a_host_that_can_exist() {
        let long = |label: usize| format!("https://{}.example/", "a".repeat(label));
        let labels = |count: usize| format!("https://{}", vec!["a"; count].join("."));
        for good in [
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
            assert!(parse(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", NoAddress::Scheme),
            ("example.com", NoAddress::Scheme),
            ("https:x", NoAddress::Scheme),
            ("https:/x", NoAddress::Scheme),
            ("https:\\\\x", NoAddress::Scheme),
            ("https:/\\x", NoAddress::Scheme),
            ("ht\ttps://x", NoAddress::Scheme),
            ("ftp://example.com", NoAddress::Scheme),
            ("//example.com", NoAddress::Scheme),
            ("https://", NoAddress::Host),
            ("https:///example.com", NoAddress::Host),
            ("https://\\example.com", NoAddress::Host),
            ("https://?example.com", NoAddress::Host),
            ("https://#example.com", NoAddress::Host),
            ("https://./", NoAddress::Host),
            ("https://../", NoAddress::Host),
            ("https://a..b/", NoAddress::Host),
            ("https://.a/", NoAddress::Host),
            ("https://a../", NoAddress::Host),
            ("https://-a.example/", NoAddress::Host),
            ("https://a-.example/", NoAddress::Host),
            ("https://a!b.example/", NoAddress::Host),
            ("https://{a}.example/", NoAddress::Host),
            ("https://exa mple.com/", NoAddress::Host),
            ("https://exa\tmple.com/", NoAddress::Host),
            ("https://example.com/a\nb", NoAddress::Host),
            ("https://example.com\\@other.example/", NoAddress::Host),
            ("https://example.com:99999/", NoAddress::Host),
            ("https://:443/", NoAddress::Host),
            ("https://user@/", NoAddress::Host),
            (&long(64), NoAddress::Host),
            (&labels(128), NoAddress::Host),
        ] {
            assert_eq!(parse(bad).map(|url| url.to_string()), Err(why), "{bad:?}");
        }
    }
}
