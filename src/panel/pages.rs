//! The pages of the panel: an application that runs in the browser. Every path below `/panel/` except the API is one of
//! its pages.

use std::sync::LazyLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::{self, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};

use crate::web::response::embedded_file::EmbeddedFile;
use crate::web::response::methods::read_only;
use crate::web::{ApiError, ApiResult};

/// The pages load nothing from other origins and nothing inline, and no other page may frame them.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// Files are revalidated at each visit, because pages and API must be of the same release. This costs a few bytes while
/// nothing has changed.
const CACHE_POLICY: &str = "no-cache";

static INDEX: LazyLock<EmbeddedFile> =
    LazyLock::new(|| EmbeddedFile::new("text/html; charset=utf-8", include_str!("assets/index.html")));
static SCRIPT: LazyLock<EmbeddedFile> =
    LazyLock::new(|| EmbeddedFile::new("text/javascript; charset=utf-8", include_str!("assets/panel.js")));
static STYLES: LazyLock<EmbeddedFile> =
    LazyLock::new(|| EmbeddedFile::new("text/css; charset=utf-8", include_str!("assets/panel.css")));
static ICON: LazyLock<EmbeddedFile> =
    LazyLock::new(|| EmbeddedFile::new("image/svg+xml", include_str!("assets/icon.svg")));

/// The served paths, as the metrics name them.
pub const PATHS: [&str; 3] = ["/panel", "/panel/assets/{file}", "/panel/{page}"];

/// Registers the pages. Other routes below `/panel/` must be registered first, because the pages match all of them.
pub fn configure(services: &mut ServiceConfig) {
    services
        .service(read_only(web::resource("/panel").get(redirect_to_pages)))
        .service(read_only(web::resource("/panel/assets/{file:.*}").get(asset)))
        .service(read_only(web::resource("/panel/{page:.*}").get(page)));
}

/// `GET /panel`: redirects to the pages.
async fn redirect_to_pages() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "/panel/")).finish()
}

/// `GET /panel/…`: the application itself determines the page from the URL.
async fn page(request: HttpRequest) -> HttpResponse {
    INDEX.respond(&request, set_security_headers)
}

/// `GET /panel/assets/…`.
async fn asset(request: HttpRequest, file: Path<String>) -> ApiResult<HttpResponse> {
    let file = match file.as_str() {
        "panel.js" => &SCRIPT,
        "panel.css" => &STYLES,
        "icon.svg" => &ICON,
        _ => return Err(ApiError::no_such_route()),
    };
    Ok(file.respond(&request, set_security_headers))
}

/// Sets the security headers.
fn set_security_headers(response: &mut HttpResponseBuilder) {
    response
        .insert_header((CACHE_CONTROL, CACHE_POLICY))
        .insert_header((CONTENT_SECURITY_POLICY, CONTENT_POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header((HeaderName::from_static("cross-origin-opener-policy"), "same-origin"))
        .insert_header((HeaderName::from_static("cross-origin-resource-policy"), "same-origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of the whole application as browsers load it.
    const COMPRESSED_MAX: usize = 150 * 1024;

    #[test]
    fn the_pages_are_small() {
        let bytes: usize = [&INDEX, &SCRIPT, &STYLES, &ICON].iter().map(|file| file.compressed().len()).sum();
        assert!(bytes <= COMPRESSED_MAX, "{bytes} bytes");
    }
}
