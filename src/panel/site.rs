//! Where a request comes from: its page, its address, and whether it came over https.
//!
//! The check of the page prevents CSRF. Browsers also send cookies with requests that other websites cause, so a change
//! is accepted only when the browser states that a page of this origin made the request.

use std::net::IpAddr;

use actix_web::HttpRequest;
use actix_web::http::Method;
use actix_web::http::header::{HeaderValue, ORIGIN};
use ipnet::IpNet;

use crate::app::App;
use crate::web::connections::origin;
use crate::web::{ApiError, ApiResult};

/// The browser's statement about the origin of a request, which pages cannot forge. Browsers omit it over plain http to
/// another machine; then `Origin` counts.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Checks that the request comes from the panel's own page, as far as its method requires that. The page's origin is
/// the one that the request was made to, or the public URL.
///
/// # Errors
/// `403`; if a proxy in front is the cause, it names the missing header or option.
pub(super) fn check_page(request: &HttpRequest, trusted: &[IpNet], public_url: Option<&str>) -> ApiResult<()> {
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let headers = request.headers();
    let is_accepted = match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
        Some(b"same-origin") => true,
        // The address was typed into the address bar.
        Some(b"none") => is_read,
        Some(_) => false,
        None if is_read => true,
        None => {
            let Some(page) = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok()) else {
                return Err(ApiError::foreign_page(None));
            };
            let is_own_page =
                public_url == Some(page) || origin::site(request, trusted).is_some_and(|site| site == page);
            return if is_own_page {
                Ok(())
            } else {
                Err(ApiError::foreign_page(origin::proxy_advice(request, trusted, page)))
            };
        }
    };
    if is_accepted { Ok(()) } else { Err(ApiError::foreign_page(None)) }
}

/// The client's address.
pub(super) fn address(request: &HttpRequest, trusted: &[IpNet]) -> Option<IpAddr> {
    origin::of(request.peer_addr(), request.headers(), trusted)
}

/// Whether the request came over https: a trusted proxy says so, or the panel's public URL is https.
pub(super) fn is_https(request: &HttpRequest, app: &App) -> bool {
    let is_https = |address: &str| address.starts_with("https://");
    app.media.public_url().is_some_and(is_https)
        || origin::site(request, &app.trusted_proxies).is_some_and(|site| is_https(&site))
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
        check_page(&request.to_http_request(), &[], None).is_ok()
    }

    /// The error of a change from a page of this origin through a trusted proxy; `None` if it is accepted.
    fn refusal_of_change(page: &str, public_url: Option<&str>, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = TestRequest::post().insert_header(("origin", page));
        request = request.peer_addr("10.0.0.1:4711".parse().expect("address"));
        for header in headers {
            request = request.insert_header(*header);
        }
        let trusted = ["10.0.0.0/8".parse().expect("network")];
        let result = check_page(&request.to_http_request(), &trusted, public_url);
        result.err().map(|error| error.to_string())
    }

    #[test]
    fn a_refusal_names_the_header_or_option_that_a_proxy_lacks() {
        let page = "https://desk.example";
        let host = ("host", "desk.example");
        let scheme = ("x-forwarded-proto", "https");
        assert_eq!(refusal_of_change(page, None, &[host, scheme]), None);
        assert_eq!(
            refusal_of_change(page, None, &[("host", "127.0.0.1:8080"), scheme, ("x-forwarded-host", "desk.example")]),
            None
        );
        let without_scheme = refusal_of_change(page, None, &[host]).expect("refused");
        assert!(
            without_scheme.contains("`X-Forwarded-Proto`") && without_scheme.contains("`--public-url`"),
            "{without_scheme}"
        );
        let without_host = refusal_of_change(page, None, &[("host", "127.0.0.1:8080"), scheme]).expect("refused");
        assert!(without_host.contains("`Host`"), "{without_host}");
        let untrusted = TestRequest::post().peer_addr("192.0.2.1:4711".parse().expect("address"));
        let untrusted = untrusted.insert_header(("origin", page)).insert_header(host).insert_header(scheme);
        let untrusted = check_page(&untrusted.to_http_request(), &[], None).expect_err("refused").to_string();
        assert!(untrusted.contains("`--trusted-proxy`"), "{untrusted}");
        // Another website's page, without a proxy: nothing is missing.
        let foreign = TestRequest::post().insert_header(("origin", "null")).insert_header(host);
        let foreign = check_page(&foreign.to_http_request(), &[], None).expect_err("refused").to_string();
        assert!(!foreign.contains('`'), "{foreign}");
    }

    #[test]
    fn the_public_url_is_an_origin_of_the_panel() {
        let public_url = Some("https://desk.example");
        let proxy_headers = [("host", "127.0.0.1:8080")];
        assert_eq!(refusal_of_change("https://desk.example", public_url, &proxy_headers), None);
        for page in ["http://desk.example", "https://desk.example:8443", "https://evil.example", "null"] {
            assert!(refusal_of_change(page, public_url, &proxy_headers).is_some(), "{page}");
        }
        let cross_site_headers = [("host", "127.0.0.1:8080"), ("sec-fetch-site", "cross-site")];
        assert!(
            refusal_of_change("https://desk.example", public_url, &cross_site_headers).is_some(),
            "the browser's statement counts"
        );
    }

    #[test]
    fn changes_are_accepted_only_from_the_panels_own_page() {
        for (headers, accepts_read, accepts_change) in [
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
            assert_eq!(is_accepted(Method::GET, headers), accepts_read, "{headers:?}");
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                assert_eq!(is_accepted(method, headers), accepts_change, "{headers:?}");
            }
        }
    }
}
