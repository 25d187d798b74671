//! The API of a webchat, `/webchat/{publicKey}`: its endpoints for visitors' browsers, and the socket that pushes to
//! them. `docs/webchat.md` describes the protocol.
//!
//! A browser never has a company's token. Its access depends on three things: the channel's public key, which is not
//! secret; the origin of the page, which the browser asserts; and the token of its own session.

mod agent_typing;
mod config;
mod demo;
mod demo_page;
mod document;
mod guard;
pub mod identity;
mod limit_keys;
mod limits;
mod message_body;
mod paths;
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
pub use guard::Webchat;
pub use limits::{VisitorLimits, VisitorOptions};
pub use paths::PATH;
pub use uploads::UploadOptions;
pub use visitor::Visitor;

use crate::openapi::{Access, Operation, Table};
use crate::web::admission::auth::admit;
use crate::web::response::methods::no_such_route;
use crate::web::response::schema::Schemas;

/// The tag of these operations.
const TAG: &str = "visitors";

/// Adds every path of a webchat.
#[rustfmt::skip] // One line per path.
fn add_paths(table: &mut Table<'_>) {
    table
        .at(paths::SCRIPT).get("getWidget", script::show, "Load the widget")
        .at("/config").get("getWidgetConfig", config::show, "Get the widget's configuration")
        .at("/sessions").post("openVisitorSession", visitor::open, "Open a session as a visitor")
        .at("/session").get("getVisitorSession", visitor::show, "Get the visitor's session")
        .at("/messages").get("listVisitorMessages", visitor::list_messages, "List the messages of the session").post("sendVisitorMessage", visitor::send_message, "Send a message as the visitor")
        .at("/identify").post("identifyVisitor", visitor::identify, "Sign the visitor in")
        .at("/end").post("endVisitorSession", visitor::end, "End the visitor's session")
        .at(paths::SOCKET).get("openVisitorSocket", socket::open, "Open the visitor's socket")
        .at("/tickets/{ticketId}/typing").get("getVisitorActivity", agent_typing::visitor_activity, "Get the visitor's activity").post("showAgentTyping", agent_typing::report_agent_typing, "Show that an agent is typing");
}

/// The part of a path that its scope covers.
fn scope_of(path: &str) -> &str {
    if path.starts_with(paths::AGENT_PATHS) { paths::AGENT_PATHS } else { "" }
}

/// The operations of visitors and agents on a webchat; the schemas they refer to are added to `schemas`.
pub fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let mut table = Table::outside_api(schemas, TAG, scope_of);
    add_paths(&mut table);
    let operations = table.finish().into_iter().flat_map(|path| path.operations);
    operations.map(|operation| Operation { path: format!("{PATH}{}", operation.path), ..operation }).collect()
}

/// The routes of a webchat.
pub fn scope() -> Scope<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let mut schemas = Schemas::new();
    let mut table = Table::outside_api(&mut schemas, TAG, scope_of);
    add_paths(&mut table);
    let mut webchat_scope = web::scope(PATH).wrap(from_fn(guard::admit));
    let mut agent_scope = web::scope(paths::AGENT_PATHS).wrap(from_fn(admit)).default_service(web::to(no_such_route));
    for path in table.finish() {
        let access = path.operations.first().map(|operation| operation.access);
        match access {
            Some(Access::Company) => agent_scope = agent_scope.service(path.into_resource()),
            Some(Access::Visitor) => {
                webchat_scope = webchat_scope.service(path.into_resource().wrap(from_fn(visitor::authenticate)))
            }
            _ => webchat_scope = webchat_scope.service(path.into_resource()),
        }
    }
    webchat_scope.service(agent_scope).default_service(web::to(no_such_route))
}

/// Configures the demo's page, which responds with 404 unless this is a demo.
pub fn configure_demo(services: &mut web::ServiceConfig) {
    demo::configure(services);
}
