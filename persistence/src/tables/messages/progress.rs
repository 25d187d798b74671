//! Status progress of messages: statuses only advance, regardless of the order in which they are reported.

use std::borrow::Cow;
use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};

use super::{Direction, MessageRow, MessageStatus, MessageType};
use crate::tables::zones;
use crate::{ChannelId, CompanyId, MessageId, TicketId, UserId};

/// Why a message failed, as users see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageError {
    /// The provider's code, or one of Hotline's own, which start with `ERR_`.
    pub code: String,
    /// The description.
    pub message: String,
}

impl MessageError {
    /// Code for a message that was not sent because its campaign was canceled.
    pub const CAMPAIGN_CANCELED: &'static str = "ERR_CAMPAIGN_CANCELED";

    /// Code for a message that was not sent because its contact has opted out of campaigns.
    pub const OPTED_OUT: &'static str = "ERR_MARKETING_OPT_OUT";

    /// Code for a message of which it is unknown whether it was sent, and which is not sent again.
    pub const OUTCOME_UNKNOWN: &'static str = "ERR_OUTCOME_UNKNOWN";

    /// WhatsApp's code for a message that was not delivered because its recipient has stopped the business's marketing
    /// messages. <https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes>
    pub const MARKETING_STOPPED: &'static str = "131050";

    /// Whether the message failed because its recipient has opted out of campaigns at the provider.
    pub fn is_opt_out(&self) -> bool {
        self.code == Self::MARKETING_STOPPED
    }

    /// The campaign was canceled before the message was sent.
    pub fn campaign_canceled() -> Self {
        Self {
            code: Self::CAMPAIGN_CANCELED.to_owned(),
            message: "the campaign was canceled before this message was sent".to_owned(),
        }
    }

    /// The contact has opted out of campaigns.
    pub fn opted_out() -> Self {
        Self { code: Self::OPTED_OUT.to_owned(), message: "the contact has opted out of campaigns".to_owned() }
    }

    /// It is unknown whether the message was sent, and no status has named it.
    pub fn outcome_unknown() -> Self {
        Self {
            code: Self::OUTCOME_UNKNOWN.to_owned(),
            message: "it is unknown whether the message was sent, and it is not sent twice".to_owned(),
        }
    }

    /// Campaigns do not write to groups.
    pub fn group() -> Self {
        Self { code: "ERR_GROUP".to_owned(), message: "campaigns do not write to groups".to_owned() }
    }

    /// The message was deleted with its contact before it was sent.
    pub fn deleted() -> Self {
        Self { code: "ERR_DELETED".to_owned(), message: "the message was deleted before it was sent".to_owned() }
    }

    /// This release cannot read the stored message.
    pub fn unreadable() -> Self {
        Self { code: "ERR_UNREADABLE".to_owned(), message: "the stored message is unreadable".to_owned() }
    }
}

/// What a report says about an outbound message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryStatus {
    /// The channel's provider has accepted it.
    Sent,
    /// It was delivered to the contact.
    Delivered,
    /// The contact has read it.
    Read,
    /// It was not delivered, and never will be.
    Failed(MessageError),
}

impl DeliveryStatus {
    /// The status of a message after this report.
    pub fn status(&self) -> MessageStatus {
        match self {
            Self::Sent => MessageStatus::Sent,
            Self::Delivered => MessageStatus::Delivered,
            Self::Read => MessageStatus::Read,
            Self::Failed(_) => MessageStatus::Failed,
        }
    }
}

impl DeliveryStatus {
    /// Whether it says that the recipient has opted out of campaigns at the provider.
    pub fn is_opt_out(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_opt_out())
    }
}

/// A status report on a message. Applying it twice, or after a later one, changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryStatusRow {
    pub company_id: CompanyId,
    pub ticket_id: TicketId,
    pub message_id: MessageId,
    #[serde(rename = "milestone")]
    pub delivery_status: DeliveryStatus,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// When Hotline received the report, if `at` is by the provider's clock.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "chrono::serde::ts_microseconds_option")]
    pub noted_at: Option<DateTime<Utc>>,
}

/// Several reports on one message combined: equivalent to applying them one after the other.
struct CombinedReports<'a> {
    company: CompanyId,
    id: MessageId,
    /// The highest status reached, ignoring failures.
    reached: MessageStatus,
    /// A failure reported before any delivery. It counts unless the stored message was delivered already.
    failure: Option<&'a MessageError>,
    sent_at: Option<DateTime<Utc>>,
    delivered_at: Option<DateTime<Utc>>,
    read_at: Option<DateTime<Utc>>,
    provider_message_id: Option<&'a str>,
}

