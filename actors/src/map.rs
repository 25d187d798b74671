//! The map of everything that is looked up for each request.

use dashmap::DashMap;
use foldhash::fast::RandomState;

/// A map by ids and hashes this service made itself. Nobody outside can choose them so that they fall into one place,
/// which is what a slower hash would be against.
pub(crate) type IdMap<K, V> = DashMap<K, V, RandomState>;
