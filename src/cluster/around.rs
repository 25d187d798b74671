//! The outermost layer of a listener.

use std::rc::Rc;
use std::task::{Context, Poll};

use actix_http::body::BoxBody;
use actix_http::{Request, Response};
use actix_service::{IntoServiceFactory, Service, ServiceFactory};
use futures_util::future::{Either, LocalBoxFuture, MapOk};
use futures_util::{FutureExt, TryFutureExt};

use super::edge::{Edge, Local};
use crate::web::wire::Side;

/// All routes, behind the edge if there is one.
pub struct Around<F> {
    served: F,
    edge: Option<(Edge, Side)>,
}

impl<F: ServiceFactory<Request>> Around<F> {
    /// The service of a serving thread.
    pub fn new<I: IntoServiceFactory<F, Request>>(served: I, edge: Option<Edge>, side: Side) -> Self {
        Self { served: served.into_factory(), edge: edge.map(|edge| (edge, side)) }
    }
}

impl<F> ServiceFactory<Request> for Around<F>
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
    type Service = Served<F::Service>;
    type InitError = F::InitError;
    type Future = LocalBoxFuture<'static, Result<Self::Service, Self::InitError>>;

    fn new_service(&self, config: F::Config) -> Self::Future {
        let served = self.served.new_service(config);
        let edge = self.edge.clone();
        async move {
            let served = Rc::new(served.await?);
            Ok(Served { served, edge: edge.map(|(edge, side)| (Rc::new(Local::new(edge)), side)) })
        }
        .boxed_local()
    }
}

/// The service of a thread.
pub struct Served<S> {
    served: Rc<S>,
    edge: Option<(Rc<Local>, Side)>,
}

impl<S> Service<Request> for Served<S>
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
        self.served.poll_ready(cx)
    }

    fn call(&self, request: Request) -> Self::Future {
        match &self.edge {
            None => Either::Left(self.served.call(request).map_ok(Into::into)),
            Some((edge, side)) => {
                let (edge, served) = (edge.clone(), self.served.clone());
                Either::Right(match side {
                    Side::Public => async move { edge.answer(&*served, request).await }.boxed_local(),
                    Side::Peers => async move { edge.answer_peer(&*served, request).await }.boxed_local(),
                })
            }
        }
    }
}
