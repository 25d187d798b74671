//! `GET /events/stream`: events as they happen, as Server-Sent Events.
//!
//! A stream reads further events only when its reader has taken the previous ones: a slow reader costs one batch of
//! memory, and its connection is closed when it reads nothing for a while. A reader resumes from the last id it has
//! read. Streams of one company that have reached its latest events share what is read and serialized for them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::{CACHE_CONTROL, HeaderName};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use dashmap::DashMap;
use futures_util::stream;
use hotline_actors::Directory;
use hotline_persistence::limits::{KeyedPermit, KeyedPermits, PermitLimits};
use hotline_persistence::tables::events::{self, After, EventKind, Portion};
use hotline_persistence::{CompanyId, EventNews, Listening, LoggedEventId, Presence};
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::view::{EventPage, SerializedEvent, serialize_page};
use super::{LastId, Types, listen, visible_types};
use crate::api::messages::ViewContext;
use crate::app::App;
use crate::openapi::{DocumentedResponse, Operation, ResponseDescription};
use crate::web::request::params::QueryParams;
use crate::web::request::values::FromField;
use crate::web::response::schema::Schemas;
use crate::web::{ApiError, ApiResult, Caller, Filter, Params};

/// Maximum silence of a stream: proxies close a connection that is silent for a minute.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

/// Milliseconds after which a browser reconnects.
const RETRY_MS: u64 = 3000;

/// Pause after a failed read of the database.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

/// Events read at once, which a stream holds while its reader is slow: some 12 MiB for all streams of a company. An
/// event that is larger than this is a batch of its own.
const BATCH: Portion = Portion { events: 100, bytes: 64 << 10 };

/// Events of a company that its streams share: enough for those slightly behind the others.
const SHARED_EVENTS_MAX: usize = 256;

/// Maximum size of the shared events of a company, in bytes.
const SHARED_BYTES_MAX: usize = 1 << 20;

/// Maximum base URLs of files for which the streams of a company share events: without `--public-url` each client
/// chooses its own. Streams with further base URLs read on their own.
const SITES_MAX: usize = 4;

/// Maximum number of streams and waiting requests of one company: some for its own services, and one per agent's
/// screen. Each stream costs a batch of memory and a connection, and each event is sent to every stream.
pub const READERS_PER_COMPANY_MAX: usize = 200;

/// `Retry-After` in seconds when a company has too many readers: about as long as a request waits.
const RETRY_AFTER_S: u64 = 30;

/// The header with the last id a browser has read.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The query of a stream: the start and the types.
pub struct StreamQuery {
    after: Option<LoggedEventId>,
    types: Vec<EventKind>,
}

impl Filter for StreamQuery {
    fn read(query: &mut Params) -> Self {
        Self {
            after: query.filter::<LastId>("after").map(|last| last.0),
            types: query.filter::<Types>("types").unwrap_or_default().0,
        }
    }
}

/// The documentation of a stream.
pub struct EventStream;

impl ResponseDescription for EventStream {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.parameters.push(json!({
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The last event read, which browsers send automatically; takes precedence over `after`.",
            "schema": {"type": "integer", "format": "int64", "minimum": 0},
            "example": 4711,
        }));
        operation.errors.extend([400, 404]);
        let stream =
            json!({"type": "string", "example": "id: 4711\nevent: ticket.opened\ndata: {\"id\": 4711, …}\n\n"});
        operation.success = (200, Some(stream));
        operation.content_type = "text/event-stream";
    }
}

/// The state that streams of the same company share, and the number of its readers.
pub struct SharedStreams {
    /// What each company's streams share, by the base URL of files.
    companies: DashMap<CompanyId, HashMap<String, Arc<SharedStream>>>,
    readers: KeyedPermits<CompanyId>,
}

impl Default for SharedStreams {
    fn default() -> Self {
        let readers = KeyedPermits::new(PermitLimits::of_key(READERS_PER_COMPANY_MAX));
        Self { companies: DashMap::new(), readers }
    }
}

/// The latest events of a company, serialized for readers that use the same base URL for files.
#[derive(Default)]
struct SharedStream {
    window: Mutex<EventWindow>,
}

#[derive(Default)]
struct EventWindow {
    /// All events after `from`, up to `next`.
    frames: VecDeque<EventFrame>,
    from: LastId,
    next: Option<After>,
    /// The notification version at the time they were read.
    version: u64,
    /// The number of removals before they were read.
    removals: u64,
    bytes: usize,
}

