//! Wrap-up types: the result of a ticket, recorded when it is closed. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use super::wrapup_categories::WrapupCategoryId;
use crate::table::{Links, Named, Stamps, Table, Unique};
use crate::{QueueId, WrapupTypeId, noun};

/// A wrap-up type: how a conversation ended.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrapupType {
    pub id: WrapupTypeId,
    #[schema(example = "Solved")]
    pub name: String,
    #[schema(example = true)]
    pub active: bool,
    pub category_id: WrapupCategoryId,
    /// The queues where it can be used.
    #[sqlx(json)]
    pub queues: Vec<Named<QueueId>>,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for WrapupType {
    const NAME: &'static str = "wrapup_types";
    const NOUN: &'static str = "wrap-up type";
    const COLUMNS: &'static str = "wrapup_types.*,
        coalesce((select jsonb_agg(jsonb_build_object('id', q.id, 'name', q.name) order by q.id)
            from wrapup_type_queues l join queues q on q.company_id = l.company_id and q.id = l.queue_id
            where l.company_id = wrapup_types.company_id and l.wrapup_type_id = wrapup_types.id), '[]') as queues";
    const UNIQUE: &'static [Unique] =
        &[Unique::new("wrapup_types_company_id_name_key", "name"), Unique::by_appearance("wrapup_types_looks", "name")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = WrapupTypeId;
}

/// The start of a subquery `exists (… = <the queue's id>)`, which is true when the type is linked to the queue.
pub const LINKED_TO: &str = "select from wrapup_type_queues l where l.company_id = wrapup_types.company_id
    and l.wrapup_type_id = wrapup_types.id and l.queue_id";

/// The queues of a wrap-up type.
pub const QUEUES: Links<noun::WrapupType, noun::Queue> = Links::new("wrapup_type_queues", "wrapup_type_id", "queue_id");
