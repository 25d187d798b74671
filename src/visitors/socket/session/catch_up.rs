//! The messages that the browser has missed, read from the tables page by page.

use std::time::Duration;

use hotline_actors::Refusal;
use hotline_actors::webchat::{ReceiptKind, StatusUpdate};
use hotline_persistence::select::PageRequest;
use hotline_persistence::tables::messages::{self, ConversationProgress, MessageRow};
use tokio::time::Instant;

use super::end::End;
use super::{CatchUpPosition, SocketSession};
use crate::api::webchat::visible_messages;
use crate::visitors::socket::frames::ServerFrame;
use crate::web::admission::response_memory::HeldBytes;

/// Pause before a failed read is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Messages per page, unless they are long.
const PAGE_SIZE: i64 = 100;

/// Maximum size of a page's texts in bytes. A socket holds them until its browser has read them. A longer message is a
/// page of its own.
const PAGE_BYTES_MAX: usize = 256 * 1024;

/// A page of missed messages.
struct MissedPage {
    rows: Vec<MessageRow>,
    /// How far the conversation's messages were delivered and read; only in the last page.
    progress: Option<ConversationProgress>,
    /// How many messages to read for the next page.
    next_size: i64,
    _reservation: HeldBytes,
}

impl SocketSession {
    /// Pushes the messages this browser has missed. While the database is unavailable, new messages wait too: a browser
    /// that already has a newer message would never request the missed ones.
    pub(super) async fn catch_up(&mut self) -> Result<(), End> {
        let mut size = PAGE_SIZE;
        loop {
            let page = match self.read_missed(size).await {
                Ok(page) => page,
                Err(Refusal::Unavailable(reason)) => {
                    tracing::debug!(reason, "sending missed messages to a visitor will be retried");
                    self.position = CatchUpPosition::Behind { at: Instant::now() + RETRY_PAUSE };
                    return Ok(());
                }
                Err(refusal) => {
                    tracing::error!(%refusal, "could not send missed messages to a visitor");
                    return Err(End::Lost);
                }
            };
            for row in &page.rows {
                self.push_message(row).await?;
            }
            self.acknowledge_delivered();
            size = page.next_size;
            let Some(progress) = page.progress else { continue };
            for update in status_updates(&progress) {
                self.push(&update.into()).await?;
            }
            self.position = CatchUpPosition::CaughtUp;
            return self.push(&ServerFrame::CaughtUp { last_id: self.last_pushed }).await;
        }
    }

    async fn read_missed(&self, size: i64) -> Result<MissedPage, Refusal> {
        let session = self.session();
        let company = session.company_id;
        let db = self.app.engine.reads().tables_as_of_now(company).await?;
        let _permit = self.visitor_limits.admit_catch_up(company).await.map_err(hotline_persistence::Error::from)?;
        // A page stays in memory until its browser has read it. If the memory for such pages is used up, the socket
        // tries again later.
        let response_memory = &self.context.response_memory;
        let reservation = response_memory.hold_for_visitor(self.context.address, company, PAGE_BYTES_MAX);
        let mut reservation =
            reservation.ok_or_else(|| Refusal::Unavailable("too much unread output is buffered".to_owned()))?;
        let page = PageRequest::first(size);
        // If the session has ended meanwhile, this browser gets no more than one that had caught up before.
        let until = *self.ended.borrow();
        let filter = visible_messages(session, self.last_pushed, (None, None), until);
        let mut missed = messages::list(db, company, &filter, page).await?;
        let (count, bytes) = measure_page(&missed.rows);
        reservation.shrink_to(bytes);
        let is_cut = count < missed.rows.len();
        missed.rows.truncate(count);
        // Rows that did not fit are read again, and long messages tend to follow each other: the next page requests at
        // most twice the rows that did fit.
        let next_size = if is_cut {
            i64::try_from(count).unwrap_or(PAGE_SIZE).saturating_mul(2).clamp(1, PAGE_SIZE)
        } else {
            PAGE_SIZE
        };
        let progress = if missed.has_more || is_cut {
            None
        } else {
            let conversation = (session.channel_id, session.contact_id);
            Some(messages::conversation_progress(db, company, conversation, session.visible_since()).await?)
        };
        Ok(MissedPage { rows: missed.rows, progress, next_size, _reservation: reservation })
    }
}

/// How many of the messages fit in a page (at least one), and the bytes to reserve for them: at most a full page.
fn measure_page(rows: &[MessageRow]) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    for row in rows {
        bytes += row.body.as_ref().map_or(0, String::len);
        bytes += row.interactive.as_ref().map_or(0, |interactive| interactive.to_string().len());
        if bytes > PAGE_BYTES_MAX {
            break;
        }
        count += 1;
    }
    (count.max(1).min(rows.len()), bytes.min(PAGE_BYTES_MAX))
}

fn status_updates(progress: &ConversationProgress) -> impl Iterator<Item = StatusUpdate> {
    let update = |kind, up_to: Option<_>, at: Option<_>| Some(StatusUpdate { kind, up_to: up_to?, at: at? });
    [
        update(ReceiptKind::Delivered, progress.delivered, progress.delivered_at),
        update(ReceiptKind::ReadByContact, progress.read_by_contact, progress.read_by_contact_at),
        update(ReceiptKind::ReadByCompany, progress.read_by_company, progress.read_by_company_at),
    ]
    .into_iter()
    .flatten()
}
