//! Users: what they are, how they are found, how they leave, and what they have done.

mod leave;
mod lists;
mod metrics;
mod write;
