//! A retry is safe: whatever the moment of a crash or an outage, what was asked for under a key happens once.

mod crash;
mod emails;
mod outage;
