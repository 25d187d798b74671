//! The commands on a ticket, most with a file of their own.

mod add_note;
mod add_notice;
mod close;
mod mark;
mod open;
mod react;
mod receive;
mod receive_echo;
mod release;
mod reopen;
mod revise;
mod send;
mod set_media;
mod set_wrapup;
mod show;
#[cfg(test)]
pub(crate) mod tests;
mod transfer;
mod update_delivery_status;

pub use add_note::AddNote;
pub use add_notice::AddNotice;
pub use close::{Close, CloseErased};
pub use mark::{MarkDelivered, MarkRead, MarkSeen};
pub use open::Open;
pub(crate) use open::default_queue;
pub use react::React;
pub use receive::Receive;
pub use receive_echo::ReceiveEcho;
pub use release::Release;
pub use reopen::Reopen;
pub use revise::Revise;
pub use send::{Content, InteractiveCheck, Send, check_parameter_text};
pub use set_media::{FailText, SetMedia};
pub use set_wrapup::SetWrapup;
pub use show::Show;
pub use transfer::Transfer;
pub use update_delivery_status::UpdateDeliveryStatus;

use hotline_persistence::tables::organization::Organization;
use hotline_persistence::{QueueId, UserId, WrapupTypeId};

use super::references::{named_queue, named_user, named_wrapup_type};
use crate::Refusal;

/// Checks that the queue exists and is active.
fn check_queue(organization: &Organization, id: QueueId) -> Result<(), Refusal> {
    let queue = organization.queues.get(&id).ok_or(Refusal::NotFound)?;
    if queue.row.active { Ok(()) } else { Err(Refusal::invalid("queueId", "must be an active queue")) }
}

/// Checks that the user exists, is active, and belongs to the queue, if there is one.
fn check_user(organization: &Organization, id: UserId, queue: Option<QueueId>) -> Result<(), Refusal> {
    let user = organization.users.get(&id).ok_or(Refusal::NotFound)?;
    if !user.active {
        return Err(Refusal::invalid("userId", "must be an active user"));
    }
    if is_member(organization, id, queue) {
        Ok(())
    } else {
        Err(Refusal::invalid("userId", "must belong to the queue"))
    }
}

/// Whether the user belongs to the queue; `true` without a queue, or after its deletion.
fn is_member(organization: &Organization, user: UserId, queue: Option<QueueId>) -> bool {
    queue.and_then(|id| organization.queues.get(&id)).is_none_or(|queue| queue.users.contains(&user))
}

/// Checks that the wrap-up type exists, is active, and is linked to the ticket's queue, if there is one.
fn check_wrapup_type(organization: &Organization, id: WrapupTypeId, queue: Option<QueueId>) -> Result<(), Refusal> {
    let wrapup_type = organization.wrapup_types.get(&id).ok_or(Refusal::NotFound)?;
    if !wrapup_type.active {
        return Err(Refusal::invalid("wrapupTypeId", "must be an active wrap-up type"));
    }
    // A queue that has been deleted since does not count.
    let queue = queue.filter(|queue| organization.queues.contains_key(queue));
    if queue.is_none_or(|queue| wrapup_type.queues.contains(&queue)) {
        Ok(())
    } else {
        Err(Refusal::invalid("wrapupTypeId", "must be linked to the ticket's queue"))
    }
}
