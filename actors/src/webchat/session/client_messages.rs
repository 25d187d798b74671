//! The ids that a visitor's page gives its messages: a retry is recognized by them.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use hotline_persistence::tables::messages::MessageRow;

use crate::seen::{Membership, SeenSet};

/// Maximum messages that a session caches to answer retries; older ones are read from the table.
const CACHED_MAX: usize = 32;

/// Maximum bytes of the texts of the cached messages; a message with a longer text is read from the table.
const CACHED_BYTES_MAX: usize = 16 * 1024;

/// Maximum ids of the visitor's own messages that a session remembers, to recognize new ones without the database: more
/// than any visitor sends. Beyond that, every id is looked up.
pub(crate) const CLIENT_IDS_MAX: usize = 20_000;

/// The client ids of a session's messages. A retry is answered with the message that used its id first.
pub(super) struct ClientMessages {
    /// Hashes of the used ids. The times of their use do not matter.
    used_ids: SeenSet<u64, ()>,
    /// The newest messages, for retries right after a lost connection.
    cached: VecDeque<MessageRow>,
}

impl Default for ClientMessages {
    fn default() -> Self {
        Self { used_ids: SeenSet::with_entries_max(CLIENT_IDS_MAX), cached: VecDeque::new() }
    }
}

/// Whether a client id was used before; `Unknown`: the tables must be read.
pub(super) enum ClientIdLookup {
    New,
    Duplicate(Box<MessageRow>),
    Unknown,
}

impl ClientMessages {
    pub(super) fn of(used_ids: &[String]) -> Self {
        let mut messages = Self::default();
        used_ids.iter().for_each(|id| messages.used_ids.insert(hash(id), ()));
        if used_ids.len() >= CLIENT_IDS_MAX {
            // The tables may have more ids, so an id that is not found here is unknown.
            messages.used_ids.mark_missing_up_to(());
        }
        messages
    }

    pub(super) fn remember(&mut self, message: &MessageRow) {
        let Some(id) = &message.client_id else { return };
        self.used_ids.insert(hash(id), ());
        let is_cached = self.cached.iter().any(|other| other.id == message.id);
        if is_cached || text_bytes(message) > CACHED_BYTES_MAX {
            return;
        }
        self.cached.push_back(message.clone());
        while self.cached.len() > CACHED_MAX || self.cached_bytes() > CACHED_BYTES_MAX {
            self.cached.pop_front();
        }
    }

    /// Bytes of the texts of the cached messages.
    fn cached_bytes(&self) -> usize {
        self.cached.iter().map(text_bytes).sum()
    }

    pub(super) fn look_up(&self, id: Option<&str>) -> ClientIdLookup {
        let Some(id) = id else { return ClientIdLookup::New };
        if let Some(first) = self.cached.iter().find(|message| message.client_id.as_deref() == Some(id)) {
            return ClientIdLookup::Duplicate(Box::new(first.clone()));
        }
        match self.used_ids.look_up(&hash(id), |()| true) {
            Membership::Absent => ClientIdLookup::New,
            Membership::Present | Membership::Unknown => ClientIdLookup::Unknown,
        }
    }
}

/// Bytes of a message's text. The other fields of a visitor's message are short.
fn text_bytes(message: &MessageRow) -> usize {
    message.body.as_ref().map_or(0, String::len)
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use hotline_persistence::tables::messages::{Direction, MessageStatus};
    use hotline_persistence::tables::source::Source;

    use super::*;
    use crate::test_rows;

    /// A message `m-{id}` with a text of this length.
    fn message(id: i64, bytes: usize) -> MessageRow {
        MessageRow {
            direction: Direction::Inbound,
            body: Some("x".repeat(bytes)),
            status: MessageStatus::Received,
            source: Source::Contact,
            client_id: Some(format!("m-{id}")),
            ..test_rows::message(id)
        }
    }

    #[test]
    fn long_texts_are_not_cached() {
        let mut messages = ClientMessages::default();
        for id in 0..32 {
            messages.remember(&message(id, 64 * 1024));
        }
        assert!(messages.cached_bytes() <= CACHED_BYTES_MAX);
        for id in ["m-0", "m-31"] {
            assert!(matches!(messages.look_up(Some(id)), ClientIdLookup::Unknown), "{id}");
        }
        messages.remember(&message(32, 10 * 1024));
        messages.remember(&message(33, 10 * 1024));
        assert!(messages.cached_bytes() <= CACHED_BYTES_MAX);
        assert!(matches!(messages.look_up(Some("m-32")), ClientIdLookup::Unknown));
        assert!(matches!(messages.look_up(Some("m-33")), ClientIdLookup::Duplicate(found) if found.id.0 == 33));
        assert!(matches!(messages.look_up(Some("m-34")), ClientIdLookup::New));
    }
}
