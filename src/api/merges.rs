//! Common to merges of contacts and of tickets: the author, the errors of refused merges, and the errors about a record
//! that was merged into another, which name the other.

use hotline_persistence::tables::merges::{MergeAuthor, MergeConflict, MergedNoun, any_successor};
use hotline_persistence::{CompanyId, ContactId, TicketId};
use serde_json::{Value, json};
use sqlx::PgExecutor;

use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller};

/// A record that may have been merged into another.
#[derive(Clone, Copy, Debug)]
pub enum Mergeable {
    /// A contact.
    Contact(ContactId),
    /// A ticket.
    Ticket(TicketId),
}

/// The author of a merge, in the history of tickets.
pub fn author(caller: &Caller) -> MergeAuthor {
    let author = caller.author();
    MergeAuthor { user: author.user, integration: author.integration, source: author.source }
}

/// Returns the outcome of a request about a record. If the record no longer exists because it was merged into another,
/// the error has the other's id: `details.mergedInto`.
pub async fn add_successor<T, E: Into<ApiError>>(
    caller: &Caller,
    app: &App,
    record: Mergeable,
    outcome: Result<T, E>,
) -> ApiResult<T> {
    match outcome.map_err(Into::into) {
        Err(error) if error.status == 404 => Err(Box::pin(with_successor(caller, app, record, error)).await),
        outcome => outcome,
    }
}

/// Returns the outcome of a merge of two records. If an earlier merge has removed one of them, the error has the id of
/// the record it was merged into.
pub async fn add_successor_of_either<T>(
    caller: &Caller,
    app: &App,
    records: [Mergeable; 2],
    outcome: ApiResult<T>,
) -> ApiResult<T> {
    let mut outcome = outcome;
    for record in records {
        match outcome {
            Err(error) if error.status == 404 && error.details.is_none() => {
                outcome = Err(Box::pin(with_successor(caller, app, record, error)).await);
            }
            outcome => return outcome,
        }
    }
    outcome
}

async fn with_successor(caller: &Caller, app: &App, record: Mergeable, error: ApiError) -> ApiError {
    let company = caller.company;
    let successor = match record {
        Mergeable::Contact(id) => app.engine.contacts.successor(company, id).await.map(|found| found.map(|id| id.0)),
        Mergeable::Ticket(id) => app.engine.tickets.successor(company, id).await.map(|found| found.map(|id| id.0)),
    };
    // If there is no successor, or its lookup fails, the error only says that the record does not exist.
    match successor {
        Ok(Some(id)) => merged_into(error, &json!(id)),
        _ => error,
    }
}

/// The `404` of a request that names several records, one of which does not exist. If it was merged into another, the
/// error has the other's id, as in [`add_successor`].
pub async fn not_found_error(db: impl PgExecutor<'_>, company: CompanyId, noun: MergedNoun, ids: &[i64]) -> ApiError {
    match any_successor(db, company, noun, ids).await {
        Ok(Some(id)) => merged_into(ApiError::not_found(), &json!(id)),
        _ => ApiError::not_found(),
    }
}

fn merged_into(error: ApiError, id: &Value) -> ApiError {
    ApiError { details: Some(Box::new(json!({"mergedInto": id}))), ..error }
}

/// The error of a refused merge. `field` is the field of the body that names the record to be merged into the other;
/// `id` is its value.
pub fn refused_error(conflict: MergeConflict, field: &str, id: &Value) -> ApiError {
    let (message, reason) = match conflict {
        MergeConflict::TwoExternalIds => {
            ("both contacts have a verified id of the company's website", "two_external_ids")
        }
        MergeConflict::Group => ("a group cannot be merged", "group"),
        MergeConflict::UnverifiedSession => {
            ("a visitor who is not verified has an active session with one of the contacts", "unverified_session")
        }
        MergeConflict::Erasure => ("one of the contacts is being erased", "erasure"),
        MergeConflict::Campaign => {
            ("a campaign has written to both contacts, and the outcome of neither message is known yet", "campaign")
        }
        MergeConflict::DifferentConversations => {
            ("the tickets have different contacts or channels", "other_conversation")
        }
        MergeConflict::OpenTicket => ("an open ticket cannot be merged into a closed one", "open_ticket"),
    };
    ApiError::conflict(message, json!({"state": message, "reason": reason, "field": field, "id": id}))
}
