//! The visitors' endpoints, as browsers use them: over HTTP and real sockets.
#![allow(clippy::expect_used, clippy::panic)] // A failed expectation must fail the test.

#[path = "../support/mod.rs"]
mod support;

mod availability;
mod breaks;
mod demo;
mod desk;
mod door;
mod ends;
mod files;
mod forgotten;
mod identity;
mod limits;
mod load;
mod modes;
mod origins;
mod pages;
mod pushes;
mod script;
mod takeover;
mod visitor;

use support::process;
