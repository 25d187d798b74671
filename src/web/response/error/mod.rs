//! The API's only error type, and the only mapping from causes to error responses.

mod constructors;
mod conversions;
mod reasons;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};
use hotline_persistence::Db;
use hotline_persistence::error::HolderQuery;
use serde_json::{Value, json};

pub use self::reasons::{OTHER as OTHER_REASON, code_of as code_of_reason, codes as reason_codes};
use crate::media::FileDeclaration;

/// The result of a handler.
pub type ApiResult<T> = Result<T, ApiError>;

/// Every error code; v1 only ever adds codes.
pub const CODES: [&str; 30] = [
    "ERR_API_BAD_REQUEST",
    "ERR_API_COMPANY_INACTIVE",
    "ERR_API_CONFLICT",
    "ERR_API_CONTACT_NOT_FOUND",
    "ERR_API_CONTACT_NOT_IDENTIFIED",
    "ERR_API_CONTACT_UNREACHABLE",
    "ERR_API_FORBIDDEN_ORIGIN",
    "ERR_API_FORBIDDEN_SCOPE",
    "ERR_API_IDEMPOTENCY_CONFLICT",
    "ERR_API_INTERACTIVE_INVALID",
    "ERR_API_INTERNAL",
    "ERR_API_LINK_EXPIRED",
    "ERR_API_MEDIA_EMPTY",
    "ERR_API_MEDIA_TYPE_MISMATCH",
    "ERR_API_MEDIA_TYPE_UNKNOWN",
    "ERR_API_METHOD_NOT_ALLOWED",
    "ERR_API_NOT_ENABLED",
    "ERR_API_NOT_FOUND",
    "ERR_API_PAYLOAD_TOO_LARGE",
    "ERR_API_PRECONDITION_FAILED",
    "ERR_API_RANGE_NOT_SATISFIABLE",
    "ERR_API_RATE_LIMITED",
    "ERR_API_SECOND_FACTOR",
    "ERR_API_SIGN_IN",
    "ERR_API_TICKET_CLOSED",
    "ERR_API_UNAUTHORIZED",
    "ERR_API_UNAVAILABLE",
    "ERR_API_UNSUPPORTED_MEDIA_TYPE",
    "ERR_API_VALIDATION",
    "ERR_API_WINDOW_CLOSED",
];

/// An error response.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// A stable identifier for programs.
    pub code: &'static str,
    /// A message for people.
    pub message: String,
    /// Details for programs.
    pub details: Option<Box<Value>>,
    /// `Retry-After` in seconds.
    pub retry_after_s: Option<u64>,
    /// The methods that this path has (`Allow`).
    pub allow: Option<String>,
    /// How to find the record that already has the requested value; looked up before the response is sent.
    pub holder: Option<Box<HolderQuery>>,
    /// Whether the outcome of the change is unknown. Then no response is sent and the connection is closed
    /// ([`OutcomeUnknown`]).
    pub is_outcome_unknown: bool,
}

/// Marks a response that must not be sent, because it is unknown whether the change was made.
pub struct OutcomeUnknown;

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            details: None,
            retry_after_s: None,
            allow: None,
            holder: None,
            is_outcome_unknown: false,
        }
    }

    /// Adds the name of a form's file to an error about its content or type. `field` is the file's part of the form,
    /// like `medias[0]`.
    pub(in crate::web) fn with_file(mut self, field: &str, declaration: &FileDeclaration) -> Self {
        const FILE_CODES: [&str; 3] =
            ["ERR_API_MEDIA_EMPTY", "ERR_API_MEDIA_TYPE_UNKNOWN", "ERR_API_MEDIA_TYPE_MISMATCH"];
        if FILE_CODES.contains(&self.code) {
            let name = declaration.file_name.as_deref();
            self.message = format!("{}: {}", name.unwrap_or("a file without a name"), self.message);
            self.details = Some(Box::new(json!({
                "field": field,
                "fileName": name,
                "mimeType": declaration.mime_type,
            })));
        }
        self
    }

    /// An internal error. Unlike [`ApiError::internal`], it has this message and is not logged here.
    pub(in crate::web) fn defect(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "ERR_API_INTERNAL", message)
    }

    /// Adds the id of the record that already has the requested value.
    pub(in crate::web) async fn with_holder_id(mut self, db: Db<'_>) -> Self {
        let Some(holder) = self.holder.take() else { return self };
        // If the record cannot be found, the error is sent without its id.
        if let (Ok(Some(id)), Some(details)) = (holder.find(db).await, &mut self.details) {
            details["id"] = json!(id);
        }
        self
    }

    /// The error as JSON, as it is sent.
    pub fn body(&self) -> String {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(details) = &self.details {
            error["details"] = Value::clone(details);
        }
        json!({"error": error}).to_string()
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status).content_type("application/json").body(self.body());
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.allow.as_deref().and_then(|allow| HeaderValue::from_str(allow).ok()) {
            response.headers_mut().insert(ALLOW, allow);
        }
        if self.is_outcome_unknown {
            response.extensions_mut().insert(OutcomeUnknown);
        }
        response
    }
}
