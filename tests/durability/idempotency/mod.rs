//! A retry is safe: whatever the moment of a crash or an outage, a request with a key takes effect once.

mod crash;
mod emails;
mod outage;
