//! Categories of wrap-up types. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::Id;
use crate::table::{Stamps, Table, Unique};

/// The id of a category.
pub type WrapupCategoryId = Id<WrapupCategory>;

/// A category of wrap-up types.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrapupCategory {
    pub id: WrapupCategoryId,
    #[schema(example = "Outcome")]
    pub name: String,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for WrapupCategory {
    const NAME: &'static str = "wrapup_categories";
    const NOUN: &'static str = "wrap-up category";
    const UNIQUE: &'static [Unique] = &[
        Unique::new("wrapup_categories_company_id_name_key", "name"),
        Unique::by_appearance("wrapup_categories_looks", "name"),
    ];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = WrapupCategoryId;
}
