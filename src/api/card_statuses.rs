//! Statuses that cards are labelled with. Deleting one removes it from its cards.

use hotline_persistence::tables::card_statuses::CardStatus;
use hotline_persistence::tables::cascades::Cascade;

use super::plain::{BodyColumns, Plain};
use crate::web::request::values::{Color, Name};

impl Plain for CardStatus {
    fn cascade(id: Self::Id) -> Option<Cascade> {
        Some(Cascade::CardStatus(id))
    }

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
        body.nullable::<Color>("color");
    }
}
