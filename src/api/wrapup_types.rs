//! Wrap-up types: the results with which tickets are closed. Plain: changed by transactions, not by actors; also in the
//! directory.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal, Removal};
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::queues::Queue;
use hotline_persistence::tables::tickets;
use hotline_persistence::tables::wrapup_categories::{WrapupCategory, WrapupCategoryId};
use hotline_persistence::tables::wrapup_types::{self, LINKED_TO, WrapupType};
use hotline_persistence::{CompanyId, Db, QueueId, WrapupTypeId};
use sqlx::PgConnection;

use super::directory::{check_links, refresh_after};
use super::plain::{BodyColumns, Filters, Plain, check_count};
use super::references::LINKS_MAX;
use crate::app::App;
use crate::web::request::values::Name;
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, NoContent, PathId};

impl Plain for WrapupType {
    const IS_IN_DIRECTORY: bool = true;

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
        body.required::<WrapupCategoryId>("categoryId");
        body.defaulted::<bool>("active");
    }

    fn filters(list: &mut Filters<'_>) {
        list.equals::<bool>("active");
        list.refers::<WrapupCategory>("categoryId");
        list.related::<Queue>("queueId", LINKED_TO);
    }
}

/// The body of `POST /wrapup-types`.
pub struct NewWrapupType {
    columns: Columns,
    queues: Vec<QueueId>,
}

impl Input for NewWrapupType {
    fn name() -> Cow<'static, str> {
        "WrapupTypeCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let columns = BodyColumns::of_new::<WrapupType>(fields);
        let queues = fields.list("queueIds", LINKS_MAX).unwrap_or_default();
        Some(Self { columns, queues })
    }
}

/// `POST /wrapup-types`. Names are unique within a company.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewWrapupType>,
    idempotency: Idempotency,
) -> ApiResult<Created<WrapupType>> {
    let NewWrapupType { columns, queues } = body.0;
    let company = caller.company;
    let insert = idempotency.transaction(app.db(company), async |db| {
        check_count::<WrapupType>(&mut *db, company).await?;
        let wrapup_type: WrapupType = table::insert(&mut *db, company, &columns).await?;
        wrapup_types::QUEUES.set(&mut *db, company, wrapup_type.id, &queues).await?;
        check_links(&mut *db, company, &wrapup_types::QUEUES).await?;
        Ok(Created::of(find(db, company, wrapup_type.id).await?))
    });
    refresh_after(&app, company, insert).await
}

/// The body of `PUT /wrapup-types/{wrapupTypeId}`.
pub struct ChangedWrapupType {
    columns: Columns,
    queues: Option<Vec<QueueId>>,
}

impl Input for ChangedWrapupType {
    fn name() -> Cow<'static, str> {
        "WrapupTypeUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let columns = BodyColumns::of_change::<WrapupType>(fields);
        Some(Self { columns, queues: fields.changed_list("queueIds", LINKS_MAX) })
    }
}

/// `PUT /wrapup-types/{wrapupTypeId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<WrapupTypeId>,
    body: Body<ChangedWrapupType>,
    idempotency: Idempotency,
) -> ApiResult<Json<WrapupType>> {
    let ChangedWrapupType { columns, queues } = body.0;
    let company = caller.company;
    let update = idempotency.transaction(app.db(company), async |db| {
        table::update::<WrapupType>(&mut *db, company, id.0, &columns).await?;
        if let Some(queues) = &queues
            && wrapup_types::QUEUES.set(&mut *db, company, id.0, queues).await?
        {
            check_links(&mut *db, company, &wrapup_types::QUEUES).await?;
            table::touch::<WrapupType>(&mut *db, company, id.0).await?;
        }
        Ok(Json::of(find(db, company, id.0).await?))
    });
    refresh_after(&app, company, update).await
}

async fn find(db: &mut PgConnection, company: CompanyId, id: WrapupTypeId) -> ApiResult<WrapupType> {
    table::find(db, company, id).await?.ok_or_else(ApiError::not_found)
}

/// `DELETE /wrapup-types/{wrapupTypeId}`: refused when a ticket was closed with the type.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<WrapupTypeId>) -> ApiResult<NoContent> {
    let company = caller.company;
    if !table::exists::<WrapupType>(app.db(company), company, id.0).await? {
        return Err(ApiError::not_found());
    }
    // Checked early, so that most refusals do not block the type for others.
    check_unused(app.engine.reads().tables(company).await?, company, id.0).await?;
    let remove = async |db: Db<'_>| {
        check_unused(db, company, id.0).await?;
        Ok::<_, ApiError>(table::remove::<WrapupType>(db, company, id.0).await?)
    };
    app.engine.assignment.delete_guarded(company, Removal::WrapupType(id.0), remove).await?;
    Ok(NoContent)
}

async fn check_unused(db: Db<'_>, company: CompanyId, id: WrapupTypeId) -> ApiResult<()> {
    match tickets::count_with_wrapup_type(db, company, id).await? {
        0 => Ok(()),
        count => {
            let tickets = [("ticket", count)];
            Err(Refusal::Conflict(Conflict::used_by("tickets use the wrap-up type", "in_use", tickets)).into())
        }
    }
}
