//! A company's scheduled messages in memory: which message is sent next. Has no clock and does no I/O: the caller
//! passes the time.
//!
//! - Memory has every message that is pending up to a point ([`Agenda::until`]), and later ones that are due soon and
//!   were created since the last load. The others are in the tables, and are loaded as time passes. If there are too
//!   many, the latest are evicted.
//! - Each conversation sends one message at a time, the oldest first; its others are queued.
//! - A read of the tables may be older than a decision. So while a read is running, no message with a new state is
//!   dropped, and the state in memory takes precedence over what was read.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::tables::schedules::{Due, ScheduleRow, ScheduleStatus};
use hotline_persistence::{ChannelId, ContactId, ScheduleId};

/// How far ahead messages are always in memory: the length of a database outage to survive.
pub(super) const HORIZON_MIN: TimeDelta = TimeDelta::hours(1);

/// How far ahead messages are loaded, so that a load is due every half hour.
pub(super) const HORIZON_MAX: TimeDelta = TimeDelta::minutes(90);

/// Maximum scheduled messages of a company in memory: more than any provider accepts within minutes. With short texts
/// they take 10 MiB.
const MESSAGES_MAX: usize = 20_000;

/// Maximum bytes of these messages, about 500 messages with the longest texts.
const BYTES_MAX: usize = 32 << 20;

/// Approximate bytes of a row without its text.
const ROW_BYTES: usize = 400;

/// When an unsent message counts as late: the limit of the API contract.
const LATE_AFTER: TimeDelta = TimeDelta::seconds(5);

/// A contact on a channel.
type ConversationKey = (ChannelId, ContactId);

/// The scheduled messages in memory.
pub(super) struct Agenda {
    entries: HashMap<ScheduleId, ScheduleEntry>,
    /// Messages that may be sent once they are due.
    ready: BTreeSet<Due>,
    /// Messages that failed because of an outage, by the time of their retry.
    retries: BTreeSet<(Instant, ScheduleId)>,
    /// Conversations in which a message is being sent or waits for its retry.
    conversations: HashMap<ConversationKey, ConversationQueue>,
    /// The point up to which all pending messages are in memory.
    until: Due,
    /// Whether messages may be pending beyond `until`.
    has_more: bool,
    bytes: usize,
    /// The number of running reads.
    active_reads: usize,
    /// Messages inserted while a read was running. Those that need not stay in memory are removed when the last read
    /// ends.
    inserted_ids: Vec<ScheduleId>,
}

struct ScheduleEntry {
    row: Arc<ScheduleRow>,
    state: MessageState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageState {
    Ready,
    /// An earlier message of the conversation goes first.
    Queued,
    Sending,
    Retrying(Instant),
    /// Sent, canceled or failed; retained until no running read can return the earlier state.
    Done,
}

#[derive(Default)]
struct ConversationQueue {
    /// Whether a message is being sent or waits for its retry.
    is_busy: bool,
    waiting: BTreeSet<Due>,
}

/// Counts of pending messages, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScheduleCounts {
    /// Pending messages in memory.
    pub(super) pending: usize,
    /// Messages that are due.
    pub(super) due: usize,
    /// Messages that are late.
    pub(super) late: usize,
}

/// What memory has of a scheduled message.
pub(super) enum MessageLookup {
    /// In memory, and not being sent.
    Idle(Arc<ScheduleRow>),
    /// Being sent.
    Sending,
    /// Not in memory; look in the tables.
    Unknown,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            ready: BTreeSet::new(),
            retries: BTreeSet::new(),
            conversations: HashMap::new(),
            // The earliest time that a caller can give; PostgreSQL can represent it.
            until: (DateTime::UNIX_EPOCH, ScheduleId::new(0)),
            has_more: true,
            bytes: 0,
            active_reads: 0,
            inserted_ids: Vec::new(),
        }
    }
}

impl Agenda {
    pub(super) fn look_up(&self, id: ScheduleId) -> MessageLookup {
        match self.entries.get(&id) {
            Some(ScheduleEntry { state: MessageState::Sending, .. }) => MessageLookup::Sending,
            Some(entry) => MessageLookup::Idle(entry.row.clone()),
            None => MessageLookup::Unknown,
        }
    }

