//! `If-Match`: a change that is made only if the record has not changed since the caller read it.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::IF_MATCH;
use actix_web::{FromRequest, HttpRequest};
use hotline_persistence::table::Expected;

use crate::web::response::error::{ApiError, ApiResult};

/// The states of the record that the request accepts: those that `If-Match` names, or any if the header is absent.
pub struct IfMatch(pub Expected);

impl IfMatch {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let mut states = Vec::new();
        let mut is_any = true;
        for header in request.headers().get_all(IF_MATCH) {
            is_any = false;
            let text = header.to_str().map_err(|_| ApiError::bad_request("If-Match must contain an ETag"))?;
            for tag in text.split(',').map(str::trim) {
                // `*` requires only that the record exists, as every change does.
                if tag == "*" {
                    return Ok(Self(Expected::Any));
                }
                // A proxy, or compression, may have made the tag weak.
                states.push(tag.trim_start_matches("W/").trim_matches('"').to_owned());
            }
        }
        Ok(Self(if is_any { Expected::Any } else { Expected::OneOf(states) }))
    }
}

impl FromRequest for IfMatch {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::of(request))
    }
}
