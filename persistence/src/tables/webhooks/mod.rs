//! Webhooks: endpoints to which a company's events are delivered. Plain: changed by transactions, not by actors. Their
//! deliveries are in [`deliveries`].

pub mod deliveries;
mod missing_keys;
pub mod replays;

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgExecutor, PgPool};
use utoipa::ToSchema;

pub use self::missing_keys::{abandon, disable_unreadable, enable_readable};
use crate::error::with_timeout;
use crate::sealed::{KeyError, Keyring, Location, Secret};
use crate::table::{self, Columns, Stamps, Table};
use crate::{CompanyId, Error, Id, Result, UserId};

/// The id of a webhook.
pub type WebhookId = Id<Webhook>;

/// Maximum webhooks of a company: every event is sent to each of them, and no company has more systems to notify.
pub const WEBHOOKS_MAX: i64 = 20;

/// How long the old secret signs along with the new one: a day is enough to deploy the new one at the receiver.
pub const OLD_SECRET_VALIDITY: TimeDelta = TimeDelta::hours(24);

/// A webhook: an endpoint that receives a company's events.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub id: WebhookId,
    #[schema(example = "https://example.com/hotline")]
    pub url: String,
    #[schema(example = "Notifies the warehouse")]
    pub description: Option<String>,
    /// The event types to send; empty for all.
    #[schema(example = json!(["ticket.opened", "message.received"]))]
    pub types: Vec<String>,
    #[schema(example = true)]
    pub active: bool,
    /// Why the webhook was disabled automatically.
    #[schema(example = "the endpoint responded with 410 Gone")]
    pub disabled_reason: Option<String>,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for Webhook {
    const NAME: &'static str = "webhooks";
    const NOUN: &'static str = "webhook";
    const SEARCH: &'static [&'static str] = &["hotline_fold(url || E'\\n' || coalesce(description, ''))"];
    const COLUMNS: &'static str = "id, url, description, types, active, disabled_reason, created_at, updated_at";
    type Id = WebhookId;
}

/// A webhook with the data its delivery needs.
#[derive(Clone)]
pub struct Endpoint {
    pub company: CompanyId,
    pub id: WebhookId,
    pub url: String,
    /// The event types to send; empty for all.
    pub types: Vec<String>,
    /// The signing secrets: the current one, and the previous one while it is valid.
    pub secrets: Vec<Secret>,
    /// Until when the previous secret is valid.
    pub old_secret_until: Option<DateTime<Utc>>,
    /// The user who last set it up; `None`: an integration, or the operator.
    pub maker: Option<UserId>,
    /// Every event up to this one was delivered, or is stored as a delivery.
    pub delivered_through: i64,
    /// Since when no delivery has succeeded, if the last one failed.
    pub failing_since: Option<DateTime<Utc>>,
    /// When the last delivery failed, if its row still exists.
    pub failed_at: Option<DateTime<Utc>>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("company", &self.company).field("id", &self.id).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// The secrets that are valid at a time.
    pub fn secrets_at(&self, now: DateTime<Utc>) -> &[Secret] {
        let is_old_valid = self.old_secret_until.is_some_and(|until| now < until);
        if is_old_valid { &self.secrets } else { self.secrets.get(..1).unwrap_or_default() }
    }
}

#[derive(FromRow)]
struct EndpointRow {
    company_id: CompanyId,
    id: WebhookId,
    url: String,
    types: Vec<String>,
    secret: String,
    old_secret: Option<String>,
    old_secret_until: Option<DateTime<Utc>>,
    maker_id: Option<UserId>,
    delivered_through: i64,
    failing_since: Option<DateTime<Utc>>,
    failed_at: Option<DateTime<Utc>>,
}

impl EndpointRow {
    fn open(self, keys: &Keyring) -> Result<Endpoint> {
        let row = self.id.to_string();
        let mut secrets = vec![open_secret(keys, &secret_at(self.company_id, &row), &self.secret)?];
        if let Some(old) = &self.old_secret {
            secrets.push(open_secret(keys, &old_secret_at(self.company_id, &row), old)?);
        }
        Ok(Endpoint {
            company: self.company_id,
            id: self.id,
            url: self.url,
            types: self.types,
            secrets,
            old_secret_until: self.old_secret_until,
            maker: self.maker_id,
            delivered_through: self.delivered_through,
            failing_since: self.failing_since,
            failed_at: self.failed_at,
        })
    }
}

fn secret_at(company: CompanyId, row: &str) -> Location<'_> {
    Location { column: "webhooks.secret", company, row }
}

fn old_secret_at(company: CompanyId, row: &str) -> Location<'_> {
    Location { column: "webhooks.old_secret", company, row }
}

