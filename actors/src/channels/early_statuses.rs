//! The index of early statuses: those that arrived before their message was known to be sent.

use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use hotline_persistence::MessageId;
use hotline_persistence::tables::early_statuses::STORED_MAX;

/// Maximum messages in memory, some 150 bytes each. There are more only if another system sends many messages through
/// the same account; then the table is queried for every message.
pub(crate) const EARLY_STATUSES_MAX: usize = 50_000;

/// The number of messages from which the table may be full for a channel: a message has at most four statuses.
const CROWDED_FROM: usize = STORED_MAX as usize / 4;

/// The early statuses of one channel.
#[derive(Default)]
pub(crate) struct EarlyStatusIndex {
    /// By a message's id, when an early status or revision of it was stored, or was found while loading.
    stored_at: DashMap<String, DateTime<Utc>>,
    /// Whether some statuses are only in the table.
    has_more: AtomicBool,
    /// Whether the table had room for the last status.
    pub(crate) room: TableRoom,
}

/// Whether a table had room for the last row of a channel.
#[derive(Default)]
pub(crate) struct TableRoom {
    is_full: AtomicBool,
}

impl TableRoom {
    /// Records whether the table had room for a row. Returns whether this row is the first one dropped since one was
    /// stored.
    pub(crate) fn record(&self, has_room: bool) -> bool {
        !self.is_full.swap(!has_room, Ordering::AcqRel) && !has_room
    }
}

impl EarlyStatusIndex {
    /// Builds the index from the messages that have early statuses or revisions in their tables. Fewer than
    /// [`EARLY_STATUSES_MAX`] mean that the tables have no more.
    pub(crate) fn of(message_ids: &[String], now: DateTime<Utc>) -> Self {
        let has_more = AtomicBool::new(message_ids.len() >= EARLY_STATUSES_MAX);
        Self { stored_at: message_ids.iter().map(|id| (id.clone(), now)).collect(), has_more, ..Self::default() }
    }

    /// Whether the table may have no room for further statuses.
    pub(crate) fn is_crowded(&self) -> bool {
        self.has_more.load(Ordering::Acquire) || self.stored_at.len() >= CROWDED_FROM
    }

    /// Records that a status of this message was stored.
    pub(crate) fn add(&self, id: &str, now: DateTime<Utc>) {
        if self.stored_at.len() >= EARLY_STATUSES_MAX && !self.stored_at.contains_key(id) {
            self.has_more.store(true, Ordering::Release);
        } else {
            self.stored_at.insert(id.to_owned(), now);
        }
    }

    /// Whether the table may have a status of this message or, if it is a later part of a provider's message, the
    /// deletion of the later parts ([`parts_key`]). `false` is certain.
    pub(crate) fn may_contain(&self, id: &str) -> bool {
        self.stored_at.contains_key(id)
            || parts_key(id).is_some_and(|parts| self.stored_at.contains_key(parts))
            || self.has_more.load(Ordering::Acquire)
    }

    /// Records that the stored statuses of this message were applied.
    pub(crate) fn remove(&self, id: &str) {
        self.stored_at.remove(id);
    }

    /// Drops entries from before this time.
    pub(crate) fn sweep(&self, before: DateTime<Utc>) {
        self.stored_at.retain(|_, at| *at >= before);
    }
}

/// The key under which the deletion of a message's further parts is stored, from the id of one of them. A provider's
/// message with three files is stored as `m`, `m#2` and `m#3`; the key is `m#`, which is no message's id.
pub(crate) fn parts_key(id: &str) -> Option<&str> {
    id.find('#').map(|end| &id[..=end])
}

/// The key under which it is stored that a status has named the text that follows the file of this message of ours. It
/// is no provider's id: the text is a message at the provider, but not here.
pub(crate) fn text_key(message: MessageId) -> String {
    format!("{message} text")
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn beyond_the_limit_every_message_is_looked_up() {
        let (first, later) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH + TimeDelta::days(1));
        let index = EarlyStatusIndex::of(&["a".to_owned()], first);
        assert!(index.may_contain("a") && !index.may_contain("b"));
        index.remove("a");
        assert!(!index.may_contain("a"));
        (0..EARLY_STATUSES_MAX).for_each(|number| index.add(&number.to_string(), first));
        assert!(!index.may_contain("b"));
        index.add("7", later);
        assert!(!index.may_contain("b"), "a known message needs no more room");
        index.add("c", later);
        assert!(index.may_contain("b"), "beyond the limit any message may have a status");
        index.sweep(later);
        assert_eq!(index.stored_at.len(), 1);
    }

    #[test]
    fn a_part_is_found_by_the_key_of_all_parts() {
        let index = EarlyStatusIndex::of(&["m#".to_owned()], DateTime::UNIX_EPOCH);
        assert!(index.may_contain("m#2") && index.may_contain("m#33"));
        assert!(!index.may_contain("m") && !index.may_contain("n#2"));
    }

    #[test]
    fn a_full_table_is_reported_once() {
        let index = EarlyStatusIndex::default();
        (1..CROWDED_FROM).for_each(|number| index.add(&number.to_string(), DateTime::UNIX_EPOCH));
        assert!(!index.is_crowded());
        index.add("0", DateTime::UNIX_EPOCH);
        assert!(index.is_crowded());
        let dropped = [true, false, false, true, false].map(|has_room| index.room.record(has_room));
        assert_eq!(dropped, [false, true, false, false, true]);
    }
}