impl<'a> CombinedReports<'a> {
    fn of(row: &DeliveryStatusRow) -> Self {
        Self {
            company: row.company_id,
            id: row.message_id,
            reached: MessageStatus::Queued,
            failure: None,
            sent_at: None,
            delivered_at: None,
            read_at: None,
            provider_message_id: None,
        }
    }

    fn add(&mut self, row: &'a DeliveryStatusRow) {
        use MessageStatus::{Delivered, Queued, Read, Sent};
        self.provider_message_id = self.provider_message_id.or(row.provider_message_id.as_deref());
        match &row.delivery_status {
            DeliveryStatus::Sent => keep_earliest(&mut self.sent_at, row.at),
            DeliveryStatus::Delivered => keep_earliest(&mut self.delivered_at, row.at),
            DeliveryStatus::Read => keep_earliest(&mut self.read_at, row.at),
            DeliveryStatus::Failed(error) => {
                if matches!(self.reached, Queued | Sent) {
                    self.failure = self.failure.or(Some(error));
                }
                return;
            }
        }
        let status = row.delivery_status.status();
        if matches!((self.reached, status), (Queued, _) | (Sent, Delivered | Read) | (Delivered, Read)) {
            self.reached = status;
        }
    }

    /// The row of a queued message after these reports: the same result as `progress.sql`. `None` if they do not
    /// advance it.
    fn advance(&self, row: &MessageRow) -> Option<MessageRow> {
        let is_queued = row.direction == Direction::Outbound && row.status == MessageStatus::Queued;
        if !is_queued || self.failure.is_some() || self.reached == MessageStatus::Queued {
            return None;
        }
        // Of two times for the same status the earlier one counts; a status implies all lower ones.
        let read = [row.read_at, self.read_at].into_iter().flatten().min();
        let delivered = [row.delivered_at, self.delivered_at, self.read_at].into_iter().flatten().min();
        let sent = [row.sent_at, self.sent_at, self.delivered_at, self.read_at].into_iter().flatten().min();
        // Regardless of the provider's clock, a message is not sent before its creation, or delivered before it was
        // sent.
        let not_before = |at: Option<DateTime<Utc>>, others: &[Option<DateTime<Utc>>]| {
            at.map(|at| others.iter().flatten().fold(at.max(row.created_at), |latest, other| latest.max(*other)))
        };
        let (sent_at, delivered_at) = (not_before(sent, &[]), not_before(delivered, &[sent]));
        let read_at = not_before(read, &[sent, delivered]);
        Some(MessageRow {
            status: self.reached,
            sent_at,
            delivered_at,
            read_at,
            // The message is stored in this status: the queued state was never visible.
            updated_at: [sent_at, delivered_at, read_at].into_iter().flatten().max(),
            provider_message_id: row.provider_message_id.clone().or(self.provider_message_id.map(str::to_owned)),
            ..row.clone()
        })
    }
}

fn keep_earliest(time: &mut Option<DateTime<Utc>>, at: DateTime<Utc>) {
    *time = Some(time.map_or(at, |time| time.min(at)));
}

fn combine_reports<'a>(rows: &[&'a DeliveryStatusRow]) -> Vec<CombinedReports<'a>> {
    let mut combined: HashMap<(CompanyId, MessageId), CombinedReports<'a>> = HashMap::with_capacity(rows.len());
    for row in rows {
        combined.entry((row.company_id, row.message_id)).or_insert_with(|| CombinedReports::of(row)).add(row);
    }
    let mut combined: Vec<_> = combined.into_values().collect();
    // In the order of the index, so that PostgreSQL reads it once from start to end.
    combined.sort_unstable_by_key(|combined| (combined.company, combined.id));
    combined
}

/// A message that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangedMessage {
    pub(crate) company: CompanyId,
    pub(crate) id: MessageId,
    pub(crate) ticket: TicketId,
    pub(crate) previous: MessageStatus,
    pub(crate) status: MessageStatus,
    pub(crate) by: ChangeCause,
    /// When it was changed, according to the table.
    pub(crate) updated_at: Option<DateTime<Utc>>,
}

