//! Where a contact was last talked to.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::{ChannelId, CompanyId, ContactId};

/// A contact's conversation began on a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ContactChannel {
    pub company_id: CompanyId,
    pub contact_id: ContactId,
    pub channel_id: ChannelId,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
}

/// Notes where contacts were last talked to. A contact that is gone stays gone.
pub(crate) async fn set_last_channel(
    db: &mut PgConnection,
    changes: &[&ContactChannel],
) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(
        // Rows are locked in one order by all: an import changes many as well.
        "with held as (
             select c.company_id, c.id, x.channel, x.at
             from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[])
                 as x (company, contact, channel, at)
             join contacts c on c.company_id = x.company and c.id = x.contact
             order by c.company_id, c.id for no key update of c
         )
         update contacts c set last_channel_id = held.channel, updated_at = greatest(c.updated_at, held.at)
         from held where c.company_id = held.company_id and c.id = held.id",
    )
    .bind(changes.iter().map(|change| change.company_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.contact_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.channel_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.at).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}
