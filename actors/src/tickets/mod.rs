//! Tickets: the state machine, and the actor that owns one.

mod actor;
mod after_send;
mod author;
pub mod command;
pub mod commands;
mod names;
mod opening;
mod published;
pub mod state;
mod written;

pub use actor::{AttachedChanges, Execute, Precondition, Retire, TicketActor};
pub(crate) use actor::{ContactIs, Dismiss, Look, TicketGone, TicketScope};
pub use after_send::AfterSend;
pub use author::Author;
pub use command::{Command, Context, Decided, Knowledge, Needs, apply};
pub(crate) use commands::default_queue;
pub use commands::{
    AddNote, Check, Close, Content, MarkDelivered, MarkRead, MarkSeen, Open, Receive, Release, Reopen, Send, SetMedia,
    SetWrapup, Show, Transfer, UpdateDeliveryStatus,
};
pub(crate) use opening::Opening;
pub use state::{Follows, Heard, LastMessage, Position, Reached, Ticket};
pub use written::Written;