/// A serialized event.
#[derive(Clone)]
struct EventFrame {
    id: LoggedEventId,
    kind: EventKind,
    text: Bytes,
}

impl EventFrame {
    fn of(SerializedEvent { id, kind, json }: &SerializedEvent) -> Self {
        // JSON on one line contains no line breaks, so its content cannot end the event.
        let text = format!("id: {id}\nevent: {}\ndata: {}\n\n", kind.as_str(), json.get());
        Self { id: *id, kind: *kind, text: text.into() }
    }
}

impl SharedStreams {
    /// Acquires a permit for one more stream or waiting request of a company.
    ///
    /// # Errors
    /// `429` when the company has reached the limit.
    pub(super) fn admit(&self, company: CompanyId) -> ApiResult<KeyedPermit<CompanyId>> {
        let permit = self.readers.try_acquire(company);
        permit.ok_or_else(|| ApiError::too_many_open("event streams", RETRY_AFTER_S))
    }

    /// What the streams of a company with this base URL share; `None` if they share for too many other base URLs.
    fn of(&self, company: CompanyId, site: &str) -> Option<Arc<SharedStream>> {
        let mut sites = self.companies.entry(company).or_default();
        if !sites.contains_key(site) && sites.len() >= SITES_MAX {
            return None;
        }
        Some(sites.entry(site.to_owned()).or_default().clone())
    }

    /// Drops state that no stream uses.
    fn leave(&self, company: CompanyId) {
        if let Some(mut sites) = self.companies.get_mut(&company) {
            // The map holds one reference itself.
            sites.retain(|_, shared| Arc::strong_count(shared) > 1);
        }
        self.companies.remove_if(&company, |_, sites| sites.is_empty());
    }

    /// Drops the shared state of a company, and wakes its streams and waiting requests. They end if the company has
    /// moved to another process; otherwise they continue with what they have.
    pub fn forget(&self, company: CompanyId, news: Option<&EventNews>) {
        // A permit belongs to its stream, and is released with it.
        let Self { companies, readers: _ } = self;
        companies.remove(&company);
        // Not a new event: this only makes every listener check again. What other processes remove before the company
        // returns must not be shown to a stream that lasts until then.
        news.iter().for_each(|news| {
            news.publish_removal(company);
            news.publish(company, LoggedEventId::new(0));
        });
    }
}

/// One stream.
struct StreamState {
    app: Data<App>,
    shared_streams: Data<SharedStreams>,
    caller: Caller,
    context: ViewContext,
    shared: Option<Arc<SharedStream>>,
    news: Listening,
    /// Changes of the directory, and the version of the company that was last checked.
    changes: watch::Receiver<()>,
    seen_version: u64,
    after: After,
    types: Vec<EventKind>,
    /// When a comment must be sent at the latest.
    comment_at: Instant,
    has_started: bool,
    /// Whether it was checked that the log does not end before `after`.
    is_within_log: bool,
    _permit: KeyedPermit<CompanyId>,
}

/// `GET /events/stream`.
pub async fn stream(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    shared_streams: Data<SharedStreams>,
    query: QueryParams<StreamQuery>,
) -> ApiResult<DocumentedResponse<EventStream>> {
    let company = caller.company;
    let news = listen(&app.engine, company)?;
    let permit = shared_streams.admit(company)?;
    let StreamQuery { after, types } = query.0;
    let types = visible_types(&caller, types)?;
    let last_event_id = request.headers().get(LAST_EVENT_ID).map(|text| text.to_str().unwrap_or_default());
    let last_event_id = last_event_id.map(LastId::from_text).transpose();
    let last_event_id = last_event_id.map_err(|reason| ApiError::bad_request(format!("Last-Event-ID {reason}")))?;
    let after = match last_event_id.map(|last| last.0).or(after) {
        Some(after) => after,
        None => events::last_id(app.engine.reads().acknowledged_tables(company).await?, company).await?,
    };
    let context = ViewContext::of(&caller, &app, &request);
    // A stream gives up its presence, so that dropping the company does not wait for it.
    request.extensions_mut().remove::<Presence>();
    let shared = shared_streams.of(company, context.site());
    app.metrics.events.add_opened();
    let comment_at = Instant::now() + COMMENT_INTERVAL;
    let after = After::event(after);
    let (has_started, is_within_log) = (false, false);
    let (changes, seen_version) = (app.engine.directory().changes(), 0);
    let state = StreamState {
        app,
        shared_streams,
        caller,
        context,
        shared,
        news,
        changes,
        seen_version,
        after,
        types,
        comment_at,
        has_started,
        is_within_log,
        _permit: permit,
    };
    let body = stream::unfold(state, |mut state| async move {
        let batch = state.next().await?;
        Some((Ok::<_, actix_web::Error>(batch), state))
    });
    let response = HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-cache"))
        // Proxies must not buffer the stream.
        .insert_header(("x-accel-buffering", "no"))
        .streaming(body);
    Ok(response.into())
}

