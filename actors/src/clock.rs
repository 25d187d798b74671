//! The time, as the service tells it.

use chrono::{DateTime, SubsecRound, Utc};

/// Now, in the milliseconds the API shows: what is answered, journaled, stored and read back is the same.
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}
