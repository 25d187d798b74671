//! Messages of tickets. Live: changed only by their ticket's actor.

mod interactive;
mod job_id;
mod new;
mod reaction;
mod send;
mod view;

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_persistence::MessageId;
use hotline_persistence::tables::messages::{self, MessageFilter};

pub use job_id::JobId;
pub use new::NewMessage;
pub use reaction::{react, withdraw_reaction};
pub use send::{build_template, send};
pub use view::{File, Job, Message, ViewContext};

use super::contacts::{check_channel, check_contact};
use super::merges::{self, Mergeable};
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Filter, Json, Page, Params, PathId, Query};

/// Filters of the list.
pub struct Filters(MessageFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(MessageFilter {
            ticket_id: query.filter("ticketId"),
            contact_id: query.filter("contactId"),
            channel_id: query.filter("channelId"),
            direction: query.filter("direction"),
            kind: query.filter("type"),
            status: query.filter("status"),
            created: query.span("created"),
            updated: query.span("updated"),
            ..MessageFilter::default()
        })
    }
}

/// `GET /messages`.
pub async fn list(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    query: Query<Filters>,
) -> ApiResult<Page<Message>> {
    let filter = query.filter.0;
    if let Some(channel) = filter.channel_id {
        check_channel(&caller, channel)?;
    }
    if let Some(ticket) = filter.ticket_id {
        // An unknown ticket is a `404`, not an empty list.
        let found = app.engine.tickets.get(caller.company, ticket).await;
        merges::add_successor(&caller, &app, Mergeable::Ticket(ticket), found).await?;
    }
    check_contact(&caller, &app, filter.contact_id).await?;
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let rows = messages::list(db, caller.company, &filter, query.page).await?;
    let context = ViewContext::of(&caller, &app, &request);
    Ok(Page::of(query.page, rows, |row| Message::of(row, &context)))
}

/// `GET /messages/{messageId}`.
pub async fn show(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    id: PathId<MessageId>,
) -> ApiResult<Json<Message>> {
    let row = app.engine.reads().message(caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(Json::of(Message::of(row, &ViewContext::of(&caller, &app, &request))))
}

/// `GET /messages/jobs/{jobId}`.
pub async fn show_job(caller: Caller, app: Data<App>, id: PathId<JobId>) -> ApiResult<Json<Job>> {
    let message = app.engine.reads().message(caller.company, id.0.0).await?;
    // A job has the id of its first message. Its other messages, and those from contacts, do not identify a job.
    let first = message.filter(|row| row.job_id == Some(id.0.0)).ok_or_else(ApiError::not_found)?;
    let others = messages::others_of_job(app.engine.reads().tables(caller.company).await?, &first).await?;
    Ok(Json::of(Job::of(first, others, &caller.organization)))
}