    /// The point up to which all pending messages are in memory.
    pub(super) fn until(&self) -> Due {
        self.until
    }

    /// Whether nothing is pending, here or in the tables.
    pub(super) fn is_done(&self) -> bool {
        self.entries.is_empty() && !self.has_more && self.active_reads == 0
    }

    /// Whether more should be loaded now.
    pub(super) fn needs_load(&self, now: DateTime<Utc>) -> bool {
        let has_room = self.entries.len() < MESSAGES_MAX / 2 && self.bytes < BYTES_MAX / 2;
        self.has_more && has_room && self.until.0 < now + HORIZON_MIN
    }

    /// Records that a read of the tables begins.
    pub(super) fn begin_read(&mut self) {
        self.active_reads += 1;
    }

    /// Records that a read of the tables has ended: its result was added, or it has failed.
    pub(super) fn end_read(&mut self, now: DateTime<Utc>) {
        self.active_reads = self.active_reads.saturating_sub(1);
        if self.active_reads > 0 {
            return;
        }
        for id in std::mem::take(&mut self.inserted_ids) {
            let Some(entry) = self.entries.get(&id) else { continue };
            let is_left_to_tables =
                self.is_beyond_horizon(&entry.row, now) && matches!(entry.state, MessageState::Ready);
            if entry.state == MessageState::Done || is_left_to_tables {
                self.has_more |= is_left_to_tables;
                self.remove_entry(id);
            }
        }
    }

    /// Adds the result of reading one row, unless memory has a newer state.
    pub(super) fn add_found(&mut self, row: ScheduleRow) {
        if !self.entries.contains_key(&row.id) {
            self.insert(Arc::new(row));
        }
    }

    /// Adds the messages that a read has found pending after `after` and up to `until`. `has_more`: whether messages
    /// may be pending beyond `until`.
    pub(super) fn add_loaded(&mut self, after: Due, rows: Vec<ScheduleRow>, until: Due, has_more: bool) {
        // Messages before `after` were evicted meanwhile: with these rows, memory would have a gap.
        if self.until != after {
            return;
        }
        (self.until, self.has_more) = (until, has_more);
        for row in rows {
            self.add_found(row);
        }
        self.evict();
    }

    /// Applies the new state of a message. A message that is due soon is kept even if earlier ones are not in memory:
    /// the tables may be unavailable when it is due.
    pub(super) fn apply(&mut self, row: Arc<ScheduleRow>, now: DateTime<Utc>) {
        self.remove_entry(row.id);
        let is_pending = row.status == ScheduleStatus::Pending;
        if is_pending && row.due() > self.until {
            self.has_more = true;
            if self.active_reads == 0 && self.is_beyond_horizon(&row, now) {
                return;
            }
        }
        if is_pending || self.active_reads > 0 {
            self.insert(row);
        }
        self.evict();
    }

    /// Removes a deleted message.
    pub(super) fn remove(&mut self, id: ScheduleId) {
        self.remove_entry(id);
    }

