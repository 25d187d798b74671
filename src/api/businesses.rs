//! Businesses: the lines of business that cards are for. Deleting one removes it from its cards.

use hotline_persistence::tables::businesses::Business;
use hotline_persistence::tables::cascades::Cascade;

use super::plain::{BodyColumns, Plain};
use crate::web::request::values::Name;

impl Plain for Business {
    fn cascade(id: Self::Id) -> Option<Cascade> {
        Some(Cascade::Business(id))
    }

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
    }
}
