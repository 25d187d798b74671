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

/// Notes where contacts were last talked to. A contact that is gone stays gone. Their rows are not touched: a contact has
/// not changed by being talked to.
pub(crate) async fn set_last_channel(
    db: &mut PgConnection,
    changes: &[&ContactChannel],
) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(
        "insert into contact_last_channels as l (company_id, contact_id, channel_id, at)
         select x.company, x.contact, x.channel, x.at
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[]) as x (company, contact, channel, at)
         where exists (select from contacts c where c.company_id = x.company and c.id = x.contact)
         order by x.company, x.contact
         on conflict (company_id, contact_id) do update set channel_id = excluded.channel_id, at = excluded.at
         where (l.channel_id, l.at) is distinct from (excluded.channel_id, excluded.at)",
    )
    .bind(changes.iter().map(|change| change.company_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.contact_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.channel_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.at).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}
