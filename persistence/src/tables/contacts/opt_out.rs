//! Contacts that opted out of campaigns.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::error::with_timeout;
use crate::{CompanyId, ContactId, Database, Result};

/// Records that a contact has sent one of the company's stop words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptOut {
    pub company_id: CompanyId,
    pub contact_id: ContactId,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
}

/// Whether a contact has opted out of campaigns; one that was deleted has not.
pub async fn has_opted_out(db: impl Database<'_>, company: CompanyId, id: ContactId) -> Result<bool> {
    let found = sqlx::query_scalar("select marketing_opt_out from contacts where company_id = $1 and id = $2");
    Ok(with_timeout(found.bind(company).bind(id).fetch_optional(db)).await?.unwrap_or(false))
}

/// Stores opt-outs. A contact that has already opted out does not change, and deleted contacts are skipped.
pub(crate) async fn set_opt_out(db: &mut PgConnection, rows: &[&OptOut]) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(
        // Rows are locked in the same order everywhere: an import changes many contacts as well.
        "with locked as (
             select c.company_id, c.id, earliest.at
             from (select company, contact, min(at) as at
                 from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as opt_outs (company, contact, at)
                 group by company, contact) earliest
             join contacts c on c.company_id = earliest.company and c.id = earliest.contact
             order by c.company_id, c.id for no key update of c
         )
         update contacts c set marketing_opt_out = true, updated_at = greatest(c.updated_at, locked.at)
         from locked where c.company_id = locked.company_id and c.id = locked.id and not c.marketing_opt_out",
    )
    .bind(rows.iter().map(|row| row.company_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.contact_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.at).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}
