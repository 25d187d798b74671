//! Contacts that opted out of campaigns.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::{CompanyId, ContactId};

/// A contact sent one of the company's stop words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct OptOut {
    pub company_id: CompanyId,
    pub contact_id: ContactId,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
}

/// Stores opt-outs. A contact that has already opted out does not change, and deleted contacts are skipped.
pub(crate) async fn set_opt_out(db: &mut PgConnection, rows: &[&OptOut]) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(
        // Everybody locks rows in the same order: an import changes many contacts as well.
        "with held as (
             select c.company_id, c.id, x.at
             from (select company, contact, min(at) as at
                 from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as y (company, contact, at)
                 group by company, contact) x
             join contacts c on c.company_id = x.company and c.id = x.contact
             order by c.company_id, c.id for no key update of c
         )
         update contacts c set marketing_opt_out = true, updated_at = greatest(c.updated_at, held.at)
         from held where c.company_id = held.company_id and c.id = held.id and not c.marketing_opt_out",
    )
    .bind(rows.iter().map(|row| row.company_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.contact_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.at).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}
