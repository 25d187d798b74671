//! Campaigns: a message to every contact of a list. Plain (changed by transactions, not by actors), except for the
//! outcomes of recipients, which are written with the messages.

mod recipients;

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor};
use utoipa::ToSchema;

pub use recipients::{
    ListedRecipient, MessageInDoubt, RecipientFilter, RecipientRow, RecipientStatus, WaitingRecipient, is_waiting,
    messages_in_transit, recipients, settleable_messages, skip_canceled, waiting_recipients,
};
pub(crate) use recipients::{mark_unknown, remove_for_contact, settle, update_recipients};

use super::contact_lists::{ContactList, ContactListId};
use super::events::{self, By, EventKind, NewEvent, Record, RecordSnapshot, act_as};
use super::messages::MessageError;
use super::text_enum;
use crate::cluster::SlotFilter;
use crate::document::{self, Document};
use crate::error::{STATEMENT_TIME_MAX, is_canceled, set_statement_timeout, with_timeout, with_timeout_of};
use crate::select::{Page, PageRequest};
use crate::table::{self, Columns, Filter, Stamps, Table};
use crate::{CampaignId, ChannelId, CompanyId, Database, Error, Result, Timestamp, TokenId, UserId};

/// Time limit for inserting a campaign's recipients: a million take about twenty seconds.
const RECIPIENTS_TIME_MAX: Duration = Duration::from_secs(120);

/// The message of the error when a campaign does not start because inserting its recipients takes too long.
pub const RECIPIENTS_TOO_SLOW: &str = "the campaign's recipients were not inserted within 120 s";

/// Maximum recipients that one statement skips after a campaign was canceled. Such a statement takes a tenth of a
/// second.
pub const SKIP_BATCH_SIZE: i64 = 5000;

/// Maximum number of a company's unfinished campaigns: each has an actor with a timer, and its message in memory.
pub const UNFINISHED_MAX: i64 = 1_000;

/// The condition of an unfinished campaign, which still has work to do: the same as that of the index
/// `campaigns_unfinished`.
const UNFINISHED: &str = "(k.status in ('scheduled', 'processing') or k.status = 'canceled' and k.pending > 0)";

text_enum! {
    /// The status of a campaign.
    CampaignStatus {
        /// It will start at its scheduled time.
        Scheduled = "scheduled",
        /// It is being sent.
        Processing = "processing",
        /// Nothing is sent until it is resumed.
        Paused = "paused",
        /// Every recipient is settled.
        Completed = "completed",
        /// It was canceled.
        Canceled = "canceled",
    }
}

text_enum! {
    /// Why a campaign is paused that no user has paused.
    PausedReason {
        /// The provider has paused its template.
        TemplatePaused = "template_paused",
        /// The provider has disabled its template.
        TemplateDisabled = "template_disabled",
        /// The provider has rejected its template.
        TemplateRejected = "template_rejected",
        /// Its template was deleted.
        TemplateDeleted = "template_deleted",
    }
}

impl PausedReason {
    /// Why campaigns with a template must pause, given the template's status as the provider names it; `None` if they
    /// need not.
    pub fn of_template(status: &str) -> Option<Self> {
        match status {
            "PAUSED" => Some(Self::TemplatePaused),
            "DISABLED" => Some(Self::TemplateDisabled),
            "REJECTED" => Some(Self::TemplateRejected),
            "DELETED" | "PENDING_DELETION" => Some(Self::TemplateDeleted),
            _ => None,
        }
    }

    /// Why a campaign must pause after its provider has refused a message: every other message with this template would
    /// be refused too. `None` for other refusals.
    /// <https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes>
    pub fn of_refusal(error: &MessageError) -> Option<Self> {
        match error.code.as_str() {
            "132015" => Some(Self::TemplatePaused),
            "132016" => Some(Self::TemplateDisabled),
            // The template does not exist, or is no longer approved.
            "132001" => Some(Self::TemplateDeleted),
            _ => None,
        }
    }
}

impl CampaignStatus {
    /// Whether the campaign was completed or canceled.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled)
    }
}

