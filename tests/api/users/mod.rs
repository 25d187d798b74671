//! Users: writing them, lists of them, their deletion, and their metrics.

mod leave;
mod lists;
mod metrics;
mod write;
