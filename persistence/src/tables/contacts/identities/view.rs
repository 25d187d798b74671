//! The identities of a contact, as the API shows them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use super::IdentityKind;
use crate::tables::channels::ChannelType;
use crate::{ContactId, timestamp};

/// A number or a provider's id by which a contact is or was identified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContactIdentity {
    /// `null` for a number, which all phone channels share.
    pub channel_type: Option<ChannelType>,
    /// The id of the channel whose provider gave the id; `null` for a number.
    #[schema(example = "3")]
    pub scope: Option<String>,
    /// The kind of the identity.
    pub kind: IdentityKind,
    /// The number in digits, or the provider's id.
    #[schema(example = "US.13491208655302741918")]
    pub value: String,
    /// When it was first seen; `null` if that was not recorded.
    #[serde(serialize_with = "serialize_optional")]
    #[schema(value_type = Option<crate::Timestamp>)]
    pub since: Option<DateTime<Utc>>,
    /// When another one replaced it; it still finds the contact. `null` while it is in use.
    #[serde(serialize_with = "serialize_optional")]
    #[schema(value_type = Option<crate::Timestamp>)]
    pub until: Option<DateTime<Utc>>,
}

/// Another contact that is the same person, as a provider says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeSuggestion {
    pub contact_id: ContactId,
    /// The kind of the identity that both have.
    pub kind: IdentityKind,
    /// The number in digits, or the provider's id, that both have.
    #[schema(example = "5511987654321")]
    pub value: String,
    /// When this was first seen.
    #[serde(serialize_with = "timestamp::serialize")]
    #[schema(value_type = crate::Timestamp)]
    pub since: DateTime<Utc>,
}

fn serialize_optional<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => timestamp::serialize(at, serializer),
        None => serializer.serialize_none(),
    }
}
