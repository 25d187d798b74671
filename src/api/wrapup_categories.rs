//! Categories of wrap-up types. Plain.

use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::tables::wrapup_categories::{self, WrapupCategoryFilter, WrapupCategoryRow};
use hotline_persistence::tables::wrapup_types;
use hotline_persistence::{Error, WrapupCategoryId, table};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::values::{Name, Search};
use crate::web::{
    Answer, Body, Caller, Created, Done, Fields, Filter, Input, Listed, Once, Params, PathId, Query, Shown, Timestamp,
};

/// A group of wrap-up types.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct WrapupCategory {
    pub id: WrapupCategoryId,
    #[schema(example = "Outcome")]
    pub name: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<WrapupCategoryRow> for WrapupCategory {
    fn from(row: WrapupCategoryRow) -> Self {
        Self { id: row.id, name: row.name, created_at: row.created_at.into(), updated_at: row.updated_at.into() }
    }
}

/// Filters of the list: `search` looks into the name.
pub struct Filters(WrapupCategoryFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(WrapupCategoryFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /wrapup-categories`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> Answer<Listed<WrapupCategory>> {
    let rows = wrapup_categories::list(app.db(caller.company), caller.company, &query.filter.0, query.page).await?;
    Ok(Listed::of(query.page, rows, WrapupCategory::from))
}

/// The body of `POST /wrapup-categories`.
pub struct NewWrapupCategory {
    name: Name,
}

impl Input for NewWrapupCategory {
    const NAME: &'static str = "WrapupCategoryCreate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { name: fields.required("name")? })
    }
}

/// `POST /wrapup-categories`. Names are unique within a company.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewWrapupCategory>,
    once: Once,
) -> Answer<Created<WrapupCategory>> {
    let name = body.0.name;
    once.plain(app.db(caller.company), async |db| {
        Ok(Created::of(wrapup_categories::insert(db, caller.company, &name.0).await?))
    })
    .await
}

/// The body of `PUT /wrapup-categories/{categoryId}`.
pub struct ChangedWrapupCategory {
    name: Option<Name>,
}

impl Input for ChangedWrapupCategory {
    const NAME: &'static str = "WrapupCategoryUpdate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { name: fields.changed("name") })
    }
}

/// `PUT /wrapup-categories/{categoryId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<WrapupCategoryId>,
    body: Body<ChangedWrapupCategory>,
    once: Once,
) -> Answer<Shown<WrapupCategory>> {
    let name = body.0.name;
    let name = name.as_ref().map(|name| name.0.as_str());
    once.plain(app.db(caller.company), async |db| {
        Ok(Shown::of(wrapup_categories::update(db, caller.company, id.0, name).await?))
    })
    .await
}

/// `DELETE /wrapup-categories/{categoryId}`: refused while it has types.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<WrapupCategoryId>) -> Answer<Done> {
    let db = app.db(caller.company);
    match table::remove::<WrapupCategoryRow>(db, caller.company, id.0).await {
        Err(Error::InUse) => {
            let types = [("wrapupType", wrapup_types::of_category(db, caller.company, id.0).await?)];
            Err(Refusal::Conflict(Conflict::used_by("the category has wrap-up types", "in_use", types)).into())
        }
        removed => Ok(removed.map(|()| Done)?),
    }
}
