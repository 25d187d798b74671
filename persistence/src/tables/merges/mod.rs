//! Contacts and tickets that are merged into others ([decision
//! 68](../../../../docs/decisions/0068-a-merge-is-one-transaction-behind-marks.md)).
//!
//! As for deleting a contact, the caller must ensure that all live rows of the contacts are in the tables when the
//! transaction begins, and that no other is accepted until it has ended.

mod contacts;
mod schedules;
mod tickets;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};

use super::source::Source;
use super::text_enum;
use crate::error::with_timeout;
use crate::{CompanyId, Result, TokenId, UserId};

pub use contacts::{ContactMerge, merge_contacts};
pub use tickets::{TicketMerge, merge_tickets};

/// Maximum number of messages, or of a ticket's events, that one statement moves. It takes a few tenths of a second.
const ROWS_MAX: i64 = 5_000;

text_enum! {
    /// The kind of record that was merged into another: the column `noun`.
    MergedNoun { Contact = "contact", Ticket = "ticket" }
}

/// Why two records cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeConflict {
    /// Both contacts have a verified external id, the company's own id of a person.
    TwoExternalIds,
    /// One of the contacts is a group.
    Group,
    /// An active session of an unverified visitor would show the conversations of a verified contact.
    UnverifiedSession,
    /// One of the contacts is being erased.
    Erasure,
    /// A campaign has written to both contacts, and the outcome of neither message is known.
    Campaign,
    /// The tickets have different contacts or channels.
    DifferentConversations,
    /// The ticket to be merged is open, and the one that would stay is closed.
    OpenTicket,
}

/// The outcome of a merge that found both records.
pub type MergeOutcome<T> = std::result::Result<T, MergeConflict>;

/// The author of a merge, for the history of tickets.
#[derive(Clone, Debug)]
pub struct MergeAuthor {
    pub user: Option<(UserId, String)>,
    pub integration: Option<TokenId>,
    pub source: Source,
}

/// The id of the record that this one was merged into; `None` if it was not merged.
pub async fn successor(db: impl PgExecutor<'_>, company: CompanyId, noun: MergedNoun, id: i64) -> Result<Option<i64>> {
    let find = sqlx::query_scalar("select into_id from merges where company_id = $1 and noun = $2 and id = $3");
    with_timeout(find.bind(company).bind(noun).bind(id).fetch_optional(db)).await
}

/// The id of the record that one of these was merged into; `None` if none was merged.
pub async fn any_successor(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    noun: MergedNoun,
    ids: &[i64],
) -> Result<Option<i64>> {
    let find = sqlx::query_scalar(
        "select into_id from merges where company_id = $1 and noun = $2 and id = any ($3) order by id limit 1",
    );
    with_timeout(find.bind(company).bind(noun).bind(ids).fetch_optional(db)).await
}

/// Records that `from` was merged into `into`. Records that were merged into `from` earlier now lead to `into`, too.
async fn record_merge(
    db: &mut PgConnection,
    company: CompanyId,
    noun: MergedNoun,
    (from, into): (i64, i64),
    at: DateTime<Utc>,
) -> Result<()> {
    let redirect = sqlx::query("update merges set into_id = $4 where company_id = $1 and noun = $2 and into_id = $3");
    with_timeout(redirect.bind(company).bind(noun).bind(from).bind(into).execute(&mut *db)).await?;
    let insert =
        sqlx::query("insert into merges (company_id, noun, id, into_id, created_at) values ($1, $2, $3, $4, $5)");
    with_timeout(insert.bind(company).bind(noun).bind(from).bind(into).bind(at).execute(db)).await?;
    Ok(())
}

/// Forgets which contacts or tickets were merged into these, which are being deleted.
pub(crate) async fn remove_merges_into(
    db: &mut PgConnection,
    company: CompanyId,
    noun: MergedNoun,
    ids: &[i64],
) -> Result<()> {
    let delete = sqlx::query("delete from merges where company_id = $1 and noun = $2 and into_id = any ($3)");
    with_timeout(delete.bind(company).bind(noun).bind(ids).execute(db)).await?;
    Ok(())
}
