//! The deliveries of events to webhooks. A row is written once an event was attempted or has to wait. Events after a
//! webhook's `delivered_through` are still read from the event log, even if some of them have a row.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{FromRow, PgConnection, PgExecutor};

use super::super::text_enum;
use super::super::zones::{self, TimeColumn, ZoneFilter, ZonedRow, ZonedTable};
use super::{Endpoint, WebhookId};
use crate::clock;
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::table::Span;
use crate::{CompanyId, Database, Result};

text_enum! {
    /// The status of a delivery.
    DeliveryStatus {
        /// It is being attempted, or will be.
        Pending = "pending",
        /// The endpoint has accepted it.
        Delivered = "delivered",
        /// Its last attempt has failed.
        Failed = "failed",
    }
}

/// Maximum number of attempts stored per delivery: all ten before it fails, and ten of a replay.
pub const ATTEMPTS_MAX: i32 = 20;

/// Maximum number of deliveries that one statement deletes, in a few hundred milliseconds.
pub const REMOVED_AT_ONCE: i64 = 10_000;

/// One attempt, as stored and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// RFC 3339.
    pub at: String,
    /// The HTTP status of the endpoint's response; `None` without a response.
    pub status: Option<u16>,
    /// Why the attempt failed.
    pub error: Option<String>,
    pub duration_ms: u64,
}

/// One delivery as stored.
#[derive(Clone, Debug, FromRow)]
pub struct DeliveryRow {
    pub event_id: i64,
    #[sqlx(rename = "type")]
    pub kind: String,
    pub status: DeliveryStatus,
    #[sqlx(try_from = "Document")]
    pub attempts: Value,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// The filters of the list of a webhook's deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    pub status: Option<DeliveryStatus>,
    pub created: Span,
    pub updated: Span,
    /// Types of events whose deliveries are not listed.
    pub excluded_types: Vec<&'static str>,
}

/// A page of a webhook's deliveries, in the order of their events' ids.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    webhook: WebhookId,
    filter: &DeliveryFilter,
    page: PageRequest,
) -> Result<Page<DeliveryRow>> {
    let zone_filter = ZoneFilter {
        spans: &[(TimeColumn::Created, filter.created), (TimeColumn::Updated, filter.updated)],
        ..ZoneFilter::default()
    };
    // Filters by time use the zone map: it skips ranges of ids that cannot match.
    let list = if zone_filter.has_condition() {
        zones::list("", ZonedTable::Delivery, company, &zone_filter, &[("webhook_id", Some(webhook.0))], page)
    } else {
        Select::new("select t.* from webhook_deliveries t", "t.company_id", company)
            .equals("t.webhook_id", Some(webhook))
    };
    list.equals("t.status", filter.status)
        .between("t.created_at", filter.created)
        .between("t.updated_at", filter.updated)
        .only_by("t.type <> all (", Some(&filter.excluded_types).filter(|types| !types.is_empty()), ")")
        .page(db, "t.event_id", page)
        .await
}

/// The new state of a delivery, with the attempt that was just made, if any.
#[derive(Clone, Debug)]
pub struct DeliveryOutcome {
    pub event_id: i64,
    pub kind: String,
    pub lane: String,
    pub status: DeliveryStatus,
    /// Number of failed attempts since the last replay; 0 if the delivery was withheld or has expired.
    pub tries: i32,
    pub attempt: Option<Attempt>,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

impl DeliveryOutcome {
    /// The delivery's row in the zone map, as of a write at this time.
    fn zoned_row(&self, company: CompanyId, updated: DateTime<Utc>) -> ZonedRow {
        ZonedRow {
            company,
            id: self.event_id,
            created: self.created_at,
            opened: None,
            closed: None,
            updated: Some(updated),
            words: [None; 3],
            channel: None,
            queue: None,
        }
    }
}

/// The webhook's progress, to be written with the outcomes.
#[derive(Clone, Copy, Debug)]
pub struct WebhookProgress {
    /// The expected `delivered_through` of the webhook's row: as last read or written by the caller.
    pub expected_delivered_through: i64,
    /// The new value.
    pub delivered_through: i64,
    /// The expected `failing_since` of the webhook's row: as last read or written by the caller.
    pub expected_failing_since: Option<DateTime<Utc>>,
    /// The new value.
    pub failing_since: Option<DateTime<Utc>>,
}

/// The webhook's row after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredProgress {
    /// Whether the webhook exists, and neither its position (`delivered_through`) nor its types were changed meanwhile.
    pub is_current: bool,
    pub failing_since: Option<DateTime<Utc>>,
}

