//! CSRF protection. Browsers also send cookies with requests that other websites cause, so a change is accepted only
//! when the browser states that a page of this origin made the request.

use std::net::IpAddr;

use actix_web::HttpRequest;
use actix_web::http::Method;
use actix_web::http::header::{HeaderValue, ORIGIN};
use ipnet::IpNet;

use crate::app::App;
use crate::web::connections::origin;

/// The browser's statement about the origin of a request. All browsers send it, and pages cannot forge it.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Whether the request may come from the panel's own page, as far as its method requires that.
pub(super) fn is_own(request: &HttpRequest, trusted: &[IpNet]) -> bool {
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let headers = request.headers();
    match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
        Some(b"same-origin") => true,
        // Typed into the address bar.
        Some(b"none") => is_read,
        Some(_) => false,
        None if is_read => true,
        None => {
            let sent_origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
            sent_origin.is_some_and(|sent_origin| origin::site(request, trusted).is_some_and(|own| own == sent_origin))
        }
    }
}

/// The client's address.
pub(super) fn address(request: &HttpRequest, trusted: &[IpNet]) -> Option<IpAddr> {
    origin::of(request.peer_addr(), request.headers(), trusted)
}

/// Whether the request came over https: a trusted proxy says so, or the panel's public URL is https.
pub(super) fn is_https(request: &HttpRequest, app: &App) -> bool {
    let is_https = |address: &str| address.starts_with("https://");
    app.media.public_url().is_some_and(is_https)
        || origin::site(request, &app.trusted_proxies).is_some_and(|own| is_https(&own))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn is_accepted(method: Method, headers: &[(&str, &str)]) -> bool {
        let mut request = TestRequest::default().method(method).insert_header(("host", "desk.example"));
        for header in headers {
            request = request.insert_header(*header);
        }
        is_own(&request.to_http_request(), &[])
    }

    #[test]
    fn changes_are_accepted_only_from_the_own_page() {
        for (headers, read, changed) in [
            (&[][..], true, false),
            (&[("sec-fetch-site", "same-origin")], true, true),
            (&[("sec-fetch-site", "none")], true, false),
            (&[("sec-fetch-site", "same-site")], false, false),
            (&[("sec-fetch-site", "cross-site")], false, false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://desk.example")], false, false),
            (&[("origin", "http://desk.example")], true, true),
            (&[("origin", "https://desk.example")], true, false),
            (&[("origin", "http://desk.example:8080")], true, false),
            (&[("origin", "http://evil.example")], true, false),
            (&[("origin", "null")], true, false),
        ] {
            assert_eq!(is_accepted(Method::GET, headers), read, "{headers:?}");
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                assert_eq!(is_accepted(method, headers), changed, "{headers:?}");
            }
        }
    }
}