/// Seals the secret of a webhook that is inserted by an import.
pub(crate) fn seal_new(keys: &Keyring, company: CompanyId, id: WebhookId, secret: &Secret) -> Result<String> {
    Ok(keys.seal(&secret_at(company, &id.to_string()), secret.0.as_bytes())?)
}

fn open_secret(keys: &Keyring, location: &Location<'_>, sealed: &str) -> Result<Secret> {
    let plain = keys.open(location, sealed)?;
    Ok(Secret(String::from_utf8(plain).map_err(|_| KeyError::Damaged)?))
}

/// Creates a webhook of `maker`, which receives events after `delivered_through`. `None` when the company has the
/// maximum number of webhooks.
///
/// # Errors
/// When the database cannot answer; [`Error::Key`] when the secret cannot be sealed.
pub async fn insert(
    db: &mut PgConnection,
    keys: &Keyring,
    company: CompanyId,
    mut columns: Columns,
    secret: &Secret,
    (maker, delivered_through): (Option<UserId>, i64),
) -> Result<Option<Webhook>> {
    if table::has_at_least(&mut *db, company, Webhook::NAME, WEBHOOKS_MAX).await? {
        return Ok(None);
    }
    // Its secret is bound to its id, so the id is assigned first.
    let id = sqlx::query_scalar("select nextval(pg_get_serial_sequence('webhooks', 'id'))");
    let id: i64 = with_timeout(id.fetch_one(&mut *db)).await?;
    let sealed = keys.seal(&secret_at(company, &id.to_string()), secret.0.as_bytes())?;
    columns.set("secret", sealed);
    columns.set("deliveredThrough", delivered_through);
    let statement = "insert into webhooks (company_id, id, url, description, types, active, secret, delivered_through, maker_id)
         overriding system value
         select $1, $2, g.url, g.description, coalesce(g.types, '{}'), coalesce(g.active, true), g.secret, g.delivered_through, $4
         from jsonb_populate_record(null::webhooks, $3) g
         returning id, url, description, types, active, disabled_reason, created_at, updated_at";
    let insert = sqlx::query_as(statement).bind(company).bind(id).bind(columns.to_value()).bind(maker);
    Ok(Some(with_timeout(insert.fetch_one(db)).await?))
}

/// The columns of a webhook's setup. Writing one of them, even unchanged, makes the writer its maker.
const SETUP_COLUMNS: [&str; 3] = ["url", "types", "active"];

/// Updates the given columns of a webhook; writing its setup makes `by` its maker. Enabling it or changing its URL
/// clears the failure and makes pending deliveries due.
///
/// # Errors
/// [`Error::NotFound`] when there is no such webhook; when the database cannot answer.
pub async fn update(
    db: &mut PgConnection,
    company: CompanyId,
    id: WebhookId,
    columns: Columns,
    by: Option<UserId>,
) -> Result<Webhook> {
    if SETUP_COLUMNS.iter().any(|name| columns.has(name)) {
        // A separate statement, because a new maker, which users do not see, must not change `updated_at`.
        let set_maker = sqlx::query("update webhooks set maker_id = $3 where company_id = $1 and id = $2");
        with_timeout(set_maker.bind(company).bind(id).bind(by).execute(&mut *db)).await?;
    }
    let sets_active = columns.has("active") && !columns.is_false("active");
    let clear_failure = sqlx::query(
        "update webhooks set failing_since = null,
             disabled_reason = case when $3 and not active then null else disabled_reason end
         where company_id = $1 and id = $2 and ($3 and not active or url <> $4)",
    );
    let clear_failure = clear_failure.bind(company).bind(id).bind(sets_active).bind(columns.text("url"));
    if with_timeout(clear_failure.execute(&mut *db)).await?.rows_affected() > 0 {
        replays::make_due(db, company, id).await?;
    }
    table::update::<Webhook>(db, company, id, &columns).await
}

/// Whether a webhook may receive events of cards, which show the cards of all users: its maker must still see every
/// card. A user does while active, with a profile that administers the company and sees all cards (as
/// `Caller::sees_every_card`). A webhook without a maker may receive them; a deleted webhook may not.
pub async fn may_include_cards(db: impl PgExecutor<'_>, company: CompanyId, id: WebhookId) -> Result<bool> {
    let may = sqlx::query_scalar(
        "select exists (
             select from webhooks w
             where w.company_id = $1 and w.id = $2 and (w.maker_id is null or exists (
                 select from users u
                 join profiles p on p.company_id = u.company_id and p.id = u.profile_id
                 where u.company_id = $1 and u.id = w.maker_id and u.active and p.administers and p.sees_all_cards
             ))
         )",
    );
    with_timeout(may.bind(company).bind(id).fetch_one(db)).await
}

