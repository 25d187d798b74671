//! Deletes a contact with everything that belongs to it.

use serde_json::Value;

use super::cascades::{self, Cascade};
use super::contacts::{ContactDeletionBlockers, find, find_deletion_blockers, identities, lock_rows, track_changes};
use super::merges::{self, MergedNoun};
use super::{campaigns, retentions, schedules};
use crate::error::with_timeout;
use crate::table::Expected;
use crate::{CompanyId, ContactId, Database, Db, Error, PgConnection, Result, TicketId};

/// Number of tickets that one statement deletes, and whose messages and events are deleted together.
const TICKETS_PER_STEP: usize = 200;

/// Deletes a contact with its tickets, messages, events and sessions; returns what prevents the deletion, or `None` if
/// the contact was deleted. Cards still refer to it until the steps of a [`Cascade`] remove these references. The
/// caller must ensure that no change of what belongs to it (tickets, messages, sessions) is on its way to the tables.
///
/// # Errors
/// [`Error::NotFound`] when there is no such contact; [`Error::Changed`] when it is not in an expected state.
pub async fn remove(
    db: Db<'_>,
    company: CompanyId,
    id: ContactId,
    expected: &Expected,
) -> Result<Option<ContactDeletionBlockers>> {
    // Heavy, because it may delete years of conversations.
    let mut transaction = db.heavy().begin().await?;
    let connection = transaction.connection()?;
    campaigns::exclude_starts(&mut *connection, company).await?;
    // Contacts with a suggestion to merge with this one change too.
    let mut changed = identities::merge_candidates(&mut *connection, company, id).await?;
    changed.push(id);
    lock_rows(&mut *connection, company, &changed).await?;
    // Concurrent writes of the contact's values or tags come first, or find it deleted.
    lock_expected(&mut *connection, company, id, expected).await?;
    if let Some(blockers) = find_deletion_blockers(&mut *connection, company, id).await? {
        return Ok(Some(blockers));
    }
    // May take long, so it comes before the locks on lists and cards.
    let tickets = remove_tickets(&mut *connection, company, id).await?;
    // Changes that put the contact on a card or a list also lock the contact first.
    remove_references(&mut *connection, company, id, &tickets).await?;
    let contact = find(&mut *connection, company, id).await?;
    let view = serde_json::to_value(contact).unwrap_or(Value::Null);
    cascades::record_deletion(&mut *connection, company, Cascade::Contact(id), &view).await?;
    let tracker = track_changes(&mut *connection, company, &[id]).await?;
    schedules::remove_for_contact(&mut *connection, company, id).await?;
    campaigns::remove_for_contact(&mut *connection, company, id).await?;
    identities::remove_for_contact(&mut *connection, company, id).await?;
    let delete = sqlx::query("delete from contacts where company_id = $1 and id = $2");
    with_timeout(delete.bind(company).bind(id).execute(&mut *connection)).await?;
    tracker.record(connection, &[id]).await?;
    crate::fail_point!("contact_removed", |_| Err(Error::Unavailable("fail point".to_owned())));
    transaction.commit().await?;
    crate::fail_point!("contact_removal_lost", |_| Err(Error::Unavailable("fail point".to_owned())));
    Ok(None)
}

/// Locks the contact, and checks that it is in an expected state.
async fn lock_expected(db: &mut PgConnection, company: CompanyId, id: ContactId, expected: &Expected) -> Result<()> {
    let updated_at = sqlx::query_scalar("select updated_at from contacts where company_id = $1 and id = $2 for update");
    let updated_at = with_timeout(updated_at.bind(company).bind(id).fetch_optional(&mut *db)).await?;
    if !expected.includes(updated_at.ok_or(Error::NotFound("contact"))?) {
        return Err(Error::Changed);
    }
    Ok(())
}

/// Deletes the contact's tickets with their messages and events, in steps because of the time limit of each statement.
async fn remove_tickets(db: &mut PgConnection, company: CompanyId, id: ContactId) -> Result<Vec<TicketId>> {
    let tickets = sqlx::query_scalar("select id from tickets where company_id = $1 and contact_id = $2 order by id");
    let tickets: Vec<TicketId> = with_timeout(tickets.bind(company).bind(id).fetch_all(&mut *db)).await?;
    for chunk in tickets.chunks(TICKETS_PER_STEP) {
        retentions::remove_history(&mut *db, company, chunk).await?;
        let delete = sqlx::query("delete from tickets where company_id = $1 and id = any ($2)");
        with_timeout(delete.bind(company).bind(chunk).execute(&mut *db)).await?;
    }
    Ok(tickets)
}

/// Removes the contact from lists, and its tickets from the cards that were created from them. Deletes the stored
/// merges into the contact or these tickets.
async fn remove_references(
    db: &mut PgConnection,
    company: CompanyId,
    id: ContactId,
    tickets: &[TicketId],
) -> Result<()> {
    if !tickets.is_empty() {
        cascades::unlink_tickets(&mut *db, company, tickets).await?;
        let tickets: Vec<i64> = tickets.iter().map(|ticket| ticket.0).collect();
        merges::remove_merges_into(&mut *db, company, MergedNoun::Ticket, &tickets).await?;
    }
    merges::remove_merges_into(&mut *db, company, MergedNoun::Contact, &[id.0]).await?;
    cascades::remove_references_at_once(db, company, Cascade::Contact(id)).await
}
