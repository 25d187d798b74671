//! Liveness and readiness.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::openapi::{DocumentedResponse, Operation, ResponseDescription};
use crate::web::response::schema::{self, Schemas};

/// The process is running.
#[derive(Serialize, ToSchema)]
pub struct Liveness {
    #[schema(example = "live")]
    pub status: &'static str,
}

/// The readiness of the service.
#[derive(Serialize, ToSchema)]
pub struct Readiness {
    /// `ready` if all components are ready.
    #[schema(example = "ready")]
    pub status: &'static str,
    pub parts: ReadyParts,
}

/// The components of the service: each is `ready` or `not ready`.
#[derive(Serialize, ToSchema)]
pub struct ReadyParts {
    /// Whether PostgreSQL responds.
    #[schema(example = "ready")]
    pub database: &'static str,
    /// Whether changes are accepted.
    #[schema(example = "ready")]
    pub journal: &'static str,
    /// Whether accepted changes are being written to the database.
    #[schema(example = "ready")]
    pub persister: &'static str,
    /// Whether the service accepts requests; not while it is stopping.
    #[schema(example = "ready")]
    pub accepting: &'static str,
}

impl ResponseDescription for Liveness {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.success = (200, Some(schema::of::<Self>(schemas)));
    }
}

impl ResponseDescription for Readiness {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = schema::of::<Self>(schemas);
        operation.success = (200, Some(schema.clone()));
        operation.other_responses.push((503, "A component is unavailable.", schema));
    }
}

/// `GET /health/live`: the process responds.
pub async fn live() -> DocumentedResponse<Liveness> {
    HttpResponse::Ok().json(Liveness { status: "live" }).into()
}

/// `GET /health/ready`: `200` when every part can serve, else `503` with the parts that cannot.
pub async fn ready(app: Data<App>) -> DocumentedResponse<Readiness> {
    let store = app.engine.store();
    let database = hotline_persistence::error::with_timeout(async {
        sqlx::query_scalar::<_, i32>("select 1").fetch_one(&store.housekeeping).await
    })
    .await
    .is_ok();
    let journal = store.log.has_room();
    let persister = store.log.queue().is_up();
    // A cluster member without a lease answers no requests, so load balancers must send none.
    let persister = persister && store.membership().is_none_or(|membership| membership.lease.holds());
    let accepting = !app.is_stopping() && store.membership().is_none_or(|membership| !membership.is_retiring());
    let is_ready = database && journal && persister && accepting;
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = |good: bool| if good { "ready" } else { "not ready" };
    let parts = ReadyParts {
        database: word(database),
        journal: word(journal),
        persister: word(persister),
        accepting: word(accepting),
    };
    HttpResponse::build(status).json(Readiness { status: word(is_ready), parts }).into()
}