/// Clears the failure of an endpoint that has accepted a request other than a delivery, unless its URL has changed
/// meanwhile.
pub async fn clear_failure(db: &mut PgConnection, endpoint: &Endpoint) -> Result<()> {
    let update = sqlx::query(
        "update webhooks set failing_since = null
         where company_id = $1 and id = $2 and url = $3 and failing_since is not null",
    );
    let update = update.bind(endpoint.company).bind(endpoint.id).bind(&endpoint.url);
    if with_timeout(update.execute(&mut *db)).await?.rows_affected() > 0 {
        deliveries::wake(db, endpoint.company, endpoint.id).await?;
    }
    Ok(())
}

/// Replaces a webhook's secret; the old one signs along with it for [`OLD_SECRET_VALIDITY`].
///
/// # Errors
/// [`Error::NotFound`] when the webhook does not exist; when the database cannot answer; [`Error::Key`] when a secret
/// cannot be opened or sealed.
pub async fn rotate_secret(
    db: &mut PgConnection,
    keys: &Keyring,
    company: CompanyId,
    id: WebhookId,
    secret: &Secret,
    now: DateTime<Utc>,
) -> Result<Webhook> {
    let sealed = sqlx::query_scalar("select secret from webhooks where company_id = $1 and id = $2 for update");
    let sealed: Option<String> = with_timeout(sealed.bind(company).bind(id).fetch_optional(&mut *db)).await?;
    let sealed = sealed.ok_or(Error::NotFound(Webhook::NOUN))?;
    let row = id.to_string();
    let old = open_secret(keys, &secret_at(company, &row), &sealed)?;
    let columns = Columns::from([
        ("secret", keys.seal(&secret_at(company, &row), secret.0.as_bytes())?.into()),
        ("oldSecret", keys.seal(&old_secret_at(company, &row), old.0.as_bytes())?.into()),
        ("oldSecretUntil", (now + OLD_SECRET_VALIDITY).to_rfc3339().into()),
    ]);
    table::update::<Webhook>(db, company, id, &columns).await
}

/// Deletes a webhook. Its deliveries are deleted later ([`super::removals`]).
///
/// # Errors
/// [`Error::NotFound`] when the webhook does not exist; other errors when the database cannot answer.
pub async fn remove(db: impl PgExecutor<'_>, company: CompanyId, id: WebhookId) -> Result<()> {
    let remove = sqlx::query("delete from webhooks where company_id = $1 and id = $2");
    let removed = with_timeout(remove.bind(company).bind(id).execute(db)).await?;
    if removed.rows_affected() == 0 { Err(Error::NotFound(Webhook::NOUN)) } else { Ok(()) }
}

/// Disables a webhook for a reason, unless it was disabled or its URL changed meanwhile. With `failing_since`, the
/// reason is that deliveries have failed since then: the webhook also stays active if that failure was cleared
/// meanwhile. Returns whether the webhook was disabled.
pub async fn disable(
    db: impl PgExecutor<'_>,
    endpoint: &Endpoint,
    failing_since: Option<DateTime<Utc>>,
    reason: &str,
) -> Result<bool> {
    let disable = sqlx::query(
        "update webhooks set active = false, disabled_reason = $4, updated_at = now()
         where company_id = $1 and id = $2 and url = $3 and active and ($5::timestamptz is null or failing_since = $5)",
    );
    let disable = disable.bind(endpoint.company).bind(endpoint.id).bind(&endpoint.url).bind(reason).bind(failing_since);
    Ok(with_timeout(disable.execute(db)).await?.rows_affected() > 0)
}

/// Selects an [`EndpointRow`]. `failed_at` is when the newest failed delivery, or the pending delivery with the latest
/// retry, was last updated, whichever is later. A delivery without an attempt, such as a withheld one, is not a
/// failure of the endpoint: it is skipped, but only the newest hundred failed deliveries are searched.
const SELECT_ENDPOINT: &str =
    "select company_id, id, url, types, secret, old_secret, old_secret_until, maker_id, delivered_through,
        failing_since,
        case when failing_since is not null then (
            select max(updated_at) from (
                (select newest.updated_at from (
                     select d.updated_at, d.event_id, d.tries from webhook_deliveries d
                     where d.company_id = w.company_id and d.webhook_id = w.id and d.status = 'failed'
                     order by d.event_id desc limit 100) newest
                 where newest.tries > 0 order by newest.event_id desc limit 1)
                union all
                (select d.updated_at from webhook_deliveries d
                 where d.company_id = w.company_id and d.webhook_id = w.id and d.status = 'pending'
                     and d.next_attempt_at is not null and d.tries > 0
                 order by d.next_attempt_at desc limit 1)
            ) failed
        ) end as failed_at
    from webhooks w where company_id = $1";

