//! Tickets: the cases in conversations. They are live: only their actors change them.

use std::borrow::Cow;

mod changes;
mod lists;
mod merge;
mod rendered;
mod view;

use actix_web::web::Data;
use hotline_actors::tickets as live;
use hotline_actors::tickets::Open;
use hotline_persistence::{ChannelId, ContactId, QueueId, TicketId, UserId};

pub use changes::{add_note, close, mark_read, reopen, set_wrapup, transfer};
pub use lists::{list, list_events, list_messages};
pub use merge::merge;
pub use rendered::RenderedTickets;
pub use view::{Ticket, TicketEvent};

use super::contacts::check_channel;
use super::merges::{self, Mergeable};
use crate::app::App;
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, PathId};

/// The body of `POST /tickets`.
pub struct NewTicket {
    channel_id: ChannelId,
    contact_id: ContactId,
    queue_id: Option<QueueId>,
    user_id: Option<UserId>,
}

impl Input for NewTicket {
    fn name() -> Cow<'static, str> {
        "TicketOpen".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let channel_id = fields.required("channelId");
        let contact_id = fields.required("contactId");
        let queue_id = fields.optional("queueId");
        let user_id = fields.optional("userId");
        Some(Self { channel_id: channel_id?, contact_id: contact_id?, queue_id, user_id })
    }
}

/// `POST /tickets`.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewTicket>,
    idempotency: Idempotency,
) -> ApiResult<Created<Ticket>> {
    let new = body.0;
    check_channel(&caller, new.channel_id)?;
    let contact = app.engine.contacts.get(caller.company, new.contact_id).await?.ok_or_else(ApiError::not_found);
    let contact = merges::add_successor(&caller, &app, Mergeable::Contact(new.contact_id), contact).await?;
    let open = Open {
        company: caller.company,
        channel: new.channel_id,
        contact,
        // Set while the ticket is opened, if the contact is known to have written on the channel.
        reachable: false,
        queue: new.queue_id,
        user: new.user_id,
        author: caller.author(),
    };
    let organization = caller.organization;
    let to_response = move |ticket: &live::Ticket| Created::of(Ticket::of(&organization, ticket.clone().into()));
    idempotency.command(to_response, |attached_changes| app.engine.tickets.open(open, attached_changes)).await
}

/// `GET /tickets/{ticketId}`.
pub async fn show(
    caller: Caller,
    app: Data<App>,
    cache: Data<RenderedTickets>,
    id: PathId<TicketId>,
) -> ApiResult<Json<Ticket>> {
    let ticket = app.engine.tickets.get(caller.company, id.0).await;
    let ticket = merges::add_successor(&caller, &app, Mergeable::Ticket(id.0), ticket).await?;
    Ok(Json::of(Ticket::cached(&cache, &caller.organization, ticket)))
}
