//! Every route on one screen.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, ServiceConfig};
use actix_web::{FromRequest, Handler, HttpResponse, Resource, Responder, Route, Scope};

use crate::api::{channels, contacts, health, messages, tags, tickets, webchat};
use crate::app::App;
use crate::openapi::{self, Described, Document, Operation};
use crate::web::auth::admit;
use crate::web::idempotency::once;
use crate::web::schema::Schemas;
use crate::web::{ApiError, request_id};

/// Path of the API.
pub const API: &str = "/api/v1";

/// Adds everything that is served.
pub fn configure(app: Data<App>, document: Data<Document>) -> impl FnOnce(&mut ServiceConfig) {
    move |services| {
        services
            .app_data(app)
            .app_data(document)
            .service(web::resource("/health/live").get(health::live))
            .service(web::resource("/health/ready").get(health::ready))
            .service(web::resource(openapi::PATH).get(openapi::show))
            .service(web::resource("/docs").get(openapi::to_docs))
            .service(web::resource("/docs/{file:.*}").get(openapi::docs))
            .service(api())
            .default_service(web::to(not_found));
    }
}

/// The endpoints of the API, each with its summary.
#[rustfmt::skip] // One line an endpoint.
fn endpoints(table: &mut Table<'_>) {
    table
        .at("/contacts").get(contacts::list, "List contacts")
        .at("/contacts/{contactId}").get(contacts::show, "Read a contact")
        .at("/tickets").get(tickets::list, "List tickets").post(tickets::create, "Open a ticket")
        .at("/tickets/{ticketId}").get(tickets::show, "Read a ticket")
        .at("/tickets/{ticketId}/transfer").post(tickets::transfer, "Transfer a ticket")
        .at("/tickets/{ticketId}/close").post(tickets::close, "Close a ticket")
        .at("/tickets/{ticketId}/reopen").post(tickets::reopen, "Reopen a ticket")
        .at("/tickets/{ticketId}/wrapup").put(tickets::set_wrapup, "Set the wrap-up of a ticket")
        .at("/tickets/{ticketId}/read").post(tickets::mark_read, "Mark a ticket as read")
        .at("/tickets/{ticketId}/messages").get(tickets::list_messages, "List the messages of a ticket")
        .at("/tickets/{ticketId}/events").get(tickets::list_events, "List the events of a ticket")
        .at("/tickets/{ticketId}/notes").post(tickets::add_note, "Add a note to a ticket")
        .at("/messages").get(messages::list, "List messages").post(messages::send, "Send a message")
        .at("/messages/jobs/{jobId}").get(messages::show_job, "Read a message job")
        .at("/messages/{messageId}").get(messages::show, "Read a message")
        .at("/channels").get(channels::list, "List channels")
        .at("/channels/{channelId}").get(channels::show, "Read a channel")
        .at("/webchat/sessions").post(webchat::open, "Open a visitor session")
        .at("/webchat/sessions/{sessionId}").get(webchat::show, "Read a visitor session")
        .at("/webchat/sessions/{sessionId}/messages")
            .get(webchat::list_messages, "List what a visitor sees").post(webchat::say, "Say something as a visitor")
        .at("/webchat/sessions/{sessionId}/end").post(webchat::end, "End a visitor session")
        .at("/tags").get(tags::list, "List tags").post(tags::create, "Create a tag")
        .at("/tags/{tagId}").get(tags::show, "Read a tag").put(tags::update, "Update a tag").delete(tags::remove, "Delete a tag");
}

/// What every endpoint takes and answers; the schemas it refers to are added to `schemas`.
pub fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let mut table = Table::new(schemas);
    endpoints(&mut table);
    table.finish().into_iter().flat_map(|at| at.operations).collect()
}

fn api() -> Scope<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let mut schemas = Schemas::new();
    let mut table = Table::new(&mut schemas);
    endpoints(&mut table);
    let scope = web::scope(API).wrap(from_fn(once)).wrap(from_fn(admit));
    table
        .finish()
        .into_iter()
        .fold(scope, |scope, at| scope.service(at.into_resource()))
        .default_service(web::to(not_found))
}

