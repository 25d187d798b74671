//! The service's clock.

use chrono::{DateTime, SubsecRound, Utc};

/// The current time in milliseconds, the resolution of the API: a time is the same in answers, the journal and the
/// tables.
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}
