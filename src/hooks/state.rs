//! What the calls share.

use super::downloads::Downloads;
use super::guard::Guard;
use super::seats::Seats;

/// What the calls share.
pub struct Hooks {
    pub(super) guard: Guard,
    pub(super) seats: Seats,
    /// Files that are fetched from the providers.
    pub downloads: Downloads,
}

impl Hooks {
    /// With files fetched so.
    pub fn new(downloads: Downloads) -> Self {
        Self { guard: Guard::default(), seats: Seats::default(), downloads }
    }
}
