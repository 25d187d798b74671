//! `GET /events/stream`: events as they happen, as Server-Sent Events.
//!
//! A stream reads further events only when its client has received the previous ones: a slow client costs one batch of
//! memory, and its connection is closed when it receives nothing for a while. A client resumes after the last id it has
//! received. Streams of one company that have reached its latest events share a window of them.

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
use hotline_persistence::tables::events::{self, After, EventKind, ReadLimits};
use hotline_persistence::{CompanyId, EventListener, EventNews, LoggedEventId, Presence};
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

/// A stream without events sends a comment this often: proxies close a connection that is silent for a minute.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

/// Milliseconds after which a browser reconnects.
const RETRY_MS: u64 = 3000;

/// Pause before the retry of a failed read of the database.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

/// Maximum size of a batch, which a stream holds until its client has received it: about 12 MiB for all streams of a
/// company. A larger event is a batch of its own.
const BATCH: ReadLimits = ReadLimits { events: 100, bytes: 64 << 10 };

/// Number of a company's latest events that its streams share: enough for streams slightly behind the others.
const SHARED_EVENTS_MAX: usize = 256;

/// Maximum size of the shared events of a company, in bytes.
const SHARED_BYTES_MAX: usize = 1 << 20;

/// Maximum number of sites for which the streams of a company share events. A site is the base URL of the links to
/// files: without `--public-url` each client chooses its own. Streams of further sites read events on their own.
const SITES_MAX: usize = 4;

/// Maximum number of streams and waiting requests of one company: some for its own services, and one per agent's
/// screen. Each stream costs a batch of memory and a connection, and each event is sent to every stream.
pub const READERS_PER_COMPANY_MAX: usize = 200;

/// `Retry-After` in seconds when a company has too many readers: about as long as a request with `wait` takes.
const RETRY_AFTER_S: u64 = 30;

/// The header in which a reconnecting browser sends the last id it has received.
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

/// Describes a stream in the API document.
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

/// The state that streams of the same company share, and the permits of its readers.
pub struct SharedStreams {
    /// The shared events of each company, by site.
    companies: DashMap<CompanyId, HashMap<String, Arc<SharedEvents>>>,
    /// Permits for streams and waiting requests.
    readers: KeyedPermits<CompanyId>,
}

impl Default for SharedStreams {
    fn default() -> Self {
        let readers = KeyedPermits::new(PermitLimits::of_key(READERS_PER_COMPANY_MAX));
        Self { companies: DashMap::new(), readers }
    }
}

/// The latest events of a company, serialized for the streams of one site.
#[derive(Default)]
struct SharedEvents {
    window: Mutex<EventWindow>,
}

/// The latest events of a company. The streams append newer events as they read them; the oldest ones are evicted.
#[derive(Default)]
struct EventWindow {
    /// All events after `from`, up to `next`.
    frames: VecDeque<EventFrame>,
    from: LastId,
    /// `None` before the first read.
    next: Option<After>,
    /// The notification version for which all events were read; 0 before that.
    version: u64,
    /// The number of removals of event content before these events were read.
    removals: u64,
    /// The size of `frames`.
    bytes: usize,
}

/// An event as Server-Sent Events transmit it.
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

    /// The shared events of a company for this site; `None` if its streams already share for [`SITES_MAX`] other sites.
    fn share_of(&self, company: CompanyId, site: &str) -> Option<Arc<SharedEvents>> {
        let mut sites = self.companies.entry(company).or_default();
        if !sites.contains_key(site) && sites.len() >= SITES_MAX {
            return None;
        }
        Some(sites.entry(site.to_owned()).or_default().clone())
    }

    /// Drops the shared events of a company that no stream uses.
    fn drop_unused(&self, company: CompanyId) {
        if let Some(mut sites) = self.companies.get_mut(&company) {
            // The map holds one reference itself.
            sites.retain(|_, shared| Arc::strong_count(shared) > 1);
        }
        self.companies.remove_if(&company, |_, sites| sites.is_empty());
    }

    /// Drops the shared events of a company that this process closes, and wakes its streams and waiting requests. They
    /// end if the company has moved to another process; otherwise they continue with the `SharedEvents` they hold.
    pub fn forget(&self, company: CompanyId, news: Option<&EventNews>) {
        // The permits are released when their streams end.
        let Self { companies, readers: _ } = self;
        companies.remove(&company);
        // Id 0 is not an event: it makes every listener check again. The removal empties the windows of streams that
        // last until the company returns, because another process may have deleted content of their events meanwhile.
        news.iter().for_each(|news| {
            news.publish_removal(company);
            news.publish(company, LoggedEventId::new(0));
        });
    }
}

