//! Channels: the actor through which every conversation of a channel begins, and the way to its provider.

mod early;
mod inbox;
mod inboxes;
mod outbox;
mod provider;
mod sender;

pub(crate) use early::{EARLY_MAX, Early};
pub(crate) use inbox::{Inbox, SEEN_MAX, Turn};
pub(crate) use inboxes::{Inboxes, named};
pub(crate) use outbox::Outboxes;
pub use outbox::{Attempted, SendingFigures, SendingOptions};
pub use provider::{Accepted, Account, Delivery, PROVIDER_ID_BYTES_MAX, Provider, SendFailure};
pub use sender::ChannelSender;
pub(crate) use sender::OpenAnd;
