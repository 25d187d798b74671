//! The sessions of a contact, and what prevents its deletion.

use sqlx::PgExecutor;

use crate::error::with_timeout;
use crate::{CompanyId, ContactId, Database, Error, Result, SessionId};

/// Reasons why a contact cannot be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContactDeletionBlockers {
    /// Number of open tickets.
    pub tickets: i64,
    /// Number of active visitor sessions.
    pub sessions: i64,
}

/// What prevents the deletion of a contact, according to the tables; `None` if nothing does.
///
/// # Errors
/// [`Error::NotFound`] when there is no such contact.
pub async fn find_deletion_blockers(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    id: ContactId,
) -> Result<Option<ContactDeletionBlockers>> {
    let counts: Option<(i64, i64)> = with_timeout(
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
    match counts.ok_or(Error::NotFound("contact"))? {
        (0, 0) => Ok(None),
        (tickets, sessions) => Ok(Some(ContactDeletionBlockers { tickets, sessions })),
    }
}

/// The visitor sessions of a contact.
pub async fn sessions(db: impl Database<'_>, company: CompanyId, id: ContactId) -> Result<Vec<SessionId>> {
    with_timeout(
        sqlx::query_scalar("select id from webchat_sessions where company_id = $1 and contact_id = $2")
            .bind(company)
            .bind(id)
            .fetch_all(db),
    )
    .await
}
