//! Statuses that cards are labelled with. Plain: one that goes leaves its cards without one.

use hotline_persistence::tables::card_statuses::CardStatus;

use super::plain::{BodyColumns, Plain};
use crate::web::values::{Color, Name};

impl Plain for CardStatus {
    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
        body.nullable::<Color>("color");
    }
}
