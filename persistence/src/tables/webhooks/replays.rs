//! Deliveries that are scheduled again: replays, and retries that are due at once because the endpoint has changed or works
//! again.

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};

use super::super::zones;
use super::WebhookId;
use super::deliveries::wake;
use crate::error::with_timeout;
use crate::{CompanyId, Database, Error, Result};

/// Deliveries that become due, or are scheduled again, per statement: takes about as long as to delete them.
pub const SCHEDULED_AT_ONCE: i64 = 10_000;

/// Makes deliveries that wait for a retry due now: the endpoint has changed or works again. There may be a million, so
/// each statement changes some.
pub(super) async fn make_due(db: &mut PgConnection, company: CompanyId, webhook: WebhookId) -> Result<()> {
    let mut after: Option<DateTime<Utc>> = None;
    loop {
        // The last of the next ones; `None`: no more than these are left.
        let last = sqlx::query_scalar(
            "select next_attempt_at from webhook_deliveries
             where company_id = $1 and webhook_id = $2 and status = 'pending' and next_attempt_at > coalesce($3, now())
             order by next_attempt_at offset $4 limit 1",
        );
        let last = last.bind(company).bind(webhook).bind(after).bind(SCHEDULED_AT_ONCE - 1);
        let last: Option<DateTime<Utc>> = with_timeout(last.fetch_optional(&mut *db)).await?;
        let update = sqlx::query(
            "update webhook_deliveries set next_attempt_at = now()
             where company_id = $1 and webhook_id = $2 and status = 'pending' and next_attempt_at > coalesce($3, now())
                 and next_attempt_at <= coalesce($4, 'infinity'::timestamptz)",
        );
        with_timeout(update.bind(company).bind(webhook).bind(after).bind(last).execute(&mut *db)).await?;
        if last.is_none() {
            return Ok(());
        }
        after = last;
    }
}

/// Locks a webhook's row, so that no outcome of its deliveries is written meanwhile: the writer would not see that a
/// later delivery of the lane waits for the replayed one.
async fn lock_webhook(db: &mut PgConnection, company: CompanyId, webhook: WebhookId) -> Result<()> {
    let lock = sqlx::query("select from webhooks where company_id = $1 and id = $2 for update");
    with_timeout(lock.bind(company).bind(webhook).execute(db)).await?;
    Ok(())
}

/// Schedules one event for delivery again, whatever its outcome, after earlier pending ones of its lane. Returns
/// whether there is such a delivery.
pub async fn replay_one(db: &mut PgConnection, company: CompanyId, webhook: WebhookId, event: i64) -> Result<bool> {
    lock_webhook(&mut *db, company, webhook).await?;
    let replay = zones::with_updated(
        "update webhook_deliveries d set status = 'pending', tries = 0, updated_at = now(),
             next_attempt_at = case when not exists (
                 select from webhook_deliveries p
                 where p.company_id = $1 and p.webhook_id = $2 and p.lane = d.lane and p.status = 'pending'
                     and p.event_id < $3
             ) then now() end
         where d.company_id = $1 and d.webhook_id = $2 and d.event_id = $3 returning d.event_id",
    );
    let replay = sqlx::query_scalar::<_, i64>(AssertSqlSafe(replay)).bind(company).bind(webhook).bind(event);
    let replayed = with_timeout(replay.fetch_one(&mut *db)).await?;
    wake(&mut *db, company, webhook).await?;
    Ok(replayed > 0)
}

/// Schedules the deliveries that have failed since a time for delivery again, in order per lane. Returns how many there
/// are. There may be a million, so it takes steps, each a transaction: if one fails, a repetition continues from there.
pub async fn replay_failed(
    db: impl Database<'_>,
    company: CompanyId,
    webhook: WebhookId,
    since: DateTime<Utc>,
) -> Result<u64> {
    let (mut after, mut replayed) = (i64::MIN, 0);
    loop {
        let mut transaction = db.heavy().transaction().await?;
        let (count, last) = replay_step(transaction.connection()?, (company, webhook), since, after).await?;
        transaction.commit().await?;
        replayed += count;
        match last {
            Some(last) => after = last,
            None => return Ok(replayed),
        }
    }
}

/// Examines the next failed deliveries after an event, and schedules those that have failed since a time again. Returns
/// how many these are, and the last one it examined; `None`: it examined all. A lane's deliveries of earlier steps are
/// pending or delivered by then, so its order is kept.
async fn replay_step(
    db: &mut PgConnection,
    (company, webhook): (CompanyId, WebhookId),
    since: DateTime<Utc>,
    after: i64,
) -> Result<(u64, Option<i64>)> {
    lock_webhook(&mut *db, company, webhook).await?;
    let last = sqlx::query_scalar(
        "select event_id from webhook_deliveries
         where company_id = $1 and webhook_id = $2 and status = 'failed' and event_id > $3
         order by event_id offset $4 limit 1",
    );
    let last = last.bind(company).bind(webhook).bind(after).bind(SCHEDULED_AT_ONCE - 1);
    let last: Option<i64> = with_timeout(last.fetch_optional(&mut *db)).await?;
    let replay = zones::with_updated(
        "update webhook_deliveries d set status = 'pending', tries = 0, updated_at = now(),
             next_attempt_at = case when a.is_first then now() end
         from (
             select event_id, row_number() over (partition by lane order by event_id) = 1 and not exists (
                 select from webhook_deliveries p
                 where p.company_id = $1 and p.webhook_id = $2 and p.lane = d.lane and p.status = 'pending'
             ) as is_first
             from webhook_deliveries d
             where company_id = $1 and webhook_id = $2 and status = 'failed' and updated_at >= $3
                 and event_id > $4 and event_id <= $5
         ) a where d.company_id = $1 and d.webhook_id = $2 and d.event_id = a.event_id
             and d.event_id > $4 and d.event_id <= $5 returning d.event_id",
    );
    let replay = sqlx::query_scalar::<_, i64>(AssertSqlSafe(replay)).bind(company).bind(webhook).bind(since);
    let replay = replay.bind(after).bind(last.unwrap_or(i64::MAX));
    let replayed = with_timeout(replay.fetch_one(&mut *db)).await?;
    wake(&mut *db, company, webhook).await?;
    Ok((replayed.unsigned_abs(), last))
}

/// Schedules everything after an event for delivery again, up to the webhook's position. Existing rows stay until their
/// events are delivered again. Returns the number of events to examine.
///
/// # Errors
/// [`crate::Error::NotFound`] when the webhook was deleted; other errors when the database cannot answer.
pub async fn replay_after(db: &mut PgConnection, company: CompanyId, webhook: WebhookId, event: i64) -> Result<i64> {
    let before =
        sqlx::query_scalar("select delivered_through from webhooks where company_id = $1 and id = $2 for update");
    let before: Option<i64> = with_timeout(before.bind(company).bind(webhook).fetch_optional(&mut *db)).await?;
    let before = before.ok_or(Error::NotFound("webhook"))?;
    let reset = sqlx::query(
        "update webhooks set delivered_through = least(delivered_through, $3) where company_id = $1 and id = $2",
    );
    with_timeout(reset.bind(company).bind(webhook).bind(event).execute(&mut *db)).await?;
    wake(&mut *db, company, webhook).await?;
    Ok((before - event).max(0))
}
