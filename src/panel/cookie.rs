//! The cookies of the panel: of a session, and of a known device. Over https, the name of the session cookie has the
//! prefix `__Host-`, which binds it to this host and to https; without https, as on a local machine, it has a plain
//! name.

use actix_web::body::BoxBody;
use actix_web::http::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use actix_web::{HttpRequest, HttpResponse, Responder};
use hotline_persistence::sealed::{KeyError, Keyring, Location};
use hotline_persistence::tables::people::INSTALLATION;
use serde_json::Value;

use super::device::KNOWN_DAYS;
use crate::web::ApiResult;
use crate::web::response::reply::Reply;
use crate::web::response::schema::Schemas;

/// The names of the session cookie, over https and without.
const SESSION_SECURE: &str = "__Host-hotline";
const SESSION_PLAIN: &str = "hotline_session";

/// Lifetime of the session cookie in seconds: the maximum lifetime of a session.
const SESSION_MAX_AGE_S: u32 = 30 * 24 * 3600;

/// The names of the cookie that identifies a known device. It is sent only to the path for signing in, so it cannot
/// have the prefix `__Host-`, which requires the path `/`.
const DEVICE_SECURE: &str = "__Secure-hotline-device";
const DEVICE_PLAIN: &str = "hotline_device";

/// The path for which browsers send the device cookie.
const DEVICE_PATH: &str = "/panel/api/v1/session";

/// Separates the text of a session from its signature; neither contains it.
const SEPARATOR: char = '~';

/// The session cookie of a request.
pub(super) struct SessionCookie<'a> {
    /// The text of the session: its company and its key.
    pub(super) text: &'a str,
    /// This installation's signature of the text; empty if there is none.
    signature: &'a str,
}

impl SessionCookie<'_> {
    /// Whether this installation has signed the cookie: anyone can make one that names a company.
    pub(super) fn is_ours(&self, keys: &Keyring) -> bool {
        keys.has_sealed(&location(self.text), self.signature)
    }
}

/// What the signature of a session's text is bound to.
fn location(text: &str) -> Location<'_> {
    Location { column: "person_sessions.cookie", company: INSTALLATION, row: text }
}

/// The session cookie of a request.
pub(super) fn read_session(headers: &HeaderMap, is_https: bool) -> Option<SessionCookie<'_>> {
    let cookie = find_cookie(headers, if is_https { SESSION_SECURE } else { SESSION_PLAIN })?;
    let (text, signature) = cookie.split_once(SEPARATOR).unwrap_or((cookie, ""));
    Some(SessionCookie { text, signature })
}

/// The value of the session cookie: the text and its signature.
///
/// # Errors
/// When the key for the signature cannot be read.
pub(super) fn sign(keys: &Keyring, text: &str) -> Result<String, KeyError> {
    Ok(format!("{text}{SEPARATOR}{}", keys.seal_unstored(&location(text), b"")?))
}

/// The device cookie of a request.
pub(super) fn read_device(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    find_cookie(headers, if is_https { DEVICE_SECURE } else { DEVICE_PLAIN })
}

fn find_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let pairs = headers.get_all(COOKIE).filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
    let mut values = pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(key, _)| *key == name);
    let (_, text) = values.next()?;
    // A page of another host in the domain may have set a second cookie of this name, and nothing shows which is ours.
    values.next().is_none().then_some(text)
}

/// The header value that sets or deletes the session cookie.
fn session_cookie_header(text: Option<&str>, is_https: bool) -> Option<HeaderValue> {
    let (name, secure) = if is_https { (SESSION_SECURE, "; Secure") } else { (SESSION_PLAIN, "") };
    let (text, age) = text.map_or(("", 0), |text| (text, SESSION_MAX_AGE_S));
    HeaderValue::try_from(format!("{name}={text}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")).ok()
}

