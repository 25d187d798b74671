//! Quick messages: texts that agents insert by a shortcut. Plain.

use hotline_persistence::tables::quick_messages::QuickMessage;

use super::plain::{BodyColumns, Plain};
use crate::web::request::values::{NonBlankText, Shortcut};

impl Plain for QuickMessage {
    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Shortcut>("shortcut");
        body.required::<NonBlankText>("message");
    }
}
