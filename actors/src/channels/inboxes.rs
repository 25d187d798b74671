//! The inboxes of all channels, and a cache of messages by provider's id. A call of a provider then needs no database
//! while the conversation is hot.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use hotline_persistence::tables::messages::Passed;
use hotline_persistence::{Change, ChannelId, CompanyId};
use tokio::sync::OnceCell;

use super::inbox::Inbox;
use crate::ttl_cache::TtlCache;

/// Maximum cached messages by provider's id: statuses and replies arrive soon after a message. Some 150 bytes each.
const PASSED_MAX: usize = 100_000;

type Channel = (CompanyId, ChannelId);

/// The inboxes of all channels.
pub(crate) struct Inboxes {
    loaded: DashMap<Channel, Arc<OnceCell<Arc<Inbox>>>>,
    passed: TtlCache<(Channel, String), Passed>,
    /// Applies to a message the statuses that arrived before it was known.
    gives_pending: OnceLock<GivesPending>,
}

/// Starts to apply to a message, by its provider's id, the statuses that arrived before it was known. It must not
/// block.
type GivesPending = Box<dyn Fn(Channel, String) + Send + Sync>;

impl Default for Inboxes {
    fn default() -> Self {
        Self {
            loaded: DashMap::new(),
            passed: TtlCache::new(PASSED_MAX, Duration::MAX),
            gives_pending: OnceLock::new(),
        }
    }
}

impl Inboxes {
    /// The cell of a channel's inbox, loaded or not.
    pub(crate) fn cell(&self, channel: Channel) -> Arc<OnceCell<Arc<Inbox>>> {
        if let Some(cell) = self.loaded.get(&channel) {
            return cell.clone();
        }
        self.loaded.entry(channel).or_default().clone()
    }

    /// Drops the inboxes of a company's channels.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { loaded, passed, gives_pending: _ } = self;
        loaded.retain(|(of, _), _| *of != company);
        passed.remove_where(|((of, _), _)| *of == company);
    }

    /// Drops index entries of early statuses from before this time.
    pub(crate) fn sweep_early(&self, before: DateTime<Utc>) {
        self.loaded.iter().filter_map(|cell| cell.get().cloned()).for_each(|inbox| inbox.early.sweep(before));
    }

    /// The message with this provider id, if it is cached.
    pub(crate) fn passed(&self, channel: Channel, provider_message_id: &str) -> Option<Passed> {
        self.passed.get(&(channel, provider_message_id.to_owned()))
    }

    /// Caches a message, inbound or outbound, under its provider's id.
    pub(crate) fn note(&self, channel: Channel, provider_message_id: &str, message: Passed) {
        self.passed.insert((channel, provider_message_id.to_owned()), message);
    }

    /// Sets the function that applies early statuses. Once, before anything is received.
    pub(crate) fn set_gives_pending(&self, gives: impl Fn(Channel, String) + Send + Sync + 'static) {
        let _ = self.gives_pending.set(Box::new(gives));
    }

    /// Notes the provider's ids of messages, and applies their early statuses.
    pub(crate) fn named(&self, channel: Channel, named: Vec<(String, Passed)>) {
        for (id, message) in named {
            self.note(channel, &id, message);
            if self.may_be_early(channel, &id)
                && let Some(gives) = self.gives_pending.get()
            {
                gives(channel, id);
            }
        }
    }

    /// Whether statuses may be stored of a message that was just sent; false is certain. The caller has noted the id
    /// before: whoever stores an early status looks for the id once more afterwards.
    fn may_be_early(&self, channel: Channel, provider_message_id: &str) -> bool {
        match self.cell(channel).get() {
            Some(inbox) => inbox.early.may_hold(provider_message_id),
            None => true,
        }
    }
}

/// The messages whose provider's id these changes record.
pub(crate) fn named(changes: &[Change]) -> Vec<(String, Passed)> {
    let named = changes.iter().filter_map(|change| match change {
        Change::Progress(row) => {
            let passed = Passed { ticket_id: row.ticket_id, id: row.message_id };
            row.provider_message_id.clone().map(|id| (id, passed))
        }
        _ => None,
    });
    named.collect()
}
