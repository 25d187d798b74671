//! The mail relay, parsed from its URL.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use url::Url;

/// The ports for mail submission (RFC 8314): with TLS from the first byte, and with STARTTLS.
const PORT_TLS: u16 = 465;
const PORT_STARTTLS: u16 = 587;

/// The encryption of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Security {
    /// TLS from the first byte.
    Tls,
    /// STARTTLS before anything is sent; a relay without it gets nothing.
    StartTls,
    /// No encryption.
    None,
}

/// A relay, with our credentials there.
#[derive(Clone, PartialEq, Eq)]
pub struct Relay {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) security: Security,
    /// User and password.
    pub(super) login: Option<(String, String)>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relay({}:{}, {:?})", self.host, self.port, self.security)
    }
}

impl FromStr for Relay {
    type Err = String;

    /// Parses `smtps://USER:PASSWORD@HOST:PORT`, or `smtp://…` for STARTTLS. Errors never contain the text, because it
    /// includes a password.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "must be smtps://USER:PASSWORD@HOST:PORT, or smtp:// for STARTTLS";
        let url = Url::parse(text).map_err(|_| FORM.to_owned())?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(FORM)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(FORM.to_owned());
        }
        let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let security = match (url.scheme(), url.query()) {
            ("smtps", None) => Security::Tls,
            // Connections within this machine cannot be intercepted.
            ("smtp", None) if is_local => Security::None,
            ("smtp", None | Some("tls=required")) => Security::StartTls,
            ("smtp", Some("tls=none")) => Security::None,
            ("smtp", Some(_)) => return Err("supports only the parameters tls=required and tls=none".to_owned()),
            _ => return Err(FORM.to_owned()),
        };
        let decode = |part: &str| percent_decode_str(part).decode_utf8().map(String::from).map_err(|_| FORM.to_owned());
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            (user, Some(password)) if !user.is_empty() => Some((decode(user)?, decode(password)?)),
            _ => return Err("must have both a user and a password, or neither".to_owned()),
        };
        if login.is_some() && security == Security::None && !is_local {
            return Err("must not send a password without TLS".to_owned());
        }
        let default_port = if security == Security::Tls { PORT_TLS } else { PORT_STARTTLS };
        Ok(Self { host, port: url.port().unwrap_or(default_port), security, login })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_is_parsed_from_its_url_and_passwords_are_never_shown() {
        let relay = |text: &str| text.parse::<Relay>();
        let login = Some(("desk@acme".to_owned(), "p:s/w".to_owned()));
        for (text, host, port, security, login) in [
            ("smtps://desk%40acme:p%3As%2Fw@mail.example", "mail.example", 465, Security::Tls, login.clone()),
            ("smtp://desk%40acme:p%3As%2Fw@mail.example/", "mail.example", 587, Security::StartTls, login.clone()),
            ("smtp://mail.example:25?tls=required", "mail.example", 25, Security::StartTls, None),
            ("smtp://10.0.0.7:1025?tls=none", "10.0.0.7", 1025, Security::None, None),
            ("smtp://127.0.0.1:1025", "127.0.0.1", 1025, Security::None, None),
            ("smtp://desk%40acme:p%3As%2Fw@[::1]:25", "::1", 25, Security::None, login),
            ("smtp://localhost:25?tls=required", "localhost", 25, Security::StartTls, None),
        ] {
            let expected = Relay { host: host.to_owned(), port, security, login };
            assert!(relay(text).expect(text) == expected, "{text}: {:?}", relay(text));
        }
        for bad in [
            "mail.example",
            "http://mail.example",
            "smtp://",
            "smtp://mail.example/path",
            "smtp://mail.example?tls=opportunistic",
            "smtps://mail.example?tls=none",
            "smtp://hidden@mail.example",
            "smtp://:hidden@mail.example",
            "smtp://desk:hidden@mail.example?tls=none",
        ] {
            let error_text = relay(bad).expect_err(bad);
            assert!(!error_text.contains("hidden"), "{error_text}");
        }
        let debug_text = format!("{:?}", relay("smtps://desk:hidden@mail.example"));
        assert!(!debug_text.contains("hidden") && debug_text.contains("mail.example:465"), "{debug_text}");
    }
}
