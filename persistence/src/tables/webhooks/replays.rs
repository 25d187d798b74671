//! Rescheduled deliveries: replays, and retries that are due at once because the endpoint has changed or works again.

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};

use super::super::zones;
use super::WebhookId;
use super::deliveries::wake;
use crate::error::with_timeout;
use crate::{CompanyId, Database, Error, Result};

/// Maximum number of deliveries that one statement reschedules, which takes about as long as deleting them.
pub const SCHEDULED_AT_ONCE: i64 = 10_000;

/// Makes deliveries that wait for a retry due now: the endpoint has changed or works again. There may be a million, so
/// each statement changes at most [`SCHEDULED_AT_ONCE`].
pub(super) async fn make_due(db: &mut PgConnection, company: CompanyId, webhook: WebhookId) -> Result<()> {
    let mut after: Option<DateTime<Utc>> = None;
    loop {
        // The time of the batch's last delivery; `None` when fewer than a full batch are left.
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

/// Schedules one event for delivery again, whatever the outcome of its delivery was. Earlier pending deliveries of its
/// lane come first. Returns whether the event has a delivery.
pub async fn replay_one(db: &mut PgConnection, company: CompanyId, webhook: WebhookId, event: i64) -> Result<bool> {
    lock_webhook(&mut *db, company, webhook).await?;
    let replay = zones::wrap_delivery_update(
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

/// Reschedules all deliveries that have failed since a time, in order per lane. Returns their number. There may be a
/// million, so each batch has its own transaction: if one fails, a repeated call continues with the deliveries that are
/// still failed.
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

/// Examines a batch of failed deliveries after the event `after`, and reschedules those that have failed since a time.
/// Returns their number, and the last event of the batch; `None` for the last batch. In each lane, deliveries of
/// earlier batches are pending or delivered before the later ones are scheduled, so the lane's order is kept.
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
    let replay = zones::wrap_delivery_update(
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

/// Moves the webhook's position back to an event, so that all later events are delivered again. Their existing rows
/// stay until then. Returns how far the position moved: the number of events to examine.
///
/// # Errors
/// [`crate::Error::NotFound`] when the webhook was deleted; other errors when the database cannot answer.
pub async fn replay_after(db: &mut PgConnection, company: CompanyId, webhook: WebhookId, event: i64) -> Result<i64> {
    let position =
        sqlx::query_scalar("select delivered_through from webhooks where company_id = $1 and id = $2 for update");
    let position: Option<i64> = with_timeout(position.bind(company).bind(webhook).fetch_optional(&mut *db)).await?;
    let position = position.ok_or(Error::NotFound("webhook"))?;
    let reset = sqlx::query(
        "update webhooks set delivered_through = least(delivered_through, $3) where company_id = $1 and id = $2",
    );
    with_timeout(reset.bind(company).bind(webhook).bind(event).execute(&mut *db)).await?;
    wake(&mut *db, company, webhook).await?;
    Ok((position - event).max(0))
}
