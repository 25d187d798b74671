//! Permission profiles: what a user may do. They are plain; the API only reads them, and the panel and the command line
//! write them.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::web::Data;
use hotline_persistence::tables::profiles::ProfileRow;
use hotline_persistence::{ProfileId, Timestamp, table};
use serde::Serialize;
use utoipa::ToSchema;

use super::plain::ListFilter;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Json, Page, PathId, Query};

/// A permission profile.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    pub id: ProfileId,
    #[schema(example = "Agent")]
    pub name: String,
    /// Allowed methods, by module.
    #[schema(example = json!({"tickets": ["GET", "POST", "PUT"]}))]
    pub permissions: BTreeMap<String, BTreeSet<String>>,
    /// Whether the person sees cards assigned to others.
    #[schema(example = false)]
    pub sees_all_cards: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<ProfileRow> for Profile {
    fn from(row: ProfileRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            permissions: row.permissions.0,
            sees_all_cards: row.sees_all_cards,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// `GET /profiles`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<ListFilter>) -> ApiResult<Page<Profile>> {
    let rows = table::list(app.db(caller.company), caller.company, &query.filter.0, query.page).await?;
    Ok(Page::of(query.page, rows, |row: ProfileRow| Profile::from(row)))
}

/// `GET /profiles/{profileId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<ProfileId>) -> ApiResult<Json<Profile>> {
    let row: Option<ProfileRow> = table::find(app.db(caller.company), caller.company, id.0).await?;
    Ok(Json::of(row.ok_or_else(ApiError::not_found)?))
}