/// What changed a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeCause {
    /// A report on this message.
    Progress,
    /// A receipt, which covers a ticket's messages up to one of them.
    Receipt,
    /// Its file, which changes no status.
    File,
    /// An edit, a deletion or a reaction, which change no status.
    Revision,
}

/// A changed message as statements return it.
pub(super) type ChangedMessageRow = (CompanyId, MessageId, TicketId, String, String, Option<DateTime<Utc>>);

impl ChangedMessage {
    /// Converts rows, except those with a status that this release does not know.
    pub(super) fn from_rows(rows: Vec<ChangedMessageRow>, by: ChangeCause) -> Vec<Self> {
        let convert = |(company, id, ticket, previous, status, updated_at): ChangedMessageRow| {
            Some(Self {
                company,
                id,
                ticket,
                previous: previous.parse().ok()?,
                status: status.parse().ok()?,
                by,
                updated_at,
            })
        };
        rows.into_iter().filter_map(convert).collect()
    }
}

/// The new messages of a batch, merged with its status reports: each is written once, in its final status.
pub(crate) struct MergedBatch<'a> {
    /// All messages of the batch.
    pub(crate) messages: Vec<Cow<'a, MessageRow>>,
    /// The reports that were not merged: failures, and those on messages that are in the tables already.
    pub(crate) progress: Vec<&'a DeliveryStatusRow>,
    /// The messages that are written with an advanced status.
    pub(crate) changed: Vec<ChangedMessage>,
}

/// Merges status reports into the new messages they refer to, with the same result as [`advance_statuses`] after the
/// insertion. `None` if there is nothing to merge. Failures are not merged: only the table shows whether one counts.
pub(crate) fn merge_reports<'a>(
    messages: &[&'a MessageRow],
    progress: &[&'a DeliveryStatusRow],
) -> Option<MergedBatch<'a>> {
    if messages.is_empty() || progress.is_empty() {
        return None;
    }
    let mut reports: HashMap<(CompanyId, MessageId), CombinedReports<'a>> =
        combine_reports(progress).into_iter().map(|combined| ((combined.company, combined.id), combined)).collect();
    let mut merged =
        MergedBatch { messages: Vec::with_capacity(messages.len()), progress: Vec::new(), changed: Vec::new() };
    for row in messages {
        let key = (row.company_id, row.id);
        let advanced = reports.get(&key).and_then(|combined| combined.advance(row));
        if let Some(row) = &advanced {
            reports.remove(&key);
            let (previous, by) = (MessageStatus::Queued, ChangeCause::Progress);
            let (company, id, ticket, status) = (row.company_id, row.id, row.ticket_id, row.status);
            merged.changed.push(ChangedMessage {
                company,
                id,
                ticket,
                previous,
                status,
                by,
                updated_at: row.updated_at,
            });
        }
        merged.messages.push(advanced.map_or(Cow::Borrowed(*row), Cow::Owned));
    }
    if merged.changed.is_empty() {
        return None;
    }
    merged.progress =
        progress.iter().copied().filter(|row| reports.contains_key(&(row.company_id, row.message_id))).collect();
    Some(merged)
}

/// Advances messages, and returns those whose status changed.
pub(crate) async fn advance_statuses(
    db: &mut PgConnection,
    rows: &[&DeliveryStatusRow],
) -> std::result::Result<Vec<ChangedMessage>, sqlx::Error> {
    let combined = combine_reports(rows);
    macro_rules! column {
        ($value:expr) => {
            combined.iter().map($value).collect::<Vec<_>>()
        };
    }
    let changed = sqlx::query_as(AssertSqlSafe(zones::wrap_status_update(include_str!("progress.sql"), "y.was")))
        .bind(column!(|combined| combined.company))
        .bind(column!(|combined| combined.id))
        .bind(column!(|combined| combined.reached.as_str()))
        .bind(column!(|combined| combined.failure.map(|error| serde_json::to_value(error).unwrap_or(Value::Null))))
        .bind(column!(|combined| combined.sent_at))
        .bind(column!(|combined| combined.delivered_at))
        .bind(column!(|combined| combined.read_at))
        .bind(column!(|combined| combined.provider_message_id))
        .fetch_all(db)
        .await?;
    Ok(ChangedMessage::from_rows(changed, ChangeCause::Progress))
}

