//! Forwards one request to another process, unchanged, and returns that process's response.

use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use actix_http::body::{BodySize, BodyStream, BoxBody, SizedStream};
use actix_http::h1::{ClientCodec, MessageType};
use actix_http::header::HeaderName;
use actix_http::{ConnectionType, Payload, RequestHead, Response, ResponseHead};
use actix_web::error::PayloadError;
use actix_web::http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, PROXY_AUTHENTICATE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use actix_web::http::{Method, StatusCode};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::empty;
use hotline_persistence::cluster::Peer;
use tokio::time::timeout;

use super::body::{self, EdgeBody};
use super::link::{PeerLink, PeerLinks};
use super::relay::{RelayedBody, StopConditions, splice};
use super::signer::FORWARDED;
use crate::web::connections::MinRateStream;

/// Timeout of a response once its request is sent. Normally, whatever a handler waits for has a shorter timeout.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(60);

/// How long to wait for a response when the request could not be sent completely: the other side refused it, or has
/// ended.
const EARLY_RESPONSE_TIME_MAX: Duration = Duration::from_secs(1);

/// Responses up to this size are read completely before they are forwarded, which frees the connection at once. Larger
/// ones are streamed: the process that serves the company counts their memory until they are sent.
const WHOLE_BODY_BYTES_MAX: u64 = crate::web::connections::RESPONSE_PIECE_BYTES as u64;

/// Hop-by-hop headers: each connection has its own.
const HOP_BY_HOP: [HeaderName; 7] =
    [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, PROXY_AUTHENTICATE, HeaderName::from_static("keep-alive")];

/// The content type of an event stream, which does not end.
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// Why there is no response.
#[derive(Debug)]
pub(super) enum ForwardError {
    /// The other process was not reached, so it has not received the request.
    Unreachable,
    /// The other process is not the owner, and has not started the request.
    NotOwner,
    /// It is unknown whether the owner has started the request.
    Unknown,
    /// The caller's body could not be read.
    Body(PayloadError),
}

/// Forwards requests to other processes; one per thread.
pub(super) struct Forwarder {
    pub(super) links: Rc<PeerLinks>,
}

impl Forwarder {
    /// Sends a request and returns the response. `stop` determines when to stop waiting for the other process.
    pub(super) async fn send(
        &self,
        peer: &Peer,
        head: &RequestHead,
        forwarded_header: &str,
        body: &mut EdgeBody,
        stop: StopConditions,
    ) -> Result<Response<BoxBody>, ForwardError> {
        let mut link =
            self.links.get(peer, |life| stop.placement.has_peer(life)).await.map_err(|_| ForwardError::Unreachable)?;
        let mut codec = self.links.codec();
        let is_websocket = is_websocket(head);
        let mut out = BytesMut::with_capacity(1024);
        write_head(&mut out, head, forwarded_header, &Length::of(head, body, is_websocket));
        let life_ended = stop.life_ended();
        let exchange = async {
            if is_websocket {
                link.write(&out).await.map_err(|error| write_error(error.is_partly_sent))?;
                return read_response_head(&mut link, &mut codec).await.map(ReceivedHead::after_request);
            }
            match std::mem::replace(body, EdgeBody::Consumed) {
                EdgeBody::Streamed(first, rest) => {
                    let length = Length::of_streamed(head);
                    stream_body(&mut link, &mut codec, out, length, first, rest).await
                }
                resendable_body => {
                    if let EdgeBody::Retained(bytes, _) = &resendable_body {
                        out.extend_from_slice(bytes);
                    }
                    *body = resendable_body;
                    let written = link.write(&out).await;
                    match written {
                        Ok(()) => read_response_head(&mut link, &mut codec).await.map(ReceivedHead::after_request),
                        Err(error) if error.is_partly_sent => {
                            let response = timeout(EARLY_RESPONSE_TIME_MAX, link.read_head(&mut codec)).await;
                            response.ok().and_then(Result::ok).map(ReceivedHead::early).ok_or(ForwardError::Unknown)
                        }
                        Err(_) => Err(ForwardError::Unreachable),
                    }
                }
            }
        };
        let ReceivedHead { head: response_head, is_request_sent } = tokio::select! {
            biased;
            received = exchange => received?,
            () = life_ended => return Err(ForwardError::Unknown),
        };
        if response_head.status == StatusCode::MISDIRECTED_REQUEST {
            if is_request_sent && response_head.keep_alive() && codec.message_type() == MessageType::None {
                self.links.release(peer.life, link);
            }
            return Err(ForwardError::NotOwner);
        }
        let is_switching = response_head.status == StatusCode::SWITCHING_PROTOCOLS;
        if is_websocket && is_switching {
            let payload = match std::mem::replace(body, EdgeBody::Consumed) {
                EdgeBody::Unread(payload) | EdgeBody::Streamed(_, payload) => payload,
                EdgeBody::None | EdgeBody::Retained(..) | EdgeBody::Consumed => Payload::None,
            };
            let mut response = to_response(response_head, BoxBody::new(splice(link, payload, stop)));
            response.head_mut().set_connection_type(ConnectionType::Upgrade);
            return Ok(response);
        }
        let response =
            PeerResponse { peer, link, codec, head: response_head, is_reusable: is_request_sent && !is_websocket };
        self.read_response(response, head.method == Method::HEAD, stop).await
    }