/// A campaign: a message to every contact of a list.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Campaign {
    pub id: CampaignId,
    #[schema(example = "Spring sale")]
    pub name: String,
    pub status: CampaignStatus,
    /// Why it is paused, unless a user has paused it.
    pub paused_reason: Option<PausedReason>,
    /// When it starts automatically, unless it is started earlier.
    pub scheduled_at: Timestamp,
    /// When its last recipient was completed.
    pub completed_at: Option<Timestamp>,
    pub contact_list_id: ContactListId,
    pub channel_id: ChannelId,
    /// The text as written; variables are filled in for each contact.
    #[schema(example = "{{greeting}}, {{firstName}}! Our sale begins today.")]
    pub message: Option<String>,
    /// The template, if the campaign has no text.
    #[sqlx(try_from = "Document")]
    #[schema(value_type = Option<Object>)]
    pub template: Option<Value>,
    /// Messages per minute, evenly spread.
    #[schema(example = 60)]
    pub rate_per_minute: i32,
    /// Whether tickets opened by the campaign are closed immediately.
    pub keep_closed: bool,
    /// Number of recipients by status.
    #[sqlx(flatten)]
    pub counts: CampaignCounts,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

/// Number of recipients of a campaign by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow, Serialize, ToSchema)]
pub struct CampaignCounts {
    /// The message is not created yet, or the provider has not accepted it yet.
    #[schema(example = 200)]
    pub pending: i64,
    #[schema(example = 10)]
    pub sent: i64,
    #[schema(example = 20)]
    pub delivered: i64,
    #[schema(example = 15)]
    pub read: i64,
    #[schema(example = 1)]
    pub failed: i64,
    #[schema(example = 4)]
    pub skipped: i64,
    #[schema(example = 0)]
    pub unknown: i64,
}

impl Table for Campaign {
    const NAME: &'static str = "campaigns";
    const NOUN: &'static str = "campaign";
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = CampaignId;
}

/// A page of a company's campaigns.
///
/// # Errors
/// [`Error::NotFound`] when the company does not have a record that the filter refers to.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &Filter,
    page: PageRequest,
) -> Result<Page<Campaign>> {
    table::list(db, company, filter, page).await
}

/// Whether the company has its maximum number of unfinished campaigns. A concurrent call for the company waits until
/// the caller's transaction ends, so that together they do not exceed the limit.
pub async fn has_unfinished_max(db: &mut PgConnection, company: CompanyId) -> Result<bool> {
    let lock = sqlx::query("select pg_advisory_xact_lock(hashtextextended('campaigns:' || $1::text, 0))").bind(company);
    with_timeout(lock.execute(&mut *db)).await?;
    has_unfinished(db, company, UNFINISHED_MAX).await
}

/// Whether the company has at least this many unfinished campaigns.
pub async fn has_unfinished(db: impl PgExecutor<'_>, company: CompanyId, count: i64) -> Result<bool> {
    let exists =
        format!("select exists (select from campaigns k where k.company_id = $1 and {UNFINISHED} offset $2 - 1)");
    with_timeout(sqlx::query_scalar(AssertSqlSafe(exists)).bind(company).bind(count).fetch_one(db)).await
}

/// Creates a campaign for an existing list.
///
/// # Errors
/// [`Error::NotFound`] when the company does not have the list.
pub async fn insert(
    db: &mut PgConnection,
    company: CompanyId,
    list: ContactListId,
    columns: &Columns,
) -> Result<Campaign> {
    lock_list(db, company, list).await?;
    table::insert(db, company, columns).await
}

/// Updates a campaign that the caller has locked ([`lock`]).
///
/// # Errors
/// [`Error::NotFound`] when the campaign does not exist, or the company does not have the new list.
pub async fn update(
    db: &mut PgConnection,
    company: CompanyId,
    id: CampaignId,
    list: Option<ContactListId>,
    columns: &Columns,
) -> Result<Campaign> {
    if let Some(list) = list {
        lock_list(db, company, list).await?;
    }
    table::update(db, company, id, columns).await
}

/// Locks a list against deletion until the transaction ends.
async fn lock_list(db: &mut PgConnection, company: CompanyId, list: ContactListId) -> Result<()> {
    let select = sqlx::query("select from contact_lists where company_id = $1 and id = $2 for key share");
    let row = with_timeout(select.bind(company).bind(list).fetch_optional(db)).await?;
    row.map(drop).ok_or(Error::NotFound(ContactList::NOUN))
}

