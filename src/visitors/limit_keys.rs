//! How many addresses and sessions the limits track, and for how long.

use std::time::Duration;

/// How often addresses with full allowances are removed.
pub(super) const CLEANUP_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of addresses per kind of request, some 64 bytes each. More within [`CLEANUP_INTERVAL`] are a flood, and
/// new ones must wait until others are removed.
pub(super) const KEYS_MAX: usize = 200_000;
