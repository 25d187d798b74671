//! Wrap-up types: what a conversation came to, recorded when it closes. Plain.

use serde::Serialize;
use sqlx::{FromRow, PgExecutor};
use utoipa::ToSchema;

use super::wrapup_categories::WrapupCategoryId;
use crate::error::with_timeout;
use crate::table::{Named, Stamps, Table, Unique, map_constraint};
use crate::{CompanyId, Database, QueueId, Result, WrapupTypeId};

/// What a conversation came to.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
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
    #[sqlx(json)]
    pub queues: Vec<Named<QueueId>>,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for WrapupType {
    const NAME: &'static str = "wrapup_types";
    const NOUN: &'static str = "wrap-up type";
    const COLUMNS: &'static str = "wrapup_types.*,
        coalesce((select jsonb_agg(jsonb_build_object('id', q.id, 'name', q.name) order by q.id)
            from wrapup_type_queues l join queues q on q.company_id = l.company_id and q.id = l.queue_id
            where l.company_id = wrapup_types.company_id and l.wrapup_type_id = wrapup_types.id), '[]') as queues";
    const UNIQUE: &'static [Unique] = &[Unique::new("wrapup_types_company_id_name_key", "name")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = WrapupTypeId;
}

/// The types that are linked to a queue, whose id follows.
pub const LINKED_TO: &str = "select from wrapup_type_queues l where l.company_id = wrapup_types.company_id
    and l.wrapup_type_id = wrapup_types.id and l.queue_id";

/// Makes these the queues a wrap-up type is linked to.
///
/// # Errors
/// [`crate::Error::NotFound`] when one of them, or the type, is not the company's.
pub async fn set_queues(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    wrapup_type: WrapupTypeId,
    queues: &[QueueId],
) -> Result<()> {
    with_timeout(
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
    .map_err(map_constraint(&[]))?;
    Ok(())
}

/// How many types a category has, at most [`COUNTED_MAX`](super::tickets::COUNTED_MAX).
///
/// # Errors
/// When the database cannot answer.
pub async fn of_category(db: impl Database<'_>, company: CompanyId, category: WrapupCategoryId) -> Result<i64> {
    with_timeout(
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
