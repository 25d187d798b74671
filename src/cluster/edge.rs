//! The edge of a cluster: routes each request that arrives at this process to the process that serves its company.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::body::{BodySize, BoxBody, MessageBody};
use actix_http::{HttpMessage, Request, RequestHead, Response};
use actix_service::Service;
use actix_web::ResponseError;
use actix_web::http::header::X_CONTENT_TYPE_OPTIONS;
use actix_web::http::{Method, StatusCode};
use actix_web::web::Data;
use hotline_actors::Directory;
use hotline_persistence::cluster::{Membership, Owner, Peer, Slot};
use hotline_persistence::{CompanyId, Ownership, Presence};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::body::{EdgeBody, RetainedBudget, retained_budget};
use super::forward::{ForwardError, Forwarder};
use super::leased_body::LeasedBody;
use super::link::PeerLinks;
use super::relay::StopConditions;
use super::request_scope::{RequestScope, request_scope};
use super::signer::{Forwarded, Signer};
use crate::metrics::Metrics;
use crate::web::ApiError;
use crate::web::admission::auth::AcquiredPresence;
use crate::web::admission::hardening::NO_SNIFFING;
use crate::web::admission::idempotency::{IDEMPOTENCY_KEY, applies_to};
use crate::web::admission::modules::API;
use crate::web::admission::request_id::{self, X_REQUEST_ID};
use crate::web::connections::{ConnectionCloser, body_error};
use crate::web::response::error::OutcomeUnknown;

/// How long a request waits until its company has an owner: longer than a company takes to move, and shorter than
/// callers wait for a response.
const WAIT_TIME_MAX: Duration = Duration::from_secs(5);

/// Pauses between retries in case no notification arrives: a company's gate, closed while the company's state is
/// dropped from memory, opens without one. Each pause is twice the previous one, up to the maximum, and a notification resets it. Thousands of
/// requests may wait for the same company, and its new owner must not have to refuse each of them twenty times a
/// second.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(25);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(400);

/// The edge of this process. Cheap to clone.
#[derive(Clone)]
pub struct Edge(Arc<Inner>);

struct Inner {
    membership: Arc<Membership>,
    directory: Directory,
    ownership: Ownership,
    metrics: Data<Metrics>,
    stopping: watch::Receiver<bool>,
    signer: Signer,
    budget: RetainedBudget,
    /// How long a request waits at most until its company has an owner.
    wait_time_max: Duration,
}

impl Edge {
    /// The edge of a cluster member.
    pub fn new(
        membership: Arc<Membership>,
        directory: Directory,
        ownership: Ownership,
        metrics: Data<Metrics>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let signer = Signer::new(membership.peer_key());
        let (budget, wait_time_max) = (retained_budget(), WAIT_TIME_MAX);
        Self(Arc::new(Inner { membership, directory, ownership, metrics, stopping, signer, budget, wait_time_max }))
    }

    /// The same edge with another `wait_time_max`.
    #[cfg(test)]
    pub(super) fn with_wait_time_max(self, wait_time_max: Duration) -> Self {
        Self(Arc::new(Inner { wait_time_max, ..Arc::into_inner(self.0).expect("the only reference") }))
    }
}

/// The edge of one serving thread.
pub(super) struct ThreadEdge {
    edge: Edge,
    forwarder: Forwarder,
}

/// Where a company's requests are currently served.
enum Route {
    Local(Presence),
    Remote(Arc<Peer>),
    /// The company is moving, or its gate is closed.
    Unassigned,
}

impl ThreadEdge {
    pub(super) fn new(edge: Edge) -> Self {
        Self { edge, forwarder: Forwarder { links: Rc::new(PeerLinks::default()) } }
    }

    fn inner(&self) -> &Inner {
        &self.edge.0
    }

    fn route(&self, company: CompanyId, slot: Slot) -> Route {
        let Inner { membership, ownership, .. } = self.inner();
        match membership.placement.owner(slot) {
            // The presence is acquired before the handler starts: the company cannot move until this request has ended.
            Owner::Local => ownership.try_enter(company).map_or(Route::Unassigned, Route::Local),
            Owner::Remote(peer) => Route::Remote(peer),
            Owner::Unassigned => Route::Unassigned,
        }
    }

    /// The scope of a request, with the slot if it is a company's.
    fn scope_and_slot(&self, head: &RequestHead) -> (RequestScope, Option<Slot>) {
        match request_scope(head, &self.inner().directory) {
            RequestScope::Company(company) => match self.inner().directory.slot(company) {
                Some(slot) => (RequestScope::Company(company), Some(slot)),
                // This process knows no such company.
                None => (RequestScope::NoCompany, None),
            },
            other => (other, None),
        }
    }