/// Writes the outcomes of deliveries and the webhook's progress in one transaction. With `may_unblock`, the next
/// waiting delivery in the lane of each finished one becomes due. `is_current` is false if the webhook was deleted, its
/// position was reset or its types have changed; the position then stays as stored.
pub async fn record(
    db: &mut PgConnection,
    endpoint: &Endpoint,
    progress: WebhookProgress,
    outcomes: &[DeliveryOutcome],
    may_unblock: bool,
) -> Result<StoredProgress> {
    let (company, webhook) = (endpoint.company, endpoint.id);
    // This comes first, because it locks the row: the webhook is not deleted and its URL does not change meanwhile.
    // `failing_since` stays if the URL has changed, as the old URL says nothing about the new one, or if it was cleared
    // meanwhile by a test or by enabling the webhook. The position stays if the types have changed, as events of new
    // types were skipped.
    let update = sqlx::query_as::<_, (i64, bool, Option<DateTime<Utc>>)>(
        "update webhooks set delivered_through =
                 case when delivered_through = $3 and types = $7 then $4 else delivered_through end,
             failing_since =
                 case when url = $6 and failing_since is not distinct from $8 then $5 else failing_since end
         where company_id = $1 and id = $2 returning delivered_through, types = $7, failing_since",
    );
    let update =
        update.bind(company).bind(webhook).bind(progress.expected_delivered_through).bind(progress.delivered_through);
    let update = update.bind(progress.failing_since).bind(&endpoint.url).bind(&endpoint.types);
    let updated = with_timeout(update.bind(progress.expected_failing_since).fetch_optional(&mut *db)).await?;
    let Some((delivered_through, types_match, failing_since)) = updated else {
        return Ok(StoredProgress { is_current: false, failing_since: None });
    };
    if !outcomes.is_empty() {
        write_outcomes(db, company, webhook, outcomes).await?;
    }
    let unblocks_lane = |outcome: &&DeliveryOutcome| may_unblock && outcome.status != DeliveryStatus::Pending;
    let lanes: Vec<&str> = outcomes.iter().filter(unblocks_lane).map(|outcome| outcome.lane.as_str()).collect();
    if !lanes.is_empty() {
        unblock_lanes(db, company, webhook, lanes).await?;
    }
    let is_current = types_match && delivered_through == progress.delivered_through;
    Ok(StoredProgress { is_current, failing_since })
}

/// Makes the next waiting delivery due in each of these lanes.
async fn unblock_lanes(db: &mut PgConnection, company: CompanyId, webhook: WebhookId, lanes: Vec<&str>) -> Result<()> {
    let make_due = sqlx::query(
        "update webhook_deliveries d set next_attempt_at = now()
         from (select distinct unnest($3::text[]) as lane) l
         cross join lateral (
             select event_id from webhook_deliveries w
             where w.company_id = $1 and w.webhook_id = $2 and w.lane = l.lane and w.status = 'pending'
             order by w.event_id limit 1
         ) first
         where d.company_id = $1 and d.webhook_id = $2 and d.event_id = first.event_id
             and d.next_attempt_at is null",
    );
    with_timeout(make_due.bind(company).bind(webhook).bind(lanes).execute(db)).await?;
    Ok(())
}

