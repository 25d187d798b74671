//! Merges a ticket into another of the same contact and channel.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sqlx::PgConnection;

use super::{MergeAuthor, MergeConflict, MergeOutcome, MergedNoun, ROWS_MAX, record_merge};
use crate::error::with_timeout;
use crate::id_blocks::IdBlocks;
use crate::tables::cards::{self, CardId};
use crate::tables::events::{self, ContactSnapshot, EventKind, LastMessageSnapshot, NewEvent, Record, TicketSnapshot};
use crate::tables::ticket_events::{self, EventRow, EventType};
use crate::tables::tickets::{self, LoadedTicket, TicketRow, TicketStatus};
use crate::{CompanyId, ContactId, Error, Result, TicketId, Timestamp};

/// Two tickets to be merged.
#[derive(Clone, Debug)]
pub struct TicketMerge<'a> {
    pub company: CompanyId,
    /// The ticket that stays.
    pub into: TicketId,
    /// The ticket that is merged into it, and deleted.
    pub from: TicketId,
    /// The contact of both tickets. The caller holds it: none of its live rows is in flight.
    pub contact: ContactId,
    pub author: MergeAuthor,
    pub at: DateTime<Utc>,
    /// Assigns the id of the event in the ticket's history.
    pub ids: &'a IdBlocks,
}

/// Merges a ticket into another: moves its messages and its history there, and fills the empty fields of the ticket
/// that stays. Returns that ticket.
///
/// # Errors
/// [`Error::NotFound`] when one of the tickets does not exist; [`Error::Unavailable`] when they no longer belong to
/// [`TicketMerge::contact`].
pub async fn merge_tickets(db: &mut PgConnection, merge: &TicketMerge<'_>) -> Result<MergeOutcome<LoadedTicket>> {
    // With this lock, a reload of the contact into memory waits for the end of this transaction, as in a merge of
    // contacts.
    let contact = sqlx::query("select from contacts where company_id = $1 and id = $2 for no key update");
    with_timeout(contact.bind(merge.company).bind(merge.contact).execute(&mut *db)).await?;
    let (into, from) = lock_tickets(&mut *db, merge).await?;
    if (into.contact_id, into.channel_id) != (from.contact_id, from.channel_id) {
        return Ok(Err(MergeConflict::DifferentConversations));
    }
    if into.contact_id != merge.contact {
        return Err(Error::Unavailable("the contact of the tickets has changed".to_owned()));
    }
    if from.status == TicketStatus::Open && into.status == TicketStatus::Closed {
        return Ok(Err(MergeConflict::OpenTicket));
    }
    let cards = cards_of(&mut *db, merge.company, merge.from).await?;
    let tracker = cards::events::track(&mut *db, merge.company, &cards, &[]).await?;
    move_rows(&mut *db, merge.company, merge.from, merge.into).await?;
    let surviving = absorb_ticket(&mut *db, merge, into, from).await?;
    let loaded = surviving.write_event(&mut *db).await?;
    tracker.write_events(db).await?;
    Ok(Ok(loaded))
}

/// The ticket that stays, after the merge; the company's event about the merge is not written yet.
pub(super) struct SurvivingTicket {
    company: CompanyId,
    into: TicketId,
    from: TicketId,
    /// The ticket that stays, before its own row was changed.
    before: LoadedTicket,
    at: DateTime<Utc>,
}

/// Locks both tickets and returns them: the one that stays, then the one that is merged.
pub(super) async fn lock_tickets(db: &mut PgConnection, merge: &TicketMerge<'_>) -> Result<(TicketRow, TicketRow)> {
    let lock = sqlx::query_as("select * from tickets where company_id = $1 and id = any ($2) order by id for update");
    let rows: Vec<TicketRow> =
        with_timeout(lock.bind(merge.company).bind(vec![merge.into, merge.from]).fetch_all(db)).await?;
    let find = |id: TicketId| rows.iter().find(|row| row.id == id).cloned().ok_or(Error::NotFound("ticket"));
    Ok((find(merge.into)?, find(merge.from)?))
}

/// The cards that were created from a ticket.
pub(super) async fn cards_of(db: &mut PgConnection, company: CompanyId, ticket: TicketId) -> Result<Vec<CardId>> {
    let find = sqlx::query_scalar("select id from cards where company_id = $1 and ticket_id = $2 order by id");
    with_timeout(find.bind(company).bind(ticket).fetch_all(db)).await
}

/// Fills the empty fields of a ticket from another one, and deletes the other one. The rows that refer to it must have
/// been moved before ([`move_rows`]).
pub(super) async fn absorb_ticket(
    db: &mut PgConnection,
    merge: &TicketMerge<'_>,
    into: TicketRow,
    from: TicketRow,
) -> Result<SurvivingTicket> {
    let TicketMerge { company, at, .. } = *merge;
    let before = tickets::find(&mut *db, company, into.id).await?.ok_or(Error::NotFound("ticket"))?;
    let event = EventRow {
        company_id: company,
        id: merge.ids.event()?,
        ticket_id: into.id,
        kind: EventType::Merged,
        from: Some(json!({"ticketId": from.id})),
        to: Some(json!({"ticketId": into.id})),
        user_id: merge.author.user.as_ref().map(|(id, _)| *id),
        user_name: merge.author.user.as_ref().map(|(_, name)| name.clone()),
        integration_id: merge.author.integration,
        source: merge.author.source,
        created_at: at,
        was: None,
    };
    let delete = sqlx::query("delete from tickets where company_id = $1 and id = $2");
    with_timeout(delete.bind(company).bind(from.id).execute(&mut *db)).await?;
    let (into_id, from_id) = (into.id, from.id);
    with_timeout(tickets::update(&mut *db, &[&merged_row(into, from, at)])).await?;
    with_timeout(ticket_events::insert(&mut *db, &[&event])).await?;
    record_merge(db, company, MergedNoun::Ticket, (from_id.0, into_id.0), at).await?;
    Ok(SurvivingTicket { company, into: into_id, from: from_id, before, at })
}

