//! `GET …/socket`: pushes messages to the visitor as they arrive.
//!
//! Each socket has one task, which takes the connection over from the framework. The session's actor pushes to the task
//! through a bounded queue, and the task writes no faster than the browser reads. So the cost of a slow browser is
//! bounded: when the queue is full, the socket is closed, and the browser catches up from the tables when it
//! reconnects.

mod frame_stream;
mod frames;
mod session;

use std::convert::Infallible;

use actix_http::ws::handshake;
use actix_web::body::{BodyStream, MessageBody};
use actix_web::http::header::{HeaderValue, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream;
use hotline_actors::webchat::{self, Attach};
use hotline_persistence::ChannelId;
use serde_json::json;
use tokio::sync::watch;

use super::Webchat;
use super::limits::VisitorLimits;
use super::visitor::{self, Visitor};
use crate::app::App;
use crate::openapi::{DocumentedResponse, Operation, ResponseDescription};
use crate::web::admission::response_memory::ResponseMemory;
use crate::web::connections::origin::Address;
use crate::web::connections::take_over;
use crate::web::response::schema::Schemas;
use crate::web::{ApiError, ApiResult};
use frame_stream::FrameStream;
use session::{ActorReceivers, SocketSession};

/// The subprotocol of the handshake. The token is sent as another subprotocol, because browsers can set no other
/// header.
const PROTOCOL: &str = "hotline.v1";

/// `Retry-After` in seconds for a refused socket: other sockets of its address or session may have closed by then.
const RETRY_AFTER_S: u64 = 10;

/// Describes the response `101`, which upgrades the connection to a socket.
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

/// What a socket keeps of the request that opened it.
struct SocketContext {
    channel: ChannelId,
    origin: Option<HeaderValue>,
    address: Option<Address>,
    /// Limits the memory that missed messages take until browsers have received them.
    response_memory: Data<ResponseMemory>,
}

fn too_many_sockets() -> ApiError {
    ApiError::too_many_open("sockets", RETRY_AFTER_S)
}

/// Opens a socket.
pub async fn open(
    webchat: Webchat,
    app: Data<App>,
    visitor_limits: Data<VisitorLimits>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<DocumentedResponse<Upgrade>> {
    let Visitor(row) = visitor::find_visitor(&app, &webchat, token_of(&request)).await?;
    let permit = visitor_limits.admit_socket(webchat.address).ok_or_else(too_many_sockets)?;
    let (push_sender, pushes) = webchat::push_channel();
    let (close_sender, close) = watch::channel(None);
    let attach = Attach { push_sender, close_sender };
    let attached_socket = app.engine.sessions.ask(row.company_id, &row.id, attach).await?;
    let attached_socket = attached_socket.ok_or_else(too_many_sockets)?;
    let mut response = handshake(request.head())
        .map_err(|error| ApiError::bad_request(format!("invalid WebSocket handshake: {error}")))?;
    if offered_protocols(&request).any(|protocol| protocol == PROTOCOL) {
        response.insert_header((SEC_WEBSOCKET_PROTOCOL, PROTOCOL));
    }
    let response_memory = request.app_data::<Data<ResponseMemory>>().cloned();
    let response_memory = response_memory.ok_or_else(|| ApiError::internal("the memory of sockets is not metered"))?;
    let origin = request.headers().get(ORIGIN).and_then(copy_value);
    let context = SocketContext { channel: webchat.channel, origin, address: webchat.address, response_memory };
    let receivers = ActorReceivers { pushes, close };
    let has_connection = take_over(&request, payload.into_inner(), move |taken| {
        let frame_stream = FrameStream::new(taken);
        // Boxed, because a future reserves space for its arguments twice.
        Box::new(SocketSession::new(app, visitor_limits, context, attached_socket, permit, frame_stream, receivers))
            .run()
    });
    if !has_connection {
        return Err(ApiError::internal("the socket's request has no connection"));
    }
    // A body without an end: the framework waits for its next piece, and keeps the connection open until it is taken
    // over.
    let body = BodyStream::new(stream::pending::<Result<Bytes, Infallible>>());
    let response = response.message_body(body.boxed()).map_err(ApiError::internal)?;
    Ok(HttpResponse::from(response).into())
}

/// A copy of a header's value. A clone would keep the request's whole read buffer in memory.
fn copy_value(value: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::from_bytes(value.as_bytes()).ok()
}

/// The subprotocols that the browser offers.
fn offered_protocols(request: &HttpRequest) -> impl Iterator<Item = &str> {
    let lines = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL).filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// The visitor's token among the subprotocols.
fn token_of(request: &HttpRequest) -> Option<&str> {
    offered_protocols(request).find(|protocol| protocol.starts_with(crate::api::webchat::TOKEN_PREFIX))
}
