//! Webchat visitor sessions, driven by the company's own server. Live: changed only by their actors.

mod messages;
mod open;
mod view;

use actix_web::web::Data;
use hotline_actors::webchat::{End, ShowSession};
use hotline_persistence::SessionId;
use hotline_persistence::tables::contacts::{self, ContactRow};
use hotline_persistence::tables::webchat_sessions::SessionRow;

pub use messages::{Filters, VisitorMessage, list_messages, send_message};
pub(crate) use messages::{UndeliveredMessages, VisitorContent, is_visible, report_delivered, visible_messages};
pub use open::open;
pub(crate) use open::{Arrival, SessionOpener, TOKEN_PREFIX, VisitorIdentity};
pub use view::Session;

use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Idempotency, Json, PathId};

/// `GET /webchat/sessions/{sessionId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<SessionId>) -> ApiResult<Json<Session>> {
    let row = app.engine.sessions.ask(caller.company, &id.0, ShowSession).await?;
    let contact = contact_of(&caller, &app, &row).await?;
    Ok(Json::of(Session::of(row, contact)))
}

/// `POST /webchat/sessions/{sessionId}/end`. Ending a session again is not an error.
pub async fn end(
    caller: Caller,
    app: Data<App>,
    id: PathId<SessionId>,
    idempotency: Idempotency,
) -> ApiResult<Json<Session>> {
    let row = app.engine.sessions.ask(caller.company, &id.0, ShowSession).await?;
    let contact = contact_of(&caller, &app, &row).await?;
    let to_response = move |row: &SessionRow| Json::of(Session::of(row.clone(), contact.clone()));
    idempotency
        .command(to_response, |attached_changes| {
            let (company, id, app) = (caller.company, id.0, app.clone());
            let end = End { idle_since: None, attached: attached_changes, by: caller.event_author() };
            async move { app.engine.sessions.ask(company, &id, end).await }
        })
        .await
}

async fn contact_of(caller: &Caller, app: &App, row: &SessionRow) -> ApiResult<ContactRow> {
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    contacts::find(db, caller.company, row.contact_id).await?.ok_or_else(ApiError::not_found)
}
