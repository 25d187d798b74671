//! `GET …/widget.js`: the widget, as one script.

use std::sync::LazyLock;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;

use super::document::describe_webchat;
use crate::openapi::{DocumentedResponse, Operation, ResponseDescription};
use crate::web::response::embedded_file::EmbeddedFile;
use crate::web::response::schema::Schemas;

const SCRIPT: &str = include_str!("assets/widget/widget.js");

/// Browsers use the widget for five minutes without a check, and for a day after that while they check for a new one in
/// the background.
const CACHE_DIRECTIVES: &str = "public, max-age=300, stale-while-revalidate=86400";

/// Compressed once, at the first request.
static WIDGET: LazyLock<EmbeddedFile> = LazyLock::new(|| EmbeddedFile::new("text/javascript; charset=utf-8", SCRIPT));

/// The widget.
pub struct Script;

impl ResponseDescription for Script {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        describe_webchat(operation);
        operation.content_type = "text/javascript";
        operation.success = (200, Some(json!({"type": "string", "description": "The script."})));
    }
}

/// `GET …/widget.js`.
pub async fn show(request: HttpRequest) -> DocumentedResponse<Script> {
    let response = WIDGET.respond(&request, |response| {
        response
            .insert_header((CACHE_CONTROL, CACHE_DIRECTIVES))
            // Pages with cross-origin isolation may embed it too.
            .insert_header((HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"));
    });
    response.into()
}

/// The script for a page that embeds a webchat that does not exist: its author sees the message in the browser's
/// console.
const UNKNOWN_WEBCHAT: &str = concat!(
    "console.warn(\"Hotline webchat: no webchat has the public key in this address; see `hotline channel list`:\", ",
    "document.currentScript ? document.currentScript.src : \"\");\n"
);

/// Responds with [`UNKNOWN_WEBCHAT`]. The status is not `404`, because browsers do not run a script with that status.
pub(super) fn unknown_webchat() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/javascript; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"))
        .body(UNKNOWN_WEBCHAT)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Maximum size of the widget as browsers load it.
    const COMPRESSED_MAX: usize = 30 * 1024;

    #[test]
    fn the_widget_is_small_and_whole() {
        let compressed = WIDGET.compressed();
        assert!(compressed.len() <= COMPRESSED_MAX, "{} bytes", compressed.len());
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(compressed).read_to_string(&mut unpacked).expect("gzip");
        assert_eq!(unpacked, SCRIPT);
    }
}
