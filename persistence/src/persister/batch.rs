//! Coalesces many changes into few rows: each row is written once.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::events::EventCollector;
use super::facts::Facts;
use crate::tables::campaigns::RecipientRow;
use crate::tables::contacts::{ContactChannel, OptOut, ReferralRow};
use crate::tables::idempotency_keys::{AnswerRow, Digest};
use crate::tables::messages::{
    AttemptRow, DeliveryReceipt, DeliveryStatus, DeliveryStatusRow, MediaRow, MessageRow, RevisionRow,
};
use crate::tables::schedules::ScheduleRow;
use crate::tables::ticket_events::{EventRow, EventType};
use crate::tables::tickets::TicketRow;
use crate::tables::webchat_sessions::SessionRow;
use crate::{CampaignId, Change, CompanyId, ContactId, MessageId, ScheduleId, SessionId, TicketId};

/// The rows of one transaction, by table.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    /// Tickets opened in an earlier batch. Some may be missing from the table, for example because they were refused.
    pub(super) tickets: Vec<&'a TicketRow>,
    /// Tickets opened in this batch.
    pub(super) opened_tickets: Vec<&'a TicketRow>,
    pub(super) events: Vec<&'a EventRow>,
    pub(super) messages: Vec<&'a MessageRow>,
    pub(super) progress: Vec<&'a DeliveryStatusRow>,
    pub(super) attempts: Vec<&'a AttemptRow>,
    pub(super) media: Vec<&'a MediaRow>,
    /// In the order of the log.
    pub(super) revisions: Vec<&'a RevisionRow>,
    pub(super) delivered_receipts: Vec<&'a DeliveryReceipt>,
    pub(super) contact_read_receipts: Vec<&'a DeliveryReceipt>,
    pub(super) company_read_receipts: Vec<&'a DeliveryReceipt>,
    pub(super) sessions: Vec<&'a SessionRow>,
    pub(super) contact_channels: Vec<&'a ContactChannel>,
    pub(super) referrals: Vec<&'a ReferralRow>,
    pub(super) opt_outs: Vec<&'a OptOut>,
    pub(super) schedules: Vec<&'a ScheduleRow>,
    pub(super) recipients: Vec<&'a RecipientRow>,
    pub(super) answers: Vec<&'a AnswerRow>,
    /// The contributions of the changes to the report figures.
    pub(super) facts: Facts,
    /// The events of the changes, if events are enabled.
    pub(super) collector: Option<EventCollector<'a>>,
    /// Number of changes in the batch.
    pub(crate) changes: usize,
}

/// A ticket of a company.
type TicketKey = (CompanyId, TicketId);

/// Receipts of a ticket by sessions that show messages since different times: one does not include the other.
type ReceiptKey = (TicketKey, Option<DateTime<Utc>>);

/// Of each row that may change several times in a batch, the version to write. An imported company keeps the ids of its
/// records, so two companies may have the same ones.
#[derive(Default)]
struct RowsByKey<'a> {
    tickets: HashMap<TicketKey, &'a TicketRow>,
    delivered_receipts: HashMap<ReceiptKey, &'a DeliveryReceipt>,
    contact_read_receipts: HashMap<ReceiptKey, &'a DeliveryReceipt>,
    company_read_receipts: HashMap<ReceiptKey, &'a DeliveryReceipt>,
    sessions: HashMap<(CompanyId, &'a SessionId), &'a SessionRow>,
    contact_channels: HashMap<(CompanyId, ContactId), &'a ContactChannel>,
    schedules: HashMap<(CompanyId, ScheduleId), &'a ScheduleRow>,
    recipients: HashMap<(CompanyId, CampaignId, ContactId), &'a RecipientRow>,
    attempts: HashMap<(CompanyId, MessageId), &'a AttemptRow>,
    answers: HashMap<(CompanyId, Digest), &'a AnswerRow>,
}

impl<'a> Batch<'a> {
    /// The batch of these entries. `with_events`: whether to collect their events.
    pub(crate) fn of(entries: impl Iterator<Item = &'a [Change]>, with_events: bool) -> Self {
        let mut batch = Self { collector: with_events.then(EventCollector::default), ..Self::default() };
        let mut rows = RowsByKey::default();
        for entry in entries {
            batch.facts.add(entry);
            if let Some(collector) = &mut batch.collector {
                collector.add(entry);
            }
            batch.changes += entry.len();
            for change in entry {
                batch.add_change(change, &mut rows);
            }
        }
        batch.add_rows(rows);
        batch
    }

