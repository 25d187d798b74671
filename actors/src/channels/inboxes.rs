//! Which messages channels' providers tell of, and what each channel has received: near, so that a call of a provider
//! needs no database while a conversation is hot.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use hotline_persistence::tables::messages::Passed;
use hotline_persistence::{Change, ChannelId, CompanyId};
use tokio::sync::OnceCell;

use super::inbox::Inbox;
use crate::ttl_cache::TtlCache;

/// Messages found by their provider's id without the database: those statuses and replies come for soon. Some 150
/// bytes each.
const PASSED_MAX: usize = 100_000;

type Channel = (CompanyId, ChannelId);

/// Every channel's.
pub(crate) struct Inboxes {
    loaded: DashMap<Channel, Arc<OnceCell<Arc<Inbox>>>>,
    passed: TtlCache<(Channel, String), Passed>,
    /// What gives a message the statuses that came before it was known.
    gives_pending: OnceLock<GivesPending>,
}

/// Begins to give a message, by its provider's id, the statuses that came before it was known. It must not wait.
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
    /// The place of a channel's inbox, loaded or not.
    pub(crate) fn cell(&self, channel: Channel) -> Arc<OnceCell<Arc<Inbox>>> {
        if let Some(cell) = self.loaded.get(&channel) {
            return cell.clone();
        }
        self.loaded.entry(channel).or_default().clone()
    }

    /// Drops what a company's channels have received.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { loaded, passed, gives_pending: _ } = self;
        loaded.retain(|(of, _), _| *of != company);
        passed.remove_where(|((of, _), _)| *of == company);
    }

    /// Forgets which messages something was kept of before a time.
    pub(crate) fn sweep_early(&self, before: DateTime<Utc>) {
        self.loaded.iter().filter_map(|cell| cell.get().cloned()).for_each(|inbox| inbox.early.sweep(before));
    }

    /// The message a provider knows by this id, if it passed lately.
    pub(crate) fn passed(&self, channel: Channel, provider_message_id: &str) -> Option<Passed> {
        self.passed.get(&(channel, provider_message_id.to_owned()))
    }

    /// A message has passed, either way.
    pub(crate) fn note(&self, channel: Channel, provider_message_id: &str, message: Passed) {
        self.passed.insert((channel, provider_message_id.to_owned()), message);
    }

    /// Sets who gives messages their pending statuses. Once, before anything is received.
    pub(crate) fn set_gives_pending(&self, gives: impl Fn(Channel, String) + Send + Sync + 'static) {
        let _ = self.gives_pending.set(Box::new(gives));
    }

    /// Messages of a channel are known to their provider by these ids from now on.
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

    /// Whether statuses may be kept of a message that has just become known to be sent; false is certain. It was noted
    /// before: who keeps a status looks once more after that.
    fn may_be_early(&self, channel: Channel, provider_message_id: &str) -> bool {
        match self.cell(channel).get() {
            Some(inbox) => inbox.early.may_hold(provider_message_id),
            None => true,
        }
    }
}

/// The messages whose provider's id becomes known by these changes.
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