/// The active webhooks of a company for delivery. One whose secret cannot be opened is logged and left out, without
/// affecting the others.
pub async fn active(db: impl PgExecutor<'_>, keys: &Keyring, company: CompanyId) -> Result<Vec<Endpoint>> {
    let statement = format!("{SELECT_ENDPOINT} and active order by id");
    let rows = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(company);
    let rows: Vec<EndpointRow> = with_timeout(rows.fetch_all(db)).await?;
    let endpoints = rows.into_iter().filter_map(|row| {
        let id = row.id;
        let log = |error: &Error| {
            tracing::error!(webhook.id = %id, company.id = %company, %error,
                "could not decrypt a webhook's secret; deliveries to it stopped: check the secrets key");
        };
        row.open(keys).inspect_err(log).ok()
    });
    Ok(endpoints.collect())
}

/// One webhook for delivery, active or not.
///
/// # Errors
/// When the database cannot answer; [`Error::Key`] when its secret cannot be opened.
pub async fn endpoint(
    db: impl PgExecutor<'_>,
    keys: &Keyring,
    company: CompanyId,
    id: WebhookId,
) -> Result<Option<Endpoint>> {
    let statement = format!("{SELECT_ENDPOINT} and id = $2");
    let row = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(company).bind(id);
    let row: Option<EndpointRow> = with_timeout(row.fetch_optional(db)).await?;
    row.map(|row| row.open(keys)).transpose()
}

/// The webhooks of a company, active or not.
pub async fn ids(db: impl PgExecutor<'_>, company: CompanyId) -> Result<Vec<WebhookId>> {
    let ids = sqlx::query_scalar("select id from webhooks where company_id = $1 order by id").bind(company);
    with_timeout(ids.fetch_all(db)).await
}

/// Every company with webhooks, read at startup.
pub async fn companies(db: &PgPool) -> Result<Vec<CompanyId>> {
    let all = sqlx::query_scalar("select distinct company_id from webhooks");
    with_timeout(all.fetch_all(db)).await
}

/// The webhooks of all companies or one, for the command line.
pub async fn all(db: &PgPool, company: Option<CompanyId>) -> Result<Vec<(CompanyId, Webhook)>> {
    #[derive(FromRow)]
    struct Row {
        company_id: CompanyId,
        #[sqlx(flatten)]
        webhook: Webhook,
    }
    let all = sqlx::query_as("select * from webhooks where company_id = coalesce($1, company_id) order by id");
    let rows: Vec<Row> = with_timeout(all.bind(company).fetch_all(db)).await?;
    Ok(rows.into_iter().map(|row| (row.company_id, row.webhook)).collect())
}

/// The company of a webhook, for the command line, where no company is given.
///
/// # Errors
/// [`Error::NotFound`] when the webhook does not exist; other errors when the database cannot answer.
pub async fn company_of(db: &PgPool, id: WebhookId) -> Result<CompanyId> {
    let company = sqlx::query_scalar("select company_id from webhooks where id = $1").bind(id);
    with_timeout(company.fetch_optional(db)).await?.ok_or(Error::NotFound(Webhook::NOUN))
}

/// Reseals the secrets with the current key; returns how many. The webhooks' `updated_at` stays.
///
/// # Errors
/// When the database cannot answer; [`Error::Key`] when a secret cannot be opened.
pub async fn reseal(db: &PgPool, keys: &Keyring) -> Result<u64> {
    type SecretRow = (CompanyId, WebhookId, String, Option<String>);
    let all = sqlx::query_as("select company_id, id, secret, old_secret from webhooks order by id");
    let all: Vec<SecretRow> = with_timeout(all.fetch_all(db)).await?;
    let mut resealed_count = 0;
    for (company, id, secret, old) in all {
        let row = id.to_string();
        let reseal = |location: Location<'_>, sealed: &str| -> Result<String> {
            Ok(keys.seal(&location, open_secret(keys, &location, sealed)?.0.as_bytes())?)
        };
        let resealed_secret = reseal(secret_at(company, &row), &secret)?;
        let resealed_old = old.as_deref().map(|old| reseal(old_secret_at(company, &row), old)).transpose()?;
        // `secret = $5` skips a secret that was rotated meanwhile: the rotation has used the current key.
        let update = sqlx::query(
            "update webhooks set secret = $3, old_secret = $4 where company_id = $1 and id = $2 and secret = $5",
        );
        let update = update.bind(company).bind(id).bind(resealed_secret).bind(&resealed_old).bind(secret);
        if with_timeout(update.execute(db)).await?.rows_affected() > 0 {
            resealed_count += 1 + u64::from(resealed_old.is_some());
        }
    }
    Ok(resealed_count)
}
