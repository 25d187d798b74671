//! Tickets: the state machine, and the actor that owns one.

mod actor;
mod after_send;
mod author;
pub mod command;
pub mod commands;
mod opening;
mod shown;
pub mod state;
mod written;

pub(crate) use actor::{ContactGone, ContactIs, Look, TicketScope};
pub use actor::{Do, Retire, Rider, TicketActor};
pub use after_send::AfterSend;
pub use author::Author;
pub use command::{Command, Context, Decided, Knowledge, Needs, apply};
pub(crate) use commands::waiting_in;
pub use commands::{
    AddNote, Check, Close, Content, MarkDelivered, MarkRead, MarkSeen, Open, Progress, Receive, Release, Reopen, Send,
    SetMedia, SetWrapup, Show, Transfer,
};
pub(crate) use opening::Opening;
pub use state::{Follows, Heard, LastMessage, Reached, Ticket};
pub use written::Written;
