//! What others build on: each service is one area of the conversations, over the actors of their tickets.

mod assignment;
mod contacts;
mod inbound;
mod merged_tickets;
mod sending;
mod tickets;

pub use assignment::Assignment;
pub use contacts::{ContactChanges, Contacts};
pub use inbound::{
    ChangedSender, EchoMessage, Echoed, Inbound, InboundMessage, MessageRevision, Notice, Number, Revised, Sender,
};
pub use sending::{NewContact, Recipient, Sending, Target};
pub use tickets::Tickets;
