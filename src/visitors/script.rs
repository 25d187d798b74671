//! `GET …/widget.js`: the widget, as one script.

use std::io::Write;
use std::sync::LazyLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, VARY,
};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::described::behind_the_door;
use crate::openapi::{Describes, Operation, Written};
use crate::web::compression::takes_gzip;
use crate::web::schema::Schemas;

/// The script.
const SCRIPT: &str = include_str!("assets/widget/widget.js");

/// How long a browser shows a widget that may have a successor: a day at most, and while it asks for the new one.
const CACHED: &str = "public, max-age=300, stale-while-revalidate=86400";

struct Packed {
    etag: HeaderValue,
    /// None should it not be smaller.
    compressed: Option<Bytes>,
}

/// Made once, when the first page asks for it.
static MADE: LazyLock<Packed> = LazyLock::new(|| {
    let digest = Sha256::digest(SCRIPT.as_bytes());
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let etag = HeaderValue::from_str(&format!("\"{name}\"")).unwrap_or_else(|_| HeaderValue::from_static("\"\""));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let compressed = encoder.write_all(SCRIPT.as_bytes()).and_then(|()| encoder.finish()).ok();
    let compressed = compressed.filter(|bytes| bytes.len() < SCRIPT.len()).map(Bytes::from);
    Packed { etag, compressed }
});

/// The widget.
pub struct Script;

impl Describes for Script {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        behind_the_door(operation);
        operation.content_type = "text/javascript";
        operation.success = (200, Some(json!({"type": "string", "description": "The script."})));
    }
}

/// Shows it.
pub async fn show(request: HttpRequest) -> Written<Script> {
    let etag = MADE.etag.clone();
    let is_known = request.headers().get(IF_NONE_MATCH).is_some_and(|known| names(known, &etag));
    let mut response = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response
        .insert_header((ETAG, etag))
        .insert_header((CACHE_CONTROL, CACHED))
        .insert_header((VARY, HeaderValue::from_static("Accept-Encoding")))
        // Pages that isolate themselves embed it all the same.
        .insert_header((HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"));
    if is_known {
        return response.finish().into();
    }
    response.insert_header((CONTENT_TYPE, "text/javascript; charset=utf-8"));
    match &MADE.compressed {
        Some(bytes) if takes_gzip(request.headers()) => {
            response.insert_header((CONTENT_ENCODING, "gzip")).body(bytes.clone()).into()
        }
        _ => response.body(SCRIPT).into(),
    }
}

/// What a page is told that embeds a webchat there is not: its author finds it in the browser's console.
const NOWHERE: &str = concat!(
    "console.warn(\"Hotline webchat: no webchat has the public key in this address; see `hotline channel list`:\", ",
    "document.currentScript ? document.currentScript.src : \"\");\n"
);

/// Shows it. Not `404`: a browser runs no script that was not found.
pub(super) fn nowhere() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/javascript; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"))
        .body(NOWHERE)
}

/// Whether a list of tags names this one; a proxy may have made it a weak one.
fn names(known: &HeaderValue, etag: &HeaderValue) -> bool {
    let (Ok(known), Ok(etag)) = (known.to_str(), etag.to_str()) else { return false };
    known.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Bytes of the widget as browsers load it.
    const COMPRESSED_MAX: usize = 30 * 1024;

    #[test]
    fn the_widget_is_small_and_whole() {
        let compressed = MADE.compressed.as_ref().expect("it compresses");
        assert!(compressed.len() <= COMPRESSED_MAX, "{} bytes", compressed.len());
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&compressed[..]).read_to_string(&mut unpacked).expect("gzip");
        assert_eq!(unpacked, SCRIPT);
    }
}
