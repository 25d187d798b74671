//! The actors of Hotline: every conversation is an actor, and only that actor changes its state.
//!
//! - [`ticket_actor::TicketActor`], one per hot ticket: the state machine and the order of its messages.
//! - [`channels::ChannelSender`], one per channel with a provider: its outbox, rate limit, and calls to the provider.
//! - [`schedules::ScheduleDispatcher`], one per company with scheduled messages: serializes sending and editing them.
//! - [`campaigns::CampaignRunner`], one per campaign that is running or scheduled: which recipient is next, and when.
//! - [`webchat::VisitorSession`], one per active visitor: the order of the visitor's messages, and the session's end.
//!
//! [`Engine`] is the entry point: it starts actors on demand from the tables, and retires idle ones. Tickets are
//! opened under their contact's slot ([`conversations`]), so that a contact never has two open tickets on a channel.
//! This crate does not depend on HTTP.

#![warn(missing_docs)]

pub mod answers;
pub mod attendance;
mod base;
pub mod campaigns;
pub mod channels;
pub mod contacts;
pub mod conversations;
pub mod directory;
mod distribution;
pub mod engine;
mod id_map;
pub mod keyed_locks;
mod overview;
pub mod reads;
pub mod refusal;
pub mod registry;
pub mod schedules;
pub mod seen;
pub mod services;
#[cfg(test)]
mod test_rows;
pub mod ticket_actor;
pub mod tickets;
pub mod ttl_cache;
pub mod variables;
pub mod webchat;

pub use base::EngineOptions;
pub use directory::{Directory, Organization, Removal};
pub use engine::Engine;
pub use hotline_persistence::clock;
pub use refusal::{Conflict, FieldError, Refusal, Unreachable};
