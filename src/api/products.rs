//! Products. Plain; the lines of cards keep the name and price of a deleted product.

use hotline_persistence::tables::cascades::Cascade;
use hotline_persistence::tables::product_categories::{ProductCategory, ProductCategoryId};
use hotline_persistence::tables::products::Product;

use super::plain::{BodyColumns, Filters, Plain};
use crate::web::request::amounts::Price;
use crate::web::request::values::{Name, Text};

impl Plain for Product {
    fn cascade(id: Self::Id) -> Option<Cascade> {
        Some(Cascade::Product(id))
    }

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
        body.nullable::<Name>("sku");
        body.nullable::<Text>("description");
        body.defaulted::<Price>("price");
        body.defaulted::<bool>("active");
        body.nullable::<ProductCategoryId>("categoryId");
    }

    fn filters(list: &mut Filters<'_>) {
        list.refers::<ProductCategory>("categoryId");
        list.equals::<bool>("active");
    }
}
