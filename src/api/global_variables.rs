//! Global variables: texts that messages take in by their keys. Plain; the directory holds them too, and a change is
//! answered once it does.

use actix_web::web::Data;
use hotline_persistence::tables::global_variables::{self, GlobalVariableFilter, GlobalVariableRow};
use hotline_persistence::{GlobalVariableId, table};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::values::{FilledText, Search, Text, VariableKey};
use crate::web::{
    Answer, ApiError, Body, Caller, Created, Done, Fields, Filter, Input, Listed, Once, Params, Patch, PathId, Query,
    Shown, Timestamp,
};

/// A text that stands in a message wherever its key does.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct GlobalVariable {
    pub id: GlobalVariableId,
    /// Fixed.
    #[schema(example = "openingHours")]
    pub key: String,
    #[schema(example = "from 9 to 18")]
    pub value: String,
    #[schema(example = "When somebody answers the phone.")]
    pub description: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<GlobalVariableRow> for GlobalVariable {
    fn from(row: GlobalVariableRow) -> Self {
        Self {
            id: row.id,
            key: row.key,
            value: row.value,
            description: row.description,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of the list: `search` looks into key and description.
pub struct Filters(GlobalVariableFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(GlobalVariableFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /global-variables`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> Answer<Listed<GlobalVariable>> {
    let rows = global_variables::list(app.db(caller.company), caller.company, &query.filter.0, query.page).await?;
    Ok(Listed::of(query.page, rows, GlobalVariable::from))
}

/// `GET /global-variables/{variableId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<GlobalVariableId>) -> Answer<Shown<GlobalVariable>> {
    let row: Option<GlobalVariableRow> = table::find(app.db(caller.company), caller.company, id.0).await?;
    Ok(Shown::of(row.ok_or_else(ApiError::not_found)?))
}

/// The body of `POST /global-variables`.
pub struct NewGlobalVariable {
    key: VariableKey,
    value: FilledText,
    description: Option<Text>,
}

impl Input for NewGlobalVariable {
    const NAME: &'static str = "GlobalVariableCreate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let key = fields.required("key");
        let value = fields.required("value");
        let description = fields.optional("description");
        Some(Self { key: key?, value: value?, description })
    }
}

/// `POST /global-variables`. Keys are unique within a company, and never change.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewGlobalVariable>,
    once: Once,
) -> Answer<Created<GlobalVariable>> {
    let NewGlobalVariable { key, value, description } = body.0;
    let description = description.as_ref().map(|description| description.0.as_str());
    let created = once
        .plain(app.db(caller.company), async |db| {
            Ok(Created::of(global_variables::insert(db, caller.company, &key.0, &value.0, description).await?))
        })
        .await?;
    app.engine.refresh(caller.company).await;
    Ok(created)
}

/// The body of `PUT /global-variables/{variableId}`.
pub struct ChangedGlobalVariable {
    value: Option<FilledText>,
    description: Patch<Text>,
}

impl Input for ChangedGlobalVariable {
    const NAME: &'static str = "GlobalVariableUpdate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { value: fields.changed("value"), description: fields.patch("description") })
    }
}

/// `PUT /global-variables/{variableId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<GlobalVariableId>,
    body: Body<ChangedGlobalVariable>,
    once: Once,
) -> Answer<Shown<GlobalVariable>> {
    let ChangedGlobalVariable { value, description } = body.0;
    let value = value.as_ref().map(|value| value.0.as_str());
    let description = description.into_option();
    let description = description.as_ref().map(|text| text.as_ref().map(|text| text.0.as_str()));
    let shown = once
        .plain(app.db(caller.company), async |db| {
            Ok(Shown::of(global_variables::update(db, caller.company, id.0, value, description).await?))
        })
        .await?;
    app.engine.refresh(caller.company).await;
    Ok(shown)
}

/// `DELETE /global-variables/{variableId}`: messages that are sent from now on no longer receive the value.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<GlobalVariableId>) -> Answer<Done> {
    table::remove::<GlobalVariableRow>(app.db(caller.company), caller.company, id.0).await?;
    app.engine.refresh(caller.company).await;
    Ok(Done)
}