    /// Answers a request from any client.
    pub(super) async fn respond<S>(&self, handlers: &S, mut request: Request) -> Result<Response<BoxBody>, S::Error>
    where
        S: Service<Request>,
        S::Response: Into<Response<BoxBody>>,
    {
        let (company, slot) = match self.scope_and_slot(request.head()) {
            (RequestScope::Company(company), Some(slot)) => (company, slot),
            (RequestScope::Public, _) => return Ok(handlers.call(request).await?.into()),
            _ => return self.serve(handlers, request, None).await,
        };
        let closer = ConnectionCloser::of(&request);
        let mut body = EdgeBody::of(request.take_payload());
        let placement = &self.inner().membership.placement;
        let deadline = Instant::now() + self.inner().wait_time_max;
        let mut has_waited = false;
        // Whether an earlier owner may have made the change. Then a refusal by a later owner does not mean that nothing
        // was changed.
        let mut may_have_executed = false;
        let mut pause = RETRY_PAUSE_MIN;
        loop {
            let version = placement.version();
            match self.route(company, slot) {
                Route::Local(presence) => {
                    let Some(payload) = body.into_payload() else { return Ok(self.unavailable(request.head())) };
                    *request.payload() = payload;
                    let response = self.serve(handlers, request, Some((company, presence))).await?;
                    if may_have_executed && asks_to_retry(&response) {
                        return self.close_connection(closer).await;
                    }
                    return Ok(response);
                }
                Route::Remote(peer) => match self.forward(&peer, &request, &mut body).await {
                    Ok(response) if may_have_executed && asks_to_retry(&response) => {}
                    Ok(response) => return Ok(response),
                    Err(ForwardError::Body(error)) => return Ok(error_response(request.head(), &body_error(error))),
                    Err(ForwardError::Unknown) if is_repeatable(request.head()) && body.can_be_sent() => {
                        may_have_executed |= !is_read(request.head());
                        self.inner().metrics.cluster.add_retried();
                    }
                    Err(ForwardError::Unknown) => return self.close_connection(closer).await,
                    Err(ForwardError::Unreachable | ForwardError::NotOwner) => placement.request_reload(),
                },
                Route::Unassigned => {}
            }
            if !std::mem::replace(&mut has_waited, true) {
                self.inner().metrics.cluster.add_waited();
            }
            let now = Instant::now();
            if now >= deadline || !body.can_be_sent() {
                break;
            }
            // Retries whether notified or not.
            let is_notified = timeout_at(deadline.min(now + pause), placement.wait_for_change(version)).await.is_ok();
            pause = if is_notified { RETRY_PAUSE_MIN } else { RETRY_PAUSE_MAX.min(pause * 2) };
        }
        if may_have_executed { self.close_connection(closer).await } else { Ok(self.unavailable(request.head())) }
    }

    /// Closes the connection without a response: the outcome is unknown.
    async fn close_connection<T>(&self, closer: ConnectionCloser) -> T {
        self.inner().metrics.cluster.add_aborted();
        match closer.close().await {}
    }

    async fn forward(
        &self,
        peer: &Peer,
        request: &Request,
        body: &mut EdgeBody,
    ) -> Result<Response<BoxBody>, ForwardError> {
        let Inner { membership, signer, stopping, budget, metrics, .. } = self.inner();
        let head = request.head();
        body.read(head, budget).await.map_err(ForwardError::Body)?;
        let signed = signer.sign(head, Forwarded { life: peer.life, client: request.peer_addr() });
        metrics.cluster.add_forwarded();
        let stop =
            StopConditions { placement: membership.placement.clone(), life: peer.life, stopping: stopping.clone() };
        let started = Instant::now();
        let response = self.forwarder.send(peer, head, &signed, body, stop).await?;
        metrics.cluster.add_response(started.elapsed());
        Ok(response)
    }

    /// Answers a request from another process. If this process knows the request's company but does not serve it, it
    /// answers that it is not the owner.
    pub(super) async fn respond_to_peer<S>(
        &self,
        handlers: &S,
        mut request: Request,
    ) -> Result<Response<BoxBody>, S::Error>
    where
        S: Service<Request>,
        S::Response: Into<Response<BoxBody>>,
    {
        let Some(forwarded) = self.inner().signer.read(request.head()) else {
            return Ok(Response::with_body(StatusCode::FORBIDDEN, BoxBody::new(bytes::Bytes::new())));
        };
        let not_owner = || Ok(Response::with_body(StatusCode::MISDIRECTED_REQUEST, BoxBody::new(bytes::Bytes::new())));
        if forwarded.life != self.inner().membership.life {
            return not_owner();
        }
        let scope_and_slot = self.scope_and_slot(request.head());
        // A peer's check whether it reaches this process is not a forwarded request, and a stop does not wait for it.
        if !matches!(scope_and_slot, (RequestScope::Public, _)) {
            self.inner().metrics.cluster.add_received();
        }
        request.head_mut().peer_addr = forwarded.client;
        match scope_and_slot {
            (RequestScope::Company(company), Some(slot)) => match self.route(company, slot) {
                Route::Local(presence) => self.serve(handlers, request, Some((company, presence))).await,
                Route::Remote(_) | Route::Unassigned => not_owner(),
            },
            // A peer's check, or a company that this process does not know yet or no longer.
            _ => self.serve(handlers, request, None).await,
        }
    }

