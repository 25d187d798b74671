//! The recipients of campaigns, and their outcomes.
//!
//! The recipients are fixed when a campaign starts. After that only the persister updates them, except for
//! [`skip_canceled`]. A recipient gets a message, or is skipped: the journal has a [`RecipientRow`] for it, next
//! to the message if there is one. Later the transaction that writes a message's status also copies it to the
//! recipient. Triggers maintain the campaign's counts per status.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor};

use super::SKIP_BATCH_SIZE;
use crate::cluster::SlotFilter;
use crate::document::Document;
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::tables::messages::MessageError;
use crate::tables::text_enum;
use crate::{CampaignId, CompanyId, ContactId, Database, MessageId, Result, TicketId};

text_enum! {
    /// The status of a campaign's recipient.
    RecipientStatus {
        /// The message is not created yet, or the provider has not accepted it yet.
        Pending = "pending",
        /// The provider has the message.
        Sent = "sent",
        /// The message has reached the contact.
        Delivered = "delivered",
        /// The contact has read the message.
        Read = "read",
        /// The message cannot be delivered.
        Failed = "failed",
        /// The contact was not written to.
        Skipped = "skipped",
        /// It is not known whether the message was sent. It is not sent again.
        Unknown = "unknown",
    }
}

/// The outcome for a pending recipient: its message, or no message and the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecipientRow {
    pub company_id: CompanyId,
    pub campaign_id: CampaignId,
    pub contact_id: ContactId,
    pub status: RecipientStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub updated_at: DateTime<Utc>,
}

/// Writes the outcomes of pending recipients without a message; all others stay unchanged.
pub(crate) async fn settle(db: &mut PgConnection, rows: &[&RecipientRow]) -> std::result::Result<(), sqlx::Error> {
    macro_rules! column {
        ($field:ident) => {
            rows.iter().map(|row| row.$field).collect::<Vec<_>>()
        };
    }
    sqlx::query(
        "update campaign_recipients r set status = x.status, message_id = x.message_id, error = x.error,
             updated_at = x.updated_at
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::jsonb[], $7::timestamptz[])
             as x (company_id, campaign_id, contact_id, status, message_id, error, updated_at)
         where r.company_id = x.company_id and r.campaign_id = x.campaign_id and r.contact_id = x.contact_id
           -- Written so that no index matches: each row is found by its key, not by a scan of all pending ones.
           and (r.status = 'pending') is true and r.message_id is null",
    )
    .bind(column!(company_id))
    .bind(column!(campaign_id))
    .bind(column!(contact_id))
    .bind(rows.iter().map(|row| row.status.as_str()).collect::<Vec<_>>())
    .bind(column!(message_id))
    .bind(rows.iter().map(|row| row.error.clone()).collect::<Vec<_>>())
    .bind(column!(updated_at))
    .execute(db)
    .await?;
    Ok(())
}

/// Copies the status of each of these messages to its recipient. For each of these contacts, it does so with the
/// messages of all campaigns that the contact is a recipient of. A message that was not sent because its campaign was
/// canceled or its contact opted out counts as skipped.
pub(crate) async fn update_recipients(
    db: &mut PgConnection,
    messages: &[(CompanyId, MessageId)],
    contacts: &[(CompanyId, ContactId)],
) -> std::result::Result<(), sqlx::Error> {
    macro_rules! update_by {
        ($column:literal, $keys:expr) => {
            if !$keys.is_empty() {
                let (companies, ids): (Vec<_>, Vec<_>) = $keys.iter().copied().unzip();
                sqlx::query(concat!(
                    "update campaign_recipients r set status = y.status, error = y.error,
                         updated_at = greatest(r.updated_at, y.at)
                     from (select distinct k.company_id, k.campaign_id, k.contact_id, m.error,
                             case when m.status = 'failed' and m.error ->> 'code' = any ($3) then 'skipped' else m.status end
                                 as status,
                             coalesce(m.read_at, m.delivered_at, m.sent_at, now()) as at
                         from unnest($1::bigint[], $2::bigint[]) as x (company_id, id)
                         join campaign_recipients k on k.company_id = x.company_id and k.",
                    $column,
                    " = x.id and k.message_id is not null
                         join messages m on m.company_id = k.company_id and m.id = k.message_id
                         where m.status <> 'queued') y
                     where r.company_id = y.company_id and r.campaign_id = y.campaign_id
                       and r.contact_id = y.contact_id and r.status <> y.status"
                ))
                .bind(companies)
                .bind(ids)
                .bind([MessageError::CAMPAIGN_CANCELED, MessageError::OPTED_OUT])
                .execute(&mut *db)
                .await?;
            }
        };
    }
    update_by!("message_id", messages);
    update_by!("contact_id", contacts);
    Ok(())
}

