//! Hotline's live half: every conversation is an actor that alone changes its state.
//!
//! - [`tickets::TicketActor`], one per hot ticket: the state machine and the order of its messages.
//! - [`channels::ChannelSender`], one per channel with a provider: its outbox, its pace, and the hand-over.
//! - [`schedules::ScheduleDispatcher`], one per company that has scheduled messages: whether one leaves or is changed.
//! - [`campaigns::CampaignRunner`], one per campaign that is sent, or will be: which recipient is next, and when.
//! - [`webchat::VisitorSession`], one per active visitor: the order of what the visitor says, and the session's end.
//!
//! [`Engine`] is the way in: its parts start actors on demand from the tables, and retire idle ones. Tickets are opened
//! under their contact's slot ([`conversations`]), so that nobody has two open ones on a channel. This crate knows no
//! HTTP.

pub mod answers;
mod base;
pub mod campaigns;
pub mod channels;
pub mod clock;
pub mod contacts;
pub mod conversations;
pub mod directory;
mod distribution;
pub mod engine;
pub mod keyed_locks;
mod map;
mod overview;
pub mod reads;
pub mod refusal;
pub mod registry;
pub mod schedules;
pub mod seen;
pub mod sweep;
pub mod tickets;
pub mod ttl_cache;
pub mod variables;
pub mod webchat;

pub use base::EngineOptions;
pub use directory::{Directory, Organization, Removal};
pub use engine::Engine;
pub use refusal::{Conflict, FieldError, Refusal, Unreachable};
