//! Global variables: texts that messages include by their keys. The directory contains them.

use hotline_persistence::tables::global_variables::GlobalVariable;

use super::plain::{BodyColumns, Plain};
use crate::web::request::values::{NonBlankText, Text, VariableKey};

impl Plain for GlobalVariable {
    const IS_IN_DIRECTORY: bool = true;

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.fixed::<VariableKey>("key");
        body.required::<NonBlankText>("value");
        body.nullable::<Text>("description");
    }
}