/// Sets the recipients of these messages to `unknown`. Each message comes with the time at which the attempt whose
/// outcome is unknown began.
pub(crate) async fn mark_unknown(
    db: &mut PgConnection,
    messages: &[(CompanyId, MessageId, DateTime<Utc>)],
) -> std::result::Result<(), sqlx::Error> {
    if messages.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update campaign_recipients r set status = 'unknown', updated_at = greatest(r.updated_at, x.at)
         from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as x (company_id, id, at)
         join messages m on m.company_id = x.company_id and m.id = x.id
         where r.company_id = x.company_id and r.message_id = x.id and m.status = 'queued'
           -- Written so that no index matches: each row is found by its message.
           and (r.status = 'pending') is true",
    )
    .bind(messages.iter().map(|(company, _, _)| *company).collect::<Vec<_>>())
    .bind(messages.iter().map(|(_, message, _)| *message).collect::<Vec<_>>())
    .bind(messages.iter().map(|(_, _, at)| *at).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

/// A campaign's message for which it is unknown whether the provider received it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct MessageInDoubt {
    pub company_id: CompanyId,
    pub ticket_id: TicketId,
    pub id: MessageId,
    /// Its id at the provider, if a status with our id of the message has arrived meanwhile.
    pub provider_message_id: Option<String>,
}

/// The campaigns' messages in doubt that can be settled: a status with our id of the message has arrived, or the
/// message has been in doubt since before `before`. Returns the first `limit` after the message `after`. Only for
/// background work.
pub async fn settleable_messages(
    db: impl Database<'_>,
    slots: &SlotFilter,
    before: DateTime<Utc>,
    after: (CompanyId, MessageId),
    limit: i64,
) -> Result<Vec<MessageInDoubt>> {
    let in_slots = SlotFilter::condition("k.company_id", 1);
    let select = format!(
        "select m.company_id, m.ticket_id, m.id, e.provider_message_id
         from campaigns k
         join campaign_recipients r on r.company_id = k.company_id and r.campaign_id = k.id and r.status = 'unknown'
         join messages m on m.company_id = r.company_id and m.id = r.message_id and m.status = 'queued'
         left join lateral (select provider_message_id from early_statuses
             where company_id = m.company_id and channel_id = m.channel_id and names = m.id limit 1) e on true
         where k.unknown > 0 and {in_slots} and (e.provider_message_id is not null or r.updated_at < $2)
           and (m.company_id, m.id) > ($3, $4)
         order by m.company_id, m.id limit $5"
    );
    let select = sqlx::query_as(AssertSqlSafe(select)).bind(slots.numbers()).bind(before);
    with_timeout(select.bind(after.0).bind(after.1).bind(limit).fetch_all(db)).await
}

/// A recipient that has no message yet.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct WaitingRecipient {
    pub contact_id: ContactId,
    /// Whether the contact has opted out of campaigns.
    pub is_opted_out: bool,
    /// Whether the contact is a group; campaigns do not write to groups.
    pub is_group: bool,
}

/// The first `limit` pending recipients without a message after the contact `after`, by contact id.
pub async fn waiting_recipients(
    db: impl Database<'_>,
    company: CompanyId,
    id: CampaignId,
    after: ContactId,
    limit: i64,
) -> Result<Vec<WaitingRecipient>> {
    with_timeout(
        sqlx::query_as(
            "select r.contact_id, coalesce(c.marketing_opt_out, false) as is_opted_out,
                 coalesce(c.is_group, false) as is_group
             from (select company_id, contact_id from campaign_recipients
                 where company_id = $1 and campaign_id = $2 and status = 'pending' and message_id is null
                   and contact_id > $3 order by contact_id limit $4) r
             left join lateral (select marketing_opt_out, is_group from contacts
                 where company_id = r.company_id and id = r.contact_id offset 0) c on true
             order by r.contact_id",
        )
        .bind(company)
        .bind(id)
        .bind(after)
        .bind(limit)
        .fetch_all(db),
    )
    .await
}

