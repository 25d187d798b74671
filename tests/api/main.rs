//! The API, over HTTP, on a service in this process.

#[path = "../support/mod.rs"]
mod support;

mod concurrency;
mod front_door;
mod model;
#[cfg(feature = "failpoints")]
mod panics;
