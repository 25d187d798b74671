//! Categories of products. Plain; deleting one leaves its products without a category.

use hotline_persistence::tables::cascades::Cascade;
use hotline_persistence::tables::product_categories::ProductCategory;

use super::plain::{BodyColumns, Plain};
use crate::web::request::values::{Name, Text};

impl Plain for ProductCategory {
    fn cascade(id: Self::Id) -> Option<Cascade> {
        Some(Cascade::ProductCategory(id))
    }

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
        body.nullable::<Text>("description");
    }
}
