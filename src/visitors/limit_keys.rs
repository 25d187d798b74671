//! The memory of visitors' limits: how many keys (addresses or sessions) each limit tracks, and for how long.

use std::time::Duration;

/// How often keys with full allowances are removed.
pub(super) const CLEANUP_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of keys of a limit, about 64 bytes each. So many within [`CLEANUP_INTERVAL`] are a flood: until the
/// next clean-up, every request that counts against the limit is refused.
pub(super) const KEYS_MAX: usize = 200_000;
