//! Deletes a contact with everything that belongs to it.

use sqlx::PgExecutor;

use super::watch;
use crate::error::with_timeout;
use crate::tables::{campaigns, schedules};
use crate::{CompanyId, ContactId, Database, Db, Error, Result, SessionId};

/// Reasons why a contact cannot be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie {
    /// Number of open tickets.
    pub tickets: i64,
    /// Number of active visitor sessions.
    pub sessions: i64,
}

/// What prevents the deletion of this contact, according to the tables.
///
/// # Errors
/// [`Error::NotFound`] when there is no such contact.
pub async fn tie(db: impl PgExecutor<'_>, company: CompanyId, id: ContactId) -> Result<Option<Tie>> {
    let ties: Option<(i64, i64)> = with_timeout(
        sqlx::query_as(
            "select (select count(*) from tickets t
                     where t.company_id = c.company_id and t.contact_id = c.id and t.status = 'open'),
                 (select count(*) from webchat_sessions s
                     where s.company_id = c.company_id and s.contact_id = c.id and s.status = 'active')
             from contacts c where c.company_id = $1 and c.id = $2",
        )
        .bind(company)
        .bind(id)
        .fetch_optional(db),
    )
    .await?;
    match ties.ok_or(Error::NotFound("contact"))? {
        (0, 0) => Ok(None),
        (tickets, sessions) => Ok(Some(Tie { tickets, sessions })),
    }
}

/// The visitor sessions of a contact.
///
/// # Errors
/// When the database cannot answer.
pub async fn sessions(db: impl Database<'_>, company: CompanyId, id: ContactId) -> Result<Vec<SessionId>> {
    with_timeout(
        sqlx::query_scalar("select id from webchat_sessions where company_id = $1 and contact_id = $2")
            .bind(company)
            .bind(id)
            .fetch_all(db),
    )
    .await
}

/// Deletes a contact with its tickets, messages, events and sessions, unless something prevents it, which is returned.
/// The caller must ensure that no live row of this contact is in flight.
///
/// # Errors
/// [`Error::NotFound`] when there is no such contact.
pub async fn remove(db: Db<'_>, company: CompanyId, id: ContactId) -> Result<Option<Tie>> {
    // It may delete the conversations of years.
    let mut change = db.heavy().begin().await?;
    let transaction = change.connection()?;
    // Concurrent writes of the contact's values or tags come first, or find it deleted.
    let held = sqlx::query("select from contacts where company_id = $1 and id = $2 for update");
    with_timeout(held.bind(company).bind(id).fetch_optional(&mut *transaction))
        .await?
        .ok_or(Error::NotFound("contact"))?;
    if let Some(tie) = tie(&mut *transaction, company, id).await? {
        return Ok(Some(tie));
    }
    for words in [
        "update cards k set ticket_id = null from tickets t where t.company_id = $1 and t.contact_id = $2
           and k.company_id = t.company_id and k.ticket_id = t.id",
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
