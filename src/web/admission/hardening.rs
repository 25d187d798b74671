//! Security headers, added to every response because browsers may show any response: no content sniffing, and only
//! https from now on for clients that used https.

use actix_web::dev::ServiceResponse;
use actix_web::http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS};
use actix_web::web::Data;
use ipnet::IpNet;

use crate::web::connections::origin;

/// Browsers must not guess the content type.
pub const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

/// Browsers use only https for a year. Subdomains are not included: they may not belong to the service.
const HTTPS_ONLY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// How requests over https are recognized.
#[derive(Clone, Debug)]
pub struct Https {
    /// Whether the service is reached at an https address and nowhere else.
    pub is_exclusive: bool,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
}

/// Adds the headers to a response.
pub(super) fn harden<B>(response: &mut ServiceResponse<B>) {
    let request = response.request();
    let is_https = request
        .app_data::<Data<Https>>()
        .is_some_and(|https| https.is_exclusive || origin::is_https(request, &https.trusted_proxies));
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    if is_https {
        headers.insert(STRICT_TRANSPORT_SECURITY, HTTPS_ONLY);
    }
}
