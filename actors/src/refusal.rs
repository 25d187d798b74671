//! Reasons why a command was refused. A refused command changes nothing.

use chrono::{DateTime, Utc};
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::messages::MessageError;
use hotline_persistence::{ContactId, Error, TicketId};
use serde_json::Value;

/// A field whose value was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The path of the field in the request's body.
    pub field: String,
    /// The reason, as a phrase that follows the field's name in a sentence.
    pub reason: String,
}

/// The reason for a conflict.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The state that causes the conflict, in words for people.
    pub state: &'static str,
    /// The same state, as a code for programs.
    pub reason: &'static str,
    /// The record: the name of its id field, and its id.
    pub record: Option<(&'static str, Value)>,
    /// The number of records that refer to it, by kind.
    pub references: Vec<(&'static str, i64)>,
}

impl Conflict {
    /// A conflict because a record, named by its id field, is in a state that forbids the change.
    pub fn of(state: &'static str, reason: &'static str, field: &'static str, id: impl Into<Value>) -> Self {
        Self { state, reason, record: Some((field, id.into())), references: Vec::new() }
    }

    /// A conflict because of other records: they refer to the record, or are as many as is allowed. `references` has
    /// their number by kind.
    pub fn used_by(
        state: &'static str,
        reason: &'static str,
        references: impl IntoIterator<Item = (&'static str, i64)>,
    ) -> Self {
        let references = references.into_iter().filter(|(_, count)| *count > 0).collect();
        Self { state, reason, record: None, references }
    }
}

/// Why a contact cannot receive on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// It is a phone channel, and they have no number.
    NoNumber,
    /// The message is a one-time code, which the provider sends to numbers only (its error 131062).
    NoNumberForCode,
    /// It is a social channel, and they never wrote on it.
    NoConversation,
    /// It is a webchat, and they never opened a session in it.
    NoSession,
}

impl Unreachable {
    /// The reason as a code, for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoNumber => "no_number",
            Self::NoNumberForCode => "no_number_for_code",
            Self::NoConversation => "no_conversation",
            Self::NoSession => "no_session",
        }
    }

    /// The reason in words, for people.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::NoNumber => "they have no phone number",
            Self::NoNumberForCode => "they hide their phone number, and one-time codes are sent to phone numbers only",
            Self::NoConversation => "they have never sent a message on it",
            Self::NoSession => "they have never opened a session in this webchat",
        }
    }
}

impl From<ChannelType> for Unreachable {
    fn from(kind: ChannelType) -> Self {
        match kind {
            ChannelType::Whatsapp => Self::NoNumber,
            ChannelType::Messenger | ChannelType::Instagram => Self::NoConversation,
            ChannelType::Webchat => Self::NoSession,
        }
    }
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The record, or one that it refers to, does not exist in this company.
    #[error("record not found")]
    NotFound,
    /// A value is rejected.
    #[error("invalid value")]
    Invalid(Vec<FieldError>),
    /// The ticket is closed, and the command may not act on a closed one.
    #[error("ticket {0} is closed")]
    TicketClosed(TicketId),
    /// The contact already has an open ticket on this channel.
    #[error("the contact has an open ticket on this channel")]
    AlreadyOpen(TicketId),
    /// The record is not in the state that the caller expects.
    #[error("the record has been changed")]
    Changed,
    /// The record's state forbids the change.
    #[error("{}", .0.state)]
    Conflict(Conflict),
    /// The contact cannot receive on this channel.
    #[error("the contact cannot receive on this channel: {}", .0.in_words())]
    ContactUnreachable(Unreachable),
    /// The contact has not written on this phone channel lately: only a template may be sent. The time is when the
    /// window closed, if known.
    #[error("the conversation window is closed")]
    WindowClosed(Option<DateTime<Utc>>),
    /// The channel cannot show this interactive object.
    #[error("invalid interactive")]
    InteractiveInvalid(Vec<FieldError>),
    /// No contact with this id in the company.
    #[error("contact not found")]
    ContactNotFound,
    /// The contact is being deleted or merged, or has changed since it was read: the command is to be retried.
    #[error("the contact is being deleted")]
    ContactChanging(ContactId),
    /// The facts that the command's caller has checked have changed since: the command is to be retried with a new
    /// check.
    #[error("the underlying data has changed")]
    Outdated,
    /// The change cannot be made durable, or the database is needed and unavailable.
    #[error("{0}")]
    Unavailable(String),
    /// It is unknown whether the change was made.
    #[error("{0}")]
    Unknown(String),
    /// This actor has retired; the command is to be sent to its successor.
    #[error("the actor has retired")]
    Retired,
    /// The command hit a defect. The actor is rebuilt from its last durable state.
    #[error("the command failed with an internal error")]
    Defect(String),
}