    /// Builds the response: a small body is read completely, a larger one is streamed.
    async fn read_response(
        &self,
        response: PeerResponse<'_>,
        is_head: bool,
        stop: StopConditions,
    ) -> Result<Response<BoxBody>, ForwardError> {
        let PeerResponse { peer, mut link, codec, head, is_reusable } = response;
        let is_reusable = is_reusable && head.keep_alive();
        let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.trim().parse().ok());
        let is_chunked = head.headers.contains_key(TRANSFER_ENCODING);
        if is_head || codec.message_type() == MessageType::None {
            if is_reusable {
                self.links.release(peer.life, link);
            }
            let body = match length {
                Some(length) if is_head => BoxBody::new(SizedStream::new(length, empty::<io::Result<Bytes>>())),
                None if is_head && is_chunked => BoxBody::new(BodyStream::new(empty::<io::Result<Bytes>>())),
                _ if head.status == StatusCode::NO_CONTENT || head.status == StatusCode::NOT_MODIFIED => {
                    BoxBody::new(())
                }
                _ => BoxBody::new(Bytes::new()),
            };
            return Ok(to_response(head, body));
        }
        if let Some(length) = length.filter(|length| *length <= WHOLE_BODY_BYTES_MAX) {
            let bytes = usize::try_from(length).unwrap_or(usize::MAX);
            read_body(&mut link, bytes, stop).await?;
            let whole_body = link.buffer.split_to(bytes).freeze();
            if is_reusable {
                self.links.release(peer.life, link);
            }
            return Ok(to_response(head, BoxBody::new(whole_body)));
        }
        let is_endless = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(EVENT_STREAM));
        let return_to = is_reusable.then(|| (self.links.clone(), peer.life));
        let relayed = RelayedBody::new(link, codec.into_payload_codec(), return_to, stop, is_endless);
        let body = match length {
            Some(length) => BoxBody::new(SizedStream::new(length, relayed)),
            None => BoxBody::new(BodyStream::new(relayed)),
        };
        Ok(to_response(head, body))
    }
}

/// The head of a response.
struct ReceivedHead {
    head: ResponseHead,
    /// Whether the whole request was sent before the head arrived; otherwise the connection cannot be reused.
    is_request_sent: bool,
}

impl ReceivedHead {
    /// A head that arrived after the whole request was sent.
    fn after_request(head: ResponseHead) -> Self {
        Self { head, is_request_sent: true }
    }

    /// A head that arrived before the whole request was sent.
    fn early(head: ResponseHead) -> Self {
        Self { head, is_request_sent: false }
    }
}

/// A response whose body is not read yet.
struct PeerResponse<'a> {
    peer: &'a Peer,
    link: PeerLink,
    codec: ClientCodec,
    head: ResponseHead,
    is_reusable: bool,
}

fn write_error(is_partly_sent: bool) -> ForwardError {
    if is_partly_sent { ForwardError::Unknown } else { ForwardError::Unreachable }
}

