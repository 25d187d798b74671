//! Categories of wrap-up types. Plain: changed by transactions, not by actors.

use actix_web::web::Data;
use hotline_persistence::table;
use hotline_persistence::tables::wrapup_categories::{WrapupCategory, WrapupCategoryId};

use super::plain::{BodyColumns, DeletionBlocker, Plain};
use crate::app::App;
use crate::web::request::values::Name;
use crate::web::{ApiResult, Caller, NoContent, PathId};

impl Plain for WrapupCategory {
    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
    }
}

const TYPES_IN_CATEGORY: DeletionBlocker = DeletionBlocker {
    state: "the category has wrap-up types",
    noun: "wrapupType",
    column: ("wrapup_types", "category_id"),
};

/// `DELETE /wrapup-categories/{categoryId}`: refused while the category has types.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<WrapupCategoryId>) -> ApiResult<NoContent> {
    let db = app.db(caller.company);
    let removed = table::remove::<WrapupCategory>(db, caller.company, id.0).await;
    TYPES_IN_CATEGORY.respond(removed, db, caller.company, id.0).await
}
