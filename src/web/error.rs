//! The one error of the API, and the one table from what went wrong to what is answered.

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};
use hotline_actors::{Conflict, FieldError, Refusal};
use hotline_persistence::error::{Holder, Taken};
use hotline_persistence::{Db, Error};
use serde_json::{Value, json};

use super::bounds::FILES_PART;
use crate::media::{Declared, ReadError, Refused, StoreError, Unavailable};

/// What a handler answers.
pub type ApiResult<T> = Result<T, ApiError>;

/// Every code there is; v1 only ever gets more of them.
pub const CODES: [&str; 29] = [
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

/// Seconds after which a caller may try again when the store could not serve: about the time a restart takes.
const RETRY_AFTER_S: u64 = 1;

/// The same when the disk is nearly full: somebody must make room first.
const DISK_FULL_RETRY_AFTER_S: u64 = 60;

/// Why a request was not served as asked.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// HTTP status.
    pub status: StatusCode,
    /// Fixed identifier for programs.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// What programs may want besides.
    pub details: Option<Box<Value>>,
    /// Seconds after which to come back.
    pub retry_after_s: Option<u64>,
    /// The methods this path has.
    pub allow: Option<String>,
    /// Who has the value that was asked for: looked up before this is answered.
    pub holder: Option<Box<Holder>>,
    /// Whether nobody knows if the change was made. It is not told then: the connection ends ([`OutcomeUnknown`]).
    pub is_unknown: bool,
}

