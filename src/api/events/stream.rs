//! `GET /events/stream`: events as they happen, as Server-Sent Events.
//!
//! A stream reads further events only when its reader has taken the previous ones: a slow reader costs one batch of
//! memory, and its connection is closed when it reads nothing for a while. A reader resumes from the last id it has
//! read. Streams of one company that have reached its latest events share what is read and serialized for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::{CACHE_CONTROL, HeaderName};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use dashmap::DashMap;
use futures_util::stream;
use hotline_actors::Directory;
use hotline_persistence::tables::events::{self, After, EventKind, Portion};
use hotline_persistence::{CompanyId, EventNews, Listening, LoggedEventId, Presence};
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::view::{Page, ShownEvent, show_page};
use super::{LastId, Types, listen, told};
use crate::api::messages::Showing;
use crate::app::App;
use crate::openapi::{Describes, Operation, Written};
use crate::web::keyed_limit::{KeyedLimit, KeyedPermit};
use crate::web::schema::Schemas;
use crate::web::values::FromField;
use crate::web::{ApiError, ApiResult, Caller, Filter, Params, QueryParams};

/// Maximum silence of a stream: proxies close a connection that is silent for a minute.
const COMMENT_EVERY: Duration = Duration::from_secs(15);

/// Milliseconds after which a browser reconnects.
const RETRY_MS: u64 = 3000;

/// Pause after a failed read of the database.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

/// What is read at once, and so the most a stream holds for a reader who takes nothing: of all that a company may open some
/// 12 MiB. An event that alone is larger is a piece of its own.
const PIECE: Portion = Portion { events: 100, bytes: 64 << 10 };

/// Events of a company that its streams share: enough for those slightly behind the others.
const SHARED_EVENTS_MAX: usize = 256;

/// Maximum size of these events per company, in bytes.
const SHARED_BYTES_MAX: usize = 1 << 20;

/// Maximum number of streams and waiting requests of one company: some for its own services, and one per agent's
/// screen. Each stream costs a batch of memory and a connection, and each event is sent to every stream.
pub const READERS_PER_COMPANY_MAX: u32 = 200;

/// `Retry-After` in seconds when there are too many: about as long as a request waits.
const RETRY_AFTER_S: u64 = 30;

/// The header with the last id a browser has read.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The query of a stream: the start and the types.
pub struct Asked {
    after: Option<LoggedEventId>,
    types: Vec<EventKind>,
}

impl Filter for Asked {
    fn read(query: &mut Params) -> Self {
        Self {
            after: query.filter::<LastId>("after").map(|last| last.0),
            types: query.filter::<Types>("types").unwrap_or_default().0,
        }
    }
}

/// The documentation of a stream.
pub struct EventStream;

impl Describes for EventStream {
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
        operation.success = (200, Some(json!({"text/event-stream": {"schema": stream}})));
    }
}

/// The state that streams of the same company share, and the number of its readers.
#[derive(Default)]
pub struct Tails {
    companies: DashMap<(CompanyId, String), Arc<Tail>>,
    readers: KeyedLimit<CompanyId>,
}

/// The latest events of a company, serialized for readers that use the same base URL for files.
#[derive(Default)]
struct Tail {
    window: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    /// All events after `from`, up to `next`.
    frames: VecDeque<Frame>,
    from: LastId,
    next: Option<After>,
    /// The notification version at the time they were read.
    version: u64,
    bytes: usize,
}

/// A serialized event.
#[derive(Clone)]
struct Frame {
    id: LoggedEventId,
    kind: EventKind,
    text: Bytes,
}

impl Frame {
    fn of(ShownEvent { id, kind, json }: &ShownEvent) -> Self {
        // JSON on one line contains no line breaks, so its content cannot end the event.
        let text = format!("id: {id}\nevent: {}\ndata: {}\n\n", kind.as_str(), json.get());
        Self { id: *id, kind: *kind, text: text.into() }
    }
}

impl Tails {
    /// Acquires a permit for one more stream or waiting request of a company.
    ///
    /// # Errors
    /// `429` when the company has reached the limit.
    pub(super) fn admit(&self, company: CompanyId) -> ApiResult<KeyedPermit<CompanyId>> {
        let permit = self.readers.try_acquire(company, READERS_PER_COMPANY_MAX);
        permit.ok_or_else(|| ApiError::too_many_open("event streams", RETRY_AFTER_S))
    }

    fn of(&self, company: CompanyId, site: String) -> Arc<Tail> {
        self.companies.entry((company, site)).or_default().clone()
    }

