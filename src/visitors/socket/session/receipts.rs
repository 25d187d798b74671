//! Receipts of a visitor's browser: which messages were delivered to it, and which the visitor has seen.

use hotline_actors::tickets::{MarkDelivered, MarkSeen};
use hotline_actors::{Engine, Refusal};
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::tables::webchat_sessions::SessionRow;
use hotline_persistence::{MessageId, TicketId};

use super::SocketSession;
use crate::api::webchat::is_visible;
use crate::visitors::limits::RequestKind;

impl SocketSession {
    /// Records the delivered messages in their tickets, in the background. If that fails, the ticket's next receipt
    /// includes these messages.
    pub(super) fn acknowledge_delivered(&mut self) {
        let since = Some(self.session().visible_since());
        for (ticket, up_to) in self.undelivered.drain(..) {
            let (engine, company) = (self.app.engine.clone(), self.attached_socket.row.company_id);
            self.app.engine.spawn_for(company, async move {
                if let Err(refusal) = engine.tickets.ask(company, ticket, MarkDelivered { up_to, since }).await {
                    tracing::debug!(%refusal, "could not record a delivery status");
                }
            });
        }
    }

    /// Records in the tickets that all messages up to `up_to` were seen, in the background.
    pub(super) fn acknowledge_seen(&mut self, up_to: MessageId) {
        let mut tickets: Vec<TicketId> = Vec::new();
        self.unseen.retain(|(ticket, newest)| {
            // Ids increase across all tickets: if a ticket's newest message was seen, all of its messages were.
            let is_seen = *newest <= up_to;
            if is_seen {
                tickets.push(*ticket);
            }
            !is_seen
        });
        if tickets.is_empty() {
            // `mark_seen` then reads the message from the database, so this counts against the address's request limit.
            if Some(up_to) <= self.seen_up_to
                || self.visitor_limits.take(RequestKind::Other, self.context.address).is_err()
            {
                return;
            }
            self.seen_up_to = Some(up_to);
        }
        let (engine, session) = (self.app.engine.clone(), self.session().clone());
        self.app.engine.spawn_for(session.company_id, async move {
            if let Err(refusal) = mark_seen(&engine, &session, tickets, up_to).await {
                tracing::debug!(%refusal, "could not record a read status");
            }
        });
    }
}

/// Records the message as the newest of its ticket, unless a newer one is recorded.
pub(super) fn record_newest(newest_by_ticket: &mut Vec<(TicketId, MessageId)>, row: &MessageRow) {
    match newest_by_ticket.iter_mut().find(|(ticket, _)| *ticket == row.ticket_id) {
        Some((_, newest)) => *newest = row.id.max(*newest),
        None => newest_by_ticket.push((row.ticket_id, row.id)),
    }
}

/// Marks the messages of these tickets up to `up_to` as seen. If there are none, another socket has pushed the message,
/// and its ticket is looked up.
async fn mark_seen(
    engine: &Engine,
    session: &SessionRow,
    mut tickets: Vec<TicketId>,
    up_to: MessageId,
) -> Result<(), Refusal> {
    let company = session.company_id;
    if tickets.is_empty() {
        let row = engine.reads().message(company, up_to).await?.filter(|row| is_visible(session, row));
        tickets.extend(row.map(|row| row.ticket_id));
    }
    let since = Some(session.visible_since());
    for ticket in tickets {
        engine.tickets.ask(company, ticket, MarkSeen { up_to, since }).await?;
    }
    Ok(())
}
