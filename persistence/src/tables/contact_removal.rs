//! Deletes a contact with everything that belongs to it.

use super::cascades::{self, Cascade};
use super::contacts::{Tie, tie, watch};
use super::{campaigns, schedules};
use crate::error::with_timeout;
use crate::table::Expected;
use crate::{CompanyId, ContactId, Database, Db, Error, Result};

/// Deletes a contact with its tickets, messages, events and sessions, unless something prevents it, which is returned.
/// The caller must ensure that no live row of this contact is in flight.
///
/// # Errors
/// [`Error::NotFound`] when there is no such contact; [`Error::Changed`] when it is not in an expected state.
pub async fn remove(db: Db<'_>, company: CompanyId, id: ContactId, expected: &Expected) -> Result<Option<Tie>> {
    // Where the state matters, nothing is written before it is known: then all steps are of the last transaction.
    let mut has_more = *expected == Expected::Any;
    while has_more {
        let mut change = db.heavy().begin().await?;
        has_more = cascades::step(change.connection()?, company, Cascade::Contact(id)).await?;
        change.commit().await?;
    }
    // It may delete the conversations of years.
    let mut change = db.heavy().begin().await?;
    let transaction = change.connection()?;
    // Concurrent writes of the contact's values or tags come first, or find it deleted.
    let held = sqlx::query_scalar("select updated_at from contacts where company_id = $1 and id = $2 for update");
    let held = with_timeout(held.bind(company).bind(id).fetch_optional(&mut *transaction)).await?;
    if !expected.holds(held.ok_or(Error::NotFound("contact"))?) {
        return Err(Error::Changed);
    }
    if let Some(tie) = tie(&mut *transaction, company, id).await? {
        return Ok(Some(tie));
    }
    // Those that were left by the steps before.
    while cascades::step(&mut *transaction, company, Cascade::Contact(id)).await? {}
    for words in [
        "delete from messages m using tickets t where t.company_id = $1 and t.contact_id = $2
           and m.company_id = t.company_id and m.ticket_id = t.id",
        "delete from ticket_events e using tickets t where t.company_id = $1 and t.contact_id = $2
           and e.company_id = t.company_id and e.ticket_id = t.id",
    ] {
        with_timeout(sqlx::query(words).bind(company).bind(id).execute(&mut *transaction)).await?;
    }
    let watched = watch(&mut *transaction, company, &[id]).await?;
    schedules::remove_of_contact(&mut *transaction, company, id).await?;
    campaigns::remove_of_contact(&mut *transaction, company, id).await?;
    let removed = sqlx::query("delete from contacts where company_id = $1 and id = $2");
    with_timeout(removed.bind(company).bind(id).execute(&mut *transaction)).await?;
    watched.tell(transaction, &[id]).await?;
    crate::fail_point!("contact_removed", |_| Err(Error::Unavailable("fail point".to_owned())));
    change.commit().await?;
    crate::fail_point!("contact_removal_lost", |_| Err(Error::Unavailable("fail point".to_owned())));
    Ok(None)
}
