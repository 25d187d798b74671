//! Categories of products. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::Id;
use crate::table::{Stamps, Table, Unique};

/// The id of a category.
pub type ProductCategoryId = Id<ProductCategory>;

/// A category of products.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductCategory {
    pub id: ProductCategoryId,
    #[schema(example = "Services")]
    pub name: String,
    /// Description.
    #[schema(example = "What we do by the hour")]
    pub description: Option<String>,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for ProductCategory {
    const NAME: &'static str = "product_categories";
    const NOUN: &'static str = "product category";
    const UNIQUE: &'static [Unique] = &[
        Unique::new("product_categories_company_id_name_key", "name"),
        Unique::by_appearance("product_categories_looks", "name"),
    ];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = ProductCategoryId;
}
