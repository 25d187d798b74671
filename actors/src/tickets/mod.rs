//! Tickets: the state machine, and the actor that owns one.

mod actor;
mod after_send;
mod author;
mod cached_answer;
pub mod command;
pub mod commands;
mod opening;
mod references;
mod snapshot;
pub mod state;

pub use actor::{AttachedChanges, Execute, Precondition, Retire, TicketActor};
pub(crate) use actor::{ContactChanged, Dismiss, ReadTicket, TicketDeleted, TicketScope};
pub use after_send::AfterSend;
pub use author::Author;
pub use cached_answer::Written;
pub use command::{Command, ContactFacts, Context, Decided, RequiredFacts, apply};
pub(crate) use commands::default_queue;
pub use commands::{
    AddNote, Check, Close, Content, MarkDelivered, MarkRead, MarkSeen, Open, Receive, Release, Reopen, Send, SetMedia,
    SetWrapup, Show, Transfer, UpdateDeliveryStatus,
};
pub(crate) use opening::Opening;
pub use state::{FollowUp, Heard, LastMessage, Position, Reached, Ticket};
