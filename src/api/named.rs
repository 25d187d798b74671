//! How records refer to one another: by id and name.

use hotline_actors::Organization;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::{ChannelId, QueueId, UserId, WrapupTypeId, table};
use serde::Serialize;
use utoipa::ToSchema;

/// Another record, by id and name.
#[derive(Debug, Serialize, ToSchema)]
#[allow(missing_docs)]
pub struct Named<I> {
    pub id: I,
    #[schema(example = "Support")]
    pub name: String,
}

impl<I> From<table::Named<I>> for Named<I> {
    fn from(named: table::Named<I>) -> Self {
        Self { id: named.id, name: named.name }
    }
}

/// Ids a body may link a record to at once.
pub const LINKS_MAX: usize = 1000;

/// A channel, by id, name and type.
#[derive(Debug, Serialize, ToSchema)]
#[allow(missing_docs)]
pub struct NamedChannel {
    pub id: ChannelId,
    #[schema(example = "Website")]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ChannelType,
}

/// A queue; none when it is gone.
pub fn queue(organization: &Organization, id: Option<QueueId>) -> Option<Named<QueueId>> {
    let queue = organization.queues.get(&id?)?;
    Some(Named { id: queue.row.id, name: queue.row.name.clone() })
}

/// A user; none when they have left.
pub fn user(organization: &Organization, id: Option<UserId>) -> Option<Named<UserId>> {
    let id = id?;
    Some(Named { id, name: organization.users.get(&id)?.name.clone() })
}

/// A wrap-up type; none when it is gone.
pub fn wrapup_type(organization: &Organization, id: Option<WrapupTypeId>) -> Option<Named<WrapupTypeId>> {
    let id = id?;
    Some(Named { id, name: organization.wrapup_types.get(&id)?.name.clone() })
}

/// A channel.
pub fn channel(organization: &Organization, id: ChannelId) -> Option<NamedChannel> {
    let channel = organization.channels.get(&id)?;
    Some(NamedChannel { id, name: channel.name.clone(), kind: channel.kind })
}
