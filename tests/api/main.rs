//! Tests of the API over HTTP: on the service that tests share, or on one of their own in this process.
#![allow(clippy::expect_used, clippy::panic)] // A failed expectation must fail the test.

#[path = "../support/mod.rs"]
mod support;

mod alike;
mod bad_input;
mod by_time;
mod campaigns;
mod channels;
mod check_list;
mod concurrency;
mod contact_lists;
mod contacts;
mod cursors;
mod custom_fields;
mod directory;
mod erasures;
mod events;
mod front_door;
mod global_variables;
mod hooks;
mod idempotency;
mod idle;
mod if_match;
mod media;
mod members;
mod merges;
mod messages;
mod metrics;
mod model;
mod neighbours;
mod organization;
mod organization_changes;
mod outbox;
mod owned;
mod panel;
mod panics;
mod plain;
mod profiles;
mod queues;
mod quick_messages;
mod reports;
mod retention;
mod routing;
mod sales;
mod schedules;
mod settled;
mod skewed;
mod steps;
mod tags;
mod tickets;
mod users;
mod webchat;
mod webhooks;
mod wire;
mod wrapup_types;
