//! The page of `hotline demo`: the visitor on the left, an agent's page on the right. It exists only in demo mode, and
//! gives the demo's token to everyone who opens it.

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::{self, Data, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};

use super::demo_page::Demo;
use crate::web::response::methods::no_such_route;
use crate::web::{ApiError, ApiResult};

/// The content security policy: nothing from other origins, and no inline scripts or styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data: blob:; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files of the page: name, content type and text.
const FILES: [(&str, &str, &str); 6] = [
    ("", "text/html; charset=utf-8", include_str!("assets/demo/index.html")),
    ("demo.css", "text/css; charset=utf-8", include_str!("assets/demo/demo.css")),
    ("demo.js", "text/javascript; charset=utf-8", include_str!("assets/demo/demo.js")),
    ("mug-desert.svg", "image/svg+xml", include_str!("assets/demo/mug-desert.svg")),
    ("mug-night.svg", "image/svg+xml", include_str!("assets/demo/mug-night.svg")),
    ("mug-ocean.svg", "image/svg+xml", include_str!("assets/demo/mug-ocean.svg")),
];

/// The settings of the page, including its token.
const SETTINGS: &str = "settings.json";

pub(super) fn configure(services: &mut ServiceConfig) {
    // Methods other than `GET` respond with 404, as do all methods unless this is a demo.
    let resource = |path: &str| web::resource(path.to_owned()).default_service(web::to(no_such_route));
    services
        .service(resource("/").get(redirect_to_page))
        .service(resource("/demo").get(redirect_to_page))
        .service(resource("/demo/{file:.*}").get(show_file));
}

/// `GET /` and `GET /demo`: redirect to `/demo/`, where the page's relative links work.
async fn redirect_to_page(demo: Data<Demo>) -> ApiResult<HttpResponse> {
    demo.page()?;
    Ok(HttpResponse::Found().insert_header((LOCATION, "/demo/")).finish())
}

/// `GET /demo/…`.
async fn show_file(demo: Data<Demo>, request: HttpRequest, file: Path<String>) -> ApiResult<HttpResponse> {
    let page = demo.page()?;
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((HeaderName::from_static("referrer-policy"), "no-referrer"))
        .insert_header((CACHE_CONTROL, "no-store"));
    if *file == SETTINGS {
        // Prevents DNS rebinding: a foreign page could let its own host name point here, and then read the settings as
        // same-origin.
        if !is_localhost_or_ip(&request) {
            return Err(ApiError::no_such_route());
        }
        return Ok(response.content_type("application/json").body(page.settings()?));
    }
    let (_, content_type, text) =
        FILES.iter().find(|(name, ..)| *name == file.as_str()).ok_or_else(ApiError::no_such_route)?;
    Ok(response.insert_header((CONTENT_TYPE, *content_type)).body(*text))
}

/// Whether the `Host` is `localhost` or an IP address, and not a name that someone could have registered.
fn is_localhost_or_ip(request: &HttpRequest) -> bool {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let url = url::Url::parse(&format!("http://{host}/"));
    url.is_ok_and(|url| match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(_) => true,
        None => false,
    })
}
