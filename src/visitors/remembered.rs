//! How many addresses and sessions are remembered for what they have used, and how long.

use std::time::Duration;

/// How often addresses are forgotten that have all of their minute left.
pub(super) const FORGET_EVERY: Duration = Duration::from_secs(10);

/// Addresses that are remembered of each kind of request, some 64 bytes each. More within [`FORGET_EVERY`] is no
/// crowd but a flood, and new ones wait until some are forgotten.
pub(super) const KEYS_MAX: usize = 200_000;
