//! Events: the changes of a company's records, in order. The API only reads them; each change writes its own event.

mod data;
mod enabled;
mod stream;
mod view;

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::body::BoxBody;
use actix_web::web::Data;
use actix_web::{HttpMessage, HttpResponse, Responder, ResponseError};
use hotline_actors::Engine;
use hotline_persistence::tables::events::{self, After, EventKind, ReadLimits};
use hotline_persistence::{CompanyId, EventListener, LoggedEventId, Presence};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

pub use data::{EventData, EventMessage, EventTemplate, GoneMessage, GoneSession, MergedContact, MergedTicket};
pub use enabled::EventsEnabled;
pub use stream::{EventStream, READERS_PER_COMPANY_MAX, SharedStreams, stream};
pub use view::{CompanyEvent, EventAuthor, EventMeta, EventPage, SerializedEvent, serialize_events, serialize_page};

use super::messages::ViewContext;
use crate::app::App;
use crate::web::request::params::QueryParams;
use crate::web::request::values::FromField;
use crate::web::response::reply::{Reply, respond};
use crate::web::response::schema::{self, Schemas};
use crate::web::{ApiError, ApiResult, Caller, Filter, Params};

/// Default number of events in a response.
const DEFAULT_LIMIT: i64 = 100;

/// Maximum number of events in a response; fewer if they are large ([`BYTES_MAX`]).
pub const LIMIT_MAX: i64 = 1000;

/// Maximum size of a response's events in bytes, unless the first alone is larger: this bounds the memory of a
/// response, however large a company's messages are.
pub const BYTES_MAX: usize = 1 << 20;

/// Maximum wait for an event, in seconds: proxies time out after a minute.
const WAIT_S_MAX: i64 = 30;

/// The query of the list.
pub struct EventQuery {
    /// Where the response begins; `None` means at the oldest event.
    after: Option<Start>,
    /// The requested types; empty means all types.
    types: Vec<EventKind>,
    limit: i64,
    wait_s: i64,
}

impl Filter for EventQuery {
    fn read(query: &mut Params) -> Self {
        Self {
            after: query.filter("after"),
            types: query.filter::<Types>("types").unwrap_or_default().0,
            limit: query.filter::<Limit>("limit").map_or(DEFAULT_LIMIT, |limit| limit.0),
            wait_s: query.filter::<Wait>("wait").map_or(0, |wait| wait.0),
        }
    }
}

/// Where a response begins.
#[derive(Clone, Copy)]
enum Start {
    /// After the last event the caller has.
    After(LoggedEventId),
    /// At the end of the log: the response is empty or, with `wait`, has the next events.
    Latest,
}

impl FromField for Start {
    fn from_json(value: &Value) -> Result<Self, String> {
        value.as_str().map_or_else(|| Err(INVALID_START.to_owned()), Self::from_text)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim() == "latest" {
            return Ok(Self::Latest);
        }
        LastId::from_text(text).map(|last| Self::After(last.0)).map_err(|_| INVALID_START.to_owned())
    }

    fn schema() -> Value {
        json!({
            "type": ["integer", "string"],
            "format": "int64",
            "description": "The last event read, or `latest` for the end. By default the response begins with the oldest event",
            "example": 4711,
        })
    }
}

const INVALID_START: &str = "must be an integer from 0, or latest";

/// The id of the last event a caller has; 0 if it has none.
pub struct LastId(pub LoggedEventId);

impl Default for LastId {
    fn default() -> Self {
        Self(LoggedEventId::new(0))
    }
}

impl FromField for LastId {
    fn from_json(value: &Value) -> Result<Self, String> {
        value.as_str().map_or_else(|| Err("must be an integer from 0".to_owned()), Self::from_text)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let id = LoggedEventId::from_text(text).ok().filter(|id| id.0 >= 0);
        id.map(Self).ok_or_else(|| "must be an integer from 0".to_owned())
    }

    fn schema() -> Value {
        json!({"type": "integer", "format": "int64", "minimum": 0, "default": 0, "example": 4711})
    }
}

/// Types of events, separated by commas.
#[derive(Default)]
pub struct Types(pub Vec<EventKind>);

impl FromField for Types {
    fn from_json(value: &Value) -> Result<Self, String> {
        let words = value.as_str().unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty());
        let read = |word: &str| word.parse().map_err(|()| format!("contains the unknown event type `{word}`"));
        words.map(read).collect::<Result<_, _>>().map(Self)
    }

    fn schema() -> Value {
        json!({"type": "string", "example": "ticket.opened,message.received"})
    }
}

/// The types of events to return: the requested ones, or all that the caller may see. An empty list means all types.
/// Only callers who see every card see events of cards, because an event shows its card as it was, regardless of its
/// current assignee.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE` when the caller requests events of cards and does not see every card.
fn visible_types(caller: &Caller, requested: Vec<EventKind>) -> ApiResult<Vec<EventKind>> {
    if caller.sees_every_card() {
        return Ok(requested);
    }
    if requested.iter().any(|kind| kind.is_of_card()) {
        return Err(ApiError::hidden_cards());
    }
    Ok(if requested.is_empty() {
        EventKind::ALL.iter().copied().filter(|kind| !kind.is_of_card()).collect()
    } else {
        requested
    })
}

