//! The answers to the load, call by call: one side of every comparison.

use std::time::Duration;

/// What a call requests. Only changes are recorded; reads are compared with the record at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Open,
    Send,
    Say,
    Transfer,
    Close,
    Reopen,
}

/// One call, and its outcome.
#[derive(Clone, Debug)]
pub struct Call {
    pub action: Action,
    /// The index of the conversation.
    pub conversation: usize,
    /// The ticket that was named; openings and visitors name none.
    pub ticket: Option<i64>,
    /// The text, the note or the key of the call: no two calls have the same.
    pub label: String,
    /// Whether the label was sent as an idempotency key.
    pub keyed: bool,
    /// When it started and ended, on one clock that counts calls: a call that ended before another started came first.
    pub started: u64,
    pub ended: u64,
    pub outcome: Outcome,
}

/// What the caller knows about the effect of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A success: the message or ticket it named, and its ticket.
    Acknowledged { id: i64, ticket: i64 },
    /// An error: nothing was changed.
    Refused(u16),
    /// No answer: it happened or did not, but not twice.
    Unknown,
}

impl Call {
    /// Whether the call may be repeated until it is answered, and then has taken effect once.
    pub fn is_repeatable(&self) -> bool {
        self.keyed || self.action == Action::Say
    }

    pub fn is_unknown(&self) -> bool {
        self.outcome == Outcome::Unknown
    }

    /// The id and the ticket of a success.
    pub fn acknowledged(&self) -> Option<(i64, i64)> {
        match self.outcome {
            Outcome::Acknowledged { id, ticket } => Some((id, ticket)),
            Outcome::Refused(_) | Outcome::Unknown => None,
        }
    }
}

/// A person who talks with the company.
#[derive(Clone, Debug)]
pub struct Person {
    pub contact: i64,
    /// The session in the webchat; `None`: on the phone.
    pub session: Option<String>,
}

/// All calls of one load, with their outcomes.
pub struct Record {
    pub people: Vec<Person>,
    pub calls: Vec<Call>,
    /// What contradicted the record while it was made.
    pub contradictions: Vec<String>,
    /// Reads that were answered, and calls that were repeated.
    pub reads: u64,
    pub repeats: u64,
    /// The longest wait for an answer.
    pub slowest: Duration,
}
