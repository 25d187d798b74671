//! Channels: the outboxes to their providers, and the inboxes of the providers' messages.

mod channel_key;
mod early_statuses;
mod in_transit;
mod inbox;
mod inboxes;
mod named_messages;
mod outbox;
mod own_sends;
mod provider;
mod withdrawals;

use channel_key::ChannelKey;
pub(crate) use early_statuses::{EARLY_STATUSES_MAX, EarlyStatusIndex, TableRoom, parts_key, text_key};
pub(crate) use in_transit::{InTransit, TransitEnded};
pub(crate) use inbox::{Inbox, MessageLock, RECEIVED_IDS_MAX};
pub(crate) use inboxes::{Inboxes, provider_ids};
pub(crate) use named_messages::NamedSend;
pub use outbox::{AttemptCount, ChannelSender, SendingOptions, SendingStats};
pub(crate) use outbox::{Outboxes, StatusDecider};
pub(crate) use own_sends::SentPart;
pub use provider::{Accepted, Account, Delivery, PROVIDER_ID_BYTES_MAX, Provider, SendFailure};
#[cfg(test)]
pub(crate) use withdrawals::Withdrawals;
pub(crate) use withdrawals::{CHECKS_MAX, WithdrawalVersion};
