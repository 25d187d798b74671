//! Categories of wrap-up types. Plain.

use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::tables::wrapup_categories::{WrapupCategory, WrapupCategoryId};
use hotline_persistence::tables::wrapup_types;
use hotline_persistence::{Error, table};

use super::plain::{BodyColumns, Plain};
use crate::app::App;
use crate::web::values::Name;
use crate::web::{ApiResult, Caller, NoContent, PathId};

impl Plain for WrapupCategory {
    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
    }
}

/// `DELETE /wrapup-categories/{categoryId}`: refused while it has types.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<WrapupCategoryId>) -> ApiResult<NoContent> {
    let db = app.db(caller.company);
    match table::remove::<WrapupCategory>(db, caller.company, id.0).await {
        Err(Error::InUse) => {
            let types = [("wrapupType", wrapup_types::of_category(db, caller.company, id.0).await?)];
            Err(Refusal::Conflict(Conflict::used_by("the category has wrap-up types", "in_use", types)).into())
        }
        removed => Ok(removed.map(|()| NoContent)?),
    }
}
