//! What was answered is kept: killed processes, stopped databases, full and damaged journals.
#![allow(clippy::expect_used, clippy::panic)] // A failed expectation must fail the test.

#[path = "../support/mod.rs"]
mod support;

mod backup;
mod baseline;
mod campaigns;
mod cascades;
mod clean_stop;
mod cluster;
mod command_line;
mod database;
mod doctor;
mod doors;
mod events;
mod histories;
mod hooks;
mod idempotency;
mod journal_full;
mod kill;
mod lifecycle;
mod load;
mod logs;
mod media;
mod merged;
mod merges;
mod metrics;
mod migrations;
mod modes;
mod older_database;
mod open_files;
mod outage;
mod outbox;
mod private_postgres;
mod proxies;
mod refused_rows;
mod retention;
mod root;
mod rows;
mod schedules;
mod spans;
mod states;
mod stoppable_service;
mod unread;
mod webhooks;

use support::process;