/// Reads this many bytes of a response, with the same limits as for its head. The handler has finished, so its effect
/// is final; if the bytes do not arrive, only its response is lost.
async fn read_body(link: &mut PeerLink, bytes: usize, stop: StopConditions) -> Result<(), ForwardError> {
    let read_all = timeout(RESPONSE_TIME_MAX, async {
        while link.buffer.len() < bytes {
            link.read_more().await.map_err(|_| ForwardError::Unknown)?;
        }
        Ok(())
    });
    tokio::select! {
        biased;
        read = read_all => read.unwrap_or(Err(ForwardError::Unknown)),
        () = stop.life_ended() => Err(ForwardError::Unknown),
    }
}

/// Waits for the head of the response.
async fn read_response_head(link: &mut PeerLink, codec: &mut ClientCodec) -> Result<ResponseHead, ForwardError> {
    let read = timeout(RESPONSE_TIME_MAX, link.read_head(codec)).await;
    read.ok().and_then(Result::ok).ok_or(ForwardError::Unknown)
}

/// Streams a body. A refusal may arrive before the end of the body; then the rest is not sent.
async fn stream_body(
    link: &mut PeerLink,
    codec: &mut ClientCodec,
    head: BytesMut,
    length: Length,
    first: Bytes,
    rest: Payload,
) -> Result<ReceivedHead, ForwardError> {
    let is_chunked = matches!(length, Length::Chunked);
    let (mut reader, mut writer) = link.stream.split();
    let buffer = &mut link.buffer;
    let send_all = async {
        use tokio::io::AsyncWriteExt;
        writer.write_all(&head).await.map_err(|_| ForwardError::Unknown)?;
        let mut chunks =
            futures_util::stream::iter((!first.is_empty()).then_some(Ok(first))).chain(MinRateStream::new(rest));
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(ForwardError::Body)?;
            let written = if is_chunked {
                let mut framed = BytesMut::with_capacity(chunk.len() + 16);
                // Writing to memory cannot fail.
                let _ = write!((&mut framed).writer(), "{:x}\r\n", chunk.len());
                framed.extend_from_slice(&chunk);
                framed.extend_from_slice(b"\r\n");
                writer.write_all(&framed).await
            } else {
                writer.write_all(&chunk).await
            };
            written.map_err(|_| ForwardError::Unknown)?;
        }
        if is_chunked {
            writer.write_all(b"0\r\n\r\n").await.map_err(|_| ForwardError::Unknown)?;
        }
        Ok::<(), ForwardError>(())
    };
    let mut read_head = std::pin::pin!(async {
        use actix_codec::Decoder;
        use tokio::io::AsyncReadExt;
        loop {
            if let Some(head) = codec.decode(buffer).map_err(|_| ForwardError::Unknown)? {
                return Ok(head);
            }
            match reader.read_buf(buffer).await {
                Ok(0) | Err(_) => return Err(ForwardError::Unknown),
                Ok(_) => {}
            }
        }
    });
    tokio::select! {
        biased;
        head = &mut read_head => head.map(ReceivedHead::early),
        sent = send_all => match sent {
            Ok(()) => {
                let head = timeout(RESPONSE_TIME_MAX, read_head).await;
                head.unwrap_or(Err(ForwardError::Unknown)).map(ReceivedHead::after_request)
            }
            Err(ForwardError::Body(error)) => Err(ForwardError::Body(error)),
            Err(_) => {
                let head = timeout(EARLY_RESPONSE_TIME_MAX, read_head).await;
                head.unwrap_or(Err(ForwardError::Unknown)).map(ReceivedHead::early)
            }
        },
    }
}

/// How the head declares the body's length.
enum Length {
    None,
    Bytes(u64),
    Chunked,
    /// The connection switches to another protocol.
    Socket,
}

impl Length {
    fn of(head: &RequestHead, body: &EdgeBody, is_websocket: bool) -> Self {
        match body {
            _ if is_websocket => Self::Socket,
            EdgeBody::None | EdgeBody::Unread(_) | EdgeBody::Consumed => Self::None,
            EdgeBody::Retained(bytes, _) => Self::Bytes(bytes.len() as u64),
            EdgeBody::Streamed(..) => Self::of_streamed(head),
        }
    }

