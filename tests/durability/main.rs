//! What was answered is kept: killed processes, stopped databases, full and damaged journals.

#[path = "../support/mod.rs"]
mod support;

mod clean_stop;
mod command_line;
mod journal_full;
mod kill;
mod load;
mod modes;
mod outage;
mod process;
mod refused_rows;
