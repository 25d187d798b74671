//! Channels: the outboxes to their providers, and the inboxes of what the providers deliver.

mod early;
mod in_transit;
mod inbox;
mod inboxes;
mod outbox;
mod provider;
mod withdrawals;

pub(crate) use early::{EARLY_MAX, Early};
pub(crate) use in_transit::{InTransit, TransitEnded};
pub(crate) use inbox::{Inbox, MessageLock, SEEN_MAX};
pub(crate) use inboxes::{Inboxes, named};
pub use outbox::{Attempted, ChannelSender, SendingFigures, SendingOptions};
pub(crate) use outbox::{DecidesStatuses, Outboxes};
pub use provider::{Accepted, Account, Delivery, PROVIDER_ID_BYTES_MAX, Provider, SendFailure};
#[cfg(test)]
pub(crate) use withdrawals::Withdrawals;
pub(crate) use withdrawals::{CHECKS_MAX, WithdrawalVersion};