    fn of_streamed(head: &RequestHead) -> Self {
        body::content_length(head).map_or(Self::Chunked, Self::Bytes)
    }
}

/// Whether the request is a WebSocket upgrade.
pub(super) fn is_websocket(head: &RequestHead) -> bool {
    head.upgrade()
        && head.headers.get(UPGRADE).is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Writes the head of a request for another process.
fn write_head(out: &mut BytesMut, head: &RequestHead, forwarded_header: &str, length: &Length) {
    out.extend_from_slice(head.method.as_str().as_bytes());
    out.extend_from_slice(b" ");
    out.extend_from_slice(head.uri.path_and_query().map_or("/", |target| target.as_str()).as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    // `Host` is optional in HTTP/1.0 and required in HTTP/1.1.
    if !head.headers.contains_key(HOST) {
        write_header(out, HOST.as_str(), b"");
    }
    // Headers that `Connection` names are forwarded too: both processes are one service, and a caller could otherwise
    // remove headers that a proxy has added.
    for (name, value) in &head.headers {
        let is_omitted = HOP_BY_HOP.contains(name) || [CONTENT_LENGTH, EXPECT, FORWARDED].contains(name);
        if !is_omitted {
            write_header(out, name.as_str(), value.as_bytes());
        }
    }
    write_header(out, FORWARDED.as_str(), forwarded_header.as_bytes());
    match length {
        Length::None => {}
        Length::Bytes(bytes) => write_header(out, CONTENT_LENGTH.as_str(), bytes.to_string().as_bytes()),
        Length::Chunked => write_header(out, TRANSFER_ENCODING.as_str(), b"chunked"),
        Length::Socket => {
            write_header(out, CONNECTION.as_str(), b"upgrade");
            write_header(out, UPGRADE.as_str(), b"websocket");
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn write_header(out: &mut BytesMut, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// A response with the head of another process's response.
fn to_response(head: ResponseHead, body: BoxBody) -> Response<BoxBody> {
    let is_socket = head.status == StatusCode::SWITCHING_PROTOCOLS;
    let mut response = Response::with_body(head.status, body);
    let mut headers = head.headers;
    for name in HOP_BY_HOP.iter().filter(|name| !(is_socket && **name == UPGRADE)) {
        headers.remove(name);
    }
    // The framework writes the length with the body.
    if !matches!(actix_http::body::MessageBody::size(response.body()), BodySize::None) {
        headers.remove(CONTENT_LENGTH);
    }
    *response.headers_mut() = headers;
    response
}

#[cfg(test)]
mod tests {
    use actix_http::header::HeaderValue;

    use super::*;

    #[test]
    fn hop_by_hop_headers_are_not_forwarded() {
        let mut head = RequestHead::default();
        head.method = Method::POST;
        head.uri = "/api/v1/a%20b?c=d".parse().expect("a target");
        for (name, value) in [
            ("host", "api.example"),
            ("connection", "keep-alive, x-hop, Host, X-Forwarded-For, authorization"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("transfer-encoding", "chunked"),
            ("hotline-forwarded", "1 - 00"),
            ("x-forwarded-for", "192.0.2.1"),
            ("authorization", "Bearer a"),
        ] {
            head.headers.append(name.parse().expect("a name"), HeaderValue::from_static(value));
        }
        let mut out = BytesMut::new();
        write_head(&mut out, &head, "signed", &Length::Bytes(3));
        let text = String::from_utf8(out.to_vec()).expect("text");
        let (first, rest) = text.split_once("\r\n").expect("a line");
        assert_eq!(first, "POST /api/v1/a%20b?c=d HTTP/1.1");
        let mut lines: Vec<_> = rest.trim_end().split("\r\n").collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "authorization: Bearer a",
                "content-length: 3",
                "host: api.example",
                "hotline-forwarded: signed",
                "x-forwarded-for: 192.0.2.1",
                "x-hop: 1"
            ]
        );
        assert!(text.ends_with("\r\n\r\n"));
    }
}
