//! The services that the engine and the API build on. Each covers one aspect of conversations, and sends commands to
//! the actors of tickets.

mod assignment;
mod contacts;
mod inbound;
mod merged_tickets;
mod sending;
mod target;
mod ticket_lists;
mod tickets;
mod warming;

pub use assignment::Assignment;
pub use contacts::{ContactChanges, Contacts};
pub use inbound::{
    ChangedSender, EchoMessage, EchoOutcome, Inbound, InboundMessage, MessageRevision, Notice, Number, Revised, Sender,
};
pub use sending::Sending;
pub use target::{NewContact, Recipient, Target};
pub use tickets::Tickets;
