//! Wrap-up types: what a conversation came to, recorded when it closes. Plain.

use sqlx::PgPool;

use crate::{CompanyId, QueueId, Result, WrapupTypeId};

/// Creates a wrap-up type linked to queues, in a category that is made when it is missing.
///
/// # Errors
/// When the database cannot answer or the name is taken.
pub async fn insert(
    db: &PgPool,
    company: CompanyId,
    category: &str,
    name: &str,
    queues: &[QueueId],
) -> Result<WrapupTypeId> {
    let mut transaction = db.begin().await?;
    let id: WrapupTypeId = sqlx::query_scalar(
        "with category as (
             insert into wrapup_categories (company_id, name) values ($1, $2)
             on conflict (company_id, name) do update set name = excluded.name returning id)
         insert into wrapup_types (company_id, category_id, name) select $1, id, $3 from category returning id",
    )
    .bind(company)
    .bind(category)
    .bind(name)
    .fetch_one(&mut *transaction)
    .await?;
    sqlx::query("insert into wrapup_type_queues (company_id, wrapup_type_id, queue_id) select $1, $2, unnest($3)")
        .bind(company)
        .bind(id)
        .bind(queues)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(id)
}
