//! What the edge of a cluster does with requests whose companies others serve.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted at the edge.
#[derive(Debug, Default)]
pub struct ClusterFigures {
    forwarded: AtomicU64,
    taken: AtomicU64,
    sent_again: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
    cut: AtomicU64,
}

macro_rules! count {
    ($($(#[$doc:meta])* $name:ident, $all:ident;)*) => {
        impl ClusterFigures {$(
            $(#[$doc])*
            pub fn $name(&self) {
                self.$name.fetch_add(1, Ordering::Relaxed);
            }

            /// How many so far.
            pub fn $all(&self) -> u64 {
                self.$name.load(Ordering::Relaxed)
            }
        )*}
    };
}

count! {
    /// A request is handed to another process.
    forwarded, all_forwarded;
    /// One comes from another process.
    taken, all_taken;
    /// One is handed on again, since nobody knows what became of it and it may be.
    sent_again, all_sent_again;
    /// One waits for somebody to serve its company.
    waited, all_waited;
    /// One is told to come again: nobody serves its company, or the lease is over.
    refused, all_refused;
    /// The connection of one is cut, since nobody knows what became of it.
    cut, all_cut;
}