/// The state of one stream.
struct StreamState {
    app: Data<App>,
    shared_streams: Data<SharedStreams>,
    caller: Caller,
    context: ViewContext,
    shared: Option<Arc<SharedEvents>>,
    news: EventListener,
    /// Notifies of changes to the directory.
    changes: watch::Receiver<()>,
    /// The company's version in the directory for which the caller was last checked.
    seen_version: u64,
    /// The position up to which events were sent.
    after: After,
    types: Vec<EventKind>,
    /// When a comment must be sent, if no event is sent before.
    comment_at: Instant,
    /// Whether the first line, `retry`, was sent.
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
    let after = match last_event_id(&request)?.or(after) {
        Some(after) => after,
        None => events::last_id(app.engine.reads().acknowledged_tables(company).await?, company).await?,
    };
    let context = ViewContext::of(&caller, &app, &request);
    // The stream drops the request's presence: closing the company waits for all work in progress.
    request.extensions_mut().remove::<Presence>();
    let shared = shared_streams.share_of(company, context.site());
    app.metrics.events.add_opened();
    let changes = app.engine.directory().changes();
    let state = StreamState {
        app,
        shared_streams,
        caller,
        context,
        shared,
        news,
        changes,
        seen_version: 0,
        after: After::event(after),
        types,
        comment_at: Instant::now() + COMMENT_INTERVAL,
        has_started: false,
        is_within_log: false,
        _permit: permit,
    };
    Ok(streaming_response(state).into())
}

/// The id in the header of a reconnecting browser.
fn last_event_id(request: &HttpRequest) -> ApiResult<Option<LoggedEventId>> {
    let text = request.headers().get(LAST_EVENT_ID).map(|text| text.to_str().unwrap_or_default());
    let last_id = text.map(LastId::from_text).transpose();
    let last_id = last_id.map_err(|reason| ApiError::bad_request(format!("Last-Event-ID {reason}")))?;
    Ok(last_id.map(|last| last.0))
}

/// The response that sends a stream's events.
fn streaming_response(state: StreamState) -> HttpResponse {
    let body = stream::unfold(state, |mut state| async move {
        let batch = state.next().await?;
        Some((Ok::<_, actix_web::Error>(batch), state))
    });
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-cache"))
        // Proxies must not buffer the stream.
        .insert_header(("x-accel-buffering", "no"))
        .streaming(body)
}

/// Waits for a change to the directory that may concern the caller.
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

/// Waits until the last check of the caller's permissions expires; forever if it does not expire.
pub(super) async fn wait_for_expiry(expires_at: Option<Instant>) {
    match expires_at {
        Some(expires_at) => sleep_until(expires_at).await,
        None => std::future::pending().await,
    }
}

