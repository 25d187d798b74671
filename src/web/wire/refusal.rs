//! What is said to somebody whose request no handler answers.

use std::time::SystemTime;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HttpDate};

use crate::web::ApiError;
use crate::web::request_id::new_id;

/// Seconds after which a connection may be free again.
const RETRY_AFTER_S: u64 = 1;

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The head is malformed.
    NotHttp,
    /// The head is larger than is read.
    HeadTooLarge,
    /// The rest of the head did not come in time.
    HeadTooSlow,
    /// The client stopped in the middle of the head.
    HeadCut,
    /// The address has as many connections as it may.
    TooMany,
    /// The framing of the body is malformed, and no handler has said so.
    BodyBroken,
}

impl Refusal {
    fn error(self) -> ApiError {
        let (status, message) = match self {
            Self::NotHttp => (StatusCode::BAD_REQUEST, "the request is not valid HTTP"),
            Self::HeadTooLarge => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the request line and the headers are too large")
            }
            Self::HeadTooSlow => (StatusCode::REQUEST_TIMEOUT, "the request line and the headers took too long"),
            Self::HeadCut => (StatusCode::BAD_REQUEST, "the request ends before its headers do"),
            Self::TooMany => {
                let message = "this address has as many connections open as it may".to_owned();
                return ApiError { message, ..ApiError::rate_limited(RETRY_AFTER_S) };
            }
            Self::BodyBroken => (StatusCode::BAD_REQUEST, "the chunks of the body are not valid HTTP"),
        };
        ApiError { status, ..ApiError::bad_request(message) }
    }

    /// Adds the whole response, the last of its connection, to what is written.
    pub(super) fn write(self, is_head: bool, told: &HeaderMap, out: &mut Vec<u8>) {
        let error = self.error();
        let id = new_id();
        let id = id.to_str().unwrap_or_default();
        tracing::debug!(request.id = id, status = error.status.as_u16(), reason = error.message, "refused on the wire");
        let body = error.body();
        let date = HttpDate::from(SystemTime::now());
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-length: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             x-request-id: {id}\r\ndate: {date}\r\n",
            error.status,
            body.len(),
        );
        out.extend_from_slice(head.as_bytes());
        for (name, value) in told {
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if !is_head {
            out.extend_from_slice(body.as_bytes());
        }
    }
}
