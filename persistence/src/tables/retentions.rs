//! Retention of closed conversations, and what is deleted with them.
//!
//! The caller marks the conversations' contacts, as before a contact is deleted: nothing new is decided for them, and
//! all their live rows are in the tables.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor};

use super::cascades;
use super::merges::{self, MergedNoun};
use super::source::Source;
use crate::cluster::SlotFilter;
use crate::error::with_timeout;
use crate::{CompanyId, ContactId, Database, Error, MessageId, Result, SessionId, TicketId};

/// Minimum retention in days. Late changes of a conversation (a message's status, a retry with an idempotency key, a
/// returning visitor) arrive within days; less than a month is likely a mistake.
pub const DAYS_MIN: i32 = 30;

/// Maximum retention in days: a hundred years. Use no retention to keep everything.
pub const DAYS_MAX: i32 = 36_500;

/// Maximum messages or ticket events deleted by one statement, which takes about ten milliseconds.
const ROWS_MAX: i64 = 5_000;

/// A company's retention, for administrators of the installation.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    pub company: CompanyId,
    pub name: String,
    /// `None`: everything is kept.
    pub days: Option<i32>,
    /// Conversations that are expired and not deleted yet.
    #[serde(rename = "pending")]
    pub due: i64,
    /// Conversations deleted so far.
    #[serde(rename = "deleted")]
    pub removed: i64,
    /// When the last complete run ended.
    #[serde(rename = "lastRunAt")]
    pub last_run: Option<DateTime<Utc>>,
}

const COLUMNS: &str = "select r.company_id as company, c.name, r.days, r.removed, r.ran_at as last_run,
        (select count(*) from tickets t where t.company_id = r.company_id and t.status = 'closed'
             and t.closed_at < now() - make_interval(hours => 24 * r.days)) as due";

/// A company with a retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct RetentionRule {
    pub company_id: CompanyId,
    pub days: i32,
    /// When the retention was set.
    pub updated_at: DateTime<Utc>,
}

impl RetentionRule {
    /// The age at which a closed conversation is deleted.
    pub fn age(&self) -> TimeDelta {
        TimeDelta::days(self.days.into())
    }
}

/// A conversation that has been closed for longer than its company's retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct ExpiredConversation {
    pub id: TicketId,
    pub contact_id: ContactId,
    pub closed_at: DateTime<Utc>,
}

/// Conversations that the transaction has deleted, with everything that belongs to them.
#[derive(Clone, Debug, Default)]
pub struct RemovedConversations {
    /// Their tickets.
    pub tickets: Vec<TicketId>,
    /// Number of their messages.
    pub messages: u64,
    /// Number of those with a file.
    pub files: u64,
    /// Visitors' sessions that were reduced to the fact that they existed.
    pub sessions: Vec<SessionId>,
}

/// Every company that has, or had, a retention.
pub async fn all(db: impl Database<'_>) -> Result<Vec<Retention>> {
    let all = format!("{COLUMNS} from retentions r join companies c on c.id = r.company_id order by r.company_id");
    with_timeout(sqlx::query_as(AssertSqlSafe(all)).fetch_all(db)).await
}

/// Sets a company's retention in days; `None`: keep forever.
///
/// # Errors
/// [`Error::NotFound`] when there is no such company; when the database cannot answer.
pub async fn set(db: impl PgExecutor<'_>, company: CompanyId, days: Option<i32>) -> Result<Retention> {
    let set = format!(
        "with r as (
             insert into retentions (company_id, days) select id, $2 from companies where id = $1
             on conflict (company_id) do update set days = excluded.days, updated_at = now()
             returning *)
         {COLUMNS} from r join companies c on c.id = r.company_id"
    );
    let row = sqlx::query_as(AssertSqlSafe(set)).bind(company).bind(days).fetch_optional(db);
    with_timeout(row).await?.ok_or(Error::NotFound("company"))
}

/// The companies with a retention.
pub async fn rules(db: impl Database<'_>, slots: &SlotFilter) -> Result<Vec<RetentionRule>> {
    let in_slots = SlotFilter::condition("company_id", 1);
    let rules = format!(
        "select company_id, days, updated_at from retentions where days is not null and {in_slots} order by company_id"
    );
    with_timeout(sqlx::query_as(AssertSqlSafe(rules)).bind(slots.numbers()).fetch_all(db)).await
}

/// Up to `limit` expired conversations after a given one, by closing time. The database's clock decides, because all
/// processes share it.
pub async fn due(
    db: impl Database<'_>,
    rule: &RetentionRule,
    (closed_at, id): (DateTime<Utc>, TicketId),
    limit: i64,
) -> Result<Vec<ExpiredConversation>> {
    let due = sqlx::query_as(
        "select id, contact_id, closed_at from tickets
         where company_id = $1 and status = 'closed' and closed_at < now() - make_interval(hours => 24 * $2)
             and (closed_at, id) > ($3, $4)
         order by closed_at, id limit $5",
    );
    with_timeout(due.bind(rule.company_id).bind(rule.days).bind(closed_at).bind(id).bind(limit).fetch_all(db)).await
}