    fn add_change(&mut self, change: &'a Change, rows: &mut RowsByKey<'a>) {
        match change {
            Change::Ticket(row) => drop(rows.tickets.insert((row.company_id, row.id), row)),
            Change::Event(row) => self.events.push(row),
            Change::Message(row) => self.messages.push(row),
            Change::Progress(row) => self.progress.push(row),
            Change::Attempt(row) => drop(rows.attempts.insert((row.company_id, row.message_id), row)),
            Change::Media(row) => self.media.push(row),
            Change::Revision(row) => self.revisions.push(row),
            Change::Referral(row) => self.referrals.push(row),
            Change::OptOut(row) => self.opt_outs.push(row),
            Change::Delivered(receipt) => insert_furthest(&mut rows.delivered_receipts, receipt),
            Change::Seen(receipt) => insert_furthest(&mut rows.contact_read_receipts, receipt),
            Change::Read(receipt) => insert_furthest(&mut rows.company_read_receipts, receipt),
            // The first recorded answer to a request wins, as in its table.
            Change::Answer(row) => {
                rows.answers.entry((row.company_id, row.key)).or_insert(row);
            }
            Change::Schedule(row) => drop(rows.schedules.insert((row.company_id, row.id), row)),
            // A recipient's first outcome wins, as in its table.
            Change::Recipient(row) => {
                rows.recipients.entry((row.company_id, row.campaign_id, row.contact_id)).or_insert(row);
            }
            Change::Session(row) => drop(rows.sessions.insert((row.company_id, &row.id), row)),
            Change::ContactChannel(row) => {
                rows.contact_channels.insert((row.company_id, row.contact_id), row);
            }
        }
    }

    fn add_rows(&mut self, mut rows: RowsByKey<'a>) {
        for event in self.events.iter().filter(|event| event.kind == EventType::Opened) {
            self.opened_tickets.extend(rows.tickets.remove(&(event.company_id, event.ticket_id)));
        }
        self.tickets = rows.tickets.into_values().collect();
        // Writing in key order avoids deadlocks between writers, and walks the index once.
        self.tickets.sort_unstable_by_key(|row| (row.company_id, row.id));
        self.opened_tickets.sort_unstable_by_key(|row| (row.company_id, row.id));
        self.delivered_receipts = rows.delivered_receipts.into_values().collect();
        self.contact_read_receipts = rows.contact_read_receipts.into_values().collect();
        self.company_read_receipts = rows.company_read_receipts.into_values().collect();
        self.sessions = rows.sessions.into_values().collect();
        self.schedules = rows.schedules.into_values().collect();
        self.recipients = rows.recipients.into_values().collect();
        self.recipients.sort_unstable_by_key(|row| (row.company_id, row.campaign_id, row.contact_id));
        self.attempts = self.unsettled_attempts(rows.attempts.into_values());
        self.answers = rows.answers.into_values().collect();
        self.contact_channels = rows.contact_channels.into_values().collect();
    }

    /// The attempts that need a row. Most do not: if the provider has accepted a message on the first attempt, its
    /// status is enough.
    fn unsettled_attempts(&self, rows: impl Iterator<Item = &'a AttemptRow>) -> Vec<&'a AttemptRow> {
        let mut rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return rows;
        }
        let is_accepted = |row: &&&DeliveryStatusRow| !matches!(row.delivery_status, DeliveryStatus::Failed(_));
        let accepted_messages: HashSet<_> =
            self.progress.iter().filter(is_accepted).map(|row| (row.company_id, row.message_id)).collect();
        let is_single_and_certain = |row: &AttemptRow| row.attempts.count == 1 && row.attempts.unknown_at.is_none();
        rows.retain(|row| {
            !is_single_and_certain(row) || !accepted_messages.contains(&(row.company_id, row.message_id))
        });
        rows.sort_unstable_by_key(|row| (row.company_id, row.message_id));
        rows
    }
}

