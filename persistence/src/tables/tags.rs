//! Tags: coloured labels on contacts. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::Id;
use crate::table::{Stamps, Table, Unique};

/// The id of a tag.
pub type TagId = Id<Tag>;

/// A coloured label for contacts.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tag {
    pub id: TagId,
    #[schema(example = "VIP")]
    pub name: String,
    #[schema(example = "#64748b")]
    pub color: String,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for Tag {
    const NAME: &'static str = "tags";
    const NOUN: &'static str = "tag";
    const UNIQUE: &'static [Unique] =
        &[Unique::new("tags_company_id_name_key", "name"), Unique::by_appearance("tags_looks", "name")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = TagId;
}