/// Waits for a change of the directory that may concern the caller.
pub(super) async fn wait_for_change(
    changes: &mut watch::Receiver<()>,
    caller: &Caller,
    seen_version: &mut u64,
    directory: &Directory,
) {
    loop {
        // The sender lives as long as the directory.
        if changes.changed().await.is_err() {
            std::future::pending().await
        }
        if caller.may_be_affected(seen_version, directory) {
            return;
        }
    }
}

/// Waits until a time limit may have taken permissions from the caller.
pub(super) async fn wait_for_expiry(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl StreamState {
    /// The next bytes to send; `None`: the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.has_started {
            self.has_started = true;
            return Some(format!("retry: {RETRY_MS}\n\n").into());
        }
        let mut stopping = self.app.stopping();
        loop {
            let (directory, db) = (self.app.engine.directory(), self.app.db(self.caller.company));
            if self.app.is_stopping() {
                return None;
            }
            // Changes from here on wake the stream. `may_be_affected` is called to update `seen_version`; its result is
            // not needed, because the caller is checked in any case.
            self.changes.mark_unchanged();
            self.caller.may_be_affected(&mut self.seen_version, directory);
            let Ok(valid_for) = self.caller.revalidate("GET", "events", directory, db).await else { return None };
            let expires_at = valid_for.map(|valid_for| Instant::now() + valid_for);
            let previous = self.after.id;
            match self.read().await {
                Ok((batch, count)) if count > 0 => {
                    self.app.metrics.events.add_sent(count);
                    self.comment_at = Instant::now() + COMMENT_INTERVAL;
                    return Some(batch);
                }
                // There were only events of other types.
                Ok(_) if self.after.id > previous => continue,
                Ok(_) => {}
                // The company has moved. A reader that reconnects is forwarded to the new owner.
                Err(_) if !self.app.engine.store().ownership().is_placed_here(self.caller.company) => return None,
                Err(error) => {
                    tracing::debug!(company.id = %self.caller.company, status = %error.status, "event stream is waiting for the database");
                    sleep(OUTAGE_PAUSE).await;
                    if Instant::now() < self.comment_at {
                        continue;
                    }
                    // A comment is due, and is sent by the `select` below also during an outage.
                }
            }
            let changed =
                wait_for_change(&mut self.changes, &self.caller, &mut self.seen_version, self.app.engine.directory());
            tokio::select! {
                () = self.news.changed() => {}
                () = changed => {}
                () = wait_for_expiry(expires_at) => {}
                () = sleep_until(self.comment_at) => {
                    self.comment_at = Instant::now() + COMMENT_INTERVAL;
                    // Includes the last position read, so that a reconnecting reader skips events of other types.
                    return Some(format!(":\nid: {}\n\n", self.after.id).into());
                }
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return None,
            }
        }
    }

    /// The next events and their number.
    async fn read(&mut self) -> ApiResult<(Bytes, u64)> {
        let company = self.caller.company;
        let _presence = self.app.engine.enter(company).await?;
        let version = self.news.version();
        if !self.is_within_log {
            // A log restored from a backup may end before `after`: then the stream begins at its end.
            self.after.id = self.after.id.min(events::last_id(self.app.db(company), company).await?);
            self.is_within_log = true;
        }
        if let Some(shared) = self.shared.clone() {
            let mut window = shared.window.lock().await;
            window.drop_removed(self.news.removals());
            if window.next.is_none() {
                (window.from, window.next) = (LastId(self.after.id), Some(self.after));
            }
            if self.after.id >= window.from.0 {
                window.advance_to(self, version).await?;
            }
            // Checked again: the refresh may have evicted events that this stream has not sent.
            if self.after.id >= window.from.0 {
                let position = window.next.unwrap_or(self.after);
                let frames: Vec<EventFrame> =
                    window.frames.iter().filter(|frame| frame.id > self.after.id).cloned().collect();
                drop(window);
                let position = if position.id > self.after.id { position } else { self.after };
                return Ok(self.take_batch(&frames, position));
            }
        }
        let stored_page = events::read(self.app.db(company), company, self.after, &self.types, BATCH).await?;
        let context = self.context.refreshed(self.app.engine.directory());
        let page = serialize_page(self.app.db(company), company, stored_page, &context, BATCH.bytes).await?;
        let frames: Vec<EventFrame> = page.events.iter().map(EventFrame::of).collect();
        Ok(self.take_batch(&frames, page.next))
    }

    /// The requested frames that fit in a batch, and their number. `position` is where the stream is after all of them.
    fn take_batch(&mut self, frames: &[EventFrame], position: After) -> (Bytes, u64) {
        let is_wanted = |frame: &&EventFrame| self.types.is_empty() || self.types.contains(&frame.kind);
        let wanted: Vec<&EventFrame> = frames.iter().filter(is_wanted).collect();
        let (mut count, mut bytes) = (0, 0);
        while count < wanted.len() && bytes < BATCH.bytes {
            bytes += wanted[count].text.len();
            count += 1;
        }
        self.after = match wanted[..count].last() {
            Some(last) if count < wanted.len() => After { id: last.id, ..self.after },
            _ => position,
        };
        if let [frame] = &wanted[..count] {
            return (frame.text.clone(), 1);
        }
        let mut batch = Vec::with_capacity(bytes);
        wanted[..count].iter().for_each(|frame| batch.extend_from_slice(&frame.text));
        (batch.into(), count as u64)
    }
}

