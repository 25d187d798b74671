//! Deleted records whose many dependent rows are deleted later, a few thousand at a time. Triggers record them.

use sqlx::{AssertSqlSafe, FromRow};

use super::text_enum;
use crate::cluster::SlotFilter;
use crate::error::with_timeout;
use crate::{CompanyId, Database, Result};

text_enum! {
    /// The kinds of records that may have thousands of dependent rows.
    RemovedNoun { ContactList = "contact_list", Campaign = "campaign", Webhook = "webhook" }
}

impl RemovedNoun {
    /// The table of the dependent rows, and its column with the record's id.
    fn dependent_table(self) -> (&'static str, &'static str) {
        match self {
            Self::ContactList => ("contact_list_contacts", "contact_list_id"),
            Self::Campaign => ("campaign_recipients", "campaign_id"),
            Self::Webhook => ("webhook_deliveries", "webhook_id"),
        }
    }
}

/// A deleted record that may still have dependent rows; these are no longer visible.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Removal {
    pub company_id: CompanyId,
    pub noun: RemovedNoun,
    pub id: i64,
}

/// Up to `limit` deleted records that may still have dependent rows.
pub async fn unfinished(db: impl Database<'_>, slots: &SlotFilter, limit: i64) -> Result<Vec<Removal>> {
    let in_slots = SlotFilter::condition("company_id", 2);
    let removals =
        format!("select company_id, noun, id from removals where {in_slots} order by company_id, noun, id limit $1");
    with_timeout(sqlx::query_as(AssertSqlSafe(removals)).bind(limit).bind(slots.numbers()).fetch_all(db)).await
}

/// Deletes up to `limit` dependent rows of a deleted record. If none is left, ends the removal and returns false.
pub async fn delete_rows(db: impl Database<'_>, removal: &Removal, limit: i64) -> Result<bool> {
    let (table, column) = removal.noun.dependent_table();
    let delete = format!(
        "delete from {table} where ctid = any (array(
             select ctid from {table} where company_id = $1 and {column} = $2 limit $3))"
    );
    let delete = sqlx::query(AssertSqlSafe(delete)).bind(removal.company_id).bind(removal.id).bind(limit);
    if with_timeout(delete.execute(db)).await?.rows_affected() > 0 {
        return Ok(true);
    }
    let delete = sqlx::query("delete from removals where company_id = $1 and noun = $2 and id = $3");
    with_timeout(delete.bind(removal.company_id).bind(removal.noun.as_str()).bind(removal.id).execute(db)).await?;
    Ok(false)
}
