//! Contacts as embedded in events of other records, and helpers that the modules of events share.

use std::collections::{BTreeMap, HashMap, HashSet};

use sqlx::PgConnection;

use crate::document;
use crate::tables::contacts::ContactRef;
use crate::tables::events::ContactSnapshot;
use crate::{CompanyId, ContactId};

/// Loads contacts in the form that events of tickets and scheduled messages embed.
pub(super) async fn embedded_contacts(
    db: &mut PgConnection,
    ids: impl Iterator<Item = (CompanyId, ContactId)>,
) -> sqlx::Result<HashMap<(CompanyId, ContactId), ContactSnapshot>> {
    let mut found = HashMap::new();
    let (companies, ids): (Vec<_>, Vec<_>) = ids.collect::<HashSet<_>>().into_iter().unzip();
    if ids.is_empty() {
        return Ok(found);
    }
    let rows = sqlx::query(
        "select c.company_id, c.id, c.name, c.number, c.verified
         from unnest($1::bigint[], $2::bigint[]) as x (company, contact)
         join contacts c on c.company_id = x.company and c.id = x.contact",
    );
    for row in rows.bind(companies).bind(ids).fetch_all(db).await? {
        let company: CompanyId = sqlx::Row::try_get(&row, "company_id")?;
        let contact: ContactRef = document::read(&row)?;
        let embedded = ContactSnapshot { name: contact.name, number: contact.number, verified: contact.verified };
        found.insert((company, contact.id), embedded);
    }
    Ok(found)
}

/// Groups ids by company, sorted and without duplicates.
pub(super) fn group_by_company<I: Ord>(ids: impl Iterator<Item = (CompanyId, I)>) -> BTreeMap<CompanyId, Vec<I>> {
    let mut companies: BTreeMap<CompanyId, Vec<I>> = BTreeMap::new();
    for (company, id) in ids {
        companies.entry(company).or_default().push(id);
    }
    for ids in companies.values_mut() {
        ids.sort_unstable();
        ids.dedup();
    }
    companies
}

/// Maps an error of a function of `tables` back to a `sqlx::Error`, the type that the writer classifies.
pub(super) fn as_sqlx(error: crate::Error) -> sqlx::Error {
    match error {
        crate::Error::Database(error) => error,
        other => sqlx::Error::Protocol(other.to_string()),
    }
}
