//! References to other records in responses: id and name.

use hotline_actors::Organization;
use hotline_persistence::table::Named;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::{ChannelId, QueueId, TokenId, UserId, WrapupTypeId};
use serde::Serialize;
use utoipa::ToSchema;

/// Maximum number of records that a request may link at once.
pub const LINKS_MAX: usize = 1000;

/// A reference to a record of the directory; serialized like [`Named`].
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NamedRef<'a, I> {
    id: I,
    name: &'a str,
}

impl<I> From<NamedRef<'_, I>> for Named<I> {
    fn from(named: NamedRef<'_, I>) -> Self {
        Self { id: named.id, name: named.name.to_owned() }
    }
}

/// A channel, by id, name and type.
#[derive(Debug, Serialize, ToSchema)]
pub struct NamedChannel<'a> {
    pub id: ChannelId,
    #[schema(example = "Website")]
    pub name: &'a str,
    #[serde(rename = "type")]
    pub kind: ChannelType,
}

/// The reference to a queue; `None` when it was deleted.
pub fn queue(organization: &Organization, id: Option<QueueId>) -> Option<NamedRef<'_, QueueId>> {
    let queue = organization.queues.get(&id?)?;
    Some(NamedRef { id: queue.row.id, name: &queue.row.name })
}

/// The reference to a user, even to a removed one; `None` when the directory has no such user.
pub fn user(organization: &Organization, id: Option<UserId>) -> Option<NamedRef<'_, UserId>> {
    let id = id?;
    Some(NamedRef { id, name: organization.user_name(id)? })
}

/// The reference to an integration's token; `None` when the directory has no such token.
pub fn integration(organization: &Organization, id: Option<TokenId>) -> Option<Named<TokenId>> {
    let id = id?;
    let token = organization.tokens.iter().find(|token| token.id == id)?;
    Some(Named { id, name: token.name.clone() })
}

/// The reference to a wrap-up type; `None` when it was deleted.
pub fn wrapup_type(organization: &Organization, id: Option<WrapupTypeId>) -> Option<NamedRef<'_, WrapupTypeId>> {
    let id = id?;
    Some(NamedRef { id, name: &organization.wrapup_types.get(&id)?.name })
}

/// The reference to a channel; `None` when the directory has no such channel.
pub fn channel(organization: &Organization, id: ChannelId) -> Option<NamedChannel<'_>> {
    let channel = organization.channels.get(&id)?;
    Some(NamedChannel { id, name: &channel.name, kind: channel.kind })
}
