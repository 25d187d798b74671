//! Card origins: where cards come from. Plain; deleting one clears it on its cards.

use hotline_persistence::tables::card_origins::CardOrigin;

use super::plain::{BodyColumns, Plain};
use crate::web::values::Name;

impl Plain for CardOrigin {
    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
    }
}
