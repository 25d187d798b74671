//! Tags: coloured labels for contacts. Plain.

use hotline_persistence::tables::cascades::Cascade;
use hotline_persistence::tables::tags::Tag;

use super::plain::{BodyColumns, Plain};
use crate::web::request::values::{Color, Name};

impl Plain for Tag {
    fn cascade(id: Self::Id) -> Option<Cascade> {
        Some(Cascade::Tag(id))
    }

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
        body.defaulted::<Color>("color");
    }
}