impl StreamState {
    /// Waits for the next bytes to send; `None` when the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.has_started {
            self.has_started = true;
            return Some(format!("retry: {RETRY_MS}\n\n").into());
        }
        let mut stopping = self.app.stopping();
        while !self.app.is_stopping() {
            let Ok(expires_at) = self.revalidate_caller().await else { return None };
            let previous = self.after.id;
            match self.read().await {
                Ok((batch, count)) if count > 0 => {
                    self.app.metrics.events.add_sent(count);
                    self.comment_at = Instant::now() + COMMENT_INTERVAL;
                    return Some(batch);
                }
                // The stream read only events of types that were not requested.
                Ok(_) if self.after.id > previous => continue,
                Ok(_) => {}
                // The company has moved. A client that reconnects is forwarded to the new owner.
                Err(_) if !self.app.engine.store().ownership().is_placed_here(self.caller.company) => return None,
                Err(error) => {
                    tracing::debug!(company.id = %self.caller.company, status = %error.status, "event stream is waiting for the database");
                    sleep(OUTAGE_PAUSE).await;
                    if Instant::now() < self.comment_at {
                        continue;
                    }
                    // A comment is due. The `select` below sends it, even during an outage.
                }
            }
            let directory = self.app.engine.directory();
            tokio::select! {
                () = self.news.changed() => {}
                () = wait_for_change(&mut self.changes, &self.caller, &mut self.seen_version, directory) => {}
                () = wait_for_expiry(expires_at) => {}
                () = sleep_until(self.comment_at) => return Some(self.comment()),
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return None,
            }
        }
        None
    }

    /// Checks that the caller may still read events, and returns when the check expires.
    async fn revalidate_caller(&mut self) -> ApiResult<Option<Instant>> {
        let (directory, db) = (self.app.engine.directory(), self.app.db(self.caller.company));
        // Later changes to the directory wake the stream. `may_be_affected` is called to update `seen_version`; its
        // result is not needed, because the caller is checked in any case.
        self.changes.mark_unchanged();
        self.caller.may_be_affected(&mut self.seen_version, directory);
        let valid_for = self.caller.revalidate("GET", "events", directory, db).await?;
        Ok(valid_for.map(|valid_for| Instant::now() + valid_for))
    }

    /// The comment that is due; the next one is due after [`COMMENT_INTERVAL`]. It includes the last position read, so
    /// that a reconnecting client skips events of other types.
    fn comment(&mut self) -> Bytes {
        self.comment_at = Instant::now() + COMMENT_INTERVAL;
        format!(":\nid: {}\n\n", self.after.id).into()
    }

    /// Reads the next batch: its bytes, and the number of its events.
    async fn read(&mut self) -> ApiResult<(Bytes, u64)> {
        let company = self.caller.company;
        let _presence = self.app.engine.enter(company).await?;
        let version = self.news.version();
        if !self.is_within_log {
            // A log restored from a backup may end before `after`: then the stream begins at the end of the log.
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
            // Checked again: advancing may have evicted events that this stream has not sent. Then it reads on its own.
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

    /// Joins the frames of requested types that fit in a batch, and advances the stream's position. Returns the batch
    /// and the number of its events. `position` is the position after all of `frames`.
    fn take_batch(&mut self, frames: &[EventFrame], position: After) -> (Bytes, u64) {
        let is_requested = |frame: &&EventFrame| self.types.is_empty() || self.types.contains(&frame.kind);
        let requested: Vec<&EventFrame> = frames.iter().filter(is_requested).collect();
        let (mut count, mut bytes) = (0, 0);
        while count < requested.len() && bytes < BATCH.bytes {
            bytes += requested[count].text.len();
            count += 1;
        }
        self.after = match requested[..count].last() {
            Some(last) if count < requested.len() => After { id: last.id, ..self.after },
            _ => position,
        };
        if let [frame] = &requested[..count] {
            return (frame.text.clone(), 1);
        }
        let mut batch = Vec::with_capacity(bytes);
        requested[..count].iter().for_each(|frame| batch.extend_from_slice(&frame.text));
        (batch.into(), count as u64)
    }
}

impl EventWindow {
    /// Empties the window if content of its events may have been deleted or erased since they were read. `removals` is
    /// the number of removals, taken while the window is locked and before any event is read into it.
    fn drop_removed(&mut self, removals: u64) {
        if self.removals != removals {
            *self = Self { removals, ..Self::default() };
        }
    }

    /// Reads events into the window until it includes the position of a stream. A stream that begins at the end of the
    /// log may be far ahead of the window.
    async fn advance_to(&mut self, stream: &StreamState, version: u64) -> ApiResult<()> {
        let end_of = |window: &Self| window.next.map_or(0, |next| next.id.0);
        let gap = usize::try_from(stream.after.id.0 - end_of(self)).unwrap_or_default();
        if gap > SHARED_EVENTS_MAX {
            // The window restarts at the stream: the events in between would be evicted as they are read.
            let (from, next, removals) = (LastId(stream.after.id), Some(stream.after), self.removals);
            *self = Self { from, next, removals, ..Self::default() };
        }
        loop {
            let previous_end = end_of(self);
            self.read_batch(stream, version).await?;
            if end_of(self) >= stream.after.id.0 || end_of(self) == previous_end {
                return Ok(());
            }
        }
    }

    /// Reads a batch of newer events into the window, unless another stream has read all events of this `version`.
    async fn read_batch(&mut self, stream: &StreamState, version: u64) -> ApiResult<()> {
        let is_outdated = |next: &After| self.version < version || next.id < stream.after.id || self.version == 0;
        let Some(next) = self.next.filter(is_outdated) else { return Ok(()) };
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
        self.shared_streams.drop_unused(self.caller.company);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn the_streams_of_a_company_share_events_for_a_limited_number_of_sites() {
        let (streams, company) = (SharedStreams::default(), CompanyId::new(1));
        let share_of = |site: usize| streams.share_of(company, &format!("https://{site}.example.com"));
        let mut shared: Vec<_> = (0..SITES_MAX).map(|site| share_of(site).expect("a share")).collect();
        assert!(share_of(SITES_MAX).is_none() && share_of(0).is_some());
        assert!(streams.share_of(CompanyId::new(2), "https://example.com").is_some());
        shared.pop();
        streams.drop_unused(company);
        assert!(share_of(SITES_MAX).is_some());
        shared.clear();
        streams.drop_unused(company);
        streams.drop_unused(CompanyId::new(2));
        assert!(streams.companies.is_empty());
    }
}
