//! Messages: what is said in tickets. Live: changed only by their ticket's actor.

mod interactive;
mod new;
mod send;
mod view;

use std::str::FromStr;

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_persistence::MessageId;
use hotline_persistence::tables::messages::{self, MessageFilter};
use serde_json::{Value, json};

pub use new::NewMessage;
pub use send::send;
pub use view::{File, Job, Message, Showing};

use super::contacts::check_channel;
use super::tickets::check_contact;
use crate::app::App;
use crate::web::params::PathValue;
use crate::web::{Answer, ApiError, Caller, Filter, Listed, Params, PathId, Query, Shown};

/// A job's public id: the number of its first message behind a prefix, so that a job needs no table of its own and is
/// kept as long as its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId(pub MessageId);

/// What every job id begins with.
const JOB_PREFIX: &str = "job_";

impl FromStr for JobId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix(JOB_PREFIX).ok_or(())?;
        let id = digits.parse().map_err(|_| ())?;
        // One job has one spelling.
        if format!("{id}") == digits { Ok(Self(MessageId(id))) } else { Err(()) }
    }
}

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{JOB_PREFIX}{}", self.0)
    }
}

impl PathValue for JobId {
    fn schema() -> Value {
        json!({"type": "string", "example": "job_7"})
    }
}

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
) -> Answer<Listed<Message>> {
    let filter = query.filter.0;
    if let Some(channel) = filter.channel_id {
        check_channel(&caller, channel)?;
    }
    if let Some(ticket) = filter.ticket_id {
        app.engine.ticket(caller.company, ticket).await?;
    }
    check_contact(&caller, &app, filter.contact_id).await?;
    let db = app.engine.reads().shown(caller.company).await?;
    let rows = messages::list(db, caller.company, &filter, query.page).await?;
    let showing = Showing::of(&caller, &app, &request);
    Ok(Listed::of(query.page, rows, |row| Message::of(row, &showing)))
}

/// `GET /messages/{messageId}`.
pub async fn show(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    id: PathId<MessageId>,
) -> Answer<Shown<Message>> {
    let row = app.engine.reads().message(caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(Shown::of(Message::of(row, &Showing::of(&caller, &app, &request))))
}

/// `GET /messages/jobs/{jobId}`.
pub async fn show_job(caller: Caller, app: Data<App>, id: PathId<JobId>) -> Answer<Shown<Job>> {
    let message = app.engine.reads().message(caller.company, id.0.0).await?;
    // A message that was not sent by a job, a visitor's for instance, has none.
    let first = message.filter(|row| row.job_id == Some(id.0.0)).ok_or_else(ApiError::not_found)?;
    let others = messages::others_of_job(app.engine.reads().tables(caller.company).await?, &first).await?;
    Ok(Shown::of(Job::of(first, others, &caller.organization)))
}
