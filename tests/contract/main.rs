//! Tests that the service, its documents and its sources agree with each other.
#![allow(clippy::expect_used, clippy::panic)] // A failed expectation must fail the test.

#[path = "../support/mod.rs"]
mod support;

mod additive;
mod addresses;
mod changes;
mod command_line;
mod commits;
mod docs;
mod document;
mod endpoints;
mod events;
mod fenced;
mod floors;
mod fuzz_bodies;
mod image;
mod migration_rule;
mod migrations;
mod packaged;
mod reasons;
mod references;
mod runbook;
mod schema;
mod statement_limits;
mod statements;
mod tables;
mod type_names;
mod words;
mod written;