/// The module a path of the API belongs to: what a token's permissions name.
pub fn module_of(path: &str) -> Option<&'static str> {
    let noun = path.strip_prefix(API)?.strip_prefix('/')?.split('/').next()?;
    Some(match noun {
        "contacts" => "contacts",
        "tickets" => "tickets",
        "messages" => "messages",
        "channels" => "channels",
        "webchat" => "webchat",
        "tags" => "tags",
        "queues" => "queues",
        "wrapup-types" | "wrapup-categories" => "wrapupTypes",
        "users" => "users",
        "profiles" => "profiles",
        "schedules" => "schedules",
        "quick-messages" => "quickMessages",
        "campaigns" | "contact-lists" => "campaigns",
        "crm" => "crm",
        "products" | "product-categories" => "products",
        "custom-fields" | "global-variables" => "customFields",
        "reports" | "dashboards" => "reports",
        _ => return None,
    })
}

/// Every module, in the order of the contract.
pub const MODULES: &[&str] = &[
    "contacts",
    "tickets",
    "messages",
    "channels",
    "webchat",
    "tags",
    "queues",
    "wrapupTypes",
    "users",
    "profiles",
    "schedules",
    "quickMessages",
    "campaigns",
    "crm",
    "products",
    "customFields",
    "reports",
];

/// The endpoints, while they are added.
struct Table<'a> {
    paths: Vec<At>,
    schemas: &'a mut Schemas,
}

/// A path and its methods; any other method is told which there are.
struct At {
    path: &'static str,
    resource: Resource,
    operations: Vec<Operation>,
}

macro_rules! methods {
    ($($name:ident $method:literal),+) => {$(
        fn $name<F, Args>(&mut self, handler: F, summary: &'static str) -> &mut Self
        where
            F: Handler<Args>,
            F::Output: Responder + Described + 'static,
            Args: FromRequest + Described + 'static,
        {
            self.add::<Args, F::Output>($method, web::$name().to(handler), summary)
        }
    )+};
}

impl<'a> Table<'a> {
    methods! { get "GET", post "POST", put "PUT", delete "DELETE" }

    fn new(schemas: &'a mut Schemas) -> Self {
        Self { paths: Vec::new(), schemas }
    }

    /// The next path; the methods that follow are its own.
    fn at(&mut self, path: &'static str) -> &mut Self {
        self.paths.push(At { path, resource: web::resource(path), operations: Vec::new() });
        self
    }

    fn add<Args: Described, Output: Described>(
        &mut self,
        method: &'static str,
        route: Route,
        summary: &'static str,
    ) -> &mut Self {
        if let Some(mut at) = self.paths.pop() {
            at.operations.push(Operation::of::<Args, Output>(method, at.path, summary, self.schemas));
            at.resource = at.resource.route(route);
            self.paths.push(at);
        }
        self
    }

    fn finish(self) -> Vec<At> {
        self.paths
    }
}

impl At {
    fn into_resource(self) -> Resource {
        let allow = self.operations.iter().map(|operation| operation.method).collect::<Vec<_>>().join(", ");
        self.resource.default_service(web::to(move || {
            let refused = ApiError::method_not_allowed(allow.clone());
            async move { Err::<HttpResponse, _>(refused) }
        }))
    }
}

async fn not_found() -> Result<HttpResponse, ApiError> {
    Err(ApiError::not_found())
}

/// What stands around every route: the request's name.
pub use request_id::name_request;

#[cfg(test)]
mod tests {
    use super::{MODULES, module_of};

    #[test]
    fn every_module_of_a_path_is_one_a_token_can_name() {
        for noun in
            ["contacts", "wrapup-categories", "contact-lists", "product-categories", "global-variables", "dashboards"]
        {
            let module = module_of(&format!("/api/v1/{noun}/7"));
            assert!(module.is_some_and(|module| MODULES.contains(&module)), "{noun}");
        }
        assert_eq!(module_of("/api/v1/nothing"), None);
        assert_eq!(module_of("/api/v1"), None);
    }
}
