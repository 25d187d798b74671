//! Tests of the ticket state machine: command by command, and against a model of it.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation fails the test")]

mod content;
pub(crate) mod fixture;
mod messages;
mod model;
mod random;
mod table;
mod update_delivery_status;
mod wrapups;
