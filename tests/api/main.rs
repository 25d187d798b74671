//! The API, over HTTP, on a service in this process.
#![allow(clippy::expect_used, clippy::panic, missing_docs)] // A test that meets the unexpected fails loudly.

#[path = "../support/mod.rs"]
mod support;

mod bad_input;
mod channels;
mod check_list;
mod concurrency;
mod contacts;
mod front_door;
mod idle;
mod messages;
mod model;
mod panics;
mod steps;
mod tickets;
mod webchat;
