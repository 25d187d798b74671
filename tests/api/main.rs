//! The API, over HTTP, on a service in this process.

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