/// Which of these messages exist and have not failed.
pub(crate) async fn find_unfailed(
    db: &mut PgConnection,
    messages: &[(CompanyId, MessageId)],
) -> std::result::Result<Vec<(CompanyId, MessageId)>, sqlx::Error> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let (companies, ids): (Vec<_>, Vec<_>) = messages.iter().copied().unzip();
    sqlx::query_as(
        "select m.company_id, m.id from messages m
         join (select distinct * from unnest($1::bigint[], $2::bigint[])) as x (company_id, id) using (company_id, id)
         where m.status <> 'failed'",
    )
    .bind(companies)
    .bind(ids)
    .fetch_all(db)
    .await
}

/// A failed message, with the attributes by which reports group it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedMessage {
    pub(crate) company_id: CompanyId,
    pub(crate) channel_id: ChannelId,
    pub(crate) user_id: Option<UserId>,
    pub(crate) kind: MessageType,
    pub(crate) created_at: DateTime<Utc>,
}

/// Which of these messages have failed. Messages with a type that this release does not know are skipped.
pub(crate) async fn find_failed(
    db: &mut PgConnection,
    messages: &[(CompanyId, MessageId)],
) -> std::result::Result<Vec<FailedMessage>, sqlx::Error> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let (companies, ids): (Vec<_>, Vec<_>) = messages.iter().copied().unzip();
    type FailedRow = (CompanyId, ChannelId, Option<UserId>, String, DateTime<Utc>);
    let failed: Vec<FailedRow> = sqlx::query_as(
        "select m.company_id, m.channel_id, m.user_id, m.type, m.created_at from messages m
         join unnest($1::bigint[], $2::bigint[]) as x (company_id, id) using (company_id, id)
         where m.status = 'failed'",
    )
    .bind(companies)
    .bind(ids)
    .fetch_all(db)
    .await?;
    let parse = |(company_id, channel_id, user_id, kind, created_at): FailedRow| {
        Some(FailedMessage { company_id, channel_id, user_id, kind: kind.parse().ok()?, created_at })
    };
    Ok(failed.into_iter().filter_map(parse).collect())
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn report(delivery_status: DeliveryStatus, second: i64) -> DeliveryStatusRow {
        DeliveryStatusRow {
            company_id: CompanyId::new(1),
            ticket_id: TicketId::new(1),
            message_id: MessageId::new(1),
            delivery_status,
            at: DateTime::UNIX_EPOCH + TimeDelta::seconds(second),
            provider_message_id: (second == 1).then(|| "wamid.1".to_owned()),
            noted_at: None,
        }
    }

    fn failure() -> DeliveryStatus {
        DeliveryStatus::Failed(MessageError { code: "131026".to_owned(), message: "undeliverable".to_owned() })
    }

    /// The highest status after these reports, and whether the message failed before delivery.
    fn combined_status(statuses: &[DeliveryStatus]) -> (MessageStatus, bool) {
        let rows: Vec<_> = statuses.iter().cloned().zip(1..).map(|(status, at)| report(status, at)).collect();
        let rows: Vec<_> = rows.iter().collect();
        let combined = combine_reports(&rows);
        let one = combined.first().expect("one message");
        (one.reached, one.failure.is_some())
    }

    #[test]
    fn statuses_only_advance_in_any_order_of_reports() {
        use DeliveryStatus::{Delivered, Read, Sent};
        let steps = [Sent, Delivered, Read];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let rows: Vec<_> = order.iter().map(|step| report(steps[*step].clone(), *step as i64 + 1)).collect();
            let rows: Vec<_> = rows.iter().collect();
            let combined = combine_reports(&rows);
            let [one] = combined.as_slice() else { panic!("one message, not {}", combined.len()) };
            assert_eq!((one.reached, one.failure), (MessageStatus::Read, None));
            let seconds = [one.sent_at, one.delivered_at, one.read_at].map(|at| at.map(|at| at.timestamp()));
            assert_eq!(seconds, [Some(1), Some(2), Some(3)], "{order:?}");
            assert_eq!(one.provider_message_id, Some("wamid.1"));
        }
    }

    #[test]
    fn a_failure_after_the_delivery_is_ignored() {
        use DeliveryStatus::{Delivered, Read, Sent};
        assert_eq!(combined_status(&[failure(), Sent, Delivered]), (MessageStatus::Delivered, true));
        assert_eq!(combined_status(&[Sent, failure()]), (MessageStatus::Sent, true));
        assert_eq!(combined_status(&[Delivered, failure()]), (MessageStatus::Delivered, false));
        assert_eq!(combined_status(&[Read, failure(), Sent]), (MessageStatus::Read, false));
    }
}
