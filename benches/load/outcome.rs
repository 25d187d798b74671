//! How a run ends.

/// Why a run ends without figures.
pub type Failure = Box<dyn std::error::Error>;
pub type Outcome<T> = Result<T, Failure>;
