//! How long companies keep conversations once they are closed, and what goes with one.
//!
//! Whoever removes conversations makes sure that no live row of their contacts is on its way, as who deletes a contact does.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor};

use super::source::Source;
use crate::cluster::OfSlots;
use crate::error::with_timeout;
use crate::{CompanyId, ContactId, Database, Error, MessageId, Result, SessionId, TicketId};

/// Days a conversation is kept at least. What is still told of one (how far a message has come, a retry under a key, a
/// visitor who comes back) is told within days; less than a month is a slip of the hand.
pub const DAYS_MIN: i32 = 30;

/// Days that can be asked for: a hundred years. Whoever wants more keeps everything.
pub const DAYS_MAX: i32 = 36_500;

/// Rows of messages, or of what happened to tickets, that one statement deletes: some ten milliseconds.
const ROWS_MAX: i64 = 5_000;

/// What a company keeps, as whoever administers the installation sees it.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Retention {
    pub company: CompanyId,
    pub name: String,
    /// None: everything is kept.
    pub days: Option<i32>,
    /// Conversations that are older and still there.
    pub due: i64,
    /// Conversations that have gone.
    pub removed: i64,
    /// When it was last looked through to the end.
    pub last_run: Option<DateTime<Utc>>,
}

const SHOWN: &str = "select r.company_id as company, c.name, r.days, r.removed, r.ran_at as last_run,
        (select count(*) from tickets t where t.company_id = r.company_id and t.status = 'closed'
             and t.closed_at < now() - make_interval(hours => 24 * r.days)) as due";

/// A company that does not keep everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
#[allow(missing_docs)]
pub struct Rule {
    pub company_id: CompanyId,
    pub days: i32,
    /// When somebody has said so.
    pub updated_at: DateTime<Utc>,
}

impl Rule {
    /// How long a conversation is kept once it is closed.
    pub fn age(&self) -> TimeDelta {
        TimeDelta::days(self.days.into())
    }
}

/// A conversation that is closed for longer than its company keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
#[allow(missing_docs)]
pub struct Due {
    pub id: TicketId,
    pub contact_id: ContactId,
    pub closed_at: DateTime<Utc>,
}

/// Conversations that are gone once their transaction is committed.
#[derive(Clone, Debug, Default)]
pub struct Removed {
    /// Their tickets.
    pub tickets: Vec<TicketId>,
    /// How many messages they had.
    pub messages: u64,
    /// How many of those had a file.
    pub files: u64,
    /// Visitors' sessions of which nothing is known any more but that they were.
    pub sessions: Vec<SessionId>,
}

/// Every company that keeps, or has kept, less than everything.
///
/// # Errors
/// When the database cannot answer.
pub async fn all(db: impl Database<'_>) -> Result<Vec<Retention>> {
    let all = format!("{SHOWN} from retentions r join companies c on c.id = r.company_id order by r.company_id");
    Ok(sqlx::query_as(AssertSqlSafe(all)).fetch_all(db).await?)
}

/// Says for how many days a company keeps its conversations; none: for ever.
///
/// # Errors
/// [`Error::NotFound`] when there is no such company; when the database cannot answer.
pub async fn set(db: impl PgExecutor<'_>, company: CompanyId, days: Option<i32>) -> Result<Retention> {
    let set = format!(
        "with r as (
             insert into retentions (company_id, days) select id, $2 from companies where id = $1
             on conflict (company_id) do update set days = excluded.days, updated_at = now()
             returning *)
         {SHOWN} from r join companies c on c.id = r.company_id"
    );
    let row = sqlx::query_as(AssertSqlSafe(set)).bind(company).bind(days).fetch_optional(db).await?;
    row.ok_or(Error::NotFound("company"))
}

/// The companies that do not keep everything.
///
/// # Errors
/// When the database cannot answer.
pub async fn rules(db: impl Database<'_>, of: &OfSlots) -> Result<Vec<Rule>> {
    let holds = OfSlots::holds("company_id", 1);
    let rules = format!(
        "select company_id, days, updated_at from retentions where days is not null and {holds} order by company_id"
    );
    with_timeout(sqlx::query_as(AssertSqlSafe(rules)).bind(of.numbers()).fetch_all(db)).await
}

