//! Tickets: the state machine, and the actor that owns one.

mod actor;
pub mod command;
pub mod commands;
pub mod state;

pub(crate) use actor::{ContactGone, ContactIs};
pub use actor::{Do, Retire, Rider, TicketActor};
pub use command::{Author, Command, Context, Decided, apply};
pub use commands::{
    AddNote, AfterSend, Close, MarkDelivered, MarkRead, MarkSeen, Open, Receive, Release, Reopen, Send, SetWrapup,
    Show, Transfer,
};
pub use state::{LastMessage, Reached, Ticket};
