//! Typed ids: a ticket's id cannot be passed where a contact's is meant.

use serde::{Deserialize, Serialize};

use crate::key::{KEY_CHARACTERS, new_key};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema)]
        #[serde(transparent)]
        #[sqlx(transparent)]
        #[schema(example = 7)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl From<i64> for $name {
            fn from(id: i64) -> Self {
                Self(id)
            }
        }
    )+};
}

id! {
    /// A company: the tenant.
    CompanyId
    /// An administrator of the panel.
    AdminId
    /// An API token.
    TokenId
    /// A permission profile.
    ProfileId
    /// A person's membership in one company.
    UserId
    /// A queue of a company.
    QueueId
    /// A category of wrap-up types.
    WrapupCategoryId
    /// A wrap-up type.
    WrapupTypeId
    /// A tag.
    TagId
    /// A custom field.
    CustomFieldId
    /// A global variable.
    GlobalVariableId
    /// A quick message.
    QuickMessageId
    /// A channel.
    ChannelId
    /// A contact.
    ContactId
    /// A ticket.
    TicketId
    /// A message.
    MessageId
    /// An event of a ticket.
    EventId
}

/// A webchat session: an unguessable string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema)]
#[schema(example = "ws_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct SessionId(pub String);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl SessionId {
    /// What every session id begins with.
    pub const PREFIX: &'static str = "ws_";

    /// A session id nobody can guess.
    pub fn random() -> Self {
        Self(new_key(Self::PREFIX))
    }
}

impl std::str::FromStr for SessionId {
    type Err = ();

    /// Any text that could be one of ours; what could not need not be looked for.
    fn from_str(text: &str) -> Result<Self, ()> {
        let random = text.strip_prefix(Self::PREFIX).ok_or(())?;
        let is_one = random.len() == KEY_CHARACTERS && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_one { Ok(Self(text.to_owned())) } else { Err(()) }
    }
}
