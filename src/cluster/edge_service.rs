//! The outermost layer of a listener.

use std::rc::Rc;
use std::task::{Context, Poll};

use actix_http::body::BoxBody;
use actix_http::{Request, Response};
use actix_service::{IntoServiceFactory, Service, ServiceFactory};
use futures_util::future::{Either, LocalBoxFuture, MapOk};
use futures_util::{FutureExt, TryFutureExt};

use super::edge::{Edge, ThreadEdge};
use crate::web::connections::Side;

/// All routes, behind the edge if the process is a cluster member.
pub struct EdgeService<F> {
    routes: F,
    edge: Option<(Edge, Side)>,
}

impl<F: ServiceFactory<Request>> EdgeService<F> {
    /// The service of a serving thread.
    pub fn new<I: IntoServiceFactory<F, Request>>(routes: I, edge: Option<Edge>, side: Side) -> Self {
        Self { routes: routes.into_factory(), edge: edge.map(|edge| (edge, side)) }
    }
}

impl<F> ServiceFactory<Request> for EdgeService<F>
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
        let edge = self.edge.clone();
        async move {
            let routes = Rc::new(routes.await?);
            Ok(ThreadService { routes, edge: edge.map(|(edge, side)| (Rc::new(ThreadEdge::new(edge)), side)) })
        }
        .boxed_local()
    }
}

/// The service of a thread.
pub struct ThreadService<S> {
    routes: Rc<S>,
    edge: Option<(Rc<ThreadEdge>, Side)>,
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
        match &self.edge {
            None => Either::Left(self.routes.call(request).map_ok(Into::into)),
            Some((edge, side)) => {
                let (edge, routes) = (edge.clone(), self.routes.clone());
                Either::Right(match side {
                    Side::Public => async move { edge.respond(&*routes, request).await }.boxed_local(),
                    Side::Peers => async move { edge.respond_to_peer(&*routes, request).await }.boxed_local(),
                })
            }
        }
    }
}