/// Defines query parameters that are integers within bounds: `Name minimum to MAXIMUM, DEFAULT;`.
macro_rules! bounded {
    ($($(#[$doc:meta])* $name:ident $from:literal to $to:ident, $default:expr;)+) => {$(
        $(#[$doc])*
        struct $name(i64);

        impl FromField for $name {
            fn from_json(value: &Value) -> Result<Self, String> {
                let number = value.as_str().and_then(|text| text.trim().parse().ok());
                let number = number.filter(|number| ($from..=$to).contains(number));
                number.map(Self).ok_or_else(|| format!("must be an integer from {} to {}", $from, $to))
            }

            fn schema() -> Value {
                json!({"type": "integer", "minimum": $from, "maximum": $to, "default": $default, "example": $default})
            }
        }
    )+};
}

bounded! {
    /// The number of events in a response.
    Limit 1 to LIMIT_MAX, DEFAULT_LIMIT;
    /// Seconds to wait for an event.
    Wait 0 to WAIT_S_MAX, 0;
}

/// `200` with events.
pub struct Events {
    data: Vec<SerializedEvent>,
    meta: EventMeta,
}

/// Expected maximum size of a page besides its events, in bytes.
const META_BYTES: usize = 256;

#[derive(Serialize)]
struct EventsBody<'a> {
    data: &'a [SerializedEvent],
    meta: &'a EventMeta,
}

impl Reply for Events {
    const STATUS: u16 = 200;

    fn body(&self) -> ApiResult<Vec<u8>> {
        // Allocated at its final size: a growing body would be copied, and a page of events may be long.
        let bytes = self.data.iter().map(|event| event.json.get().len() + 1).sum::<usize>();
        let mut body = Vec::with_capacity(bytes + META_BYTES);
        let body_view = EventsBody { data: &self.data, meta: &self.meta };
        serde_json::to_writer(&mut body, &body_view).map_err(ApiError::internal)?;
        Ok(body)
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        let (event, meta) = (schema::of::<CompanyEvent>(schemas), schema::of::<EventMeta>(schemas));
        let properties = json!({"data": {"type": "array", "items": event}, "meta": meta});
        Some(schema::envelope::<CompanyEvent>(schemas, "List", &properties, "Events, oldest first."))
    }
}

impl Responder for Events {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        match self.body() {
            Ok(body) => respond(Self::STATUS, body),
            Err(error) => error.error_response(),
        }
    }
}

/// Subscribes to a company's events.
///
/// # Errors
/// `404` when this service stores no events.
pub fn listen(engine: &Engine, company: CompanyId) -> ApiResult<EventListener> {
    engine.listen(company).ok_or_else(ApiError::not_found)
}

/// `GET /events`.
pub async fn list(
    request: HttpRequest,
    caller: Caller,
    _: EventsEnabled,
    app: Data<App>,
    shared_streams: Data<SharedStreams>,
    query: QueryParams<EventQuery>,
) -> ApiResult<Events> {
    let query = query.0;
    let types = visible_types(&caller, query.types)?;
    // Subscribed before the first read, so that no event is missed in between.
    let mut listening = listen(&app.engine, caller.company)?;
    let _permit = if query.wait_s > 0 { Some(shared_streams.admit(caller.company)?) } else { None };
    let limits = ReadLimits { events: usize::try_from(query.limit).unwrap_or_default(), bytes: BYTES_MAX };
    let deadline = Instant::now() + Duration::from_secs(query.wait_s.unsigned_abs());
    let mut stopping = app.stopping();
    let directory = app.engine.directory();
    let (mut changes, mut seen_version, mut must_revalidate) =
        (directory.changes(), caller.organization.version, query.wait_s > 0);
    let mut db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let start = match query.after {
        None => None,
        Some(Start::After(id)) => Some(id),
        Some(Start::Latest) => Some(events::last_id(db, caller.company).await?),
    };
    // A request with a position beyond the end gets its response at once, without waiting: the log may have been
    // restored from a backup.
    let is_beyond_end = match query.after {
        Some(Start::After(id)) if query.wait_s > 0 => id > events::last_id(db, caller.company).await?,
        _ => false,
    };
    let mut after = After::event(start.unwrap_or(LoggedEventId::new(0)));
    // While the request waits, it drops its presence: closing the company waits for all work in progress.
    let mut presence = request.extensions_mut().remove::<Presence>();
    loop {
        // While a request waits, its caller may lose the permission to see these events.
        let mut expires_at = None;
        if must_revalidate {
            let valid_for = caller.revalidate("GET", "events", directory, app.db(caller.company)).await?;
            expires_at = valid_for.map(|valid_for| Instant::now() + valid_for);
        }
        let batch = events::read(db, caller.company, after, &types, limits).await?;
        after = batch.next;
        let must_respond = !batch.events.is_empty() || batch.has_more || is_beyond_end || app.is_stopping();
        let is_over = must_respond || {
            drop(presence.take());
            let wakeup = async {
                tokio::select! {
                    () = listening.changed() => {}
                    () = stream::wait_for_change(&mut changes, &caller, &mut seen_version, directory) => {}
                    () = stream::wait_for_expiry(expires_at) => {}
                    _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
                }
            };
            let has_timed_out = timeout_at(deadline, wakeup).await.is_err();
            must_revalidate = true;
            match app.engine.enter(caller.company).await {
                Ok(new_presence) => presence = Some(new_presence),
                // The company has moved. The next request is forwarded to its new owner.
                Err(_) if !app.engine.store().ownership().is_placed_here(caller.company) => {
                    let meta = EventMeta { last_id: after.id, has_more: false, oldest_id: None, gap: false };
                    return Ok(Events { data: Vec::new(), meta });
                }
                Err(refusal) => return Err(refusal.into()),
            }
            has_timed_out
        };
        if is_over {
            // The events may name queues and users that are newer than the request.
            let context = ViewContext::of(&caller, &app, &request).refreshed(directory);
            let EventPage { events, next, has_more } =
                serialize_page(db, caller.company, batch, &context, BYTES_MAX).await?;
            let meta = EventMeta::of(db, caller.company, start, next.id, has_more).await?;
            return Ok(Events { data: events, meta });
        }
        db = app.db(caller.company);
    }
}