/// Deletes the expired ones of these conversations, with everything that belongs to them. Returns `None` if the
/// company's retention has changed meanwhile. A conversation stays if it has a queued message or a visitor's active
/// session. It also stays if its contact is not in `marked`, because that contact was merged into another meanwhile.
///
/// # Errors
/// When the database cannot answer; then the transaction must be rolled back.
pub async fn remove(
    db: &mut PgConnection,
    rule: &RetentionRule,
    (tickets, marked): (&[TicketId], &[ContactId]),
) -> Result<Option<RemovedConversations>> {
    let company = rule.company_id;
    if !lock_rule(db, rule).await? {
        return Ok(None);
    }
    let conversations = remove_tickets(db, rule, tickets, marked).await?;
    let Some(last_close) = conversations.iter().map(|conversation| conversation.closed_at).max() else {
        return Ok(Some(RemovedConversations::default()));
    };
    let tickets: Vec<TicketId> = conversations.iter().map(|conversation| conversation.id).collect();
    let contacts: Vec<ContactId> = conversations.iter().map(|conversation| conversation.contact_id).collect();
    let messages = remove_messages(db, company, &tickets).await?;
    let last_event = remove_events(db, company, &tickets).await?;
    cascades::unlink_tickets(&mut *db, company, &tickets).await?;
    let ids: Vec<i64> = tickets.iter().map(|ticket| ticket.0).collect();
    merges::remove_merges_into(&mut *db, company, MergedNoun::Ticket, &ids).await?;
    let sessions = reduce_sessions(db, company, &contacts, &tickets).await?;
    remove_schedules(db, company, &contacts, &messages.scheduled).await?;
    let last_counted = [Some(last_close), messages.last_counted, last_event].into_iter().flatten().max();
    count_removed(db, company, tickets.len(), last_counted).await?;
    // Last, and as one statement: a trigger counts the results of campaigns, and locks them until the commit.
    forget_campaign_messages(db, company, &messages.of_campaigns).await?;
    Ok(Some(RemovedConversations { tickets, messages: messages.messages, files: messages.files, sessions }))
}

/// Whether this is still the company's rule. The rule is locked until the commit, so that a longer retention is
/// respected once it was acknowledged.
async fn lock_rule(db: &mut PgConnection, rule: &RetentionRule) -> Result<bool> {
    let days = sqlx::query_scalar("select days from retentions where company_id = $1 for update");
    let days: Option<Option<i32>> = with_timeout(days.bind(rule.company_id).fetch_optional(db)).await?;
    Ok(days.flatten() == Some(rule.days))
}

async fn remove_tickets(
    db: &mut PgConnection,
    rule: &RetentionRule,
    tickets: &[TicketId],
    marked: &[ContactId],
) -> Result<Vec<ExpiredConversation>> {
    // Without `offset 0` the planner would scan all active or queued rows for each ticket, because their indexes are
    // small.
    let delete = sqlx::query_as(
        "delete from tickets t
         where t.company_id = $1 and t.id = any ($2) and t.contact_id = any ($4) and t.status = 'closed'
             and t.closed_at < now() - make_interval(hours => 24 * $3)
             and not exists (select from (
                 select s.ticket_id, s.status from webchat_sessions s
                 where s.company_id = t.company_id and s.contact_id = t.contact_id and s.channel_id = t.channel_id
                 offset 0) s where s.ticket_id = t.id and s.status = 'active')
             and not exists (select from (
                 select m.status from messages m where m.company_id = t.company_id and m.ticket_id = t.id
                 offset 0) m where m.status = 'queued')
         returning t.id, t.contact_id, t.closed_at",
    );
    with_timeout(delete.bind(rule.company_id).bind(tickets).bind(rule.days).bind(marked).fetch_all(db)).await
}

/// Removes the content of the tickets' sessions. That a session existed proves that the webchat reaches the contact,
/// and a claim, even empty, that the contact was created for an unidentified visitor. So both facts stay.
async fn reduce_sessions(
    db: &mut PgConnection,
    company: CompanyId,
    contacts: &[ContactId],
    tickets: &[TicketId],
) -> Result<Vec<SessionId>> {
    let update = sqlx::query_scalar(
        "update webchat_sessions set ticket_id = null, page = null, utm = null,
             claimed = case when claimed is not null then '{}'::jsonb end
         where company_id = $1 and contact_id = any ($2) and ticket_id = any ($3) returning id",
    );
    with_timeout(update.bind(company).bind(contacts).bind(tickets).fetch_all(db)).await
}

async fn remove_schedules(
    db: &mut PgConnection,
    company: CompanyId,
    contacts: &[ContactId],
    messages: &[MessageId],
) -> Result<()> {
    let delete =
        sqlx::query("delete from schedules where company_id = $1 and contact_id = any ($2) and message_id = any ($3)");
    with_timeout(delete.bind(company).bind(contacts).bind(messages).execute(db)).await.map(drop)
}