/// Conversations that are due by the database's clock, which all processes share, those first that were closed first, behind
/// one that was seen already; at most `limit`.
///
/// # Errors
/// When the database cannot answer.
pub async fn due(
    db: impl Database<'_>,
    rule: &Rule,
    (closed_at, id): (DateTime<Utc>, TicketId),
    limit: i64,
) -> Result<Vec<Due>> {
    let due = sqlx::query_as(
        "select id, contact_id, closed_at from tickets
         where company_id = $1 and status = 'closed' and closed_at < now() - make_interval(hours => 24 * $2)
             and (closed_at, id) > ($3, $4)
         order by closed_at, id limit $5",
    );
    with_timeout(due.bind(rule.company_id).bind(rule.days).bind(closed_at).bind(id).bind(limit).fetch_all(db)).await
}

/// Removes those of these conversations that are due, with everything that is theirs, unless the company keeps them by now:
/// then it answers none. One in which a message waits for its provider, or that a visitor's session is in, stays.
///
/// # Errors
/// When the database cannot answer; the transaction is to be given up then.
pub async fn remove(db: &mut PgConnection, rule: &Rule, tickets: &[TicketId]) -> Result<Option<Removed>> {
    let company = rule.company_id;
    // Held to the commit: what is kept from now on is kept once that was answered.
    let days = sqlx::query_scalar("select days from retentions where company_id = $1 for update");
    let days: Option<Option<i32>> = with_timeout(days.bind(company).fetch_optional(&mut *db)).await?;
    if days.flatten() != Some(rule.days) {
        return Ok(None);
    }
    // With `offset 0`, or all that is active or queued is looked at for each ticket: the indexes of that are small.
    let gone = sqlx::query_as(
        "delete from tickets t
         where t.company_id = $1 and t.id = any ($2) and t.status = 'closed'
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
    let gone: Vec<Due> = with_timeout(gone.bind(company).bind(tickets).bind(rule.days).fetch_all(&mut *db)).await?;
    let Some(closed_last) = gone.iter().map(|due| due.closed_at).max() else { return Ok(Some(Removed::default())) };
    let tickets: Vec<TicketId> = gone.iter().map(|due| due.id).collect();
    let contacts: Vec<ContactId> = gone.iter().map(|due| due.contact_id).collect();
    let said = remove_messages(db, company, &tickets).await?;
    let happened_last = remove_events(db, company, &tickets).await?;
    let freed = sqlx::query("update cards set ticket_id = null where company_id = $1 and ticket_id = any ($2)");
    with_timeout(freed.bind(company).bind(&tickets).execute(&mut *db)).await?;
    // That there was one says that the webchat reaches the contact; that a claim was made, whose contact it is.
    let sessions = sqlx::query_scalar(
        "update webchat_sessions set ticket_id = null, page = null, utm = null,
             claimed = case when claimed is not null then '{}'::jsonb end
         where company_id = $1 and contact_id = any ($2) and ticket_id = any ($3) returning id",
    );
    let sessions = sessions.bind(company).bind(&contacts).bind(&tickets).fetch_all(&mut *db);
    let sessions: Vec<SessionId> = with_timeout(sessions).await?;
    let sent =
        sqlx::query("delete from schedules where company_id = $1 and contact_id = any ($2) and message_id = any ($3)");
    with_timeout(sent.bind(company).bind(&contacts).bind(&said.scheduled).execute(&mut *db)).await?;
    let last = [Some(closed_last), said.last, happened_last].into_iter().flatten().max();
    let noted = sqlx::query(
        "update retentions set removed = removed + $2,
             counted_from = greatest(counted_from, date_trunc('day', $3::timestamptz, 'UTC') + interval '1 day')
         where company_id = $1",
    );
    let number = i64::try_from(tickets.len()).unwrap_or(i64::MAX);
    with_timeout(noted.bind(company).bind(number).bind(last).execute(&mut *db)).await?;
    // The last, and once: what campaigns have come to is counted by a trigger, which holds them to the commit.
    if !said.of_campaigns.is_empty() {
        let sent = sqlx::query(
            "update campaign_recipients set message_id = null where company_id = $1 and message_id = any ($2)",
        );
        with_timeout(sent.bind(company).bind(&said.of_campaigns).execute(&mut *db)).await?;
    }
    Ok(Some(Removed { tickets, messages: said.messages, files: said.files, sessions }))
}

/// What was said in conversations that are removed.
#[derive(Default)]
struct Said {
    messages: u64,
    files: u64,
    /// When the last of what reports count was said.
    last: Option<DateTime<Utc>>,
    /// Those that others name.
    of_campaigns: Vec<MessageId>,
    scheduled: Vec<MessageId>,
}

#[derive(FromRow)]
struct SaidThen {
    id: MessageId,
    source: Source,
    has_file: bool,
    counted_at: Option<DateTime<Utc>>,
}

async fn remove_messages(db: &mut PgConnection, company: CompanyId, tickets: &[TicketId]) -> Result<Said> {
    let mut said = Said::default();
    loop {
        // Their files are noted by a trigger.
        let gone = sqlx::query_as(
            "delete from messages where company_id = $1 and ctid = any (array(
                 select ctid from messages where company_id = $1 and ticket_id = any ($2) limit $3))
             returning id, source, coalesce(media ? 'id', false) as has_file,
                 case when direction <> 'internal' then created_at end as counted_at",
        );
        let gone = gone.bind(company).bind(tickets).bind(ROWS_MAX).fetch_all(&mut *db);
        let gone: Vec<SaidThen> = with_timeout(gone).await?;
        for message in &gone {
            said.messages += 1;
            said.files += u64::from(message.has_file);
            said.last = said.last.max(message.counted_at);
            match message.source {
                Source::Campaign => said.of_campaigns.push(message.id),
                Source::Schedule => said.scheduled.push(message.id),
                Source::Api | Source::User | Source::Bot | Source::Automation | Source::Contact => {}
            }
        }
        if gone.is_empty() {
            return Ok(said);
        }
    }
}