/// Locks a campaign until the transaction ends and returns it.
///
/// # Errors
/// [`Error::NotFound`] when there is no such campaign.
pub async fn lock(db: &mut PgConnection, company: CompanyId, id: CampaignId) -> Result<Campaign> {
    let select = sqlx::query("select * from campaigns where company_id = $1 and id = $2 for no key update");
    let row = with_timeout(select.bind(company).bind(id).fetch_optional(db)).await?;
    Ok(document::read(&row.ok_or(Error::NotFound(Campaign::NOUN))?)?)
}

/// Sets the status of a locked campaign.
async fn set_status(
    db: &mut PgConnection,
    company: CompanyId,
    id: CampaignId,
    status: CampaignStatus,
    paused_reason: Option<PausedReason>,
) -> Result<Campaign> {
    let columns = Columns::from([("status", status.into()), ("pausedReason", json!(paused_reason))]);
    table::update(db, company, id, &columns).await
}

/// Writes the event of a campaign's new status.
async fn write_event(
    db: &mut PgConnection,
    company: CompanyId,
    kind: EventKind,
    (previous_status, previous_reason): (CampaignStatus, Option<PausedReason>),
    campaign: &Campaign,
) -> Result<()> {
    let mut previous = json!({"status": previous_status});
    if let Some(reason) = previous_reason {
        previous["pausedReason"] = json!(reason);
    } else if campaign.paused_reason.is_some() {
        previous["pausedReason"] = Value::Null;
    }
    if kind == EventKind::CampaignCompleted {
        previous["completedAt"] = Value::Null;
    }
    let (at, record) = (campaign.stamps.updated_at.0, Record::Campaign(RecordSnapshot::of(campaign.id, campaign)?));
    events::draft(db, company, &[NewEvent::plain(kind, at, record, Some(previous))]).await
}

/// Pauses a locked campaign that is being sent; `reason` is `None` if a user or an integration pauses it.
pub async fn pause(
    db: &mut PgConnection,
    company: CompanyId,
    id: CampaignId,
    reason: Option<PausedReason>,
) -> Result<Campaign> {
    let campaign = set_status(&mut *db, company, id, CampaignStatus::Paused, reason).await?;
    write_event(db, company, EventKind::CampaignPaused, (CampaignStatus::Processing, None), &campaign).await?;
    Ok(campaign)
}

