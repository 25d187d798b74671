//! `GET …/socket`: pushes messages to the visitor as they happen.
//!
//! There is one task per socket. The session's actor pushes to it through a bounded queue, and the task writes to the
//! framework's bounded queue, no faster than its reader reads. So the cost of a slow reader is bounded: when both
//! queues are full, the socket is closed, and the browser catches up from the tables when it reconnects.

mod frame_limit;
mod frames;
mod session;
mod window;

use actix_http::BoxedPayloadStream;
use actix_web::http::header::{HeaderValue, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use actix_web::web::{Data, Payload};
use actix_web::{FromRequest, HttpRequest};
use hotline_actors::webchat::{self, Attach};
use hotline_persistence::ChannelId;
use serde_json::json;
use tokio::sync::watch;

use super::Webchat;
use super::limits::Visitors;
use super::visitor::{self, Visitor};
use crate::app::App;
use crate::openapi::{DocumentedResponse, Operation, ResponseDescription};
use crate::web::admission::response_memory::ResponseMemory;
use crate::web::connections::origin::Address;
use crate::web::response::schema::Schemas;
use crate::web::{ApiError, ApiResult};
use frame_limit::FrameLimit;
use session::{ActorChannels, SocketSession};
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

impl ResponseDescription for Upgrade {
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

/// The webchat, page and visitor that a socket is open for.
struct SocketContext {
    channel: ChannelId,
    origin: Option<HeaderValue>,
    address: Option<Address>,
    /// Accounts for the pages that are held for slow readers.
    response_memory: Data<ResponseMemory>,
}

/// Where a socket's frames are written.
struct SocketOutput {
    sender: actix_ws::Session,
    window: Window,
}

fn too_many() -> ApiError {
    ApiError::too_many_open("sockets", RETRY_AFTER_S)
}

/// Opens a socket.
pub async fn open(
    webchat: Webchat,
    app: Data<App>,
    visitors: Data<Visitors>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<DocumentedResponse<Upgrade>> {
    let Visitor(row) = visitor::find(&app, &webchat, token_of(&request)).await?;
    let permit = visitors.admit_socket(webchat.address).ok_or_else(too_many)?;
    let (push_sender, pushes) = webchat::push_channel();
    let (close_sender, close) = watch::channel(None);
    let attach = Attach { push_sender, close_sender };
    let attached = app.engine.sessions.ask(row.company_id, &row.id, attach).await?;
    let attached = attached.ok_or_else(too_many)?;
    // Checked before the codec, which would buffer the claimed length.
    let frames: BoxedPayloadStream = Box::pin(FrameLimit::new(payload.into_inner(), FRAME_BYTES_MAX as u64));
    let mut payload = actix_web::dev::Payload::Stream { payload: frames };
    let payload = Payload::from_request(&request, &mut payload).await.map_err(ApiError::internal)?;
    let (response, sender, incoming) = actix_ws::handle_with_protocols(&request, payload, &[PROTOCOL])
        .map_err(|error| ApiError::bad_request(format!("invalid WebSocket handshake: {error}")))?;
    let window = Window::default();
    let response_memory = request.app_data::<Data<ResponseMemory>>().cloned();
    let response_memory = response_memory.ok_or_else(|| ApiError::internal("the memory of sockets is not metered"))?;
    let origin = request.headers().get(ORIGIN).cloned();
    let context = SocketContext { channel: webchat.channel, origin, address: webchat.address, response_memory };
    let session = SocketSession::new(
        app,
        visitors,
        context,
        attached,
        permit,
        SocketOutput { sender, window: window.clone() },
        ActorChannels { pushes, close },
    );
    actix_web::rt::spawn(session.run(incoming.max_frame_size(FRAME_BYTES_MAX)));
    Ok(response.map_body(|_, body| window.count_sent(body)).into())
}

/// The visitor's token among the subprotocols the browser offers.
fn token_of(request: &HttpRequest) -> Option<&str> {
    let lines = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL).filter_map(|line| line.to_str().ok());
    let mut offered = lines.flat_map(|line| line.split(',')).map(str::trim);
    offered.find(|protocol| protocol.starts_with(crate::api::webchat::TOKEN_PREFIX))
}
