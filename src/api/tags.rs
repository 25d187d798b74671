//! Tags: coloured labels a company puts on its contacts. Plain.

use actix_web::web::Data;
use hotline_persistence::tables::tags::{self, TagFilter, TagRow};
use hotline_persistence::{TagId, table};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::values::{Color, Name, Search};
use crate::web::{
    Answer, ApiError, Body, Caller, Created, Done, Fields, Filter, Input, Listed, Once, Params, PathId, Query, Shown,
    Timestamp,
};

/// A coloured label for contacts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Tag {
    pub id: TagId,
    #[schema(example = "VIP")]
    pub name: String,
    #[schema(example = "#64748b")]
    pub color: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<TagRow> for Tag {
    fn from(row: TagRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            color: row.color,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of the list: `search` looks into the name.
pub struct Filters(TagFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(TagFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /tags`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> Answer<Listed<Tag>> {
    let rows = tags::list(app.db(caller.company), caller.company, &query.filter.0, query.page).await?;
    Ok(Listed::of(query.page, rows, Tag::from))
}

/// `GET /tags/{tagId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<TagId>) -> Answer<Shown<Tag>> {
    let row: Option<TagRow> = table::find(app.db(caller.company), caller.company, id.0).await?;
    Ok(Shown::of(row.ok_or_else(ApiError::not_found)?))
}

/// The body of `POST /tags`.
pub struct NewTag {
    name: Name,
    color: Option<Color>,
}

impl Input for NewTag {
    const NAME: &'static str = "TagCreate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.required("name");
        let color = fields.optional("color");
        Some(Self { name: name?, color })
    }
}

/// `POST /tags`. Names are unique within a company.
pub async fn create(caller: Caller, app: Data<App>, body: Body<NewTag>, once: Once) -> Answer<Created<Tag>> {
    let NewTag { name, color } = body.0;
    let color = color.as_ref().map(|color| color.0.as_str());
    once.plain(app.db(caller.company), async |db| {
        Ok(Created::of(tags::insert(db, caller.company, &name.0, color).await?))
    })
    .await
}

/// The body of `PUT /tags/{tagId}`.
pub struct ChangedTag {
    name: Option<Name>,
    color: Option<Color>,
}

impl Input for ChangedTag {
    const NAME: &'static str = "TagUpdate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { name: fields.changed("name"), color: fields.changed("color") })
    }
}

/// `PUT /tags/{tagId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<TagId>,
    body: Body<ChangedTag>,
    once: Once,
) -> Answer<Shown<Tag>> {
    let ChangedTag { name, color } = body.0;
    let name = name.as_ref().map(|name| name.0.as_str());
    let color = color.as_ref().map(|color| color.0.as_str());
    once.plain(app.db(caller.company), async |db| {
        Ok(Shown::of(tags::update(db, caller.company, id.0, name, color).await?))
    })
    .await
}

/// `DELETE /tags/{tagId}`: takes it off every contact as well.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<TagId>) -> Answer<Done> {
    table::remove::<TagRow>(app.db(caller.company), caller.company, id.0).await?;
    Ok(Done)
}
