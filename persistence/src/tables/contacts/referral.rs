//! The advertisement or link that brought a contact.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::{CompanyId, ContactId};

/// What a provider reports about a contact that wrote because of an advertisement or a link. Fields that are not set
/// keep their known values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralRow {
    pub company_id: CompanyId,
    pub contact_id: ContactId,
    pub referral: Referral,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
}

/// The marketing fields of a contact that a provider reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Referral {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctwa_clid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_url: Option<String>,
}

impl Referral {
    /// Whether no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the fields that `later` sets.
    fn update_from(&mut self, later: &Self) {
        let Self { ctwa_clid, source_url, source_id, headline, media_type, media_url } = later;
        let fields = [
            (&mut self.ctwa_clid, ctwa_clid),
            (&mut self.source_url, source_url),
            (&mut self.source_id, source_id),
            (&mut self.headline, headline),
            (&mut self.media_type, media_type),
            (&mut self.media_url, media_url),
        ];
        for (field, later) in fields {
            if later.is_some() {
                field.clone_from(later);
            }
        }
    }
}

/// Combines the reports on each contact into one, which has the same effect as all of them in order.
fn combine(rows: &[&ReferralRow]) -> Vec<ReferralRow> {
    let mut combined: BTreeMap<(CompanyId, ContactId), ReferralRow> = BTreeMap::new();
    for row in rows {
        match combined.entry((row.company_id, row.contact_id)) {
            Entry::Vacant(first) => drop(first.insert((*row).clone())),
            Entry::Occupied(mut entry) => {
                let earlier = entry.get_mut();
                earlier.referral.update_from(&row.referral);
                earlier.at = earlier.at.max(row.at);
            }
        }
    }
    combined.into_values().collect()
}

/// Stores the reported referrals, skipping deleted contacts.
pub(crate) async fn set_referral(db: &mut PgConnection, rows: &[&ReferralRow]) -> std::result::Result<(), sqlx::Error> {
    let rows = combine(rows);
    macro_rules! column {
        ($field:ident) => {
            rows.iter().map(|row| row.referral.$field.as_deref()).collect::<Vec<_>>()
        };
    }
    sqlx::query(
        // Rows are locked in the same order everywhere: an import changes many contacts as well.
        "with locked as (
             select c.company_id, c.id, x.ctwa_clid, x.source_url, x.source_id, x.headline, x.media_type, x.media_url,
                 x.at
             from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                 $8::text[], $9::timestamptz[])
                 as x (company, contact, ctwa_clid, source_url, source_id, headline, media_type, media_url, at)
             join contacts c on c.company_id = x.company and c.id = x.contact
             order by c.company_id, c.id for no key update of c
         )
         update contacts c set
             ctwa_clid = coalesce(locked.ctwa_clid, c.ctwa_clid),
             source_url = coalesce(locked.source_url, c.source_url),
             source_id = coalesce(locked.source_id, c.source_id),
             headline = coalesce(locked.headline, c.headline),
             media_type = coalesce(locked.media_type, c.media_type),
             media_url = coalesce(locked.media_url, c.media_url),
             updated_at = greatest(c.updated_at, locked.at)
         from locked where c.company_id = locked.company_id and c.id = locked.id and (
             coalesce(locked.ctwa_clid, c.ctwa_clid), coalesce(locked.source_url, c.source_url),
             coalesce(locked.source_id, c.source_id), coalesce(locked.headline, c.headline),
             coalesce(locked.media_type, c.media_type), coalesce(locked.media_url, c.media_url)
         ) is distinct from (c.ctwa_clid, c.source_url, c.source_id, c.headline, c.media_type, c.media_url)",
    )
    .bind(rows.iter().map(|row| row.company_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.contact_id).collect::<Vec<_>>())
    .bind(column!(ctwa_clid))
    .bind(column!(source_url))
    .bind(column!(source_id))
    .bind(column!(headline))
    .bind(column!(media_type))
    .bind(column!(media_url))
    .bind(rows.iter().map(|row| row.at).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(contact: i64, source_id: Option<&str>, headline: Option<&str>) -> ReferralRow {
        let referral = Referral {
            source_id: source_id.map(str::to_owned),
            headline: headline.map(str::to_owned),
            ..Referral::default()
        };
        ReferralRow {
            company_id: CompanyId::new(1),
            contact_id: ContactId::new(contact),
            referral,
            at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn later_reports_replace_only_the_fields_they_set() {
        let rows = [report(7, Some("ad 1"), Some("Buy")), report(8, Some("ad 9"), None), report(7, Some("ad 2"), None)];
        let combined = combine(&rows.iter().collect::<Vec<_>>());
        assert_eq!(combined, [report(7, Some("ad 2"), Some("Buy")), report(8, Some("ad 9"), None)]);
    }
}