/// Makes the rows that refer to a ticket refer to another.
pub(super) async fn move_rows(db: &mut PgConnection, company: CompanyId, from: TicketId, into: TicketId) -> Result<()> {
    for statement in [
        "update messages set ticket_id = $3 where company_id = $1 and id = any (array(
             select id from messages where company_id = $1 and ticket_id = $2 order by id limit $4))",
        "update ticket_events set ticket_id = $3 where company_id = $1 and ticket_id = $2 and id = any (array(
             select id from ticket_events where company_id = $1 and ticket_id = $2 order by id limit $4))",
    ] {
        loop {
            let update = sqlx::query(statement).bind(company).bind(from).bind(into).bind(ROWS_MAX);
            if with_timeout(update.execute(&mut *db)).await?.rows_affected() < ROWS_MAX.unsigned_abs() {
                break;
            }
        }
    }
    // Sessions are found by contact and channel, because no index has their ticket.
    for statement in [
        "update webchat_sessions s set ticket_id = $3 from tickets t
         where t.company_id = $1 and t.id = $2 and s.company_id = t.company_id and s.contact_id = t.contact_id
             and s.channel_id = t.channel_id and s.ticket_id = t.id",
        "update cards set ticket_id = $3 where company_id = $1 and ticket_id = $2",
    ] {
        with_timeout(sqlx::query(statement).bind(company).bind(from).bind(into).execute(&mut *db)).await?;
    }
    Ok(())
}

/// The row of a ticket after it has taken over another one: its own values stay.
fn merged_row(into: TicketRow, from: TicketRow, at: DateTime<Utc>) -> TicketRow {
    let is_open = into.status == TicketStatus::Open;
    let both_open = is_open && from.status == TicketStatus::Open;
    // Reopening clears the first response and the answer, so they are only taken from a ticket of the same status.
    let has_same_status = into.status == from.status;
    // The user belongs to the queue, so both are taken over, or neither. Those of a closed ticket may no longer exist, or
    // not belong together, so an open ticket does not take them over.
    let has_neither = into.queue_id.is_none() && into.user_id.is_none();
    let is_reassigned = has_same_status && has_neither;
    let (queue_id, user_id) = if is_reassigned { (from.queue_id, from.user_id) } else { (into.queue_id, into.user_id) };
    let waiting_since = into.waiting_since.into_iter().chain(from.waiting_since.filter(|_| both_open)).min();
    TicketRow {
        queue_id,
        user_id,
        unread_count: into.unread_count.saturating_add(from.unread_count),
        last_message_id: into.last_message_id.max(from.last_message_id),
        wrapup_type_id: into.wrapup_type_id.or(from.wrapup_type_id.filter(|_| !is_open)),
        wrapup_note: into.wrapup_note.or(from.wrapup_note.filter(|_| !is_open && into.wrapup_type_id.is_none())),
        first_response_at: into.first_response_at.or(from.first_response_at.filter(|_| has_same_status)),
        answer_id: into.answer_id.or(from.answer_id.filter(|_| has_same_status)),
        waiting_since,
        handled_by: if both_open && into.handled_by.is_none() { from.handled_by } else { into.handled_by },
        updated_at: at.max(into.updated_at),
        ..into
    }
}

impl SurvivingTicket {
    /// Writes the company's event about the merge, and returns the ticket that stays, in its current state.
    pub(super) async fn write_event(self, db: &mut PgConnection) -> Result<LoadedTicket> {
        let Self { company, into, from, before, at } = self;
        let after = tickets::find(&mut *db, company, into).await?.ok_or(Error::NotFound("ticket"))?;
        let previous = events::previous_values(&merge_fields(&before), &merge_fields(&after));
        let record = Record::Ticket(Box::new(snapshot(&after, from)));
        let event = NewEvent::plain(EventKind::TicketMerged, at, record, previous);
        events::draft(db, company, &[event]).await?;
        Ok(after)
    }
}

/// The fields that a merge changes. A queue and a user are only filled, never replaced, so their names are not needed.
fn merge_fields(LoadedTicket { ticket, .. }: &LoadedTicket) -> Value {
    let mut fields = Map::new();
    fields.insert("queue".to_owned(), json!(ticket.queue_id));
    fields.insert("assignedTo".to_owned(), json!(ticket.user_id));
    fields.insert("unreadCount".to_owned(), json!(ticket.unread_count));
    fields.insert("wrapupType".to_owned(), json!(ticket.wrapup_type_id));
    fields.insert("wrapupNote".to_owned(), json!(ticket.wrapup_note));
    fields.insert("firstResponseAt".to_owned(), json!(ticket.first_response_at.map(Timestamp)));
    Value::Object(fields)
}

fn snapshot(loaded: &LoadedTicket, from: TicketId) -> TicketSnapshot {
    let contact = ContactSnapshot {
        name: loaded.contact_name.clone(),
        number: loaded.contact_number.clone(),
        verified: loaded.contact_verified,
    };
    let last = loaded.last_message_direction.zip(loaded.last_message_created_at);
    let last_message = last.map(|(direction, created_at)| LastMessageSnapshot {
        body: loaded.last_message_body.clone(),
        direction,
        created_at,
    });
    TicketSnapshot { row: loaded.ticket.clone(), contact: Some(contact), last_message, merged_from: Some(from) }
}
