//! Events of visitor sessions: start and end.

use std::collections::HashMap;

use serde_json::{Value, json};
use sqlx::PgConnection;

use super::embedded_contacts::{as_sqlx, group_by_company};
use super::{BatchIndex, EventCollector, PreviousRows};
use crate::tables::contacts;
use crate::tables::events::{By, ByKind, EventKind, NewEvent, Record, SessionSnapshot};
use crate::tables::webchat_sessions::{self, SessionRow, SessionStatus};
use crate::{CompanyId, SessionId};

impl EventCollector<'_> {
    /// Adds one event for each session that began or ended.
    pub(super) async fn add_session_events(
        &self,
        db: &mut PgConnection,
        previous_rows: &PreviousRows,
        in_parts: bool,
        events: &mut Vec<(CompanyId, BatchIndex, NewEvent)>,
    ) -> sqlx::Result<()> {
        let mut sessions = self.sessions.clone();
        // A new session whose row was refused has no events.
        if in_parts && !sessions.is_empty() {
            let ids = sessions.iter().map(|(_, row)| (row.company_id, row.id.clone()));
            let written = webchat_sessions::statuses(&mut *db, ids).await?;
            sessions.retain(|(_, row)| written.contains_key(&(row.company_id, row.id.clone())));
        }
        let transitions = transitions_of(&sessions, previous_rows);
        if transitions.is_empty() {
            return Ok(());
        }
        let mut contacts = HashMap::new();
        let contact_keys = transitions.iter().map(|transition| (transition.row.company_id, transition.row.contact_id));
        for (company, ids) in group_by_company(contact_keys) {
            let rows = contacts::find_all(&mut *db, company, &ids).await.map_err(as_sqlx)?;
            contacts.extend(rows.into_iter().map(|row| ((company, row.id), row)));
        }
        for SessionTransition { index, kind, previous_status, row } in transitions {
            let contact =
                contacts.get(&(row.company_id, row.contact_id)).and_then(|contact| serde_json::to_value(contact).ok());
            let by = author_of(row, contact.as_ref());
            // The record in the event has no token hashes, and no author: the event itself has one.
            let row = SessionRow { token_hash: Vec::new(), token_hashes: Vec::new(), by: None, ..row.clone() };
            let (company, at) = (row.company_id, row.ended_at.unwrap_or(row.created_at));
            let previous = previous_status.map(|status| json!({"status": status, "endedAt": null}));
            let record = Record::Session(Box::new(SessionSnapshot { row, contact }));
            events.push((company, index, NewEvent { kind, at, record, previous, by: Some(by) }));
        }
        Ok(())
    }
}

/// The start or the end of a session.
struct SessionTransition<'a> {
    index: BatchIndex,
    kind: EventKind,
    /// `None`: the session is new.
    previous_status: Option<SessionStatus>,
    row: &'a SessionRow,
}

/// The sessions among these rows that began or ended, compared with their previous rows.
fn transitions_of<'a>(
    sessions: &[(BatchIndex, &'a SessionRow)],
    previous_rows: &PreviousRows,
) -> Vec<SessionTransition<'a>> {
    let mut latest_statuses: HashMap<(CompanyId, SessionId), SessionStatus> = HashMap::new();
    let mut transitions = Vec::new();
    for &(index, row) in sessions {
        let key = (row.company_id, row.id.clone());
        let previous_status = latest_statuses.get(&key).or_else(|| previous_rows.sessions.get(&key)).copied();
        latest_statuses.insert(key, row.status);
        let kind = match (previous_status, row.status) {
            (None, SessionStatus::Active) => EventKind::SessionStarted,
            (None | Some(SessionStatus::Active), SessionStatus::Ended) => EventKind::SessionEnded,
            _ => continue,
        };
        transitions.push(SessionTransition { index, kind, previous_status, row });
    }
    transitions
}

/// Who started or ended a session. A visitor has the name of the contact.
fn author_of(row: &SessionRow, contact: Option<&Value>) -> By {
    match row.by.clone() {
        Some(By { kind: ByKind::Contact, .. }) => {
            let name = contact.and_then(|contact| contact.get("name")?.as_str().map(str::to_owned));
            By::contact(row.contact_id, name)
        }
        by => by.unwrap_or_default(),
    }
}
