//! Changes made to a session when its visitor's identity is established.

use std::sync::Arc;

use actix::{ActorFutureExt, AtomicResponse, Handler, Message, WrapFuture, fut};
use hotline_persistence::Change;
use hotline_persistence::key::KeyHash;
use hotline_persistence::tables::events::By;
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};

use super::{End, SessionScope, VisitorSession};
use crate::Refusal;
use crate::clock::now;
use crate::registry::Envelope;
use crate::tickets::{AddNote, AttachedChanges, Author, Execute};

/// Maximum tokens of a session besides its first: browsers and devices a visitor is signed in on at once. One more
/// evicts the oldest of them, and that browser must sign in again.
const TOKENS_MAX: usize = 16;

/// Marks the visitor as verified.
#[derive(Clone, Copy, Message)]
#[rtype(result = "Result<SessionRow, Refusal>")]
pub struct Verify;

/// Adds another browser of the visitor to this session, with a token of its own.
#[derive(Clone, Message)]
#[rtype(result = "Result<SessionRow, Refusal>")]
pub struct Admit {
    /// The token's hash.
    pub token: KeyHash,
    /// Changes that become durable in the same entry.
    pub attached: Option<AttachedChanges<SessionRow>>,
}

/// The visitor continues in another session: ends this one, with a note in its ticket.
#[derive(Clone, Message)]
#[rtype(result = "Result<SessionRow, Refusal>")]
pub struct Leave {
    /// The text of the note.
    pub note: String,
}

impl Handler<Envelope<Verify>> for VisitorSession {
    type Result = ();

    fn handle(&mut self, verify: Envelope<Verify>, _: &mut Self::Context) {
        let Some((Verify, reply_to)) = verify.accept() else { return };
        self.status.record_use();
        let verified = self.update_row(|row| row.verified = true, None);
        reply_to.send_after(&self.scope.base.store.log, self.status.last_seq(), verified);
    }
}

impl Handler<Envelope<Admit>> for VisitorSession {
    type Result = ();

    fn handle(&mut self, admit: Envelope<Admit>, _: &mut Self::Context) {
        let Some((Admit { token, attached }, reply_to)) = admit.accept() else { return };
        self.status.record_use();
        let hashes_before: Vec<KeyHash> = self.row.all_token_hashes().collect();
        let add_token = |row: &mut SessionRow| {
            row.token_hashes.push(token.to_vec());
            let surplus = row.token_hashes.len().saturating_sub(TOKENS_MAX);
            row.token_hashes.drain(..surplus);
        };
        let admitted = self.update_row(add_token, attached);
        if let Ok(row) = &admitted {
            let hashes_after: Vec<KeyHash> = row.all_token_hashes().collect();
            for evicted in hashes_before.iter().filter(|hash| !hashes_after.contains(hash)) {
                self.scope.tokens.remove(evicted);
            }
            self.scope.tokens.insert(token, self.key());
        }
        reply_to.send_after(&self.scope.base.store.log, self.status.last_seq(), admitted);
    }
}

impl VisitorSession {
    /// Changes the row of an active session.
    fn update_row(
        &mut self,
        change: impl FnOnce(&mut SessionRow),
        attached: Option<AttachedChanges<SessionRow>>,
    ) -> Result<SessionRow, Refusal> {
        if self.is_retired {
            return Err(Refusal::Retired);
        }
        self.check_active()?;
        let mut row = self.row.clone();
        change(&mut row);
        if row != self.row {
            row.last_seen_at = now().max(row.last_seen_at);
            self.append(row, attached)?;
        }
        Ok(self.row.clone())
    }
}

impl Handler<Envelope<Leave>> for VisitorSession {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, leave: Envelope<Leave>, _: &mut Self::Context) -> Self::Result {
        let Some((leave, reply_to)) = leave.accept() else { return AtomicResponse::new(Box::pin(fut::ready(()))) };
        self.status.record_use();
        let (scope, row) = (self.scope.clone(), self.row.clone());
        let is_retired = self.is_retired;
        let outcome =
            async move { if is_retired { Err(Refusal::Retired) } else { end_with_note(scope, row, leave.note).await } };
        AtomicResponse::new(Box::pin(outcome.into_actor(self).map(|outcome, session, _| {
            let result = outcome.and_then(|ended_row| match ended_row {
                Some(row) => {
                    session.row = row;
                    // The ticket's actor appended the entry; the company's last entry is that one or a later one.
                    session.status.record_append(session.scope.base.store.log.last_of(session.row.company_id));
                    Ok(())
                }
                // Without a note, the session ends in an entry of its own.
                None => session.end(End { idle_since: None, attached: None, by: By::ITS_CONTACT }),
            });
            let result = result.map(|()| session.row.clone());
            reply_to.send_after(&session.scope.base.store.log, session.status.last_seq(), result);
        })))
    }
}

/// Writes the note into the session's ticket and ends the session in the same entry, so that a retry does not write the
/// note again. Returns the ended row; `None` if there is no open ticket for the note, or the session has ended already.
async fn end_with_note(scope: Arc<SessionScope>, row: SessionRow, body: String) -> Result<Option<SessionRow>, Refusal> {
    if row.status != SessionStatus::Active {
        return Ok(None);
    }
    let Some(ticket) = row.ticket_id else { return Ok(None) };
    let ended_row =
        SessionRow { status: SessionStatus::Ended, ended_at: Some(now()), by: Some(By::ITS_CONTACT), ..row };
    let attached: AttachedChanges<MessageRow> = {
        let ended_row = ended_row.clone();
        Arc::new(move |note: &MessageRow| {
            // The session's contact may have been merged into another since.
            let row = SessionRow { contact_id: note.contact_id, ..ended_row.clone() };
            Ok(vec![Change::Session(Box::new(row))])
        })
    };
    let command =
        Execute { command: AddNote { body, author: Author::CONTACT }, attached: Some(attached), only_if: None };
    match scope.tickets.ask(ended_row.company_id, ticket, command).await {
        Ok(note) => Ok(Some(SessionRow { contact_id: note.contact_id, ..ended_row })),
        Err(Refusal::TicketClosed(_) | Refusal::NotFound) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}
