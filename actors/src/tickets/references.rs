//! The records that a ticket refers to, as its events record them: with their names at that time.

use hotline_persistence::tables::organization::Organization;
use hotline_persistence::{QueueId, UserId, WrapupTypeId};
use serde_json::{Value, json};

/// A queue as an event records it: with its current name.
pub(super) fn named_queue(organization: &Organization, id: Option<QueueId>) -> Value {
    id.and_then(|id| organization.queues.get(&id))
        .map_or(Value::Null, |queue| json!({"id": queue.row.id, "name": queue.row.name}))
}

/// A user as an event records it.
pub(super) fn named_user(organization: &Organization, id: Option<UserId>) -> Value {
    match id {
        Some(id) => json!({"id": id, "name": organization.user_name(id)}),
        None => Value::Null,
    }
}

/// A wrap-up type as an event records it.
pub(super) fn named_wrapup_type(organization: &Organization, id: Option<WrapupTypeId>) -> Value {
    match id {
        Some(id) => json!({"id": id, "name": organization.wrapup_types.get(&id).map(|kind| &kind.name)}),
        None => Value::Null,
    }
}
