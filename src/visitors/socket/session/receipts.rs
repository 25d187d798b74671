//! Reports to the tickets which messages the browser has received, and which the visitor has seen.

use hotline_actors::tickets::{MarkDelivered, MarkSeen};
use hotline_actors::{Engine, Refusal};
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::tables::webchat_sessions::SessionRow;
use hotline_persistence::{CompanyId, MessageId, TicketId};

use super::SocketSession;
use crate::api::webchat::is_visible;

impl SocketSession {
    /// Reports to the tickets that their messages were delivered. Nothing waits for this: what cannot be recorded now
    /// is recorded when the browser reconnects.
    pub(super) fn acknowledge_delivered(&mut self) {
        for (ticket, up_to) in self.undelivered.drain(..) {
            let (engine, company) = (self.app.engine.clone(), self.attached.row.company_id);
            self.app.engine.spawn_for(company, async move {
                if let Err(refusal) = engine.tickets.ask(company, ticket, MarkDelivered { up_to }).await {
                    tracing::debug!(%refusal, "could not record a delivery status");
                }
            });
        }
    }

    pub(super) fn acknowledge_seen(&mut self, up_to: MessageId) {
        let (engine, session) = (self.app.engine.clone(), self.session().clone());
        let mut tickets: Vec<TicketId> = Vec::new();
        self.unseen.retain(|(ticket, newest)| {
            // Ids grow with time over all tickets: if a ticket's newest message was seen, all of its messages were.
            let is_seen = *newest <= up_to;
            if is_seen {
                tickets.push(*ticket);
            }
            !is_seen
        });
        self.app.engine.spawn_for(session.company_id, async move {
            if let Err(refusal) = mark_seen(&engine, &session, tickets, up_to).await {
                tracing::debug!(%refusal, "could not record a read status");
            }
        });
    }
}

/// Records the newest message of each ticket.
pub(super) fn record_newest(newest: &mut Vec<(TicketId, MessageId)>, row: &MessageRow) {
    match newest.iter_mut().find(|(ticket, _)| *ticket == row.ticket_id) {
        Some((_, id)) => *id = row.id.max(*id),
        None => newest.push((row.ticket_id, row.id)),
    }
}

/// Marks these tickets' messages as seen; if there are none, those of the message's own ticket, which another socket
/// has pushed.
async fn mark_seen(
    engine: &Engine,
    session: &SessionRow,
    mut tickets: Vec<TicketId>,
    up_to: MessageId,
) -> Result<(), Refusal> {
    let company: CompanyId = session.company_id;
    if tickets.is_empty() {
        let row = engine.reads().message(company, up_to).await?.filter(|row| is_visible(session, row));
        tickets.extend(row.map(|row| row.ticket_id));
    }
    for ticket in tickets {
        engine.tickets.ask(company, ticket, MarkSeen { up_to }).await?;
    }
    Ok(())
}