/// Marks an answer that is not to be given, because nobody knows whether the change was made.
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
            is_unknown: false,
        }
    }

    /// The token is missing or no good; the reason is never said.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "ERR_API_UNAUTHORIZED", "the token is missing or invalid")
    }

    /// A visitor's signed identity is none. The reason is said: the website's makers need it, and without the secret
    /// it helps nobody else.
    pub fn identity(reason: &str) -> Self {
        let mut error = Self::unauthorized();
        error.message = format!("the identity is not accepted: {reason}");
        error.details = Some(Box::new(json!([{"field": "identity", "reason": reason}])));
        error
    }

    /// The company is not active.
    pub fn company_inactive() -> Self {
        Self::new(StatusCode::FORBIDDEN, "ERR_API_COMPANY_INACTIVE", "the company is not active")
    }

    /// The company's plan has no API.
    pub fn not_enabled() -> Self {
        Self::new(StatusCode::FORBIDDEN, "ERR_API_NOT_ENABLED", "the API is not enabled in the company's plan")
    }

    /// The token may not do this.
    pub fn forbidden_scope(method: &str, module: &str) -> Self {
        let message = format!("the token has no permission for {method} in the module {module}");
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message)
    }

    /// The person's profile does not permit this.
    pub fn forbidden_to_person(method: &str, module: &str) -> Self {
        let message = format!("your profile has no permission for {method} in the module {module}");
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message)
    }

    /// This is for administrators.
    pub fn administrators_only() -> Self {
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", "this is for administrators")
    }

    /// A person speaks for nobody else.
    pub fn not_in_anothers_name() -> Self {
        let message = "a person acts in nobody else's name";
        let mut error = Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message);
        error.details = Some(Box::new(json!({"field": "userId", "reason": "is somebody else"})));
        error
    }

    /// Nobody has signed in, or not any more.
    pub fn signed_out() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "ERR_API_UNAUTHORIZED", "sign in first")
    }

    /// The e-mail, the password or the code is not right; which one, and why, is never said.
    pub fn sign_in() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "ERR_API_SIGN_IN", "this does not sign anybody in")
    }

    /// The session is not open before its second factor is given, or set up.
    pub fn second_factor() -> Self {
        let message = "the second factor must be given or set up first";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_SECOND_FACTOR", message)
    }

    /// A change that another website asks for, or nobody knows who.
    pub fn foreign_page() -> Self {
        let message = "changes are taken from the panel's own pages only";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_ORIGIN", message)
    }

    /// A link by which a password is chosen was used, or is too old.
    pub fn link_spent() -> Self {
        let message = "the link was used, or is too old; ask for another one";
        Self { message: message.to_owned(), ..Self::link_expired() }
    }

    /// Somebody tries to sign in too often.
    pub fn too_many_tries(retry_after_s: u64) -> Self {
        let message = "too many tries; wait a while".to_owned();
        Self { message, ..Self::rate_limited(retry_after_s) }
    }

    /// The page is not one that may embed this webchat.
    pub fn forbidden_origin() -> Self {
        let message = "the page's origin is not one this webchat allows";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_ORIGIN", message)
    }

    /// No such record, or another company's.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "ERR_API_NOT_FOUND", "record not found")
    }

    /// No such route.
    pub fn no_such_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "ERR_API_NOT_FOUND", "there is no such route")
    }

    /// No contact with this id.
    pub fn contact_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "ERR_API_CONTACT_NOT_FOUND", "contact not found")
    }

    /// Nothing in the send says whom it is for.
    pub fn contact_not_identified(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "ERR_API_CONTACT_NOT_IDENTIFIED", message)
    }

    /// The path is served, this method is not.
    pub fn method_not_allowed(allow: String) -> Self {
        // What may be read may be looked for.
        let allow = if allow.contains("HEAD") { allow } else { allow.replace("GET", "GET, HEAD") };
        let mut error = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "ERR_API_METHOD_NOT_ALLOWED",
            format!("the method is not allowed here; allowed: {allow}"),
        );
        error.allow = Some(allow);
        error
    }

    /// The request itself has no valid form.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "ERR_API_BAD_REQUEST", message)
    }

    /// The body is larger than is read.
    pub fn payload_too_large(limit: impl std::fmt::Display) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "ERR_API_PAYLOAD_TOO_LARGE", message)
    }

    /// The body is of a kind the endpoint does not take.
    pub fn unsupported_media_type() -> Self {
        let message = "the body must be application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "ERR_API_UNSUPPORTED_MEDIA_TYPE", message)
    }

    /// The body is packed in a way that is not known.
    pub fn unsupported_encoding() -> Self {
        let message = "the Content-Encoding must be gzip, deflate or identity";
        Self { message: message.to_owned(), ..Self::unsupported_media_type() }
    }

    /// The same where files may come along.
    pub fn neither_json_nor_form() -> Self {
        let message = "the body must be application/json or multipart/form-data";
        Self { message: message.to_owned(), ..Self::unsupported_media_type() }
    }

    /// The address of a file was good once.
    pub fn link_expired() -> Self {
        let message = "the address of this file has expired; read its message again for a fresh one";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_LINK_EXPIRED", message)
    }

    /// The range of a file that was asked for lies behind its end.
    pub fn range_not_satisfiable(size: u64) -> Self {
        let message = format!("the file has {size} bytes");
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "ERR_API_RANGE_NOT_SATISFIABLE", message)
    }

    /// Fields that are missing or hold what is not accepted.
    pub fn validation(fields: &[FieldError]) -> Self {
        Self::of_fields("ERR_API_VALIDATION", fields)
    }

    /// An interactive object the webchat cannot show.
    pub fn interactive_invalid(fields: &[FieldError]) -> Self {
        Self::of_fields("ERR_API_INTERACTIVE_INVALID", fields)
    }

    fn of_fields(code: &'static str, fields: &[FieldError]) -> Self {
        let named: Vec<String> = fields.iter().map(|error| format!("{} {}", error.field, error.reason)).collect();
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, named.join("; "));
        let details = fields.iter().map(|error| json!({"field": error.field, "reason": error.reason})).collect();
        error.details = Some(Box::new(Value::Array(details)));
        error
    }

    /// The same of one file of a form, which is named.
    pub(super) fn of_file(mut self, index: usize, declared: &Declared) -> Self {
        const OF_A_FILE: [&str; 3] =
            ["ERR_API_MEDIA_EMPTY", "ERR_API_MEDIA_TYPE_UNKNOWN", "ERR_API_MEDIA_TYPE_MISMATCH"];
        if OF_A_FILE.contains(&self.code) {
            let name = declared.file_name.as_deref();
            self.message = format!("{}: {}", name.unwrap_or("a file without a name"), self.message);
            self.details = Some(Box::new(json!({
                "field": format!("{FILES_PART}[{index}]"),
                "fileName": name,
                "mimeType": declared.mime_type,
            })));
        }
        self
    }

    /// A defect. What happened goes to the log, never to the caller.
    pub fn internal(defect: impl std::fmt::Display) -> Self {
        tracing::error!(%defect, "a request met a defect");
        Self::defect("internal error")
    }

    /// The answer to a defect.
    pub(super) fn defect(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "ERR_API_INTERNAL", message)
    }

    /// The store cannot serve now; nothing was changed.
    pub fn unavailable() -> Self {
        let mut error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ERR_API_UNAVAILABLE",
            "the service cannot take this now; try again",
        );
        error.retry_after_s = Some(RETRY_AFTER_S);
        error
    }

    /// The key was used for another request.
    pub fn idempotency_conflict() -> Self {
        let message = "the Idempotency-Key was used with another method, path or body";
        let mut error = Self::new(StatusCode::CONFLICT, "ERR_API_IDEMPOTENCY_CONFLICT", message);
        error.details = Some(Box::new(json!({"field": "Idempotency-Key", "reason": "used"})));
        error
    }

    /// The company has used up its minute.
    pub fn rate_limited(retry_after_s: u64) -> Self {
        let mut error =
            Self::new(StatusCode::TOO_MANY_REQUESTS, "ERR_API_RATE_LIMITED", "too many requests in this minute");
        error.retry_after_s = Some(retry_after_s);
        error
    }

    /// The visitor, their address or their company has sent as many bytes as an hour has.
    pub fn too_many_bytes(retry_after_s: u64) -> Self {
        let message = "too many bytes were sent in this hour".to_owned();
        Self { message, ..Self::rate_limited(retry_after_s) }
    }

    /// As many are open at once as may be: `what` says of which.
    pub fn too_many_open(what: &str, retry_after_s: u64) -> Self {
        Self { message: format!("too many {what} are open"), ..Self::rate_limited(retry_after_s) }
    }

    /// The record's state forbids it.
    pub fn conflict(message: &str, details: Value) -> Self {
        let mut error = Self::new(StatusCode::CONFLICT, "ERR_API_CONFLICT", message);
        error.details = Some(Box::new(details));
        error
    }
}

