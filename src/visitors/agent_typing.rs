//! Typing indicators for a company's programs: they report that an agent is typing, and read whether the visitor is.
//! Nothing is stored: an agent's state is pushed to the visitor's sockets, and the visitor's is what these sockets have
//! reported. Requires a company's token.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::FieldError;
use hotline_actors::webchat::Conversation;
use hotline_persistence::{TicketId, UserId};
use serde::Serialize;
use utoipa::ToSchema;

use super::Webchat;
use crate::app::App;
use crate::openapi::{Operation, OperationPart};
use crate::web::request::params::PathIds;
use crate::web::response::schema::Schemas;
use crate::web::{ApiError, ApiResult, Body, Caller, Fields, Input, Json, NoContent};

/// The body of `POST …/tickets/{ticketId}/typing`.
pub struct AgentTyping {
    typing: bool,
    user_id: Option<UserId>,
}

impl Input for AgentTyping {
    fn name() -> Cow<'static, str> {
        "AgentTyping".into()
    }
    const MAY_BE_EMPTY: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let typing = fields.optional("typing").unwrap_or(true);
        let user_id = fields.optional("userId");
        Some(Self { typing, user_id })
    }
}

/// A visitor's activity.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VisitorActivity)]
pub struct ActivityView {
    pub online: bool,
    pub typing: bool,
}

/// The public key and the ticket's id in a path.
type Path = actix_web::web::Path<(String, String)>;

/// Documents the ticket's id, which follows the public key.
impl OperationPart for Path {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.path_ids.extend(<TicketId as PathIds>::schemas());
        operation.errors.push(404);
    }
}

/// `POST …/tickets/{ticketId}/typing`.
pub async fn report_agent_typing(
    caller: Caller,
    webchat: Webchat,
    app: Data<App>,
    path: Path,
    body: Body<AgentTyping>,
) -> ApiResult<NoContent> {
    let conversation = conversation_of(&caller, &webchat, &app, &path.1).await?;
    let agent = match body.0.user_id {
        Some(id) => {
            let user = caller.organization.users.get(&id).ok_or_else(ApiError::not_found)?;
            if !user.active {
                let reason = "must be an active user".to_owned();
                return Err(ApiError::validation(&[FieldError { field: "userId".to_owned(), reason }]));
            }
            Some(user.name.as_str())
        }
        None => None,
    };
    app.engine.sessions.show_agent_typing(conversation, agent, body.0.typing);
    Ok(NoContent)
}

/// `GET …/tickets/{ticketId}/typing`.
pub async fn visitor_activity(
    caller: Caller,
    webchat: Webchat,
    app: Data<App>,
    path: Path,
) -> ApiResult<Json<ActivityView>> {
    let conversation = conversation_of(&caller, &webchat, &app, &path.1).await?;
    let activity = app.engine.sessions.visitor_activity(conversation);
    Ok(Json::of(ActivityView { online: activity.online, typing: activity.typing }))
}

/// The conversation of the ticket, if the ticket belongs to this webchat, and the webchat to the caller's company.
async fn conversation_of(caller: &Caller, webchat: &Webchat, app: &App, ticket: &str) -> ApiResult<Conversation> {
    let id: TicketId = ticket.parse().map_err(|_| ApiError::not_found())?;
    if caller.company != webchat.company() {
        return Err(ApiError::not_found());
    }
    let ticket = app.engine.tickets.get(caller.company, id).await?;
    if ticket.row.channel_id != webchat.channel {
        return Err(ApiError::not_found());
    }
    Ok((caller.company, webchat.channel, ticket.row.contact_id))
}
