//! Events of visitor sessions: start and end.

use std::collections::HashMap;

use serde_json::{Value, json};
use sqlx::PgConnection;

use super::people::{as_sqlx, by_company};
use super::{Before, Place, Telling};
use crate::tables::contacts;
use crate::tables::events::{By, ByKind, EventKind, Record, SessionThen, Told};
use crate::tables::webchat_sessions::{self, SessionRow, SessionStatus};
use crate::{CompanyId, SessionId};

impl Telling<'_> {
    pub(super) async fn tell_sessions(
        &self,
        db: &mut PgConnection,
        before: &Before,
        careful: bool,
        told: &mut Vec<(CompanyId, Place, Told)>,
    ) -> sqlx::Result<()> {
        let mut sessions = self.sessions.clone();
        if careful && !sessions.is_empty() {
            let ids = sessions.iter().map(|(_, row)| (row.company_id, row.id.clone()));
            let written = webchat_sessions::statuses(&mut *db, ids).await?;
            sessions.retain(|(_, row)| written.contains_key(&(row.company_id, row.id.clone())));
        }
        let mut known: HashMap<(CompanyId, SessionId), SessionStatus> = HashMap::new();
        let mut happened = Vec::new();
        for (place, row) in &sessions {
            let key = (row.company_id, row.id.clone());
            let was = known.get(&key).or_else(|| before.sessions.get(&key)).copied();
            known.insert(key, row.status);
            let kind = match (was, row.status) {
                (None, SessionStatus::Active) => EventKind::SessionStarted,
                (None | Some(SessionStatus::Active), SessionStatus::Ended) => EventKind::SessionEnded,
                _ => continue,
            };
            happened.push((*place, kind, was, *row));
        }
        if happened.is_empty() {
            return Ok(());
        }
        let mut of = HashMap::new();
        for (company, ids) in by_company(happened.iter().map(|(_, _, _, row)| (row.company_id, row.contact_id))) {
            let rows = contacts::find_all(&mut *db, company, &ids).await.map_err(as_sqlx)?;
            of.extend(rows.into_iter().map(|row| ((company, row.id), row)));
        }
        for (place, kind, was, row) in happened {
            let contact =
                of.get(&(row.company_id, row.contact_id)).and_then(|contact| serde_json::to_value(contact).ok());
            let by = by_contact(row, contact.as_ref());
            let row = SessionRow { token_hash: Vec::new(), token_hashes: Vec::new(), by: None, ..row.clone() };
            let (company, at) = (row.company_id, row.ended_at.unwrap_or(row.created_at));
            let previous = was.map(|was| json!({"status": was, "endedAt": null}));
            let record = Record::Session(Box::new(SessionThen { row, contact }));
            told.push((company, place, Told { kind, at, record, previous, by: Some(by) }));
        }
        Ok(())
    }
}

/// Who began or ended a session; its visitor with the contact's name.
fn by_contact(row: &SessionRow, contact: Option<&Value>) -> By {
    match row.by.clone() {
        Some(By { kind: ByKind::Contact, .. }) => {
            let name = contact.and_then(|contact| contact.get("name")?.as_str().map(str::to_owned));
            By::contact(row.contact_id, name)
        }
        by => by.unwrap_or_default(),
    }
}
