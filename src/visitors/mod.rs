//! The visitor's own door, `/webchat/{publicKey}`: what a visitor's browser may ask of one webchat, and what is pushed
//! to it. `docs/webchat.md` is its protocol.
//!
//! A browser never holds a company token. What it may do hangs on three things: the channel's public key, which is no
//! secret; the origin of the page, which the browser vouches for; and the token of its one session.

mod demo;
mod demo_page;
mod desk;
mod gate;
pub mod identity;
mod limits;
mod look;
pub mod origins;
mod paths;
mod remembered;
mod said;
mod script;
mod socket;
mod uploads;
mod view;
mod visitor;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{Scope, web};

pub use demo_page::{Demo, DemoPage};
pub use gate::Door;
pub use limits::{VisitorOptions, Visitors};
pub use paths::{DOOR, PATHS};
pub use uploads::UploadOptions;
pub use visitor::Visitor;

use crate::web::auth::admit;
use crate::web::methods::{no_such_route, with_methods};

/// The door and what is behind it.
pub fn door() -> Scope<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let path = |path: &str, allow: &str| with_methods(web::resource(path.to_owned()), allow.to_owned());
    web::scope(DOOR)
        .wrap(from_fn(gate::pass))
        .service(path(paths::SCRIPT, "GET").get(script::show))
        .service(path("/config", "GET").get(look::show))
        .service(path("/sessions", "POST").post(visitor::open))
        .service(path("/session", "GET").get(visitor::show).wrap(from_fn(visitor::authenticate)))
        .service(
            path("/messages", "GET, POST")
                .get(visitor::list_messages)
                .post(visitor::say)
                .wrap(from_fn(visitor::authenticate)),
        )
        .service(path("/identify", "POST").post(visitor::identify).wrap(from_fn(visitor::authenticate)))
        .service(path("/end", "POST").post(visitor::end).wrap(from_fn(visitor::authenticate)))
        .service(path(paths::SOCKET, "GET").get(socket::open))
        .service(
            web::scope(paths::DESK)
                .wrap(from_fn(admit))
                .service(path("/{ticketId}/typing", "GET, POST").get(desk::show).post(desk::types))
                .default_service(web::to(no_such_route)),
        )
        .default_service(web::to(no_such_route))
}

/// The page of the demo; not there unless this is one.
pub fn demo(services: &mut web::ServiceConfig) {
    demo::configure(services);
}