async fn write_outcomes(
    db: &mut PgConnection,
    company: CompanyId,
    webhook: WebhookId,
    outcomes: &[DeliveryOutcome],
) -> Result<()> {
    let attempts: Vec<Value> = outcomes
        .iter()
        .map(|outcome| {
            Value::Array(outcome.attempt.iter().filter_map(|attempt| serde_json::to_value(attempt).ok()).collect())
        })
        .collect();
    let now = clock::now();
    let write = sqlx::query(
        "insert into webhook_deliveries as d
             (company_id, webhook_id, updated_at, event_id, type, lane, status, tries, attempts, next_attempt_at, created_at)
         select $1, $2, $12, * from unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::integer[], $8::jsonb[],
             $9::timestamptz[], $10::timestamptz[])
         on conflict (company_id, webhook_id, event_id) do update set status = excluded.status, tries = excluded.tries,
             attempts = case when jsonb_array_length(d.attempts) >= $11 and excluded.attempts <> '[]'
                 then d.attempts - 0 else d.attempts end || excluded.attempts,
             next_attempt_at = excluded.next_attempt_at, updated_at = excluded.updated_at",
    )
    .bind(company)
    .bind(webhook)
    .bind(outcomes.iter().map(|outcome| outcome.event_id).collect::<Vec<_>>())
    .bind(outcomes.iter().map(|outcome| outcome.kind.as_str()).collect::<Vec<_>>())
    .bind(outcomes.iter().map(|outcome| outcome.lane.as_str()).collect::<Vec<_>>())
    .bind(outcomes.iter().map(|outcome| outcome.status.as_str()).collect::<Vec<_>>())
    .bind(outcomes.iter().map(|outcome| outcome.tries).collect::<Vec<_>>())
    .bind(attempts)
    .bind(outcomes.iter().map(|outcome| outcome.next_attempt_at).collect::<Vec<_>>())
    .bind(outcomes.iter().map(|outcome| outcome.created_at).collect::<Vec<_>>())
    .bind(ATTEMPTS_MAX)
    .bind(now);
    with_timeout(write.execute(&mut *db)).await?;
    let zoned_row = |outcome: &DeliveryOutcome| outcome.zoned_row(company, now);
    with_timeout(zones::update(db, ZonedTable::Delivery, outcomes.iter().map(zoned_row))).await
}

/// A delivery that is due.
#[derive(Clone, Debug, FromRow)]
pub struct DueDelivery {
    pub event_id: i64,
    pub kind: String,
    pub lane: String,
    /// Number of failed attempts since the last replay.
    pub tries: i32,
    pub created_at: DateTime<Utc>,
}

/// Due deliveries, earliest first, up to the event `read_to` and without those `in_progress`.
pub async fn due(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    webhook: WebhookId,
    now: DateTime<Utc>,
    (read_to, in_progress): (i64, &[i64]),
    limit: i64,
) -> Result<Vec<DueDelivery>> {
    let due = sqlx::query(
        "select event_id, type as kind, lane, tries, created_at from webhook_deliveries
         where company_id = $1 and webhook_id = $2 and status = 'pending' and next_attempt_at <= $3
             and event_id <= $4 and event_id <> all($5)
         order by next_attempt_at limit $6",
    );
    let due = due.bind(company).bind(webhook).bind(now).bind(read_to).bind(in_progress).bind(limit);
    Ok(document::read_all(&with_timeout(due.fetch_all(db)).await?))
}

/// The waiting deliveries of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct WaitingDeliveries {
    /// When the next one is due, ignoring those in progress.
    pub next_at: Option<DateTime<Utc>>,
    /// When the oldest one's event happened.
    pub oldest: Option<DateTime<Utc>>,
}

/// The waiting deliveries of a webhook up to the event `read_to`: later ones are read again from the log. Those
/// `in_progress` are not due. Rows may exist beyond `delivered_through`: events that follow a waiting delivery of the
/// same lane are stored as soon as they are read.
pub async fn waiting(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    webhook: WebhookId,
    (read_to, in_progress): (i64, &[i64]),
) -> Result<WaitingDeliveries> {
    let waiting = sqlx::query_as(
        "select (select next_attempt_at from webhook_deliveries
                 where company_id = $1 and webhook_id = $2 and status = 'pending' and next_attempt_at is not null
                     and event_id <= $3 and event_id <> all($4)
                 order by next_attempt_at limit 1) as next_at,
             (select created_at from webhook_deliveries
                 where company_id = $1 and webhook_id = $2 and status = 'pending' and event_id <= $3
                 order by event_id limit 1) as oldest",
    );
    with_timeout(waiting.bind(company).bind(webhook).bind(read_to).bind(in_progress).fetch_one(db)).await
}

