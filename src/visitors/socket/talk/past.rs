//! The messages that the browser has missed, read from the tables page by page.

use std::time::Duration;

use hotline_actors::Refusal;
use hotline_actors::webchat::{Moved, Stage};
use hotline_persistence::select::PageRequest;
use hotline_persistence::tables::messages::{self, MessageRow, States};
use tokio::time::Instant;

use super::end::End;
use super::{Position, Talk};
use crate::api::webchat::shown_in;
use crate::visitors::socket::frames::Frame;
use crate::web::response_memory::HeldBytes;

/// Pause before a failed read is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Messages per page, unless they are long.
const PAGE: i64 = 100;

/// Bytes of a page's texts: what a socket holds while its reader takes them, however slowly. The first message is there in
/// any case.
const PAGE_BYTES_MAX: usize = 256 * 1024;

/// A page of missed messages.
struct Past {
    rows: Vec<MessageRow>,
    /// In the last page: the status of all messages.
    states: Option<States>,
    /// How many messages to read for the next page.
    next: i64,
    _held: Held,
}

impl Talk {
    /// Pushes the messages this browser has missed. While the database is unavailable, new messages wait too: a browser
    /// that already has a newer message would never request the missed ones.
    pub(super) async fn catch_up(&mut self) -> Result<(), End> {
        let mut size = PAGE;
        loop {
            let page = match self.read_past(size).await {
                Ok(page) => page,
                Err(Refusal::Unavailable(reason)) => {
                    tracing::debug!(reason, "sending missed messages to a visitor will be retried");
                    self.position = Position::Behind { at: Instant::now() + RETRY_PAUSE };
                    return Ok(());
                }
                Err(refusal) => {
                    tracing::error!(%refusal, "could not send missed messages to a visitor");
                    return Err(End::Lost);
                }
            };
            for row in &page.rows {
                self.show(row).await?;
            }
            self.note_arrived();
            size = page.next;
            let Some(states) = page.states else { continue };
            for moved in moved(&states) {
                self.write(&moved.into()).await?;
            }
            self.position = Position::CaughtUp;
            return self.write(&Frame::CaughtUp { last_id: self.shown }).await;
        }
    }

    async fn read_past(&self, size: i64) -> Result<Past, Refusal> {
        let session = self.session();
        let company = session.company_id;
        let db = self.app.engine.reads().tables_as_of_now(company).await?;
        let _turn = self.visitors.catch_up(company).await.map_err(hotline_persistence::Error::from)?;
        // Sockets that take nothing hold a page each; those above their share read one later.
        let held = self.page.unread.hold(self.page.address, company, PAGE_BYTES_MAX);
        let mut held = held.ok_or_else(|| Refusal::Unavailable("too much unread output is buffered".to_owned()))?;
        let page = PageRequest::first(size);
        let filter = shown_in(session, self.shown, (None, None));
        let mut listed = messages::list(db, company, &filter, page).await?;
        let (fitting, bytes) = fitting(&listed.rows);
        held.shrink(bytes);
        let is_cut = fitting < listed.rows.len();
        listed.rows.truncate(fitting);
        // Long messages are seldom alone: what is read and does not fit is read again.
        let next = if is_cut { i64::try_from(fitting).unwrap_or(PAGE).saturating_mul(2).clamp(1, PAGE) } else { PAGE };
        let states = if listed.has_more || is_cut {
            None
        } else {
            let conversation = (session.channel_id, session.contact_id);
            Some(messages::states(db, company, conversation, session.shown_since()).await?)
        };
        Ok(Past { rows: listed.rows, states, next, _held: held })
    }
}

/// How many of the messages fit in a page, and the bytes of their texts, a full page at most.
fn fitting(rows: &[MessageRow]) -> (usize, usize) {
    let (mut fitting, mut bytes) = (0, 0);
    for row in rows {
        bytes += row.body.as_ref().map_or(0, String::len);
        bytes += row.interactive.as_ref().map_or(0, |interactive| interactive.to_string().len());
        if bytes > PAGE_BYTES_MAX {
            break;
        }
        fitting += 1;
    }
    (fitting.max(1).min(rows.len()), bytes.min(PAGE_BYTES_MAX))
}

fn moved(states: &States) -> impl Iterator<Item = Moved> {
    let stage = |to, up_to: Option<_>, at: Option<_>| Some(Moved { to, up_to: up_to?, at: at? });
    [
        stage(Stage::Delivered, states.delivered, states.delivered_at),
        stage(Stage::Seen, states.seen, states.seen_at),
        stage(Stage::Read, states.read, states.read_at),
    ]
    .into_iter()
    .flatten()
}