/// Whether a recipient is pending and has no message yet.
pub async fn is_waiting(db: impl Database<'_>, company: CompanyId, id: CampaignId, contact: ContactId) -> Result<bool> {
    with_timeout(
        sqlx::query_scalar(
            "select exists (select from campaign_recipients where company_id = $1 and campaign_id = $2
                 and contact_id = $3 and status = 'pending' and message_id is null)",
        )
        .bind(company)
        .bind(id)
        .bind(contact)
        .fetch_one(db),
    )
    .await
}

/// Whether any recipient is pending and has no message yet.
pub(super) async fn is_any_waiting(db: &mut PgConnection, company: CompanyId, id: CampaignId) -> Result<bool> {
    let select = sqlx::query_scalar(
        "select exists (select from campaign_recipients where company_id = $1 and campaign_id = $2
             and status = 'pending' and message_id is null)",
    );
    with_timeout(select.bind(company).bind(id).fetch_one(db)).await
}

/// The messages of a campaign that the provider has not accepted yet: few, because a campaign limits how many are in
/// transit.
pub async fn messages_in_transit(db: impl Database<'_>, company: CompanyId, id: CampaignId) -> Result<Vec<MessageId>> {
    with_timeout(
        sqlx::query_scalar(
            "select message_id from campaign_recipients where company_id = $1 and campaign_id = $2
                 and status = 'pending' and message_id is not null order by message_id",
        )
        .bind(company)
        .bind(id)
        .fetch_all(db),
    )
    .await
}

/// Skips recipients of a canceled campaign that have no message; returns how many, at most [`SKIP_BATCH_SIZE`].
pub async fn skip_canceled(db: impl PgExecutor<'_>, company: CompanyId, id: CampaignId) -> Result<i64> {
    let update = sqlx::query(
        // By row location, so that no plan scans all other recipients for each row.
        "update campaign_recipients set status = 'skipped', error = $3, updated_at = now()
         where ctid = any (array(
                 select ctid from campaign_recipients where company_id = $1 and campaign_id = $2
                   and status = 'pending' and message_id is null order by contact_id limit $4))
           and exists (select from campaigns where company_id = $1 and id = $2 and status = 'canceled')",
    )
    .bind(company)
    .bind(id)
    .bind(json!(MessageError::campaign_canceled()))
    .bind(SKIP_BATCH_SIZE);
    Ok(with_timeout(update.execute(db)).await?.rows_affected().try_into().unwrap_or(i64::MAX))
}

/// A recipient with its contact's name and number, which are `None` if the contact was deleted.
#[derive(Clone, Debug, FromRow)]
pub struct ListedRecipient {
    pub contact_id: ContactId,
    pub status: RecipientStatus,
    pub message_id: Option<MessageId>,
    #[sqlx(try_from = "Document")]
    pub error: Option<Value>,
    pub updated_at: DateTime<Utc>,
    pub contact_name: Option<String>,
    pub contact_number: Option<String>,
}

/// The conditions of the API's list of recipients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecipientFilter {
    pub status: Option<RecipientStatus>,
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of a campaign's recipients, by their contacts' ids.
pub async fn recipients(
    db: impl Database<'_>,
    company: CompanyId,
    id: CampaignId,
    filter: &RecipientFilter,
    page: PageRequest,
) -> Result<Page<ListedRecipient>> {
    let list = Select::new("with page as (select r.* from campaign_recipients r", "r.company_id", company)
        .equals("r.campaign_id", Some(id))
        .equals("r.status", filter.status)
        .between("r.updated_at", filter.updated);
    let db = list.weigh(db, page);
    // The contact is looked up per row, so the plan suits any number of rows.
    let listing = ") select r.*, c.name as contact_name, c.number as contact_number from page r
        left join lateral (select name, number from contacts
            where company_id = r.company_id and id = r.contact_id offset 0) c on true";
    with_timeout(list.page_of_subquery(db, "r.contact_id", page, listing)).await
}

/// Deletes a deleted contact from the recipients of all campaigns.
pub(crate) async fn remove_for_contact(db: &mut PgConnection, company: CompanyId, contact: ContactId) -> Result<()> {
    let delete = sqlx::query("delete from campaign_recipients where company_id = $1 and contact_id = $2");
    with_timeout(delete.bind(company).bind(contact).execute(db)).await?;
    Ok(())
}