    /// Serves a request with this process's own handlers. The response is sent only while the lease holds.
    async fn serve<S>(
        &self,
        handlers: &S,
        request: Request,
        company_presence: Option<(CompanyId, Presence)>,
    ) -> Result<Response<BoxBody>, S::Error>
    where
        S: Service<Request>,
        S::Response: Into<Response<BoxBody>>,
    {
        let lease = &self.inner().membership.lease;
        if !lease.holds() {
            return Ok(self.unavailable(request.head()));
        }
        let is_read = is_read(request.head());
        let (closer, id) = (ConnectionCloser::of(&request), request_id::of(&request.head().headers));
        if let Some((company, presence)) = company_presence {
            request.extensions_mut().insert(AcquiredPresence::new(company, presence));
        }
        let response: Response<BoxBody> = handlers.call(request).await?.into();
        if response.extensions().contains::<OutcomeUnknown>() {
            return self.close_connection(closer).await;
        }
        if !lease.holds() {
            // A change that was made must not be answered with `503`, which means that nothing was changed.
            let is_change = !is_read && response.status().as_u16() < 400;
            if is_change {
                return self.close_connection(closer).await;
            }
            self.inner().metrics.cluster.add_refused();
            return Ok(with_common_headers(unavailable_response(), id));
        }
        if response.body().size() != BodySize::Stream {
            return Ok(response);
        }
        let lease = lease.clone();
        Ok(response.map_body(|_, body| BoxBody::new(LeasedBody { body, lease })))
    }

    fn unavailable(&self, head: &RequestHead) -> Response<BoxBody> {
        self.inner().metrics.cluster.add_refused();
        error_response(head, &ApiError::unavailable())
    }
}

fn unavailable_response() -> Response<BoxBody> {
    ApiError::unavailable().error_response().into()
}

fn error_response(head: &RequestHead, error: &ApiError) -> Response<BoxBody> {
    with_common_headers(error.error_response().into(), request_id::of(&head.headers))
}

fn with_common_headers(mut response: Response<BoxBody>, id: actix_web::http::header::HeaderValue) -> Response<BoxBody> {
    response.headers_mut().insert(X_REQUEST_ID, id);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    response
}

fn is_read(head: &RequestHead) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(&head.method)
}

/// Whether the response asks to retry later, and so does not reveal the outcome of an earlier attempt.
fn asks_to_retry(response: &Response<BoxBody>) -> bool {
    [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&response.status())
}

/// Whether the request may be sent twice: it changes nothing, or its idempotency key prevents a second execution. Calls
/// of the panel may return a secret, so a key does not make them repeatable.
fn is_repeatable(head: &RequestHead) -> bool {
    let has_key =
        applies_to(&head.method) && head.headers.contains_key(IDEMPOTENCY_KEY) && head.uri.path().starts_with(API);
    is_read(head) || has_key
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn only_idempotent_requests_are_repeatable() {
        let is_repeatable_with = |method: &Method, path: &'static str, headers: &[(&str, &'static str)]| {
            let mut head = RequestHead::default();
            head.method = method.clone();
            head.uri = path.parse().expect("a path");
            for (name, value) in headers {
                head.headers.append(name.parse().expect("a name"), HeaderValue::from_static(value));
            }
            is_repeatable(&head)
        };
        let (path, key) = ("/api/v1/tags", ("idempotency-key", "a"));
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert!(is_repeatable_with(&method, path, &[]), "{method} changes nothing");
        }
        for method in [Method::POST, Method::PUT] {
            assert!(is_repeatable_with(&method, path, &[key]), "{method}");
            assert!(!is_repeatable_with(&method, path, &[]), "{method} without a key");
            assert!(!is_repeatable_with(&method, "/panel/api/v1/tokens", &[key]), "{method} at the panel");
            let connection_names_key = [key, ("connection", "keep-alive, Idempotency-Key")];
            assert!(
                is_repeatable_with(&method, path, &connection_names_key),
                "{method} with a key that the Connection header names"
            );
        }
        for method in [Method::DELETE, Method::PATCH] {
            assert!(!is_repeatable_with(&method, path, &[key]), "{method} does not support keys");
        }
    }
}
