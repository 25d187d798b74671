//! The inboxes of all channels, and a cache of messages by provider's id. With it, a call of a provider needs no
//! database while the conversation is hot.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use hotline_persistence::tables::messages::MessageRef;
use hotline_persistence::{Change, CompanyId, ContactId};
use tokio::sync::OnceCell;

use super::ChannelKey;
use super::inbox::Inbox;
use super::named_messages::NamedMessages;
use super::own_sends::OwnSends;
use crate::ttl_cache::TtlCache;

/// Maximum cached messages by provider's id: statuses and replies arrive soon after a message. Some 150 bytes each.
const MESSAGES_MAX: usize = 100_000;

/// Maximum cached addresses of contacts, some 100 bytes each.
const ADDRESSES_MAX: usize = 100_000;

/// The inboxes of all channels.
pub(crate) struct Inboxes {
    inboxes: DashMap<ChannelKey, Arc<OnceCell<Arc<Inbox>>>>,
    messages: TtlCache<(ChannelKey, String), MessageRef>,
    /// The messages that early statuses have named.
    pub(crate) named_messages: NamedMessages,
    /// The latest sends of all channels, by which their echoes are recognized.
    pub(crate) own_sends: OwnSends,
    /// The addresses at which contacts are answered: those from which they wrote last.
    addresses: TtlCache<(ChannelKey, ContactId), String>,
    /// Applies to a message the statuses that arrived before it was known.
    apply_early_statuses: OnceLock<ApplyEarlyStatuses>,
}

/// Takes a message's id at the provider, and starts to apply the statuses that arrived before the message was known. It
/// must not block.
type ApplyEarlyStatuses = Box<dyn Fn(ChannelKey, String) + Send + Sync>;

impl Default for Inboxes {
    fn default() -> Self {
        Self {
            inboxes: DashMap::new(),
            messages: TtlCache::new(MESSAGES_MAX, Duration::MAX),
            named_messages: NamedMessages::default(),
            own_sends: OwnSends::default(),
            addresses: TtlCache::new(ADDRESSES_MAX, Duration::MAX),
            apply_early_statuses: OnceLock::new(),
        }
    }
}

impl Inboxes {
    /// The cell of a channel's inbox, loaded or not.
    pub(crate) fn cell(&self, channel: ChannelKey) -> Arc<OnceCell<Arc<Inbox>>> {
        if let Some(cell) = self.inboxes.get(&channel) {
            return cell.clone();
        }
        self.inboxes.entry(channel).or_default().clone()
    }

    /// Drops the inboxes of a company's channels.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { inboxes, messages, named_messages, own_sends, addresses, apply_early_statuses: _ } = self;
        inboxes.retain(|(owner, _), _| *owner != company);
        messages.remove_where(|((owner, _), _)| *owner == company);
        named_messages.forget_company(company);
        own_sends.forget_company(company);
        addresses.remove_where(|((owner, _), _)| *owner == company);
    }

    /// The address at which a contact is answered, if it is cached.
    pub(crate) fn address(&self, channel: ChannelKey, contact: ContactId) -> Option<String> {
        self.addresses.get(&(channel, contact))
    }

    /// Caches the address from the tables, unless another was cached because the contact has written meanwhile. Returns
    /// the address that is cached now.
    pub(crate) fn cache_address(&self, channel: ChannelKey, contact: ContactId, address: String) -> String {
        self.addresses.get_or_insert_with(&(channel, contact), || address)
    }

    /// Records that a contact has written from this address. Returns whether a different one was cached, or none.
    pub(crate) fn record_address(&self, channel: ChannelKey, contact: ContactId, address: &str) -> bool {
        let key = (channel, contact);
        let has_changed = self.addresses.get(&key).is_none_or(|cached| cached != address);
        if has_changed {
            self.addresses.insert(key, address.to_owned());
        }
        has_changed
    }

    /// Drops the cached address of a contact.
    pub(crate) fn forget_address(&self, channel: ChannelKey, contact: ContactId) {
        self.addresses.remove(&(channel, contact));
    }

    /// Records that a contact was merged into another, which has the addresses of both: an echo of a message to the
    /// merged contact now belongs to the other.
    pub(crate) fn record_merge(&self, company: CompanyId, from: ContactId, into: ContactId) {
        self.own_sends.record_merge(company, from, into);
        self.addresses.remove_where(|((owner, _), contact)| *owner == company && [from, into].contains(contact));
    }

    /// Drops index entries of early statuses from before this time.
    pub(crate) fn sweep_early_statuses(&self, before: DateTime<Utc>) {
        self.inboxes.iter().filter_map(|cell| cell.get().cloned()).for_each(|inbox| inbox.early_statuses.sweep(before));
    }

    /// The message with this provider id, if it is cached.
    pub(crate) fn message(&self, channel: ChannelKey, provider_message_id: &str) -> Option<MessageRef> {
        self.messages.get(&(channel, provider_message_id.to_owned()))
    }

    /// Caches a message, inbound or outbound, under its provider's id.
    pub(crate) fn cache_message(&self, channel: ChannelKey, provider_message_id: &str, message: MessageRef) {
        self.messages.insert((channel, provider_message_id.to_owned()), message);
    }

    /// Sets the function that applies early statuses. Called once, before anything is received.
    pub(crate) fn set_apply_early_statuses(&self, apply: impl Fn(ChannelKey, String) + Send + Sync + 'static) {
        let _ = self.apply_early_statuses.set(Box::new(apply));
    }

    /// Caches messages by their provider's ids, and applies their early statuses.
    pub(crate) fn record_provider_ids(&self, channel: ChannelKey, ids: Vec<(String, MessageRef)>) {
        for (id, message) in ids {
            self.cache_message(channel, &id, message);
            if self.may_have_early_statuses(channel, &id)
                && let Some(apply) = self.apply_early_statuses.get()
            {
                apply(channel, id);
            }
        }
    }

    /// Whether the table may have early statuses of a message that was just sent; `false` is certain. The caller must
    /// have cached the id first: a receiver of an early status stores it, looks the id up again, and finds it cached.
    fn may_have_early_statuses(&self, channel: ChannelKey, provider_message_id: &str) -> bool {
        match self.cell(channel).get() {
            Some(inbox) => inbox.early_statuses.may_contain(provider_message_id),
            None => true,
        }
    }
}

/// The messages whose provider's id these changes record.
pub(crate) fn provider_ids(changes: &[Change]) -> Vec<(String, MessageRef)> {
    let ids = changes.iter().filter_map(|change| match change {
        Change::Progress(row) => {
            let message = MessageRef { ticket_id: row.ticket_id, id: row.message_id };
            row.provider_message_id.clone().map(|id| (id, message))
        }
        _ => None,
    });
    ids.collect()
}