    /// The next message to send: the oldest that is due, unless another of its conversation is being sent.
    pub(super) fn take_due(&mut self, now: DateTime<Utc>, instant: Instant) -> Option<Arc<ScheduleRow>> {
        while let Some((_, id)) = self.retries.first().copied().filter(|(at, _)| *at <= instant) {
            self.retries.pop_first();
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.state = MessageState::Ready;
                self.ready.insert(entry.row.due());
                self.conversations.entry(conversation(&entry.row)).or_default().is_busy = false;
            }
        }
        while let Some(due) = self.ready.first().copied().filter(|(at, _)| *at <= now) {
            self.ready.pop_first();
            let Some(entry) = self.entries.get_mut(&due.1) else { continue };
            let queue = self.conversations.entry(conversation(&entry.row)).or_default();
            if !std::mem::replace(&mut queue.is_busy, true) {
                entry.state = MessageState::Sending;
                return Some(entry.row.clone());
            }
            entry.state = MessageState::Queued;
            queue.waiting.insert(due);
        }
        None
    }

    /// Schedules the retry of a message that could not be sent.
    pub(super) fn retry_at(&mut self, id: ScheduleId, at: Instant) {
        if let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.state == MessageState::Sending) {
            entry.state = MessageState::Retrying(at);
            self.retries.insert((at, id));
        }
    }

    /// The times of the next due message and of the next retry.
    pub(super) fn next_times(&self) -> (Option<DateTime<Utc>>, Option<Instant>) {
        (self.ready.first().map(|(at, _)| *at), self.retries.first().map(|(at, _)| *at))
    }

    /// The first `max` messages that are due by a time, without those that are queued, being sent or retried.
    pub(super) fn due_by(&self, time: DateTime<Utc>, max: usize) -> Vec<Arc<ScheduleRow>> {
        let soon = self.ready.iter().take_while(|(at, _)| *at <= time).take(max);
        soon.filter_map(|(_, id)| self.entries.get(id)).map(|entry| entry.row.clone()).collect()
    }

    /// Counts the pending messages.
    pub(super) fn count(&self, now: DateTime<Utc>) -> ScheduleCounts {
        let mut counts = ScheduleCounts::default();
        for entry in self.entries.values().filter(|entry| entry.state != MessageState::Done) {
            counts.pending += 1;
            counts.due += usize::from(entry.row.send_at <= now);
            counts.late += usize::from(entry.row.send_at + LATE_AFTER < now);
        }
        counts
    }

    /// Whether a message is left to the tables: beyond `until`, and not due soon.
    fn is_beyond_horizon(&self, row: &ScheduleRow, now: DateTime<Utc>) -> bool {
        row.due() > self.until && row.send_at > now + HORIZON_MIN
    }

    fn insert(&mut self, row: Arc<ScheduleRow>) {
        let is_pending = row.status == ScheduleStatus::Pending;
        if is_pending {
            self.ready.insert(row.due());
        }
        if self.active_reads > 0 {
            self.inserted_ids.push(row.id);
        }
        self.bytes += bytes(&row);
        let state = if is_pending { MessageState::Ready } else { MessageState::Done };
        self.entries.insert(row.id, ScheduleEntry { row, state });
    }

    fn remove_entry(&mut self, id: ScheduleId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.bytes = self.bytes.saturating_sub(bytes(&entry.row));
        let (due, key) = (entry.row.due(), conversation(&entry.row));
        match entry.state {
            MessageState::Ready => drop(self.ready.remove(&due)),
            MessageState::Retrying(at) => drop(self.retries.remove(&(at, id))),
            MessageState::Queued | MessageState::Sending | MessageState::Done => {}
        }
        let Some(queue) = self.conversations.get_mut(&key) else { return };
        match entry.state {
            MessageState::Sending | MessageState::Retrying(_) => queue.is_busy = false,
            MessageState::Queued => drop(queue.waiting.remove(&due)),
            MessageState::Ready | MessageState::Done => {}
        }
        if queue.is_busy {
            return;
        }
        // The next message of the conversation becomes ready.
        if let Some(next) = queue.waiting.pop_first()
            && let Some(entry) = self.entries.get_mut(&next.1)
        {
            entry.state = MessageState::Ready;
            self.ready.insert(next);
        }
        if queue.waiting.is_empty() {
            self.conversations.remove(&key);
        }
    }

    /// Evicts the messages that are due last, while there are too many.
    fn evict(&mut self) {
        while (self.entries.len() > MESSAGES_MAX || self.bytes > BYTES_MAX) && self.ready.len() > 1 {
            let Some((at, id)) = self.ready.last().copied() else { return };
            self.remove_entry(id);
            self.until = self.until.min((at, ScheduleId::new(id.0 - 1)));
            self.has_more = true;
        }
    }
}

fn conversation(row: &ScheduleRow) -> ConversationKey {
    (row.channel_id, row.contact_id)
}

fn bytes(row: &ScheduleRow) -> usize {
    row.body.len() + ROW_BYTES
}
