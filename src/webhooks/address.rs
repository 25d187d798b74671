//! Validation of a webhook's URL.

use url::Host;

use crate::web_address::{self, InvalidWebAddress};

/// Maximum length of a URL, in characters.
pub const URL_CHARACTERS_MAX: usize = 2_000;

/// Checks the form of a URL: `https`, or `http` to this machine only. Whether the operator has allowed `http` to this
/// machine is checked by [`super::Webhooks::check`].
///
/// # Errors
/// A phrase that follows the field's name.
pub fn check_url_form(text: &str) -> Result<(), String> {
    if text.chars().count() > URL_CHARACTERS_MAX {
        return Err(format!("must have at most {URL_CHARACTERS_MAX} characters"));
    }
    let url = web_address::parse(text).map_err(|error| match error {
        InvalidWebAddress::Scheme => "must be a URL that starts with https://".to_owned(),
        InvalidWebAddress::Host => "must include a host".to_owned(),
    })?;
    let is_this_machine = match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.') == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_this_machine => Ok(()),
        _ => Err("must start with https://".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::check_url_form;

    #[test]
    fn a_url_is_https_unless_its_host_is_this_machine() {
        for good in [
            "https://example.com/a?b=c",
            "https://127.0.0.1",
            "http://127.0.0.1:9",
            "http://localhost/x",
            "http://[::1]/",
        ] {
            assert_eq!(check_url_form(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "example.com",
            "http://example.com",
            "http://10.0.0.1/",
            "ftp://localhost/",
            "https://",
            "https:///example.com",
            "https://\\example.com",
            "https:x",
            "https:/x",
            "https:\\\\x",
            "https://./",
            "https://a..b/",
            "http:localhost",
            "/a",
            "http://localhost.example.com/",
        ] {
            assert!(check_url_form(bad).is_err(), "{bad}");
        }
        assert!(check_url_form(&format!("https://example.com/{}", "x".repeat(2_000))).is_err());
    }
}
