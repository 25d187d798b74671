//! Webchat visitor sessions, driven by the company's own server. Live: changed only by their actors.

mod messages;
mod open;
mod view;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use hotline_actors::webchat::{End, ShowSession};
use hotline_persistence::SessionId;
use hotline_persistence::tables::contacts;
use hotline_persistence::tables::webchat_sessions::SessionRow;

pub use messages::{list_messages, say};
pub use open::open;
pub use view::Session;

use crate::app::App;
use crate::web::{Answer, ApiError, Caller, PathId, data};

/// `GET /webchat/sessions/{sessionId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<SessionId>) -> Answer<HttpResponse> {
    let id = id.0;
    let row = app.engine.ask_session(caller.company, &id, ShowSession).await?;
    Ok(data(StatusCode::OK, with_contact(&caller, &app, row).await?))
}

/// `POST /webchat/sessions/{sessionId}/end`. Ending twice is no error.
pub async fn end(caller: Caller, app: Data<App>, id: PathId<SessionId>) -> Answer<HttpResponse> {
    let id = id.0;
    let row = app.engine.ask_session(caller.company, &id, End { idle_since: None }).await?;
    Ok(data(StatusCode::OK, with_contact(&caller, &app, row).await?))
}

async fn with_contact(caller: &Caller, app: &App, row: SessionRow) -> Answer<Session> {
    let db = app.engine.reads().tables(caller.company).await?;
    let contact = contacts::find(db, caller.company, row.contact_id).await?.ok_or_else(ApiError::not_found)?;
    Ok(Session::of(row, contact))
}
