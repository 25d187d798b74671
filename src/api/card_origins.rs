//! Origins: where cards come from. Plain: one that goes leaves its cards without one.

use hotline_persistence::tables::card_origins::CardOrigin;

use super::plain::{BodyColumns, Plain};
use crate::web::values::Name;

impl Plain for CardOrigin {
    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
    }
}
