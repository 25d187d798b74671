//! Wrap-up types: what a conversation came to. Plain; the directory holds them too.

use actix_web::web::Data;
use hotline_actors::{Conflict, Leaving, Refusal};
use hotline_persistence::tables::tickets;
use hotline_persistence::tables::wrapup_categories::WrapupCategoryRow;
use hotline_persistence::tables::wrapup_types::{self, WrapupTypeFilter, WrapupTypeRow};
use hotline_persistence::{CompanyId, Db, QueueId, WrapupCategoryId, WrapupTypeId, table};
use serde::Serialize;
use sqlx::PgConnection;
use utoipa::ToSchema;

use super::directory::changed;
use super::named::{LINKS_MAX, Named};
use crate::app::App;
use crate::web::values::{Name, Search};
use crate::web::{
    Answer, ApiError, Body, Caller, Created, Done, Fields, Filter, Input, Listed, Once, Params, PathId, Query, Shown,
    Timestamp,
};

/// What a conversation came to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct WrapupType {
    pub id: WrapupTypeId,
    #[schema(example = "Solved")]
    pub name: String,
    #[schema(example = true)]
    pub active: bool,
    pub category_id: WrapupCategoryId,
    /// Where tickets may be closed with it.
    pub queues: Vec<Named<QueueId>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<WrapupTypeRow> for WrapupType {
    fn from(row: WrapupTypeRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            active: row.active,
            category_id: row.category_id,
            queues: row.queues.0.into_iter().map(Named::from).collect(),
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of a queue's wrap-up types: `search` looks into the name.
pub struct LinkedFilters(pub(super) WrapupTypeFilter);

impl Filter for LinkedFilters {
    fn read(query: &mut Params) -> Self {
        Self(WrapupTypeFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            active: query.filter("active"),
            created: query.span("created"),
            updated: query.span("updated"),
            ..WrapupTypeFilter::default()
        })
    }
}

/// Filters of the list: also by category and queue.
pub struct Filters(WrapupTypeFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        let linked = LinkedFilters::read(query).0;
        Self(WrapupTypeFilter { category_id: query.filter("categoryId"), queue_id: query.filter("queueId"), ..linked })
    }
}

/// `GET /wrapup-types`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> Answer<Listed<WrapupType>> {
    let db = app.db(caller.company);
    let filter = &query.filter.0;
    caller.check_queue(filter.queue_id)?;
    if let Some(category) = filter.category_id
        && !table::exists::<WrapupCategoryRow>(db, caller.company, category).await?
    {
        return Err(ApiError::not_found());
    }
    let rows = wrapup_types::list(db, caller.company, filter, query.page).await?;
    Ok(Listed::of(query.page, rows, WrapupType::from))
}

/// `GET /wrapup-types/{wrapupTypeId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<WrapupTypeId>) -> Answer<Shown<WrapupType>> {
    let row: Option<WrapupTypeRow> = table::find(app.db(caller.company), caller.company, id.0).await?;
    Ok(Shown::of(row.ok_or_else(ApiError::not_found)?))
}

/// The body of `POST /wrapup-types`.
pub struct NewWrapupType {
    name: Name,
    category: WrapupCategoryId,
    active: bool,
    queues: Vec<QueueId>,
}

impl Input for NewWrapupType {
    const NAME: &'static str = "WrapupTypeCreate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.required("name");
        let category = fields.required("categoryId");
        let active = fields.optional("active").unwrap_or(true);
        let queues = fields.list("queueIds", LINKS_MAX).unwrap_or_default();
        Some(Self { name: name?, category: category?, active, queues })
    }
}

/// `POST /wrapup-types`. Names are unique within a company.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewWrapupType>,
    once: Once,
) -> Answer<Created<WrapupType>> {
    let NewWrapupType { name, category, active, queues } = body.0;
    let company = caller.company;
    let insert = once.plain(app.db(company), async |db| {
        let id = wrapup_types::insert(&mut *db, company, category, &name.0, active).await?;
        wrapup_types::set_queues(&mut *db, company, id, &queues).await?;
        Ok(Created::of(find(db, company, id).await?))
    });
    changed(&app, company, insert).await
}

/// The body of `PUT /wrapup-types/{wrapupTypeId}`.
pub struct ChangedWrapupType {
    name: Option<Name>,
    category: Option<WrapupCategoryId>,
    active: Option<bool>,
    queues: Option<Vec<QueueId>>,
}

impl Input for ChangedWrapupType {
    const NAME: &'static str = "WrapupTypeUpdate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            name: fields.changed("name"),
            category: fields.changed("categoryId"),
            active: fields.changed("active"),
            queues: fields.changed_list("queueIds", LINKS_MAX),
        })
    }
}

/// `PUT /wrapup-types/{wrapupTypeId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<WrapupTypeId>,
    body: Body<ChangedWrapupType>,
    once: Once,
) -> Answer<Shown<WrapupType>> {
    let ChangedWrapupType { name, category, active, queues } = body.0;
    let name = name.as_ref().map(|name| name.0.as_str());
    let company = caller.company;
    let update = once.plain(app.db(company), async |db| {
        wrapup_types::update(&mut *db, company, id.0, category, name, active).await?;
        if let Some(queues) = &queues {
            wrapup_types::set_queues(&mut *db, company, id.0, queues).await?;
        }
        Ok(Shown::of(find(db, company, id.0).await?))
    });
    changed(&app, company, update).await
}

async fn find(db: &mut PgConnection, company: CompanyId, id: WrapupTypeId) -> Answer<WrapupTypeRow> {
    table::find(db, company, id).await?.ok_or_else(ApiError::not_found)
}

/// `DELETE /wrapup-types/{wrapupTypeId}`: refused when a ticket was closed with it.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<WrapupTypeId>) -> Answer<Done> {
    let company = caller.company;
    if !table::exists::<WrapupTypeRow>(app.db(company), company, id.0).await? {
        return Err(ApiError::not_found());
    }
    // Most refusals are found before anybody is kept from the type.
    check_unused(app.engine.reads().tables(company).await?, company, id.0).await?;
    let remove = async |db: Db<'_>| {
        check_unused(db, company, id.0).await?;
        Ok::<_, ApiError>(table::remove::<WrapupTypeRow>(db, company, id.0).await?)
    };
    app.engine.leave(company, Leaving::WrapupType(id.0), remove).await?;
    Ok(Done)
}

async fn check_unused(db: Db<'_>, company: CompanyId, id: WrapupTypeId) -> Answer<()> {
    match tickets::closed_with(db, company, id).await? {
        0 => Ok(()),
        count => {
            let tickets = [("ticket", count)];
            Err(Refusal::Conflict(Conflict::used_by("tickets have the wrap-up type", "in_use", tickets)).into())
        }
    }
}