    /// Drops state that no stream uses any more.
    fn leave(&self, company: CompanyId) {
        // The map holds one reference itself.
        self.companies.retain(|(of, _), tail| *of != company || Arc::strong_count(tail) > 1);
    }

    /// Drops the shared state of a company, and wakes its streams and waiting requests. They end if the company has moved
    /// to another process; otherwise they continue with what they have.
    pub fn forget(&self, company: CompanyId, news: Option<&EventNews>) {
        // A permit belongs to its stream, and is released with it.
        let Self { companies, readers: _ } = self;
        companies.retain(|(of, _), _| *of != company);
        // There is no new event; every listener looks again.
        news.iter().for_each(|news| news.tell(company, LoggedEventId::new(0)));
    }
}

/// One stream.
struct Streaming {
    app: Data<App>,
    tails: Data<Tails>,
    caller: Caller,
    showing: Showing,
    tail: Option<Arc<Tail>>,
    news: Listening,
    /// Changes of the directory, and the version of the company that was seen.
    changes: watch::Receiver<()>,
    seen: u64,
    after: After,
    types: Vec<EventKind>,
    /// When a comment must be sent at the latest.
    comment_at: Instant,
    begun: bool,
    _permit: KeyedPermit<CompanyId>,
}

/// `GET /events/stream`.
pub async fn stream(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    tails: Data<Tails>,
    query: QueryParams<Asked>,
) -> ApiResult<Written<EventStream>> {
    let company = caller.company;
    let news = listen(&app.engine, company)?;
    let permit = tails.admit(company)?;
    let Asked { after, types } = query.0;
    let types = told(&caller, types)?;
    let given = request.headers().get(LAST_EVENT_ID).map(|text| text.to_str().unwrap_or_default());
    let given = given.map(LastId::from_text).transpose();
    let given = given.map_err(|reason| ApiError::bad_request(format!("Last-Event-ID {reason}")))?;
    let after = match given.map(|last| last.0).or(after) {
        Some(after) => after,
        None => events::last_id(app.engine.reads().shown(company).await?, company).await?,
    };
    let showing = Showing::of(&caller, &app, &request);
    // A stream gives up its presence, so that dropping the company does not wait for it.
    request.extensions_mut().remove::<Presence>();
    let tail = Some(tails.of(company, showing.site().to_owned()));
    app.figures.events.add_opened();
    let comment_at = Instant::now() + COMMENT_EVERY;
    let after = After::event(after);
    let begun = false;
    let (changes, seen) = (app.engine.directory().changes(), 0);
    let streaming = Streaming {
        app,
        tails,
        caller,
        showing,
        tail,
        news,
        changes,
        seen,
        after,
        types,
        comment_at,
        begun,
        _permit: permit,
    };
    let body = stream::unfold(streaming, |mut streaming| async move {
        let piece = streaming.next().await?;
        Some((Ok::<_, actix_web::Error>(piece), streaming))
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
pub(super) async fn changed_for(
    changes: &mut watch::Receiver<()>,
    caller: &Caller,
    seen: &mut u64,
    directory: &Directory,
) {
    loop {
        // The sender lives as long as the directory.
        if changes.changed().await.is_err() {
            std::future::pending().await
        }
        if caller.may_be_affected(seen, directory) {
            return;
        }
    }
}

/// Waits until time alone may have taken something from the caller.
pub(super) async fn lapsed(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Streaming {
    /// The next bytes to send; `None`: the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            self.begun = true;
            return Some(format!("retry: {RETRY_MS}\n\n").into());
        }
        let mut stopping = self.app.stopping();
        loop {
            let (directory, db) = (self.app.engine.directory(), self.app.db(self.caller.company));
            if self.app.is_stopping() {
                return None;
            }
            // Of what changes from here on there is news.
            self.changes.mark_unchanged();
            self.caller.may_be_affected(&mut self.seen, directory);
            let Ok(lasts) = self.caller.revalidate("GET", "events", directory, db).await else { return None };
            let lapses_at = lasts.map(|lasts| Instant::now() + lasts);
            let had = self.after.id;
            match self.read().await {
                Ok((piece, count)) if count > 0 => {
                    self.app.figures.events.add_sent(count);
                    self.comment_at = Instant::now() + COMMENT_EVERY;
                    return Some(piece);
                }
                // There were only events of other types.
                Ok(_) if self.after.id > had => continue,
                Ok(_) => {}
                // The company has moved. A reader that reconnects is forwarded to the new owner.
                Err(_) if !self.app.engine.store().ownership().is_placed_here(self.caller.company) => return None,
                Err(error) => {
                    tracing::debug!(company.id = %self.caller.company, status = %error.status, "event stream is waiting for the database");
                    sleep(OUTAGE_PAUSE).await;
                    if Instant::now() < self.comment_at {
                        continue;
                    }
                }
            }
            let changed = changed_for(&mut self.changes, &self.caller, &mut self.seen, self.app.engine.directory());
            tokio::select! {
                () = self.news.changed() => {}
                () = changed => {}
                () = lapsed(lapses_at) => {}
                () = sleep_until(self.comment_at) => {
                    self.comment_at = Instant::now() + COMMENT_EVERY;
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
        let _inside = self.app.engine.enter(company).await?;
        let version = self.news.version();
        if let Some(tail) = self.tail.clone() {
            let mut window = tail.window.lock().await;
            if window.next.is_none() {
                (window.from, window.next) = (LastId(self.after.id), Some(self.after));
            }
            if self.after.id >= window.from.0 {
                window.reach(self, version).await?;
            }
            // Checked again: the refresh may have evicted events that this stream has not sent.
            if self.after.id >= window.from.0 {
                let reached = window.next.unwrap_or(self.after);
                let frames: Vec<Frame> =
                    window.frames.iter().filter(|frame| frame.id > self.after.id).cloned().collect();
                drop(window);
                let reached = if reached.id > self.after.id { reached } else { self.after };
                return Ok(self.joined(&frames, reached));
            }
        }
        let read = events::read(self.app.db(company), company, self.after, &self.types, PIECE).await?;
        let shown = show_page(self.app.db(company), company, read, &self.showing, PIECE.bytes).await?;
        let frames: Vec<Frame> = shown.events.iter().map(Frame::of).collect();
        Ok(self.joined(&frames, shown.next))
    }

    /// Those that are wanted, as many as are a piece, and how many they are. With all of them it has `reached` so far.
    fn joined(&mut self, frames: &[Frame], reached: After) -> (Bytes, u64) {
        let is_wanted = |frame: &&Frame| self.types.is_empty() || self.types.contains(&frame.kind);
        let wanted: Vec<&Frame> = frames.iter().filter(is_wanted).collect();
        let (mut taken, mut bytes) = (0, 0);
        while taken < wanted.len() && bytes < PIECE.bytes {
            bytes += wanted[taken].text.len();
            taken += 1;
        }
        self.after = match wanted[..taken].last() {
            Some(last) if taken < wanted.len() => After { id: last.id, ..self.after },
            _ => reached,
        };
        if let [frame] = &wanted[..taken] {
            return (frame.text.clone(), 1);
        }
        let mut piece = Vec::with_capacity(bytes);
        wanted[..taken].iter().for_each(|frame| piece.extend_from_slice(&frame.text));
        (piece.into(), taken as u64)
    }
}

impl Window {
    /// Reads up to where a reader is, and what has come since. Who begins at the end of the log may be far ahead of where the
    /// readers before have left the window.
    async fn reach(&mut self, by: &Streaming, version: u64) -> ApiResult<()> {
        let place = |window: &Self| window.next.map_or(0, |next| next.id.0);
        let gap = usize::try_from(by.after.id.0 - place(self)).unwrap_or_default();
        if gap > SHARED_EVENTS_MAX {
            // What lies between would be put out of the window as it is read.
            let (company, db) = (by.caller.company, by.app.db(by.caller.company));
            if by.after.id > events::last_id(db, company).await? {
                // Nothing has happened yet that is to be told after it.
                return Ok(());
            }
            *self = Self { from: LastId(by.after.id), next: Some(by.after), ..Self::default() };
        }
        loop {
            let had = place(self);
            self.refresh(by, version).await?;
            if place(self) >= by.after.id.0 || place(self) == had {
                return Ok(());
            }
        }
    }

    /// Reads newer events, unless another stream has done so already.
    async fn refresh(&mut self, by: &Streaming, version: u64) -> ApiResult<()> {
        let Some(next) = self.next.filter(|next| self.version < version || next.id < by.after.id || self.version == 0)
        else {
            return Ok(());
        };
        let (app, company) = (&by.app, by.caller.company);
        let mut showing = by.showing.clone();
        if let Some(organization) = app.engine.directory().company(company) {
            showing = showing.with(organization);
        }
        let read = events::read(app.db(company), company, next, &[], PIECE).await?;
        let Page { events, next, has_more } = show_page(app.db(company), company, read, &showing, PIECE.bytes).await?;
        for event in events {
            let frame = Frame::of(&event);
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

impl Drop for Streaming {
    fn drop(&mut self) {
        self.app.figures.events.add_closed();
        self.tail = None;
        self.tails.leave(self.caller.company);
    }
}
