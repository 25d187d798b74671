//! Card origins: where cards come from. Deleting one removes it from its cards.

use hotline_persistence::tables::card_origins::CardOrigin;
use hotline_persistence::tables::cascades::Cascade;

use super::plain::{BodyColumns, Plain};
use crate::web::request::values::Name;

impl Plain for CardOrigin {
    fn cascade(id: Self::Id) -> Option<Cascade> {
        Some(Cascade::CardOrigin(id))
    }

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
    }
}