/// The lanes among these with a pending delivery, up to the event `read_to`: later ones are read again from the log.
pub async fn busy_lanes(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    webhook: WebhookId,
    lanes: &[String],
    read_to: i64,
) -> Result<Vec<String>> {
    let busy = sqlx::query_scalar(
        "select l.lane from (select distinct unnest($3::text[]) as lane) l
         where exists (select from webhook_deliveries d
             where d.company_id = $1 and d.webhook_id = $2 and d.lane = l.lane and d.status = 'pending'
                 and d.event_id <= $4)",
    );
    with_timeout(busy.bind(company).bind(webhook).bind(lanes).bind(read_to).fetch_all(db)).await
}

/// Notifies the service, which may be another process, of new work.
pub async fn wake(db: impl PgExecutor<'_>, company: CompanyId, webhook: WebhookId) -> Result<()> {
    // A no-op update, for which the trigger sends a notification.
    let wake = sqlx::query("update webhooks set active = active where company_id = $1 and id = $2");
    with_timeout(wake.bind(company).bind(webhook).execute(db)).await?;
    Ok(())
}

/// The result of deleting deliveries of expired events.
#[derive(Clone, Copy, Debug)]
pub struct DeletionOutcome {
    /// Whether no delivery of the expired events is left.
    pub is_complete: bool,
    /// Whether other deliveries waited for a deleted one and are due now.
    pub has_due: bool,
}

/// Deletes the zones of the deliveries' zone map that end before a given event. To be called once no webhook of the
/// company has a delivery up to this event.
pub async fn delete_zones_before(db: impl PgExecutor<'_>, company: CompanyId, event: i64) -> Result<()> {
    // 10 is `zones::BITS`.
    let delete = sqlx::query("delete from zones where company_id = $1 and noun = 'delivery' and zone < $2 >> 10");
    with_timeout(delete.bind(company).bind(event).execute(db)).await?;
    Ok(())
}

/// Deletes deliveries of expired events up to a given one; at most [`REMOVED_AT_ONCE`]. Deliveries that waited for one
/// of them become due: the caller must notify the service ([`wake`]).
pub async fn delete_through(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    webhook: WebhookId,
    event: i64,
) -> Result<DeletionOutcome> {
    let delete = sqlx::query_as::<_, (i64, i64)>(
        // Deletes up to a bound instead of joining the old rows: each row is read once, regardless of the plan.
        "with bound as (
             select max(event_id) as last from (
                 select event_id from webhook_deliveries
                 where company_id = $1 and webhook_id = $2 and event_id <= $3 order by event_id limit $4) old
         ), gone as (
             delete from webhook_deliveries
             where company_id = $1 and webhook_id = $2 and event_id <= (select last from bound)
             returning lane, status
         ), freed as (
             update webhook_deliveries d set next_attempt_at = now()
             where d.company_id = $1 and d.webhook_id = $2 and d.status = 'pending' and d.next_attempt_at is null
                 and d.lane in (select lane from gone where status = 'pending')
                 and d.event_id = (select min(w.event_id) from webhook_deliveries w
                     where w.company_id = $1 and w.webhook_id = $2 and w.lane = d.lane and w.status = 'pending'
                         and w.event_id > (select last from bound))
             returning d.event_id
         )
         select (select count(*) from gone), (select count(*) from freed)",
    );
    let delete = delete.bind(company).bind(webhook).bind(event).bind(REMOVED_AT_ONCE);
    let (removed, freed) = with_timeout(delete.fetch_one(db)).await?;
    Ok(DeletionOutcome { is_complete: removed < REMOVED_AT_ONCE, has_due: freed > 0 })
}
