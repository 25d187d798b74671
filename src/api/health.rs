//! Whether the process lives, and whether it can serve.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use serde_json::json;

use crate::app::App;

/// `GET /health/live`: the process answers.
pub async fn live() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "live"}))
}

/// `GET /health/ready`: `200` when every part can serve, else `503`; says which cannot.
pub async fn ready(app: Data<App>) -> HttpResponse {
    let store = app.engine.store();
    let database = hotline_persistence::error::within(async {
        sqlx::query_scalar::<_, i32>("select 1").fetch_one(&store.housekeeping).await
    })
    .await
    .is_ok();
    // A place that is taken and given back at once shows that changes are accepted.
    let journal = store.log.reserve().is_ok();
    let persister = store.log.queue().is_up();
    let is_ready = database && journal && persister && !app.is_stopping();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = |good: bool| if good { "ready" } else { "not ready" };
    HttpResponse::build(status).json(json!({
        "status": word(is_ready),
        "parts": {
            "database": word(database),
            "journal": word(journal),
            "persister": word(persister),
            "accepting": word(!app.is_stopping()),
        },
    }))
}
