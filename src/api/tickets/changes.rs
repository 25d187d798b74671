//! The verbs of a ticket: each sends one command to one actor.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_actors::tickets as live;
use hotline_actors::tickets::{AddNote, Close, Command, Execute, MarkRead, Reopen, SetWrapup, Transfer};
use hotline_persistence::tables::messages::MessageRow;
use hotline_persistence::{QueueId, TicketId, UserId, WrapupTypeId};

use super::Ticket;
use crate::api::merges::{self, Mergeable};
use crate::api::messages::{Message, ViewContext};
use crate::app::App;
use crate::web::request::values::{MessageBody, Text};
use crate::web::{ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, Patch, PathId};

/// Executes a command and returns the changed ticket.
async fn change<C>(
    caller: Caller,
    app: &App,
    id: TicketId,
    idempotency: Idempotency,
    command: C,
) -> ApiResult<Json<Ticket>>
where
    C: Command<Reply = live::Ticket>,
{
    let organization = caller.organization.clone();
    let to_response = move |ticket: &live::Ticket| Json::of(Ticket::of(&organization, ticket.clone().into()));
    let changed = idempotency
        .command(to_response, |attached_changes| {
            let execute = Execute { command, attached: attached_changes, only_if: None };
            app.engine.tickets.ask(caller.company, id, execute)
        })
        .await;
    merges::add_successor(&caller, app, Mergeable::Ticket(id), changed).await
}

/// The body of `POST /tickets/{ticketId}/transfer`.
pub struct TransferBody {
    queue: Option<QueueId>,
    /// `Some(None)` unassigns the ticket.
    user: Option<Option<UserId>>,
}

impl Input for TransferBody {
    fn name() -> Cow<'static, str> {
        "TicketTransfer".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let queue = fields.optional("queueId");
        let user = fields.patch("userId");
        // An invalid `userId` is in the body, but read as absent.
        let has_user = user != Patch::Absent || fields.has("userId");
        if !fields.has("queueId") && !has_user {
            fields.refuse("queueId", "is required, or userId");
        }
        Some(Self { queue, user: user.into_option() })
    }
}

/// `POST /tickets/{ticketId}/transfer`.
pub async fn transfer(
    caller: Caller,
    app: Data<App>,
    id: PathId<TicketId>,
    body: Body<TransferBody>,
    idempotency: Idempotency,
) -> ApiResult<Json<Ticket>> {
    let (TransferBody { queue, user }, author) = (body.0, caller.author());
    change(caller, &app, id.0, idempotency, Transfer { queue, user, author }).await
}

/// The body of `POST /tickets/{ticketId}/close`.
pub struct CloseBody {
    wrapup_type: Option<WrapupTypeId>,
    wrapup_note: Option<Text>,
}

impl Input for CloseBody {
    fn name() -> Cow<'static, str> {
        "TicketClose".into()
    }
    const MAY_BE_EMPTY: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { wrapup_type: fields.optional("wrapupTypeId"), wrapup_note: fields.optional("wrapupNote") })
    }
}

/// `POST /tickets/{ticketId}/close`. The body may be omitted.
pub async fn close(
    caller: Caller,
    app: Data<App>,
    id: PathId<TicketId>,
    body: Body<CloseBody>,
    idempotency: Idempotency,
) -> ApiResult<Json<Ticket>> {
    let CloseBody { wrapup_type, wrapup_note } = body.0;
    let (wrapup_note, author) = (wrapup_note.map(|note| note.0), caller.author());
    change(caller, &app, id.0, idempotency, Close { wrapup_type, wrapup_note, author }).await
}

/// `POST /tickets/{ticketId}/reopen`.
pub async fn reopen(
    caller: Caller,
    app: Data<App>,
    id: PathId<TicketId>,
    idempotency: Idempotency,
) -> ApiResult<Json<Ticket>> {
    let author = caller.author();
    change(caller, &app, id.0, idempotency, Reopen { author }).await
}

/// `POST /tickets/{ticketId}/read`.
pub async fn mark_read(
    caller: Caller,
    app: Data<App>,
    id: PathId<TicketId>,
    idempotency: Idempotency,
) -> ApiResult<Json<Ticket>> {
    let author = caller.author();
    change(caller, &app, id.0, idempotency, MarkRead { author }).await
}

/// The body of `PUT /tickets/{ticketId}/wrapup`.
pub struct WrapupBody {
    wrapup_type: WrapupTypeId,
    wrapup_note: Patch<Text>,
}

impl Input for WrapupBody {
    fn name() -> Cow<'static, str> {
        "TicketWrapup".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let wrapup_type = fields.required("wrapupTypeId");
        let wrapup_note = fields.patch("wrapupNote");
        Some(Self { wrapup_type: wrapup_type?, wrapup_note })
    }
}

/// `PUT /tickets/{ticketId}/wrapup`.
pub async fn set_wrapup(
    caller: Caller,
    app: Data<App>,
    id: PathId<TicketId>,
    body: Body<WrapupBody>,
    idempotency: Idempotency,
) -> ApiResult<Json<Ticket>> {
    let WrapupBody { wrapup_type, wrapup_note } = body.0;
    let wrapup_note = wrapup_note.into_option().map(|note| note.map(|text| text.0));
    let author = caller.author();
    change(caller, &app, id.0, idempotency, SetWrapup { wrapup_type, wrapup_note, author }).await
}

/// The body of `POST /tickets/{ticketId}/notes`.
pub struct NoteBody {
    body: MessageBody,
    user_id: Option<UserId>,
}

impl Input for NoteBody {
    fn name() -> Cow<'static, str> {
        "NoteCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let body = fields.required("body");
        let user_id = fields.optional("userId");
        Some(Self { body: body?, user_id })
    }
}

/// `POST /tickets/{ticketId}/notes`: returns the note as a message, which is never sent.
pub async fn add_note(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    id: PathId<TicketId>,
    body: Body<NoteBody>,
    idempotency: Idempotency,
) -> ApiResult<Created<Message>> {
    let NoteBody { body, user_id } = body.0;
    let note = AddNote { body: body.0, author: caller.author_for(user_id)? };
    let context = ViewContext::of(&caller, &app, &request);
    let to_response = move |message: &MessageRow| Created::of(Message::of(message.clone(), &context));
    let added = idempotency
        .command(to_response, |attached_changes| {
            let execute = Execute { command: note, attached: attached_changes, only_if: None };
            app.engine.tickets.ask(caller.company, id.0, execute)
        })
        .await;
    merges::add_successor(&caller, &app, Mergeable::Ticket(id.0), added).await
}