/// The header value that sets the device cookie.
fn device_cookie_header(text: &str, is_https: bool) -> Option<HeaderValue> {
    let (name, secure) = if is_https { (DEVICE_SECURE, "; Secure") } else { (DEVICE_PLAIN, "") };
    let age = KNOWN_DAYS * 24 * 3600;
    let line = format!("{name}={text}; Path={DEVICE_PATH}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(line).ok()
}

/// A response that may set cookies.
pub struct WithCookie<R> {
    reply: R,
    cookies: Vec<HeaderValue>,
}

impl<R> WithCookie<R> {
    /// Leaves the cookies unchanged.
    pub(super) fn unchanged(reply: R) -> Self {
        Self { reply, cookies: Vec::new() }
    }

    /// Sets the session cookie to this signed text.
    pub(super) fn set(reply: R, signed_text: &str, is_https: bool) -> Self {
        Self { reply, cookies: session_cookie_header(Some(signed_text), is_https).into_iter().collect() }
    }

    /// Deletes the session cookie.
    pub(super) fn deleted(reply: R, is_https: bool) -> Self {
        Self { reply, cookies: session_cookie_header(None, is_https).into_iter().collect() }
    }

    /// Also sets the device cookie.
    pub(super) fn and_device(mut self, text: &str, is_https: bool) -> Self {
        self.cookies.extend(device_cookie_header(text, is_https));
        self
    }
}

impl<R: Reply> Reply for WithCookie<R> {
    const STATUS: u16 = R::STATUS;

    fn body(&self) -> ApiResult<Vec<u8>> {
        self.reply.body()
    }

    fn recorded_body(&self) -> ApiResult<Vec<u8>> {
        self.reply.recorded_body()
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        R::schema(schemas)
    }
}

impl<R: Reply> Responder for WithCookie<R> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = self.reply.respond();
        for cookie in self.cookies {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_set_over_http_is_not_read_over_https_or_vice_versa() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("other=1; hotline_session=7.a"));
        headers.append(COOKIE, HeaderValue::from_static("__Host-hotline=7.b"));
        let text = |headers: &HeaderMap, is_https| read_session(headers, is_https).map(|cookie| cookie.text.to_owned());
        assert_eq!(text(&headers, false).as_deref(), Some("7.a"));
        assert_eq!(text(&headers, true).as_deref(), Some("7.b"));
        headers.append(COOKIE, HeaderValue::from_static("hotline_session=7.c"));
        assert_eq!(text(&headers, false), None, "two cookies of one name are ignored");
    }

    #[test]
    fn only_a_cookie_with_its_own_signature_is_ours() {
        let folder = tempfile::TempDir::new().expect("folder");
        let keys = Keyring::at(folder.path().join("secrets.key"));
        keys.load_or_create().expect("a key");
        let read_and_check = |cookie: &str| {
            let mut headers = HeaderMap::new();
            headers.append(COOKIE, HeaderValue::try_from(format!("hotline_session={cookie}")).expect("a header"));
            let cookie = read_session(&headers, false).expect("a cookie");
            (cookie.text.to_owned(), cookie.is_ours(&keys))
        };
        let (own_cookie, other_cookie) = (sign(&keys, "7.a").expect("sealed"), sign(&keys, "8.b").expect("sealed"));
        assert_eq!(read_and_check(&own_cookie), ("7.a".to_owned(), true));
        let foreign_signature = other_cookie.split_once(SEPARATOR).expect("a signature").1;
        for (cookie, text) in [
            ("7.a".to_owned(), "7.a"),
            ("7.a~".to_owned(), "7.a"),
            (format!("7.a~{foreign_signature}"), "7.a"),
            (own_cookie.replace("7.a", "7.b"), "7.b"),
            (own_cookie[..own_cookie.len() - 2].to_owned(), "7.a"),
        ] {
            assert_eq!(read_and_check(&cookie), (text.to_owned(), false), "{cookie}");
        }
    }

    #[test]
    fn a_cookie_is_bound_to_the_host_only_over_https() {
        let header =
            |text, is_https| session_cookie_header(text, is_https).expect("line").to_str().expect("text").to_owned();
        assert_eq!(
            header(Some("7.a"), true),
            "__Host-hotline=7.a; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict; Secure"
        );
        assert_eq!(header(None, false), "hotline_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
        let device =
            |is_https| device_cookie_header("v1.a", is_https).expect("line").to_str().expect("text").to_owned();
        let rest = "=v1.a; Path=/panel/api/v1/session; Max-Age=34560000; HttpOnly; SameSite=Strict";
        assert_eq!(device(true), format!("__Secure-hotline-device{rest}; Secure"));
        assert_eq!(device(false), format!("hotline_device{rest}"));
    }
}