/// Stores a ticket's receipt if it reaches further than the stored one. Receipts arrive in any order.
fn insert_furthest<'a>(receipts: &mut HashMap<ReceiptKey, &'a DeliveryReceipt>, receipt: &'a DeliveryReceipt) {
    let furthest = receipts.entry(((receipt.company_id, receipt.ticket_id), receipt.since)).or_insert(receipt);
    if receipt.up_to > furthest.up_to {
        *furthest = receipt;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A change of each kind that a batch keeps one version of, with the same ids in every company.
    fn changes_of(company: i64) -> Vec<Change> {
        fn read<T: serde::de::DeserializeOwned>(company: i64, mut row: Value) -> T {
            row["company_id"] = json!(company);
            serde_json::from_value(row).expect("a row")
        }
        let receipt = || read(company, json!({"ticket_id": 1, "up_to": company, "at": 0}));
        let ticket = json!({"id": 1, "channel_id": 1, "contact_id": 1, "status": "open", "creation_source": "api",
            "unread_count": 0, "reopen_count": 0, "opened_at": 0, "created_at": 0, "updated_at": 0});
        let session = json!({"id": "a", "channel_id": 1, "contact_id": 1, "status": "active", "token_hash": [],
            "last_seen_at": 0, "created_at": 0, "updated_at": 0});
        let schedule = json!({"id": 1, "contact_id": 1, "channel_id": 1, "body": "x", "send_at": 0, "status": "sent",
            "created_at": 0, "updated_at": 0});
        let recipient = json!({"campaign_id": 1, "contact_id": 1, "status": "failed", "updated_at": 0});
        vec![
            Change::Ticket(read(company, ticket)),
            Change::Delivered(receipt()),
            Change::Seen(receipt()),
            Change::Read(receipt()),
            Change::Session(read(company, session)),
            Change::Schedule(read(company, schedule)),
            Change::Recipient(read(company, recipient)),
        ]
    }

    #[test]
    fn the_furthest_receipt_of_each_span_of_messages_is_written() {
        let receipt = |up_to: i64, since: Option<i64>| {
            let receipt = json!({"company_id": 1, "ticket_id": 1, "up_to": up_to, "since": since, "at": 0});
            Change::Delivered(serde_json::from_value(receipt).expect("a row"))
        };
        let entry = [receipt(2, None), receipt(1, None), receipt(3, Some(5)), receipt(4, Some(5))];
        let batch = Batch::of([entry.as_slice()].into_iter(), false);
        let mut written: Vec<i64> = batch.delivered_receipts.iter().map(|receipt| receipt.up_to.0).collect();
        written.sort_unstable();
        assert_eq!(written, [2, 4]);
    }

    #[test]
    fn rows_of_two_companies_with_the_same_ids_are_all_written() {
        let opened =
            json!({"company_id": 2, "id": 1, "ticket_id": 1, "kind": "opened", "source": "api", "created_at": 0});
        let opened = Change::Event(serde_json::from_value(opened).expect("a row"));
        let entries = [changes_of(1), changes_of(2), vec![opened]];
        let batch = Batch::of(entries.iter().map(Vec::as_slice), false);
        let companies = |rows: Vec<CompanyId>| {
            let mut companies: Vec<i64> = rows.into_iter().map(|company| company.0).collect();
            companies.sort_unstable();
            companies
        };
        // The ticket of company 2 is new in this batch, that of company 1 is not.
        assert_eq!(companies(batch.tickets.iter().map(|row| row.company_id).collect()), [1]);
        assert_eq!(companies(batch.opened_tickets.iter().map(|row| row.company_id).collect()), [2]);
        for receipts in [&batch.delivered_receipts, &batch.contact_read_receipts, &batch.company_read_receipts] {
            assert_eq!(companies(receipts.iter().map(|row| row.company_id).collect()), [1, 2]);
        }
        assert_eq!(companies(batch.sessions.iter().map(|row| row.company_id).collect()), [1, 2]);
        assert_eq!(companies(batch.schedules.iter().map(|row| row.company_id).collect()), [1, 2]);
        assert_eq!(companies(batch.recipients.iter().map(|row| row.company_id).collect()), [1, 2]);
    }
}
