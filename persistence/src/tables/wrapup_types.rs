//! Wrap-up types: what a conversation came to, recorded when it closes. Plain.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use sqlx::{FromRow, PgExecutor};

use crate::error::within;
use crate::select::{Listed, Page, Select};
use crate::table::{Named, Table, Unique, explain, explain_taken};
use crate::{CompanyId, Database, Error, QueueId, Result, WrapupCategoryId, WrapupTypeId};

/// One wrap-up type with the queues it is linked to.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct WrapupTypeRow {
    pub id: WrapupTypeId,
    pub name: String,
    pub active: bool,
    pub category_id: WrapupCategoryId,
    pub queues: Json<Vec<Named<QueueId>>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Table for WrapupTypeRow {
    const NAME: &'static str = "wrapup_types";
    const SELECT: &'static str = "select wrapup_types.*,
            coalesce((select jsonb_agg(jsonb_build_object('id', q.id, 'name', q.name) order by q.id)
                from wrapup_type_queues l join queues q on q.company_id = l.company_id and q.id = l.queue_id
                where l.company_id = wrapup_types.company_id and l.wrapup_type_id = wrapup_types.id), '[]') as queues
        from wrapup_types";
    type Id = WrapupTypeId;
}

const UNIQUE: Unique = Unique {
    constraint: "wrapup_types_company_id_name_key",
    field: "name",
    holder: "select id from wrapup_types where company_id = $1 and name = $2",
};

/// What the list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct WrapupTypeFilter {
    pub search: Option<String>,
    pub active: Option<bool>,
    pub category_id: Option<WrapupCategoryId>,
    pub queue_id: Option<QueueId>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of wrap-up types.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &WrapupTypeFilter,
    page: Page,
) -> Result<Listed<WrapupTypeRow>> {
    Select::new(WrapupTypeRow::SELECT, "wrapup_types.company_id", company)
        .contains("hotline_fold(wrapup_types.name)", filter.search.as_deref())
        .equals("wrapup_types.active", filter.active)
        .equals("wrapup_types.category_id", filter.category_id)
        .related(
            "select from wrapup_type_queues l where l.company_id = wrapup_types.company_id
             and l.wrapup_type_id = wrapup_types.id and l.queue_id",
            filter.queue_id,
        )
        .between("wrapup_types.created_at", filter.created)
        .between("wrapup_types.updated_at", filter.updated)
        .page(db, "wrapup_types.id", page)
        .await
}

/// Creates a wrap-up type, linked to no queue yet.
///
/// # Errors
/// [`Error::Taken`] when the name is; [`Error::NotFound`] when the company has no such category.
pub async fn insert(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    category: WrapupCategoryId,
    name: &str,
    active: bool,
) -> Result<WrapupTypeId> {
    within(
        sqlx::query_scalar(
            "insert into wrapup_types (company_id, category_id, name, active) values ($1, $2, $3, $4) returning id",
        )
        .bind(company)
        .bind(category)
        .bind(name)
        .bind(active)
        .fetch_one(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, Some(name)))
}

/// Changes what is given.
///
/// # Errors
/// [`Error::NotFound`] when there is no such wrap-up type or category; [`Error::Taken`] when the name is.
pub async fn update(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    id: WrapupTypeId,
    category: Option<WrapupCategoryId>,
    name: Option<&str>,
    active: Option<bool>,
) -> Result<()> {
    let updated = within(
        sqlx::query(
            "update wrapup_types set category_id = coalesce($3, category_id), name = coalesce($4, name),
                 active = coalesce($5, active), updated_at = now()
             where company_id = $1 and id = $2",
        )
        .bind(company)
        .bind(id)
        .bind(category)
        .bind(name)
        .bind(active)
        .execute(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, name))?;
    if updated.rows_affected() == 0 { Err(Error::NotFound("wrap-up type")) } else { Ok(()) }
}

/// Makes these the queues a wrap-up type is linked to.
///
/// # Errors
/// [`Error::NotFound`] when one of them, or the type, is not the company's.
pub async fn set_queues(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    wrapup_type: WrapupTypeId,
    queues: &[QueueId],
) -> Result<()> {
    within(
        sqlx::query(
            "with gone as (
                 delete from wrapup_type_queues
                 where company_id = $1 and wrapup_type_id = $2 and queue_id <> all($3))
             insert into wrapup_type_queues (company_id, wrapup_type_id, queue_id)
             select $1, $2, queue_id from (select distinct unnest($3) as queue_id order by queue_id) wanted
             on conflict do nothing",
        )
        .bind(company)
        .bind(wrapup_type)
        .bind(queues)
        .execute(db),
    )
    .await
    .map_err(explain(&[]))?;
    Ok(())
}

/// How many types a category has, at most [`COUNTED_MAX`](super::tickets::COUNTED_MAX).
///
/// # Errors
/// When the database cannot answer.
pub async fn of_category(db: impl Database<'_>, company: CompanyId, category: WrapupCategoryId) -> Result<i64> {
    within(
        sqlx::query_scalar(
            "select count(*) from (select from wrapup_types where company_id = $1 and category_id = $2
             limit 10000) counted",
        )
        .bind(company)
        .bind(category)
        .fetch_one(db),
    )
    .await
}
