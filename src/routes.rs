//! Every route on one screen.

use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, ServiceConfig};
use actix_web::{FromRequest, Handler, HttpResponse, Resource, Responder, Route, Scope};

use crate::api::{channels, contacts, health, messages, tickets, webchat};
use crate::app::App;
use crate::web::auth::{authenticate, permit};
use crate::web::{ApiError, request_id};

/// Path of the API.
pub const API: &str = "/api/v1";

/// Adds everything that is served.
pub fn configure(app: Data<App>) -> impl FnOnce(&mut ServiceConfig) {
    move |services| {
        services
            .app_data(app)
            .service(at("/health/live").get(health::live).resource())
            .service(at("/health/ready").get(health::ready).resource())
            .service(api())
            .default_service(web::to(not_found));
    }
}

fn api() -> Scope<
    impl actix_web::dev::ServiceFactory<
        actix_web::dev::ServiceRequest,
        Config = (),
        Response = actix_web::dev::ServiceResponse<impl actix_web::body::MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    web::scope(API)
        .wrap(from_fn(permit))
        .wrap(from_fn(authenticate))
        .service(at("/contacts").get(contacts::list).resource())
        .service(at("/contacts/{contactId}").get(contacts::show).resource())
        .service(at("/tickets").get(tickets::list).post(tickets::create).resource())
        .service(at("/tickets/{ticketId}").get(tickets::show).resource())
        .service(at("/tickets/{ticketId}/transfer").post(tickets::transfer).resource())
        .service(at("/tickets/{ticketId}/close").post(tickets::close).resource())
        .service(at("/tickets/{ticketId}/reopen").post(tickets::reopen).resource())
        .service(at("/tickets/{ticketId}/wrapup").put(tickets::set_wrapup).resource())
        .service(at("/tickets/{ticketId}/read").post(tickets::mark_read).resource())
        .service(at("/tickets/{ticketId}/messages").get(tickets::list_messages).resource())
        .service(at("/tickets/{ticketId}/events").get(tickets::list_events).resource())
        .service(at("/tickets/{ticketId}/notes").post(tickets::add_note).resource())
        .service(at("/messages").get(messages::list).post(messages::send).resource())
        .service(at("/messages/jobs/{jobId}").get(messages::show_job).resource())
        .service(at("/messages/{messageId}").get(messages::show).resource())
        .service(at("/channels").get(channels::list).resource())
        .service(at("/channels/{channelId}").get(channels::show).resource())
        .service(at("/webchat/sessions").post(webchat::open).resource())
        .service(at("/webchat/sessions/{sessionId}").get(webchat::show).resource())
        .service(at("/webchat/sessions/{sessionId}/messages").get(webchat::list_messages).post(webchat::say).resource())
        .service(at("/webchat/sessions/{sessionId}/end").post(webchat::end).resource())
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

/// A path and its methods; any other method is told which there are.
struct At {
    resource: Resource,
    allow: Vec<&'static str>,
}

fn at(path: &str) -> At {
    At { resource: web::resource(path), allow: Vec::new() }
}

macro_rules! methods {
    ($($name:ident $method:literal),+) => {$(
        fn $name<F, Args>(self, handler: F) -> Self
        where
            F: Handler<Args>,
            Args: FromRequest + 'static,
            F::Output: Responder + 'static,
        {
            self.with($method, web::$name().to(handler))
        }
    )+};
}

impl At {
    methods! { get "GET", post "POST", put "PUT" }

    fn with(mut self, method: &'static str, route: Route) -> Self {
        self.allow.push(method);
        Self { resource: self.resource.route(route), allow: self.allow }
    }

    fn resource(self) -> Resource {
        let allow = self.allow.join(", ");
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