/// Pauses a campaign that is being sent, because its provider refuses its template. Returns false if the campaign is no
/// longer being sent, or no recipient is left without a message: it then completes by itself.
pub async fn pause_for_template(
    db: &mut PgConnection,
    company: CompanyId,
    id: CampaignId,
    reason: PausedReason,
) -> Result<bool> {
    let campaign = match lock(&mut *db, company, id).await {
        Ok(campaign) => campaign,
        Err(Error::NotFound(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    if campaign.status != CampaignStatus::Processing || !recipients::is_any_waiting(&mut *db, company, id).await? {
        return Ok(false);
    }
    act_as(By::SYSTEM, pause(db, company, id, Some(reason))).await.map(|_| true)
}

/// Resumes a locked campaign that is paused.
pub async fn resume(db: &mut PgConnection, company: CompanyId, id: CampaignId) -> Result<Campaign> {
    let reason = lock(&mut *db, company, id).await?.paused_reason;
    let campaign = set_status(&mut *db, company, id, CampaignStatus::Processing, None).await?;
    write_event(db, company, EventKind::CampaignResumed, (CampaignStatus::Paused, reason), &campaign).await?;
    Ok(campaign)
}

/// The campaigns that are being sent with a template through one of these channels, in any of the template's
/// languages if `language` is `None`.
pub async fn sending_template(
    db: impl Database<'_>,
    company: CompanyId,
    channels: &[ChannelId],
    name: &str,
    language: Option<&str>,
) -> Result<Vec<CampaignId>> {
    let select = sqlx::query_scalar(
        "select id from campaigns where company_id = $1 and status = 'processing' and channel_id = any($2)
             and built_template #>> '{template,name}' = $3
             and built_template #>> '{template,language,code}' = coalesce($4, built_template #>> '{template,language,code}')
         order by id",
    );
    with_timeout(select.bind(company).bind(channels).bind(name).bind(language).fetch_all(db)).await
}

/// Starts a locked campaign. Its recipients are the current contacts of its list; one statement inserts all of them.
///
/// # Errors
/// [`Error::Unavailable`] with [`RECIPIENTS_TOO_SLOW`] when there are too many of them for the time limit.
pub async fn start(db: &mut PgConnection, company: CompanyId, id: CampaignId) -> Result<Campaign> {
    insert_recipients(&mut *db, company, id).await?;
    let campaign = set_status(&mut *db, company, id, CampaignStatus::Processing, None).await?;
    write_event(db, company, EventKind::CampaignStarted, (CampaignStatus::Scheduled, None), &campaign).await?;
    Ok(campaign)
}

/// Keeps the company's campaigns from starting until the transaction ends; first waits for one that is starting. To be
/// called before a contact is merged or deleted, and before any row is locked: a start reads its list as that was when
/// its statement began, so it would add the contact that is gone, and not the one that stays.
///
/// # Errors
/// [`Error::Unavailable`] when a start takes longer than a statement may.
pub(crate) async fn exclude_starts(db: &mut PgConnection, company: CompanyId) -> Result<()> {
    let lock = "select pg_advisory_xact_lock_shared(hashtextextended('recipients:' || $1::text, 0))";
    with_timeout(sqlx::query(lock).bind(company).execute(db)).await.map(drop)
}

async fn insert_recipients(db: &mut PgConnection, company: CompanyId, id: CampaignId) -> Result<()> {
    // See `exclude_starts`. A statement of its own, so that the next one sees the merges and deletions it waited for.
    let lock = "select pg_advisory_xact_lock(hashtextextended('recipients:' || $1::text, 0))";
    with_timeout(sqlx::query(lock).bind(company).execute(&mut *db)).await?;
    set_statement_timeout(db, RECIPIENTS_TIME_MAX).await?;
    let insert = sqlx::query(
        "insert into campaign_recipients (company_id, campaign_id, contact_id)
         select k.company_id, k.id, l.contact_id from campaigns k
         join contact_list_contacts l on l.company_id = k.company_id and l.contact_list_id = k.contact_list_id
         where k.company_id = $1 and k.id = $2 order by l.contact_id on conflict do nothing",
    );
    // PostgreSQL's own limit is shorter, so this one applies only when PostgreSQL does not answer at all.
    let time_max = RECIPIENTS_TIME_MAX + STATEMENT_TIME_MAX;
    let insert = insert.bind(company).bind(id).execute(db);
    let is_in_time = with_timeout_of(time_max, async {
        match insert.await {
            Err(error) if is_canceled(&error) => Ok(false),
            inserted => inserted.map(|_| true),
        }
    });
    if is_in_time.await? { Ok(()) } else { Err(Error::Unavailable(RECIPIENTS_TOO_SLOW.to_owned())) }
}

/// Starts a campaign if it is still scheduled, and due; returns whether it was started. The event's author is the
/// campaign's creator.
pub async fn start_due(db: &mut PgConnection, company: CompanyId, id: CampaignId, now: DateTime<Utc>) -> Result<bool> {
    let campaign = match lock(&mut *db, company, id).await {
        Ok(campaign) => campaign,
        Err(Error::NotFound(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    if campaign.status != CampaignStatus::Scheduled || campaign.scheduled_at.0 > now {
        return Ok(false);
    }
    let by = creator_of(&mut *db, company, id).await?;
    act_as(by, start(db, company, id)).await.map(|_| true)
}

/// Who created a campaign, and so is the author of its messages: the integration, else the user, or Hotline itself if
/// that user was deleted.
async fn creator_of(db: &mut PgConnection, company: CompanyId, id: CampaignId) -> Result<By> {
    let select = sqlx::query_as(
        "select c.integration_id, u.id, u.name from campaigns c
         left join users u on u.company_id = c.company_id and u.id = c.user_id
         where c.company_id = $1 and c.id = $2",
    );
    let select = select.bind(company).bind(id).fetch_one(db);
    let (integration, user, name): (Option<TokenId>, Option<UserId>, Option<String>) = with_timeout(select).await?;
    Ok(match (integration, user) {
        (Some(token), _) => By::integration(token),
        (None, Some(user)) => By::user(Some(user), name),
        (None, None) => By::SYSTEM,
    })
}

/// Cancels a locked campaign, and skips a first batch of the recipients without a message; further calls of
/// [`skip_canceled`] skip the others.
pub async fn cancel(db: &mut PgConnection, company: CompanyId, id: CampaignId) -> Result<Campaign> {
    let previous = lock(&mut *db, company, id).await?;
    set_status(&mut *db, company, id, CampaignStatus::Canceled, None).await?;
    skip_canceled(&mut *db, company, id).await?;
    let campaign = lock(&mut *db, company, id).await?;
    let previous = (previous.status, previous.paused_reason);
    write_event(db, company, EventKind::CampaignCanceled, previous, &campaign).await?;
    Ok(campaign)
}

/// Completes a campaign if every recipient is settled. Returns false if one is not, or the campaign is not being sent.
pub async fn complete(db: impl Database<'_>, company: CompanyId, id: CampaignId, now: DateTime<Utc>) -> Result<bool> {
    let mut transaction = db.transaction().await?;
    let update = sqlx::query(
        "update campaigns set status = 'completed', completed_at = $3, updated_at = now()
         where company_id = $1 and id = $2 and status = 'processing' and pending = 0 returning *",
    );
    let update = update.bind(company).bind(id).bind(now).fetch_optional(transaction.connection()?);
    let completed: Option<Campaign> = with_timeout(update).await?.as_ref().map(document::read).transpose()?;
    if let Some(completed) = &completed {
        let previous = (CampaignStatus::Processing, None);
        write_event(transaction.connection()?, company, EventKind::CampaignCompleted, previous, completed).await?;
    }
    transaction.commit().await?;
    Ok(completed.is_some())
}

/// Deletes a campaign. Its recipients are deleted later ([`super::removals`]); its messages stay.
///
/// # Errors
/// [`Error::NotFound`] when there is no such campaign.
pub async fn remove(db: &mut PgConnection, company: CompanyId, id: CampaignId) -> Result<()> {
    let delete = sqlx::query("delete from campaigns where company_id = $1 and id = $2");
    let removed = with_timeout(delete.bind(company).bind(id).execute(db)).await?;
    if removed.rows_affected() == 0 { Err(Error::NotFound(Campaign::NOUN)) } else { Ok(()) }
}

/// The campaign data needed for sending.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct CampaignRun {
    pub status: CampaignStatus,
    pub scheduled_at: DateTime<Utc>,
    pub channel_id: ChannelId,
    pub message: Option<String>,
    /// The template in the provider's format, with the text of its body.
    #[sqlx(try_from = "Document")]
    pub built_template: Option<Value>,
    pub rate_per_minute: i32,
    pub keep_closed: bool,
    pub integration_id: Option<TokenId>,
    pub user_id: Option<UserId>,
    pub pending: i64,
    /// Whether any recipient is settled or has a message.
    pub has_begun: bool,
}

/// The campaign data needed for sending; `None` if the campaign was deleted. Waits for any transaction that is
/// changing the campaign: its commit may still be in progress after the task that began it has stopped waiting.
pub async fn find_run(db: impl PgExecutor<'_>, company: CompanyId, id: CampaignId) -> Result<Option<CampaignRun>> {
    let select = sqlx::query(
        "select k.*, k.sent + k.delivered + k.read + k.failed + k.skipped + k.unknown > 0 or exists (
                 select from campaign_recipients r where r.company_id = k.company_id and r.campaign_id = k.id
                   and r.status = 'pending' and r.message_id is not null) as has_begun
         from campaigns k where k.company_id = $1 and k.id = $2 for share of k",
    );
    let row = with_timeout(select.bind(company).bind(id).fetch_optional(db)).await?;
    Ok(row.as_ref().map(document::read).transpose()?)
}

/// The campaigns with remaining work: those that will start by themselves, are being sent, or were canceled with
/// unsettled recipients.
pub async fn unfinished(db: impl PgExecutor<'_>, slots: &SlotFilter) -> Result<Vec<(CompanyId, CampaignId)>> {
    let condition = "k.company_id = c.id and ($1::smallint[] is null or c.slot = any($1))";
    let select = sqlx::query_as(AssertSqlSafe(select_unfinished(condition))).bind(slots.numbers());
    with_timeout(select.fetch_all(db)).await
}

/// The unfinished campaigns of one company.
pub async fn unfinished_of_company(
    db: impl PgExecutor<'_>,
    company: CompanyId,
) -> Result<Vec<(CompanyId, CampaignId)>> {
    let select = sqlx::query_as(AssertSqlSafe(select_unfinished("k.company_id = c.id and c.id = $1"))).bind(company);
    with_timeout(select.fetch_all(db)).await
}

fn select_unfinished(condition: &str) -> String {
    format!(
        "select k.company_id, k.id from companies c, lateral (select company_id, id from campaigns k where {condition}
             and {UNFINISHED} offset 0) k
         order by k.company_id, k.id"
    )
}
