//! The hash map for look-ups on the path of each request.

use dashmap::DashMap;
use foldhash::fast::RandomState;

/// A map whose keys are ids and hashes that this service generates. Callers cannot choose colliding keys, so a fast
/// hash without protection against collisions is enough.
pub(crate) type IdMap<K, V> = DashMap<K, V, RandomState>;