/// Answers when the last of what reports count has happened.
async fn remove_events(
    db: &mut PgConnection,
    company: CompanyId,
    tickets: &[TicketId],
) -> Result<Option<DateTime<Utc>>> {
    let mut last = None;
    loop {
        let gone = sqlx::query_as(
            "with gone as (
                 delete from ticket_events where company_id = $1 and ctid = any (array(
                     select ctid from ticket_events where company_id = $1 and ticket_id = any ($2) limit $3))
                 returning type, created_at)
             select count(*), max(created_at) filter (where type in ('opened', 'closed', 'reopened')) from gone",
        );
        let gone = gone.bind(company).bind(tickets).bind(ROWS_MAX).fetch_one(&mut *db);
        let (number, counted): (i64, Option<DateTime<Utc>>) = with_timeout(gone).await?;
        last = last.max(counted);
        if number == 0 {
            return Ok(last);
        }
    }
}

/// Waits until nobody is at these tickets any more in a transaction of which it is not known how it ended.
///
/// # Errors
/// When the database cannot answer.
pub async fn settled(db: impl Database<'_>, company: CompanyId, tickets: &[TicketId]) -> Result<()> {
    let held = sqlx::query("select id from tickets where company_id = $1 and id = any ($2) for share");
    with_timeout(held.bind(company).bind(tickets).execute(db)).await.map(drop)
}

/// Notes that a company was looked through to the end, unless somebody has said something else meanwhile.
///
/// # Errors
/// When the database cannot answer.
pub async fn note_run(db: impl PgExecutor<'_>, rule: &Rule) -> Result<()> {
    let ran = sqlx::query("update retentions set ran_at = now() where company_id = $1 and updated_at = $2");
    with_timeout(ran.bind(rule.company_id).bind(rule.updated_at).execute(db)).await.map(drop)
}
