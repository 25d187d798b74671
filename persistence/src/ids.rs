//! Typed ids: the compiler refuses the id of one kind of record (a noun) where another's is expected.

use std::any::type_name;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type as SchemaType};

use crate::key::{KEY_CHARACTERS, new_key};
use crate::noun;

/// The id of a noun. `N` is the type of its row, or a type of [`crate::noun`] where rows of several tables refer to it.
#[derive(Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct Id<N>(pub i64, #[serde(skip)] PhantomData<fn() -> N>);

/// A company: the tenant.
pub type CompanyId = Id<noun::Company>;
/// An administrator of the panel.
pub type AdminId = Id<noun::Admin>;
/// An API token.
pub type TokenId = Id<noun::Token>;
/// A permission profile.
pub type ProfileId = Id<noun::Profile>;
/// A person's membership in one company.
pub type UserId = Id<noun::User>;
/// A queue of a company.
pub type QueueId = Id<noun::Queue>;
/// A wrap-up type.
pub type WrapupTypeId = Id<noun::WrapupType>;
/// A channel.
pub type ChannelId = Id<noun::Channel>;
/// A contact.
pub type ContactId = Id<noun::Contact>;
/// A ticket.
pub type TicketId = Id<noun::Ticket>;
/// A message.
pub type MessageId = Id<noun::Message>;
/// An event of a ticket.
pub type EventId = Id<noun::Event>;
/// An event of a company's event log. The ids of one company's events have no gaps.
pub type LoggedEventId = Id<noun::LoggedEvent>;
/// A board.
pub type BoardId = Id<noun::Board>;
/// A stage of a board.
pub type BoardListId = Id<noun::BoardList>;
/// A card.
pub type CardId = Id<noun::Card>;
/// A product.
pub type ProductId = Id<noun::Product>;
/// A scheduled message.
pub type ScheduleId = Id<noun::Schedule>;
/// A campaign: a message to every contact of a list.
pub type CampaignId = Id<noun::Campaign>;

impl<N> Id<N> {
    /// The id with this number.
    pub const fn new(id: i64) -> Self {
        Self(id, PhantomData)
    }

    /// The type's name in the API document and in `Debug`: the noun followed by `Id`.
    fn type_name() -> String {
        let noun = type_name::<N>();
        format!("{}Id", noun.rsplit("::").next().unwrap_or(noun))
    }

    /// The type's description in the API document, such as `The id of a wrapup type.`
    fn description() -> String {
        let name = Self::type_name();
        // Not `U`: it is "a user".
        let article = if name.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" };
        let mut description = format!("The id of {article}");
        for character in name.trim_end_matches("Id").chars() {
            if character.is_ascii_uppercase() {
                description.push(' ');
            }
            description.push(character.to_ascii_lowercase());
        }
        description + "."
    }
}

// Derived implementations would require the same traits of `N`.

impl<N> Clone for Id<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Id<N> {}

impl<N> PartialEq for Id<N> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<N> Eq for Id<N> {}

impl<N> PartialOrd for Id<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<N> Ord for Id<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<N> Hash for Id<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<N> fmt::Debug for Id<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(&Self::type_name()).field(&self.0).finish()
    }
}

impl<N> fmt::Display for Id<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<N> FromStr for Id<N> {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self::new)
    }
}

impl<N> From<i64> for Id<N> {
    fn from(id: i64) -> Self {
        Self::new(id)
    }
}

impl<N> From<Id<N>> for Value {
    fn from(id: Id<N>) -> Self {
        id.0.into()
    }
}

impl<N> Type<Postgres> for Id<N> {
    fn type_info() -> PgTypeInfo {
        <i64 as Type<Postgres>>::type_info()
    }
}

impl<N> PgHasArrayType for Id<N> {
    fn array_type_info() -> PgTypeInfo {
        <i64 as PgHasArrayType>::array_type_info()
    }
}

impl<'q, N> Encode<'q, Postgres> for Id<N> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'q, Postgres>>::encode_by_ref(&self.0, buffer)
    }
}

impl<'r, N> Decode<'r, Postgres> for Id<N> {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        <i64 as Decode<'r, Postgres>>::decode(value).map(Self::new)
    }
}

impl<N> utoipa::PartialSchema for Id<N> {
    #[expect(deprecated, reason = "generators of clients read only `example`")]
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
        let number = ObjectBuilder::new().schema_type(SchemaType::Integer).format(Some(format));
        number.description(Some(Self::description())).example(Some(7.into())).into()
    }
}

impl<N> utoipa::ToSchema for Id<N> {
    fn name() -> Cow<'static, str> {
        Self::type_name().into()
    }
}

/// The id of a visitor session: an unguessable string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema)]
#[schema(example = "ws_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl SessionId {
    /// Prefix of every session id.
    pub const PREFIX: &'static str = "ws_";

    /// A new, unguessable session id.
    pub fn random() -> Self {
        Self(new_key(Self::PREFIX))
    }
}

impl FromStr for SessionId {
    type Err = ();

    /// Accepts every string in the form of a session id. Any other string needs no query: no session has such an id.
    fn from_str(text: &str) -> Result<Self, ()> {
        let random = text.strip_prefix(Self::PREFIX).ok_or(())?;
        let is_valid = random.len() == KEY_CHARACTERS && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_valid { Ok(Self(text.to_owned())) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use utoipa::ToSchema;

    use super::*;

    #[test]
    fn an_id_is_named_after_its_noun_and_serialized_as_a_number() {
        let id = TicketId::new(7);
        assert_eq!(format!("{id:?} {id}"), "TicketId(7) 7");
        assert_eq!(TicketId::name(), "TicketId");
        assert_eq!(serde_json::to_string(&id).expect("JSON"), "7");
        assert_eq!(serde_json::from_str::<TicketId>("7").expect("an id"), id);
        assert_eq!(rmp_serde::to_vec(&id).expect("bytes"), rmp_serde::to_vec(&7_i64).expect("bytes"));
        assert_eq!("7".parse(), Ok(id));
        assert!("7.0".parse::<TicketId>().is_err());
    }
}
