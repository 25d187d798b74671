//! Businesses: the lines of business to which cards can belong. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::Id;
use crate::table::{Stamps, Table, Unique};

/// The id of a business.
pub type BusinessId = Id<Business>;

/// A line of business.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Business {
    pub id: BusinessId,
    #[schema(example = "Solar panels")]
    pub name: String,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for Business {
    const NAME: &'static str = "businesses";
    const NOUN: &'static str = "business";
    const UNIQUE: &'static [Unique] =
        &[Unique::new("businesses_company_id_name_key", "name"), Unique::by_appearance("businesses_looks", "name")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = BusinessId;
}
