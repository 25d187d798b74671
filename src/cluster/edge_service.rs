//! The outermost service of a listener. Once the process has announced its stop, each response to a client closes its
//! connection: closed later, the connection could end while the client is sending its next request.

use std::rc::Rc;
use std::task::{Context, Poll};

use actix_http::body::BoxBody;
use actix_http::{ConnectionType, Request, Response};
use actix_service::{IntoServiceFactory, Service, ServiceFactory};
use actix_web::http::StatusCode;
use futures_util::future::{Either, LocalBoxFuture, MapOk};
use futures_util::{FutureExt, TryFutureExt};

use super::edge::{Edge, ThreadEdge};
use crate::health::Health;
use crate::web::connections::Side;

/// Creates the service of each serving thread: all routes, behind the edge if the process is a cluster member.
pub struct EdgeServiceFactory<F> {
    routes: F,
    edge: Option<Edge>,
    side: Side,
    health: Health,
}

impl<F: ServiceFactory<Request>> EdgeServiceFactory<F> {
    /// A factory for these routes.
    pub fn new<I: IntoServiceFactory<F, Request>>(routes: I, edge: Option<Edge>, side: Side, health: Health) -> Self {
        Self { routes: routes.into_factory(), edge, side, health }
    }
}

impl<F> ServiceFactory<Request> for EdgeServiceFactory<F>
where
    F: ServiceFactory<Request>,
    F::Response: Into<Response<BoxBody>>,
    F::Service: 'static,
    F::Future: 'static,
    F::Error: 'static,
    <F::Service as Service<Request>>::Future: 'static,
{
    type Response = Response<BoxBody>;
    type Error = F::Error;
    type Config = F::Config;
    type Service = ThreadService<F::Service>;
    type InitError = F::InitError;
    type Future = LocalBoxFuture<'static, Result<Self::Service, Self::InitError>>;

    fn new_service(&self, config: F::Config) -> Self::Future {
        let routes = self.routes.new_service(config);
        let (edge, side, health) = (self.edge.clone(), self.side, self.health.clone());
        async move {
            let routes = Rc::new(routes.await?);
            Ok(ThreadService { routes, edge: edge.map(|edge| Rc::new(ThreadEdge::new(edge))), side, health })
        }
        .boxed_local()
    }
}

/// The service of one serving thread.
pub struct ThreadService<S> {
    routes: Rc<S>,
    edge: Option<Rc<ThreadEdge>>,
    side: Side,
    health: Health,
}

impl<S> Service<Request> for ThreadService<S>
where
    S: Service<Request> + 'static,
    S::Response: Into<Response<BoxBody>>,
    S::Error: 'static,
    S::Future: 'static,
{
    type Response = Response<BoxBody>;
    type Error = S::Error;
    type Future = Either<
        MapOk<S::Future, fn(S::Response) -> Response<BoxBody>>,
        LocalBoxFuture<'static, Result<Response<BoxBody>, S::Error>>,
    >;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.routes.poll_ready(cx)
    }

    fn call(&self, request: Request) -> Self::Future {
        let (routes, health) = (self.routes.clone(), self.health.clone());
        match (&self.edge, self.side) {
            (None, _) if !health.is_stopping() => Either::Left(self.routes.call(request).map_ok(Into::into)),
            (None, _) => Either::Right(
                async move {
                    health.count_late_request();
                    Ok(close_if_stopping(routes.call(request).await?.into(), &health))
                }
                .boxed_local(),
            ),
            (Some(edge), Side::Public) => {
                let edge = edge.clone();
                Either::Right(
                    async move {
                        if health.is_stopping() {
                            health.count_late_request();
                        }
                        Ok(close_if_stopping(edge.respond(&*routes, request).await?, &health))
                    }
                    .boxed_local(),
                )
            }
            (Some(edge), Side::Peers) => {
                let edge = edge.clone();
                Either::Right(async move { edge.respond_to_peer(&*routes, request).await }.boxed_local())
            }
        }
    }
}

/// The response, changed to close its connection if the service is stopping. A WebSocket stays open.
fn close_if_stopping(mut response: Response<BoxBody>, health: &Health) -> Response<BoxBody> {
    if health.is_stopping() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.head_mut().set_connection_type(ConnectionType::Close);
    }
    response
}
