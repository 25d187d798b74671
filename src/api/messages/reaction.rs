//! The company's reactions to messages.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_actors::tickets::{Execute, React};
use hotline_persistence::MessageId;
use hotline_persistence::tables::messages::MessageRow;

use super::{Message, ViewContext};
use crate::app::App;
use crate::web::request::values::Emoji;
use crate::web::{ApiError, ApiResult, Body, Caller, Fields, Idempotency, Input, Json, NoContent, PathId};

/// The body of `PUT /messages/{messageId}/reaction`.
pub struct ReactionBody {
    emoji: Emoji,
}

impl Input for ReactionBody {
    fn name() -> Cow<'static, str> {
        "MessageReact".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { emoji: fields.required("emoji")? })
    }
}

/// `PUT /messages/{messageId}/reaction`.
pub async fn react(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    id: PathId<MessageId>,
    body: Body<ReactionBody>,
    idempotency: Idempotency,
) -> ApiResult<Json<Message>> {
    let command = build_command(&caller, &app, id.0, Some(body.0.emoji.0)).await?;
    let context = ViewContext::of(&caller, &app, &request);
    let to_response = move |message: &MessageRow| Json::of(Message::of(message.clone(), &context));
    let (company, ticket) = (caller.company, command.message.ticket_id);
    let tickets = &app.engine.tickets;
    // If the ticket is merged meanwhile, the command is executed on the remaining one.
    idempotency
        .command(to_response, |attached_changes| {
            tickets.ask_following(company, ticket, Execute { command, attached: attached_changes, only_if: None })
        })
        .await
}

/// `DELETE /messages/{messageId}/reaction`.
pub async fn withdraw_reaction(caller: Caller, app: Data<App>, id: PathId<MessageId>) -> ApiResult<NoContent> {
    let command = build_command(&caller, &app, id.0, None).await?;
    app.engine.tickets.ask_following(caller.company, command.message.ticket_id, command).await?;
    Ok(NoContent)
}

/// The command that sets the reaction, or withdraws it if `emoji` is `None`.
async fn build_command(caller: &Caller, app: &App, id: MessageId, emoji: Option<String>) -> ApiResult<React> {
    let message = app.engine.reads().message(caller.company, id).await?.ok_or_else(ApiError::not_found)?;
    Ok(React { message, emoji, author: caller.author() })
}
