//! Products with their prices. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use super::product_categories::ProductCategoryId;
use crate::table::{Named, Stamps, Table, Unique};
use crate::{Amount, ProductId};

/// A product.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    pub id: ProductId,
    #[schema(example = "Solar panel 400 W")]
    pub name: String,
    /// Stock keeping unit, unique in the company.
    #[schema(example = "SP-400")]
    pub sku: Option<String>,
    #[schema(example = "With a frame")]
    pub description: Option<String>,
    /// Price per unit in the company's currency. Cards can override it.
    pub price: Amount,
    #[schema(example = true)]
    pub active: bool,
    /// The category.
    #[sqlx(json(nullable))]
    pub category: Option<Named<ProductCategoryId>>,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for Product {
    const NAME: &'static str = "products";
    const NOUN: &'static str = "product";
    const COLUMNS: &'static str = "products.*,
        (select jsonb_build_object('id', c.id, 'name', c.name) from product_categories c
            where c.company_id = products.company_id and c.id = products.category_id) as category";
    const UNIQUE: &'static [Unique] =
        &[Unique::new("products_company_id_sku_key", "sku"), Unique::by_appearance("products_looks", "sku")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name || E'\\n' || coalesce(sku, ''))"];
    type Id = ProductId;
}