/// Counts deleted conversations. Reports can no longer be recounted up to the day of `last_counted`.
async fn count_removed(
    db: &mut PgConnection,
    company: CompanyId,
    count: usize,
    last_counted: Option<DateTime<Utc>>,
) -> Result<()> {
    let update = sqlx::query(
        "update retentions set removed = removed + $2,
             counted_from = greatest(counted_from, date_trunc('day', $3::timestamptz, 'UTC') + interval '1 day')
         where company_id = $1",
    );
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    with_timeout(update.bind(company).bind(count).bind(last_counted).execute(db)).await.map(drop)
}

/// Clears the references of campaigns' recipients to deleted messages.
async fn forget_campaign_messages(db: &mut PgConnection, company: CompanyId, messages: &[MessageId]) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    let update =
        sqlx::query("update campaign_recipients set message_id = null where company_id = $1 and message_id = any ($2)");
    with_timeout(update.bind(company).bind(messages).execute(db)).await.map(drop)
}

/// The messages of deleted conversations.
#[derive(Default)]
struct RemovedMessages {
    messages: u64,
    files: u64,
    /// The time of the last message that reports count.
    last_counted: Option<DateTime<Utc>>,
    /// Messages that recipients of campaigns refer to.
    of_campaigns: Vec<MessageId>,
    /// Messages that schedules refer to.
    scheduled: Vec<MessageId>,
}

#[derive(FromRow)]
struct RemovedMessageRow {
    id: MessageId,
    source: Source,
    has_file: bool,
    counted_at: Option<DateTime<Utc>>,
}

/// Deletes the messages and events of tickets, a limited number per statement.
pub(super) async fn remove_history(db: &mut PgConnection, company: CompanyId, tickets: &[TicketId]) -> Result<()> {
    remove_messages(db, company, tickets).await?;
    remove_events(db, company, tickets).await?;
    Ok(())
}

async fn remove_messages(db: &mut PgConnection, company: CompanyId, tickets: &[TicketId]) -> Result<RemovedMessages> {
    let mut removed = RemovedMessages::default();
    loop {
        // A trigger records their files.
        let delete = sqlx::query_as(
            "delete from messages where company_id = $1 and ctid = any (array(
                 select ctid from messages where company_id = $1 and ticket_id = any ($2) limit $3))
             returning id, source, coalesce(media ? 'id', false) as has_file,
                 case when direction <> 'internal' then created_at end as counted_at",
        );
        let delete = delete.bind(company).bind(tickets).bind(ROWS_MAX).fetch_all(&mut *db);
        let rows: Vec<RemovedMessageRow> = with_timeout(delete).await?;
        for message in &rows {
            removed.messages += 1;
            removed.files += u64::from(message.has_file);
            removed.last_counted = removed.last_counted.max(message.counted_at);
            match message.source {
                Source::Campaign => removed.of_campaigns.push(message.id),
                Source::Schedule => removed.scheduled.push(message.id),
                Source::Api | Source::User | Source::Bot | Source::Automation | Source::Contact => {}
            }
        }
        if rows.is_empty() {
            return Ok(removed);
        }
    }
}

/// Deletes the tickets' events; returns the time of the last one that reports count.
async fn remove_events(
    db: &mut PgConnection,
    company: CompanyId,
    tickets: &[TicketId],
) -> Result<Option<DateTime<Utc>>> {
    let mut last_counted = None;
    loop {
        let delete = sqlx::query_as(
            "with gone as (
                 delete from ticket_events where company_id = $1 and ctid = any (array(
                     select ctid from ticket_events where company_id = $1 and ticket_id = any ($2) limit $3))
                 returning type, created_at)
             select count(*), max(created_at) filter (where type in ('opened', 'closed', 'reopened')) from gone",
        );
        let delete = delete.bind(company).bind(tickets).bind(ROWS_MAX).fetch_one(&mut *db);
        let (count, counted_at): (i64, Option<DateTime<Utc>>) = with_timeout(delete).await?;
        last_counted = last_counted.max(counted_at);
        if count == 0 {
            return Ok(last_counted);
        }
    }
}

/// Waits until transactions that changed these tickets, and whose outcome is unknown, have ended: they hold locks on
/// the rows.
pub async fn wait_for_outcome(db: impl Database<'_>, company: CompanyId, tickets: &[TicketId]) -> Result<()> {
    let lock = sqlx::query("select id from tickets where company_id = $1 and id = any ($2) for share");
    with_timeout(lock.bind(company).bind(tickets).execute(db)).await.map(drop)
}

/// Records a complete run for a company, unless its retention was changed meanwhile.
pub async fn record_run(db: impl PgExecutor<'_>, rule: &RetentionRule) -> Result<()> {
    let update = sqlx::query("update retentions set ran_at = now() where company_id = $1 and updated_at = $2");
    with_timeout(update.bind(rule.company_id).bind(rule.updated_at).execute(db)).await.map(drop)
}
