//! The public id of a job.

use std::str::FromStr;

use hotline_persistence::MessageId;
use serde_json::{Value, json};

use crate::web::request::params::PathValue;

/// A job's public id: a prefix and the id of its first message. So a job needs no table of its own, and exists as long
/// as its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId(pub MessageId);

/// The prefix of every job id.
const JOB_PREFIX: &str = "job_";

impl FromStr for JobId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix(JOB_PREFIX).ok_or(())?;
        let id = digits.parse().map_err(|_| ())?;
        // Only the canonical spelling is accepted.
        if format!("{id}") == digits { Ok(Self(MessageId::new(id))) } else { Err(()) }
    }
}

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{JOB_PREFIX}{}", self.0)
    }
}

impl PathValue for JobId {
    fn schema() -> Value {
        json!({"type": "string", "example": "job_7"})
    }
}
