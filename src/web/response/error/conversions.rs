//! Conversions from the errors of lower layers to error responses.

use actix_web::http::StatusCode;
use chrono::{DateTime, Utc};
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::error::TakenValue;
use hotline_persistence::{Error, TicketId, Timestamp};
use serde_json::json;

use super::ApiError;
use crate::media::{FileError, ReadError, StoreError, Unavailable};

/// `Retry-After` in seconds when the disk is nearly full: an operator must free space first.
const DISK_FULL_RETRY_AFTER_S: u64 = 60;

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::not_found(),
            Refusal::Changed => Self::precondition_failed(),
            Refusal::Invalid(fields) => Self::validation(&fields),
            Refusal::TicketClosed(ticket) => Self::ticket_closed(ticket),
            Refusal::AlreadyOpen(ticket) => {
                let references = json!([{"type": "ticket", "count": 1}]);
                let details = json!({
                    "ticketId": ticket, "field": "ticketId", "id": ticket, "reason": "ticket_open", "by": references,
                });
                Self::conflict("the contact has an open ticket on this channel", details)
            }
            Refusal::Conflict(conflict) => Self::state_conflict(conflict),
            Refusal::ContactUnreachable(unreachable) => {
                let message = format!("the contact cannot receive on this channel: {}", unreachable.in_words());
                let code = "ERR_API_CONTACT_UNREACHABLE";
                let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message);
                error.details = Some(Box::new(json!({"reason": unreachable.as_str()})));
                error
            }
            Refusal::WindowClosed(closed_at) => Self::window_closed(closed_at),
            Refusal::InteractiveInvalid(fields) => Self::interactive_invalid(&fields),
            Refusal::ContactNotFound => Self::contact_not_found(),
            Refusal::Unavailable(reason) => {
                tracing::debug!(reason, "request refused as unavailable");
                Self::unavailable()
            }
            Refusal::Unknown(reason) => {
                tracing::warn!(reason, "unknown whether a change was made; closing the connection");
                Self { is_outcome_unknown: true, ..Self::unavailable() }
            }
            Refusal::Retired | Refusal::ContactChanging(_) | Refusal::Outdated => Self::unavailable(),
            Refusal::Defect(defect) => Self::internal(defect),
        }
    }
}

impl ApiError {
    fn ticket_closed(ticket: TicketId) -> Self {
        let mut error = Self::new(StatusCode::CONFLICT, "ERR_API_TICKET_CLOSED", "the ticket is closed");
        error.details =
            Some(Box::new(json!({"ticketId": ticket, "field": "ticketId", "id": ticket, "reason": "closed"})));
        error
    }

    /// A record's state forbids the change.
    fn state_conflict(Conflict { state, reason, record, references }: Conflict) -> Self {
        let mut details = json!({"state": state, "reason": reason});
        if let Some((field, id)) = record {
            details["field"] = json!(field);
            details["id"] = id;
        } else {
            let counts = references.into_iter().map(|(kind, count)| json!({"type": kind, "count": count}));
            details["by"] = counts.collect();
        }
        Self::conflict(state, details)
    }

    fn window_closed(closed_at: Option<DateTime<Utc>>) -> Self {
        let mut error = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "ERR_API_WINDOW_CLOSED",
            "the conversation window is closed; only a template can be sent",
        );
        error.details = closed_at.map(|at| Box::new(json!({"closedAt": Timestamp(at)})));
        error
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Taken(TakenValue { field, holder }) => {
                let conflict = Self::conflict("a unique value is already in use", json!({"field": field}));
                Self { holder: holder.map(Box::new), ..conflict }
            }
            Error::InUse => {
                let state = "the record is in use";
                Self::conflict(state, json!({"state": state, "reason": "in_use", "by": []}))
            }
            error => Refusal::from(error).into(),
        }
    }
}

impl From<FileError> for ApiError {
    fn from(error: FileError) -> Self {
        let code = match error {
            FileError::TooLarge(bytes_max) => {
                return Self { message: error.to_string(), ..Self::payload_too_large(bytes_max) };
            }
            FileError::Empty => "ERR_API_MEDIA_EMPTY",
            FileError::TypeUnknown => "ERR_API_MEDIA_TYPE_UNKNOWN",
            FileError::TypeMismatch => "ERR_API_MEDIA_TYPE_MISMATCH",
        };
        Self::new(StatusCode::BAD_REQUEST, code, error.to_string())
    }
}

impl<E: Into<Self>> From<StoreError<E>> for ApiError {
    fn from(error: StoreError<E>) -> Self {
        match error {
            StoreError::Source(error) => error.into(),
            StoreError::Refused(error) => error.into(),
            StoreError::Unavailable(reason) => reason.into(),
        }
    }
}

impl From<Unavailable> for ApiError {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable {
            // The request is not at fault, so the response is `503`.
            Unavailable::Store(reason) => {
                tracing::warn!(reason, "could not store a file");
                Self::unavailable()
            }
            // The full disk was logged when it was detected: one line per request would fill the remaining space.
            Unavailable::DiskFull => Self { retry_after_s: Some(DISK_FULL_RETRY_AFTER_S), ..Self::unavailable() },
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound => Self::not_found(),
            ReadError::Unavailable(reason) => {
                tracing::warn!(reason, "could not read a file");
                Self::unavailable()
            }
        }
    }
}