impl Refusal {
    /// Whether the refusal reveals a record's state, which must then be durable before the caller sees it.
    pub(crate) fn reveals_state(&self) -> bool {
        matches!(self, Self::TicketClosed(_) | Self::AlreadyOpen(_) | Self::Conflict(_))
    }

    /// Whether it is certain that nothing was or will be changed. Otherwise the change may have reached the log before
    /// the refusal occurred.
    pub fn changed_nothing(&self) -> bool {
        !matches!(self, Self::Unavailable(_) | Self::Unknown(_) | Self::Retired | Self::Defect(_))
    }

    /// Whether the refusal is temporary, so that the command should be retried.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Unknown(_) | Self::Retired | Self::ContactChanging(_) | Self::Outdated
        )
    }

    /// The error of a message that no caller waits for, in the terms of `POST /messages`; `not_found` describes the
    /// missing record.
    pub(crate) fn to_message_error(&self, not_found: &str) -> MessageError {
        let (code, message) = match self {
            Self::ContactNotFound => ("ERR_API_CONTACT_NOT_FOUND", "the contact was deleted".to_owned()),
            Self::NotFound => ("ERR_API_NOT_FOUND", not_found.to_owned()),
            Self::ContactUnreachable(_) => ("ERR_API_CONTACT_UNREACHABLE", self.to_string()),
            Self::WindowClosed(_) => ("ERR_API_WINDOW_CLOSED", self.to_string()),
            Self::Invalid(fields) => {
                let errors = fields.iter().map(|error| format!("{} {}", error.field, error.reason));
                ("ERR_API_VALIDATION", errors.collect::<Vec<_>>().join("; "))
            }
            Self::Changed | Self::Conflict(_) | Self::TicketClosed(_) | Self::AlreadyOpen(_) => {
                ("ERR_API_CONFLICT", self.to_string())
            }
            Self::InteractiveInvalid(_) => ("ERR_API_INTERACTIVE_INVALID", self.to_string()),
            Self::Defect(_)
            | Self::Unavailable(_)
            | Self::Unknown(_)
            | Self::Retired
            | Self::ContactChanging(_)
            | Self::Outdated => ("ERR_API_INTERNAL", "internal error".to_owned()),
        };
        MessageError { code: code.to_owned(), message }
    }

    /// A refusal of one field.
    pub fn invalid(field: &str, reason: &str) -> Self {
        Self::Invalid(vec![FieldError { field: field.to_owned(), reason: reason.to_owned() }])
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(_) => Self::NotFound,
            Error::Changed => Self::Changed,
            Error::Unavailable(reason) => Self::Unavailable(reason),
            Error::Unknown(reason) => Self::Unknown(reason),
            // The log reports the missing key to the operator; the caller can do nothing about it.
            Error::Key(error) if error.missing_key().is_some() => {
                let state = "the key that encrypts the credentials is missing; the operator can restore or abandon it";
                Self::Conflict(Conflict { state, reason: "key_missing", record: None, references: Vec::new() })
            }
            // The caller should retry: another process serves the company, or this one is about to end.
            Error::Elsewhere | Error::NotOwner => Self::Unavailable(error.to_string()),
            other => Self::Defect(other.to_string()),
        }
    }
}
