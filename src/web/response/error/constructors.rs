//! Constructors of all error responses: status, code and message.

use actix_web::http::StatusCode;
use hotline_actors::FieldError;
use serde_json::{Value, json};

use super::ApiError;
use super::reasons::code_of;

/// `Retry-After` in seconds when the service is unavailable: about the time a restart takes.
const RETRY_AFTER_S: u64 = 1;

/// What is wrong with a field: the reason for people, its code and parameters for programs.
fn detail(field: &str, reason: &str) -> Value {
    let (code, params) = code_of(reason);
    json!({"field": field, "reason": reason, "code": code, "params": params})
}

impl ApiError {
    /// The token is missing or invalid; the response never says which.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "ERR_API_UNAUTHORIZED", "the token is missing or invalid")
    }

    /// A visitor's signed identity is invalid. The reason is included: the website's developers need it, and
    /// others cannot use it without the secret.
    pub fn invalid_identity(reason: &str) -> Self {
        let mut error = Self::unauthorized();
        error.message = format!("the identity is invalid: {reason}");
        error.details = Some(Box::new(json!([detail("identity", reason)])));
        error
    }

    /// The company is not active.
    pub fn company_inactive() -> Self {
        Self::new(StatusCode::FORBIDDEN, "ERR_API_COMPANY_INACTIVE", "the company is not active")
    }

    /// The company's plan does not include the API.
    pub fn not_enabled() -> Self {
        Self::new(StatusCode::FORBIDDEN, "ERR_API_NOT_ENABLED", "the company's plan does not include the API")
    }

    /// The token has no permission for this.
    pub fn forbidden_scope(method: &str, module: &str) -> Self {
        let message = format!("the token has no permission for {method} in the module {module}");
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message)
    }

    /// The person's profile does not permit this.
    pub fn forbidden_to_person(method: &str, module: &str) -> Self {
        let message = format!("your profile has no permission for {method} in the module {module}");
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message)
    }

    /// Only administrators may do this.
    pub fn administrators_only() -> Self {
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", "only administrators may do this")
    }

    /// A field that only administrators of the installation may set.
    pub fn installation_admins_only(field: &str) -> Self {
        let message = format!("only an administrator of the installation may set {field}");
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message)
    }

    /// An integration may not change the credentials of administrators, or make anyone an administrator.
    pub fn administrators_protected() -> Self {
        let message = "an API token may not change who administers the company";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message)
    }

    /// The result would include cards that the caller may not see.
    pub fn hidden_cards() -> Self {
        let message = "the result would include cards that you may not see";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message)
    }

    /// A person changes their own credentials in their account settings, which require the password.
    pub fn own_account() -> Self {
        let message = "change your own credentials in your account settings";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message)
    }

    /// A person never writes as a contact.
    pub fn not_as_contact() -> Self {
        let message = "visitor sessions require an API token; users may not write as a contact";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message)
    }

    /// A person may act only in their own name.
    pub fn user_must_be_own() -> Self {
        let message = "userId must be your own";
        let mut error = Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_SCOPE", message);
        error.details = Some(Box::new(json!({"field": "userId", "reason": "must be your own"})));
        error
    }

    /// The request has no session, or the session has ended.
    pub fn signed_out() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "ERR_API_UNAUTHORIZED", "sign in first")
    }

    /// The e-mail, the password or the code is wrong; the response never says which.
    pub fn sign_in_failed() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "ERR_API_SIGN_IN", "wrong e-mail, password or code")
    }

    /// The session cannot be used before its second factor is given or set up.
    pub fn second_factor_required() -> Self {
        let message = "enter or set up your second factor first";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_SECOND_FACTOR", message)
    }

    /// A change that comes from another website, or whose origin is unknown. `proxy_advice` is how to configure the
    /// proxy in front, if that may be the cause.
    pub fn foreign_page(proxy_advice: Option<&str>) -> Self {
        let message = "changes are accepted only from the panel's own pages";
        let message = match proxy_advice {
            Some(advice) => format!("{message}: {advice}, or `--public-url` must be the address of the page"),
            None => message.to_owned(),
        };
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_ORIGIN", message)
    }

    /// The link to choose a password was already used, or has expired.
    pub fn link_spent() -> Self {
        let message = "the link has expired or was already used; request a new one";
        Self { message: message.to_owned(), ..Self::link_expired() }
    }

    /// Too many attempts to sign in.
    pub fn too_many_attempts(retry_after_s: u64) -> Self {
        let message = "too many attempts; try again later".to_owned();
        Self { message, ..Self::rate_limited(retry_after_s) }
    }

    /// The page's origin may not embed this webchat.
    pub fn forbidden_origin() -> Self {
        let message = "this webchat does not allow the page's origin";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_FORBIDDEN_ORIGIN", message)
    }

    /// The record does not exist, or belongs to another company.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "ERR_API_NOT_FOUND", "record not found")
    }

    /// The route does not exist.
    pub fn no_such_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "ERR_API_NOT_FOUND", "no such endpoint")
    }

    /// There is no contact with this id.
    pub fn contact_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "ERR_API_CONTACT_NOT_FOUND", "contact not found")
    }

    /// The send request names no recipient, or one that the channel cannot have.
    pub fn contact_not_identified(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "ERR_API_CONTACT_NOT_IDENTIFIED", message)
    }

    /// The path exists, but not with this method.
    pub fn method_not_allowed(allow: String) -> Self {
        // Every `GET` also serves `HEAD`.
        let allow = if allow.contains("HEAD") { allow } else { allow.replace("GET", "GET, HEAD") };
        let mut error = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "ERR_API_METHOD_NOT_ALLOWED",
            format!("the method is not allowed here; allowed: {allow}"),
        );
        error.allow = Some(allow);
        error
    }

    /// The request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "ERR_API_BAD_REQUEST", message)
    }

    /// The record has changed since the caller read it.
    pub fn precondition_failed() -> Self {
        let message = "the record has been changed since it was read; read it again";
        Self::new(StatusCode::PRECONDITION_FAILED, "ERR_API_PRECONDITION_FAILED", message)
    }

    /// The body exceeds the size limit.
    pub fn payload_too_large(limit: impl std::fmt::Display) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "ERR_API_PAYLOAD_TOO_LARGE", message)
    }

    /// A file exceeds the limit that the channel's provider has for its kind.
    pub fn file_too_large(kind: &str, bytes_max: u64) -> Self {
        let message = format!("the channel's provider accepts at most {bytes_max} bytes of a file of the kind {kind}");
        let mut error = Self::new(StatusCode::PAYLOAD_TOO_LARGE, "ERR_API_PAYLOAD_TOO_LARGE", message);
        error.details = Some(Box::new(json!({"limitBytes": bytes_max, "kind": kind})));
        error
    }

    /// The endpoint does not accept this content type.
    pub fn unsupported_media_type() -> Self {
        let message = "the body must be application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "ERR_API_UNSUPPORTED_MEDIA_TYPE", message)
    }

    /// The content encoding is not supported.
    pub fn unsupported_encoding() -> Self {
        let message = "the Content-Encoding must be gzip, deflate or identity";
        Self { message: message.to_owned(), ..Self::unsupported_media_type() }
    }

    /// The content type is not supported, at an endpoint that also accepts files.
    pub fn neither_json_nor_form() -> Self {
        let message = "the body must be application/json or multipart/form-data";
        Self { message: message.to_owned(), ..Self::unsupported_media_type() }
    }

    /// The signed URL of a file has expired.
    pub fn link_expired() -> Self {
        let message = "the URL of this file has expired; read its message again for a new one";
        Self::new(StatusCode::FORBIDDEN, "ERR_API_LINK_EXPIRED", message)
    }

    /// The requested range starts after the end of the file.
    pub fn range_not_satisfiable(size: u64) -> Self {
        let message = format!("the file has {size} bytes");
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "ERR_API_RANGE_NOT_SATISFIABLE", message)
    }

    /// Some fields are missing or invalid.
    pub fn validation(fields: &[FieldError]) -> Self {
        Self::of_fields("ERR_API_VALIDATION", fields)
    }

    /// The webchat cannot show this interactive object.
    pub fn interactive_invalid(fields: &[FieldError]) -> Self {
        Self::of_fields("ERR_API_INTERACTIVE_INVALID", fields)
    }

    fn of_fields(code: &'static str, fields: &[FieldError]) -> Self {
        let messages: Vec<String> = fields.iter().map(|error| format!("{} {}", error.field, error.reason)).collect();
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, messages.join("; "));
        let details = fields.iter().map(|error| detail(&error.field, &error.reason)).collect();
        error.details = Some(Box::new(Value::Array(details)));
        error
    }

    /// An internal error. The cause is logged, never sent to the caller.
    pub fn internal(defect: impl std::fmt::Display) -> Self {
        tracing::error!(%defect, "request failed with an internal error");
        Self::defect("internal error")
    }

    /// The service cannot process the request now; the caller should try again.
    pub fn unavailable() -> Self {
        let mut error =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "ERR_API_UNAVAILABLE", "the service is unavailable; try again");
        error.retry_after_s = Some(RETRY_AFTER_S);
        error
    }

    /// The idempotency key was used for a different request.
    pub fn idempotency_conflict() -> Self {
        let message = "the Idempotency-Key was already used with another method, path or body";
        let mut error = Self::new(StatusCode::CONFLICT, "ERR_API_IDEMPOTENCY_CONFLICT", message);
        error.details = Some(Box::new(json!({"field": "Idempotency-Key", "reason": "used"})));
        error
    }

    /// The caller has exceeded a rate limit.
    pub fn rate_limited(retry_after_s: u64) -> Self {
        let mut error =
            Self::new(StatusCode::TOO_MANY_REQUESTS, "ERR_API_RATE_LIMITED", "rate limit exceeded; try again later");
        error.retry_after_s = Some(retry_after_s);
        error
    }

    /// The visitor, their address or their company has used up the upload bytes of this hour.
    pub fn too_many_bytes(retry_after_s: u64) -> Self {
        let message = "hourly upload limit exceeded; try again later".to_owned();
        Self { message, ..Self::rate_limited(retry_after_s) }
    }

    /// Too many connections or streams are open; `plural` names their kind.
    pub fn too_many_open(plural: &str, retry_after_s: u64) -> Self {
        Self { message: format!("too many {plural} are open"), ..Self::rate_limited(retry_after_s) }
    }

    /// The record's state does not allow the change.
    pub fn conflict(message: &str, details: Value) -> Self {
        let mut error = Self::new(StatusCode::CONFLICT, "ERR_API_CONFLICT", message);
        error.details = Some(Box::new(details));
        error
    }
}
