//! A file embedded in the program, as browsers load it: with an ETag for revalidation, and compressed once.

use std::io::Write;

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::compression::accepts_gzip;

/// An embedded text file.
pub struct EmbeddedFile {
    content_type: &'static str,
    text: &'static str,
    etag: HeaderValue,
    /// The ETag of the compressed text. It is weak: a strong one identifies exact bytes, and these differ.
    weak_etag: HeaderValue,
    /// `None` if compression does not make the text smaller.
    compressed: Option<Bytes>,
}

impl EmbeddedFile {
    /// Prepares a text with this content type.
    pub fn new(content_type: &'static str, text: &'static str) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let etag = HeaderValue::from_str(&format!("\"{hex}\"")).unwrap_or_else(|_| HeaderValue::from_static("\"\""));
        let weak_etag =
            HeaderValue::from_str(&format!("W/\"{hex}\"")).unwrap_or_else(|_| HeaderValue::from_static("W/\"\""));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).ok();
        let compressed = compressed.filter(|bytes| bytes.len() < text.len()).map(Bytes::from);
        Self { content_type, text, etag, weak_etag, compressed }
    }

    /// The response; `304` without the text if the client's copy is current. `add_headers` adds headers to either.
    pub fn respond(&self, request: &HttpRequest, add_headers: impl FnOnce(&mut HttpResponseBuilder)) -> HttpResponse {
        let is_current = request.headers().get(IF_NONE_MATCH).is_some_and(|tags| contains_etag(tags, &self.etag));
        let compressed = self.compressed.as_ref().filter(|_| accepts_gzip(request.headers()));
        let etag = if compressed.is_some() { &self.weak_etag } else { &self.etag };
        let mut response = if is_current { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header((ETAG, etag.clone())).insert_header((VARY, HeaderValue::from_static("Accept-Encoding")));
        add_headers(&mut response);
        if is_current {
            return response.finish();
        }
        response.insert_header((CONTENT_TYPE, self.content_type));
        match compressed {
            Some(bytes) => response.insert_header((CONTENT_ENCODING, "gzip")).body(bytes.clone()),
            None => response.body(self.text),
        }
    }

    /// The body for clients that accept gzip.
    #[cfg(test)]
    pub fn compressed(&self) -> &[u8] {
        self.compressed.as_deref().unwrap_or(self.text.as_bytes())
    }
}

/// Whether a list of ETags contains this one. The listed one is weak if the text was compressed, here or by a proxy.
fn contains_etag(tags: &HeaderValue, etag: &HeaderValue) -> bool {
    let (Ok(tags), Ok(etag)) = (tags.to_str(), etag.to_str()) else { return false };
    tags.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}
