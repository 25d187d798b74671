//! `GET …/socket`: pushes messages to the visitor as they happen.
//!
//! There is one task per socket. The session's actor pushes to it through a bounded queue, and the task writes to the
//! framework's bounded queue, as far as its reader takes what is there. So the cost of a slow reader is bounded: when both
//! queues are full, the socket is closed, and the browser catches up from the tables when it reconnects.

mod frames;
mod heads;
mod talk;
mod window;

use actix_http::BoxedPayloadStream;
use actix_web::http::header::{HeaderValue, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use actix_web::web::{Data, Payload};
use actix_web::{FromRequest, HttpRequest};
use hotline_actors::webchat::{self, Attach};
use hotline_persistence::ChannelId;
use serde_json::json;
use tokio::sync::watch;

use super::Door;
use super::limits::Visitors;
use super::visitor::{self, Visitor};
use crate::app::App;
use crate::openapi::{Describes, Operation, Written};
use crate::web::origin::Address;
use crate::web::response_memory::ResponseMemory;
use crate::web::schema::Schemas;
use crate::web::{ApiError, ApiResult};
use heads::Heads;
use talk::{Feed, Talk};
use window::Window;

/// The subprotocol of the handshake. The token is sent as another subprotocol, because browsers can set no other
/// header.
const PROTOCOL: &str = "hotline.v1";

/// Maximum size of a frame from a browser, which only reports its state.
const FRAME_BYTES_MAX: usize = 4096;

/// `Retry-After` in seconds for a refused socket: other sockets of its address or session may have closed by then.
const RETRY_AFTER_S: u64 = 10;

/// The upgrade to a socket.
pub struct Upgrade;

impl Describes for Upgrade {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.parameters.push(json!({
            "name": "Sec-WebSocket-Protocol",
            "in": "header",
            "description": "`hotline.v1` and the session's token. Browsers cannot set other headers.",
            "schema": {"type": "string"},
            "example": "hotline.v1, vt_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP",
        }));
        operation.errors.extend([400, 401, 409]);
        operation.success = (101, None);
    }
}

/// The page that a socket is open for.
struct Page {
    channel: ChannelId,
    origin: Option<HeaderValue>,
    address: Option<Address>,
    /// What is held for readers.
    unread: Data<ResponseMemory>,
}

/// Where a socket's frames are written.
struct Out {
    session: actix_ws::Session,
    window: Window,
}

fn too_many() -> ApiError {
    ApiError::too_many_open("sockets", RETRY_AFTER_S)
}

/// Opens a socket.
pub async fn open(
    door: Door,
    app: Data<App>,
    visitors: Data<Visitors>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<Written<Upgrade>> {
    let Visitor(session) = visitor::find(&app, &door, token_of(&request)).await?;
    let place = visitors.enter(door.address).ok_or_else(too_many)?;
    let (pushes, told) = webchat::pushes();
    let (cuts, cut) = watch::channel(None);
    let attach = Attach { pushes, cut: cuts };
    let attached = app.engine.sessions.ask(session.company_id, &session.id, attach).await?;
    let attached = attached.ok_or_else(too_many)?;
    // Checked before the codec, which would buffer the claimed length.
    let heads: BoxedPayloadStream = Box::pin(Heads::new(payload.into_inner(), FRAME_BYTES_MAX as u64));
    let mut bounded = actix_web::dev::Payload::Stream { payload: heads };
    let bounded = Payload::from_request(&request, &mut bounded).await.map_err(ApiError::internal)?;
    let (response, out, incoming) = actix_ws::handle_with_protocols(&request, bounded, &[PROTOCOL])
        .map_err(|error| ApiError::bad_request(format!("invalid WebSocket handshake: {error}")))?;
    let window = Window::default();
    let unread = request.app_data::<Data<ResponseMemory>>().cloned();
    let unread = unread.ok_or_else(|| ApiError::internal("the memory of sockets is not metered"))?;
    let origin = request.headers().get(ORIGIN).cloned();
    let page = Page { channel: door.channel, origin, address: door.address, unread };
    let talk = Talk::new(
        app,
        visitors,
        page,
        attached,
        place,
        Out { session: out, window: window.clone() },
        Feed { pushes: told, cut },
    );
    actix_web::rt::spawn(talk.run(incoming.max_frame_size(FRAME_BYTES_MAX)));
    Ok(response.map_body(|_, body| window.watch(body)).into())
}

/// The visitor's token among the subprotocols the browser offers.
fn token_of(request: &HttpRequest) -> Option<&str> {
    let lines = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL).filter_map(|line| line.to_str().ok());
    let mut offered = lines.flat_map(|line| line.split(',')).map(str::trim);
    offered.find(|protocol| protocol.starts_with(crate::api::webchat::TOKEN_PREFIX))
}
