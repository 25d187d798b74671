//! Events of messages that were edited or deleted, or that somebody has reacted to.

use std::collections::HashMap;

use sqlx::PgConnection;

use super::embedded_contacts::embedded_contacts;
use super::{BatchIndex, EventCollector, EventSource, PreviousRows};
use crate::CompanyId;
use crate::tables::events::{By, EventKind, MessageSnapshot, NewEvent, ReactionSnapshot, Record};
use crate::tables::messages::{ChangeCause, ChangedMessage, Reaction, Revisable, Revisables, Revision};

impl EventCollector<'_> {
    /// Adds one event for each revision that changed its message.
    pub(super) async fn add_revision_events(
        &self,
        db: &mut PgConnection,
        previous_rows: &PreviousRows,
        changed_messages: &[ChangedMessage],
        events: &mut Vec<(CompanyId, BatchIndex, NewEvent)>,
    ) -> sqlx::Result<()> {
        if self.revisions.is_empty() {
            return Ok(());
        }
        let revised = changed_messages.iter().filter(|changed| changed.by == ChangeCause::Revision);
        let revised_messages: HashMap<_, _> = revised.map(|changed| ((changed.company, changed.id), changed)).collect();
        let contact_keys = self.revisions.iter().map(|(_, row)| (row.company_id, row.contact_id));
        let contacts = embedded_contacts(db, contact_keys).await?;
        let mut revisables = self.revisables_before(previous_rows);
        for (index, row) in &self.revisions {
            let key = (row.company_id, row.message_id);
            let (Some(changed), Some(revisable)) = (revised_messages.get(&key), revisables.get_mut(&key)) else {
                continue;
            };
            // A revision that changes no shown field has no event.
            let Some(previous) = revisable.apply(row) else { continue };
            let contact_name = contacts.get(&(row.company_id, row.contact_id)).map(|contact| &*contact.name);
            let user = (row.user_id, row.user_name.as_deref());
            let by = By::author(user, row.integration_id, row.source, (row.contact_id, contact_name));
            let (id, ticket_id, status, updated_at) =
                (row.message_id, row.ticket_id, changed.status, changed.updated_at);
            let reaction = changed_reaction(&row.revision, revisable);
            let record =
                Record::Message(MessageSnapshot { id, ticket_id, status, received: None, updated_at, reaction });
            let kind = event_kind(&row.revision);
            let event = NewEvent { kind, at: row.noted_at, record, previous: Some(previous), by: Some(by) };
            events.push((row.company_id, *index, event));
        }
        Ok(())
    }

    /// The messages before the revisions of this batch: those in the tables, and those that are new in the batch.
    fn revisables_before(&self, previous_rows: &PreviousRows) -> Revisables {
        let mut revisables = previous_rows.revisables.clone();
        for event in &self.row_events {
            if let EventSource::Message(row, _) = event.source {
                revisables.entry((row.company_id, row.id)).or_insert_with(|| row.revisable());
            }
        }
        revisables
    }
}

/// The kind of event for a revision.
fn event_kind(revision: &Revision) -> EventKind {
    match revision {
        Revision::Edited { .. } => EventKind::MessageUpdated,
        Revision::Deleted { .. } => EventKind::MessageDeleted,
        Revision::Reacted(_) | Revision::ReactionToSend { .. } | Revision::ReactionSent { .. } => {
            EventKind::MessageReaction
        }
    }
}

/// The reaction that a revision has changed, as it is after the revision; `None` for an edit or a deletion.
fn changed_reaction(revision: &Revision, revisable: &Revisable) -> Option<ReactionSnapshot> {
    let changed_key = match revision {
        Revision::Reacted(reaction) | Revision::ReactionToSend { reaction, .. } => &*reaction.key,
        Revision::ReactionSent { .. } => Reaction::OF_COMPANY,
        Revision::Edited { .. } | Revision::Deleted { .. } => return None,
    };
    let reaction = revisable.revisions.reactions.iter().find(|reaction| reaction.key == changed_key)?;
    Some(ReactionSnapshot { key: reaction.key.clone(), emoji: reaction.emoji.clone() })
}
