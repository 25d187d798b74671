//! The page of `hotline demo`: the visitor on the left, a small desk on the right. It is there in demo mode only, and
//! hands the demo's token to everybody who opens it.

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::{self, Data, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};

use super::demo_page::Demo;
use crate::web::methods::no_such_route;
use crate::web::{ApiError, ApiResult};

/// Nothing from elsewhere, and nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data: blob:; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files of the page, with their types.
const FILES: [(&str, &str, &str); 6] = [
    ("", "text/html; charset=utf-8", include_str!("assets/demo/index.html")),
    ("demo.css", "text/css; charset=utf-8", include_str!("assets/demo/demo.css")),
    ("demo.js", "text/javascript; charset=utf-8", include_str!("assets/demo/demo.js")),
    ("mug-desert.svg", "image/svg+xml", include_str!("assets/demo/mug-desert.svg")),
    ("mug-night.svg", "image/svg+xml", include_str!("assets/demo/mug-night.svg")),
    ("mug-ocean.svg", "image/svg+xml", include_str!("assets/demo/mug-ocean.svg")),
];

/// The settings of the page, with its token.
const SETTINGS: &str = "settings.json";

pub(super) fn configure(services: &mut ServiceConfig) {
    // Not there, whatever is asked of it: a service that is no demo has none of these.
    let path = |path: &str| web::resource(path.to_owned()).default_service(web::to(no_such_route));
    services
        .service(path("/").get(to_page))
        .service(path("/demo").get(to_page))
        .service(path("/demo/{file:.*}").get(file));
}

/// `GET /`: where the relative links of the page are right.
async fn to_page(demo: Data<Demo>) -> ApiResult<HttpResponse> {
    demo.page()?;
    Ok(HttpResponse::Found().insert_header((LOCATION, "/demo/")).finish())
}

/// `GET /demo/…`.
async fn file(demo: Data<Demo>, request: HttpRequest, file: Path<String>) -> ApiResult<HttpResponse> {
    let page = demo.page()?;
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((HeaderName::from_static("referrer-policy"), "no-referrer"))
        .insert_header((CACHE_CONTROL, "no-store"));
    if *file == SETTINGS {
        // A page elsewhere can make its own name point here, and would then read this as its own.
        if !is_named_plainly(&request) {
            return Err(ApiError::no_such_route());
        }
        return Ok(response.content_type("application/json").body(page.settings()?));
    }
    let (_, kind, text) = FILES.iter().find(|(name, ..)| *name == file.as_str()).ok_or_else(ApiError::no_such_route)?;
    Ok(response.insert_header((CONTENT_TYPE, *kind)).body(*text))
}

/// Whether the browser knows this service by `localhost` or an address, and not by a name that anybody may have made.
fn is_named_plainly(request: &HttpRequest) -> bool {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let url = url::Url::parse(&format!("http://{host}/"));
    url.is_ok_and(|url| match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(_) => true,
        None => false,
    })
}