impl EventWindow {
    /// Drops everything if something in it may have been deleted or erased since it was read. `removals` is their
    /// number, read while the window is locked: before everything that is read into it until it is unlocked.
    fn drop_removed(&mut self, removals: u64) {
        if self.removals != removals {
            *self = Self { removals, ..Self::default() };
        }
    }

    /// Reads events up to the position of a stream, and newer ones. A stream that begins at the end of the log may be
    /// far ahead of the window.
    async fn advance_to(&mut self, stream: &StreamState, version: u64) -> ApiResult<()> {
        let position = |window: &Self| window.next.map_or(0, |next| next.id.0);
        let gap = usize::try_from(stream.after.id.0 - position(self)).unwrap_or_default();
        if gap > SHARED_EVENTS_MAX {
            // The events in between would be evicted as they are read.
            let (from, next, removals) = (LastId(stream.after.id), Some(stream.after), self.removals);
            *self = Self { from, next, removals, ..Self::default() };
        }
        loop {
            let previous = position(self);
            self.refresh(stream, version).await?;
            if position(self) >= stream.after.id.0 || position(self) == previous {
                return Ok(());
            }
        }
    }

    /// Reads newer events, unless another stream has done so already.
    async fn refresh(&mut self, stream: &StreamState, version: u64) -> ApiResult<()> {
        // Version 0: nothing was read yet.
        let Some(next) =
            self.next.filter(|next| self.version < version || next.id < stream.after.id || self.version == 0)
        else {
            return Ok(());
        };
        let (app, company) = (&stream.app, stream.caller.company);
        let stored_page = events::read(app.db(company), company, next, &[], BATCH).await?;
        let context = stream.context.refreshed(app.engine.directory());
        let EventPage { events, next, has_more } =
            serialize_page(app.db(company), company, stored_page, &context, BATCH.bytes).await?;
        for event in events {
            let frame = EventFrame::of(&event);
            self.bytes += frame.text.len();
            self.frames.push_back(frame);
        }
        self.next = Some(next);
        if !has_more {
            self.version = version;
        }
        while self.frames.len() > SHARED_EVENTS_MAX || self.bytes > SHARED_BYTES_MAX && self.frames.len() > 1 {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes -= oldest.text.len();
            self.from = LastId(oldest.id);
        }
        Ok(())
    }
}

impl Drop for StreamState {
    fn drop(&mut self) {
        self.app.metrics.events.add_closed();
        self.shared = None;
        self.shared_streams.leave(self.caller.company);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn the_streams_of_a_company_share_events_for_few_sites() {
        let (streams, company) = (SharedStreams::default(), CompanyId::new(1));
        let of = |number: usize| streams.of(company, &format!("https://{number}.example.com"));
        let mut shared: Vec<_> = (0..SITES_MAX).map(|number| of(number).expect("a share")).collect();
        assert!(of(SITES_MAX).is_none() && of(0).is_some());
        assert!(streams.of(CompanyId::new(2), "https://example.com").is_some());
        shared.pop();
        streams.leave(company);
        assert!(of(SITES_MAX).is_some());
        shared.clear();
        streams.leave(company);
        streams.leave(CompanyId::new(2));
        assert!(streams.companies.is_empty());
    }
}
