//! Tickets: the state, and how a command changes it. Nothing here depends on actors or does I/O.

mod after_send;
mod author;
pub mod command;
pub mod commands;
mod follow_ups;
mod references;
pub mod state;

pub use after_send::AfterSend;
pub use author::Author;
pub use command::{AttachedChanges, Command, Context, Decided, Execute, Precondition, apply};
pub(crate) use commands::default_queue;
pub use commands::{
    AddNote, AddNotice, Close, CloseErased, Content, FailText, InteractiveCheck, MarkDelivered, MarkRead, MarkSeen,
    Open, React, Receive, ReceiveEcho, Release, Reopen, Revise, Send, SetMedia, SetWrapup, Show, Transfer,
    UpdateDeliveryStatus, check_parameter_text,
};
pub use follow_ups::{FollowUp, FollowUps};
pub use state::{LastMessage, Position, ReceiptPositions, Ticket};

pub use crate::contacts::{ContactFacts, LastInbound, RequiredFacts};
