//! Coalesces many changes into few rows: only the last version of each row is written.

use std::collections::HashMap;

use super::events::EventCollector;
use super::facts::Facts;
use crate::tables::campaigns::RecipientRow;
use crate::tables::contacts::{ContactChannel, OptOut, ReferralRow};
use crate::tables::idempotency_keys::{AnswerRow, Digest};
use crate::tables::messages::{DeliveryReceipt, DeliveryStatusRow, MediaRow, MessageRow};
use crate::tables::schedules::ScheduleRow;
use crate::tables::ticket_events::{EventRow, EventType};
use crate::tables::tickets::TicketRow;
use crate::tables::webchat_sessions::SessionRow;
use crate::{CampaignId, Change, CompanyId, ContactId, ScheduleId, SessionId, TicketId};

/// The rows of one transaction by table, in write order.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    /// Tickets that existed before, except during a replay.
    pub(super) tickets: Vec<&'a TicketRow>,
    /// Tickets opened in this batch.
    pub(super) opened_tickets: Vec<&'a TicketRow>,
    pub(super) events: Vec<&'a EventRow>,
    pub(super) messages: Vec<&'a MessageRow>,
    pub(super) progress: Vec<&'a DeliveryStatusRow>,
    pub(super) media: Vec<&'a MediaRow>,
    pub(super) delivered_receipts: Vec<&'a DeliveryReceipt>,
    pub(super) seen_receipts: Vec<&'a DeliveryReceipt>,
    pub(super) read_receipts: Vec<&'a DeliveryReceipt>,
    pub(super) sessions: Vec<&'a SessionRow>,
    pub(super) contact_channels: Vec<&'a ContactChannel>,
    pub(super) referrals: Vec<&'a ReferralRow>,
    pub(super) opt_outs: Vec<&'a OptOut>,
    pub(super) schedules: Vec<&'a ScheduleRow>,
    pub(super) recipients: Vec<&'a RecipientRow>,
    pub(super) answers: Vec<&'a AnswerRow>,
    /// What the changes add to the report figures.
    pub(super) facts: Facts,
    /// The events of the changes, if events are enabled.
    pub(super) collector: Option<EventCollector<'a>>,
    /// Number of changes in the batch.
    pub(crate) changes: usize,
}

impl<'a> Batch<'a> {
    /// `with_events`: whether to collect events.
    pub(crate) fn of(entries: impl Iterator<Item = &'a [Change]>, with_events: bool) -> Self {
        let mut batch = Self::default();
        let mut collector = with_events.then(EventCollector::default);
        let mut facts = Facts::default();
        let mut tickets: HashMap<TicketId, &TicketRow> = HashMap::new();
        let mut delivered_receipts: HashMap<TicketId, &DeliveryReceipt> = HashMap::new();
        let mut seen_receipts: HashMap<TicketId, &DeliveryReceipt> = HashMap::new();
        let mut read_receipts: HashMap<TicketId, &DeliveryReceipt> = HashMap::new();
        let mut sessions: HashMap<&SessionId, &SessionRow> = HashMap::new();
        let mut contact_channels: HashMap<(CompanyId, ContactId), &ContactChannel> = HashMap::new();
        let mut schedules: HashMap<ScheduleId, &ScheduleRow> = HashMap::new();
        let mut recipients: HashMap<(CampaignId, ContactId), &RecipientRow> = HashMap::new();
        let mut answers: HashMap<(CompanyId, Digest), &AnswerRow> = HashMap::new();
        let mut collect = |entry: &&'a [Change]| {
            facts.add(entry);
            if let Some(collector) = &mut collector {
                collector.add(entry);
            }
        };
        for change in entries.inspect(&mut collect).flatten() {
            batch.changes += 1;
            match change {
                Change::Ticket(row) => drop(tickets.insert(row.id, row)),
                Change::Event(row) => batch.events.push(row),
                Change::Message(row) => batch.messages.push(row),
                Change::Progress(row) => batch.progress.push(row),
                Change::Media(row) => batch.media.push(row),
                Change::Referral(row) => batch.referrals.push(row),
                Change::OptOut(row) => batch.opt_outs.push(row),
                Change::Delivered(receipt) => insert_furthest(&mut delivered_receipts, receipt),
                Change::Seen(receipt) => insert_furthest(&mut seen_receipts, receipt),
                Change::Read(receipt) => insert_furthest(&mut read_receipts, receipt),
                // The first answer wins, as in its table.
                Change::Answer(row) => {
                    answers.entry((row.company_id, row.key)).or_insert(row);
                }
                Change::Schedule(row) => drop(schedules.insert(row.id, row)),
                // A recipient's first outcome wins, as in its table.
                Change::Recipient(row) => {
                    recipients.entry((row.campaign_id, row.contact_id)).or_insert(row);
                }
                Change::Session(row) => drop(sessions.insert(&row.id, row)),
                Change::ContactChannel(change) => {
                    contact_channels.insert((change.company_id, change.contact_id), change);
                }
            }
        }
        let is_opened = |event: &&EventRow| event.kind == EventType::Opened;
        for event in batch.events.iter().copied().filter(is_opened) {
            batch.opened_tickets.extend(tickets.remove(&event.ticket_id));
        }
        batch.tickets = tickets.into_values().collect();
        // Writing in key order avoids deadlocks between writers, and walks the index once.
        batch.tickets.sort_unstable_by_key(|row| (row.company_id, row.id));
        batch.opened_tickets.sort_unstable_by_key(|row| (row.company_id, row.id));
        batch.delivered_receipts = delivered_receipts.into_values().collect();
        batch.seen_receipts = seen_receipts.into_values().collect();
        batch.read_receipts = read_receipts.into_values().collect();
        batch.sessions = sessions.into_values().collect();
        batch.schedules = schedules.into_values().collect();
        batch.recipients = recipients.into_values().collect();
        batch.recipients.sort_unstable_by_key(|row| (row.company_id, row.campaign_id, row.contact_id));
        batch.answers = answers.into_values().collect();
        batch.contact_channels = contact_channels.into_values().collect();
        batch.facts = facts;
        batch.collector = collector;
        batch
    }
}

/// A receipt never moves back, in whatever order receipts arrive.
fn insert_furthest<'a>(receipts: &mut HashMap<TicketId, &'a DeliveryReceipt>, receipt: &'a DeliveryReceipt) {
    let furthest = receipts.entry(receipt.ticket_id).or_insert(receipt);
    if receipt.up_to > furthest.up_to {
        *furthest = receipt;
    }
}