impl ApiError {
    /// With the id of the record that has the value which was asked for.
    pub(super) async fn naming_holder(mut self, db: Db<'_>) -> Self {
        let Some(holder) = self.holder.take() else { return self };
        // Whether it can be found or not, the value is taken.
        if let (Ok(Some(id)), Some(details)) = (holder.find(db).await, &mut self.details) {
            details["id"] = json!(id);
        }
        self
    }

    /// The envelope, as it goes out.
    pub fn body(&self) -> String {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(details) = &self.details {
            error["details"] = Value::clone(details);
        }
        json!({"error": error}).to_string()
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::not_found(),
            Refusal::Invalid(fields) => Self::validation(&fields),
            Refusal::TicketClosed(ticket) => {
                let mut error = Self::new(StatusCode::CONFLICT, "ERR_API_TICKET_CLOSED", "the ticket is closed");
                error.details =
                    Some(Box::new(json!({"ticketId": ticket, "field": "ticketId", "id": ticket, "reason": "closed"})));
                error
            }
            Refusal::AlreadyOpen(ticket) => {
                let details = json!({"ticketId": ticket, "field": "ticketId", "id": ticket, "reason": "open_ticket"});
                Self::conflict("the contact has an open ticket on this channel", details)
            }
            Refusal::Conflict(Conflict { state, reason, record, by }) => {
                let mut details = json!({"state": state, "reason": reason});
                if let Some((field, id)) = record {
                    details["field"] = json!(field);
                    details["id"] = id;
                } else {
                    let by = by.into_iter().map(|(kind, count)| json!({"type": kind, "count": count}));
                    details["by"] = by.collect();
                }
                Self::conflict(state, details)
            }
            Refusal::ContactUnreachable(why) => {
                let message = format!("the contact cannot receive on this channel: {}", why.in_words());
                let code = "ERR_API_CONTACT_UNREACHABLE";
                let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message);
                error.details = Some(Box::new(json!({"reason": why.as_str()})));
                error
            }
            Refusal::WindowClosed => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "ERR_API_WINDOW_CLOSED",
                "the contact has not written on this channel within the last 24 hours: only a template can be sent",
            ),
            Refusal::InteractiveInvalid(fields) => Self::interactive_invalid(&fields),
            Refusal::ContactNotFound => Self::contact_not_found(),
            Refusal::Unavailable(reason) => {
                tracing::debug!(reason, "refused for now");
                Self::unavailable()
            }
            Refusal::Unknown(reason) => {
                tracing::warn!(reason, "nobody knows whether a change was made");
                Self { is_unknown: true, ..Self::unavailable() }
            }
            Refusal::Gone | Refusal::ContactLeaving(_) => Self::unavailable(),
            Refusal::Defect(defect) => Self::internal(defect),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Taken(Taken { field, holder }) => {
                let refused = Self::conflict("a unique value is taken", json!({"field": field}));
                Self { holder: holder.map(Box::new), ..refused }
            }
            Error::InUse => {
                let state = "the record is in use";
                Self::conflict(state, json!({"state": state, "reason": "in_use", "by": []}))
            }
            error => Refusal::from(error).into(),
        }
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        let code = match refused {
            Refused::TooLarge(_) => return Self { message: refused.to_string(), ..Self::payload_too_large("") },
            Refused::Empty => "ERR_API_MEDIA_EMPTY",
            Refused::TypeUnknown => "ERR_API_MEDIA_TYPE_UNKNOWN",
            Refused::TypeMismatch => "ERR_API_MEDIA_TYPE_MISMATCH",
        };
        Self::new(StatusCode::BAD_REQUEST, code, refused.to_string())
    }
}

impl<E: Into<Self>> From<StoreError<E>> for ApiError {
    fn from(error: StoreError<E>) -> Self {
        match error {
            StoreError::Source(error) => error.into(),
            StoreError::Refused(refused) => refused.into(),
            StoreError::Unavailable(reason) => reason.into(),
        }
    }
}

impl From<Unavailable> for ApiError {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable {
            // A full disk is nobody's request.
            Unavailable::Store(reason) => {
                tracing::warn!(reason, "a file cannot be stored");
                Self::unavailable()
            }
            // It was logged when it was found: a line for every request would fill what is left.
            Unavailable::DiskFull => Self { retry_after_s: Some(DISK_FULL_RETRY_AFTER_S), ..Self::unavailable() },
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound => Self::not_found(),
            ReadError::Unavailable(reason) => {
                tracing::warn!(reason, "a file cannot be read");
                Self::unavailable()
            }
        }
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
        if self.is_unknown {
            response.extensions_mut().insert(OutcomeUnknown);
        }
        response
    }
}
