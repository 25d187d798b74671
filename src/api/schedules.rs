//! Scheduled messages. Live: changed only by their company's `ScheduleDispatcher`.

use std::borrow::Cow;

use actix_web::web::Data;
use chrono::{DateTime, Utc};
use hotline_actors::Organization;
use hotline_actors::schedules::{NewSchedule, ScheduleChanges, Scheduled};
use hotline_persistence::table::Named;
use hotline_persistence::tables::schedules::{self, ListedSchedule, ScheduleFilter, ScheduleRow, ScheduleStatus};
use hotline_persistence::{ChannelId, ContactId, MessageId, QueueId, ScheduleId, Timestamp, UserId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::contacts::{check_channel, check_contact};
use super::merges::{self, Mergeable};
use super::references;
use crate::app::App;
use crate::web::request::values::{FutureTime, MessageBody};
use crate::web::{
    ApiError, ApiResult, Body, Caller, Created, Fields, Filter, Idempotency, Input, Json, NoContent, Page, Params,
    PathId, Query,
};

/// A scheduled message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    pub id: ScheduleId,
    /// The recipient; `null` if the contact has been deleted.
    pub contact: Option<ScheduleContact>,
    pub channel_id: ChannelId,
    /// The text as written; variables are filled in when it is sent.
    #[schema(example = "Good morning, {{firstName}}! Shall we meet at ten?")]
    pub body: String,
    /// The queue its ticket is moved to when it is sent.
    pub queue_id: Option<QueueId>,
    /// When it is sent, within five seconds.
    pub send_at: Timestamp,
    pub status: ScheduleStatus,
    /// The message that was sent.
    pub message_id: Option<MessageId>,
    /// Why the message failed.
    #[schema(value_type = Option<ScheduleFailure>)]
    pub error: Option<Value>,
    /// The user on whose behalf it was scheduled.
    pub user_created: Option<Named<UserId>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The recipient of a scheduled message.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScheduleContact {
    pub id: ContactId,
    #[schema(example = "Maria Lima")]
    pub name: String,
    #[schema(example = "5511987654321")]
    pub number: Option<String>,
}

/// Why a scheduled message could not be sent.
#[derive(ToSchema)]
#[allow(dead_code)]
struct ScheduleFailure {
    /// The error code of `POST /messages`.
    #[schema(example = "ERR_API_CONTACT_NOT_FOUND")]
    code: String,
    /// A message for people.
    #[schema(example = "the contact was deleted")]
    message: String,
}

impl Schedule {
    fn of(row: &ScheduleRow, contact: Option<ScheduleContact>, organization: &Organization) -> Self {
        Self {
            id: row.id,
            contact,
            channel_id: row.channel_id,
            body: row.body.clone(),
            queue_id: row.queue_id,
            send_at: row.send_at.into(),
            status: row.status,
            message_id: row.message_id,
            error: row.error.clone(),
            user_created: references::user(organization, row.user_id).map(Named::from),
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }

    fn of_scheduled(scheduled: &Scheduled, organization: &Organization) -> Self {
        let contact = scheduled.contact.as_ref().map(|contact| ScheduleContact {
            id: contact.id,
            name: contact.name.to_string(),
            number: contact.number.as_deref().map(str::to_owned),
        });
        Self::of(&scheduled.row, contact, organization)
    }

    /// The schedule as read from the tables.
    pub fn of_listed(listed: ListedSchedule, organization: &Organization) -> Self {
        let ListedSchedule { schedule, contact_name, contact_number } = listed;
        let number = contact_number.map(String::from);
        let contact = contact_name.map(|name| ScheduleContact { id: schedule.contact_id, name: name.into(), number });
        Self::of(&schedule, contact, organization)
    }
}

/// The body of `POST /schedules`.
pub struct NewScheduleBody {
    contact_id: ContactId,
    channel_id: ChannelId,
    body: MessageBody,
    queue_id: Option<QueueId>,
    send_at: DateTime<Utc>,
    user_id: Option<UserId>,
}

impl Input for NewScheduleBody {
    fn name() -> Cow<'static, str> {
        "ScheduleCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let contact_id = fields.required("contactId");
        let channel_id = fields.required("channelId");
        let body = fields.required("body");
        let queue_id = fields.optional("queueId");
        let send_at = fields.required::<FutureTime>("sendAt");
        let user_id = fields.optional("userId");
        Some(Self {
            contact_id: contact_id?,
            channel_id: channel_id?,
            body: body?,
            queue_id,
            send_at: send_at?.0,
            user_id,
        })
    }
}

/// The body of `PUT /schedules/{scheduleId}`.
pub struct ScheduleUpdate(ScheduleChanges);

impl Input for ScheduleUpdate {
    fn name() -> Cow<'static, str> {
        "ScheduleUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let contact = fields.non_null("contactId");
        let channel = fields.non_null("channelId");
        let body: Option<MessageBody> = fields.non_null("body");
        let queue = fields.patch("queueId").into_option();
        let send_at: Option<FutureTime> = fields.non_null("sendAt");
        let (body, send_at) = (body.map(|body| body.0), send_at.map(|at| at.0));
        Some(Self(ScheduleChanges { contact, channel, body, queue, send_at }))
    }
}

/// Filters of the list.
pub struct Filters(ScheduleFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(ScheduleFilter {
            status: query.filter("status"),
            contact_id: query.filter("contactId"),
            channel_id: query.filter("channelId"),
            send: query.span("send"),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /schedules`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<Schedule>> {
    let filter = query.filter.0;
    if let Some(channel) = filter.channel_id {
        check_channel(&caller, channel)?;
    }
    check_contact(&caller, &app, filter.contact_id).await?;
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let rows = schedules::list(db, caller.company, &filter, query.page).await?;
    Ok(Page::of(query.page, rows, |row| Schedule::of_listed(row, &caller.organization)))
}

/// `POST /schedules`.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewScheduleBody>,
    idempotency: Idempotency,
) -> ApiResult<Created<Schedule>> {
    let NewScheduleBody { contact_id, channel_id, body, queue_id, send_at, user_id } = body.0;
    check_channel(&caller, channel_id)?;
    caller.check_queue(queue_id)?;
    let author = caller.author_for(user_id)?;
    let found = app.engine.contacts.get(caller.company, contact_id).await?.ok_or_else(ApiError::not_found);
    let contact = merges::add_successor(&caller, &app, Mergeable::Contact(contact_id), found).await?;
    let new = NewSchedule {
        contact,
        channel: channel_id,
        body: body.0,
        queue: queue_id,
        send_at,
        author,
        by: caller.event_author(),
    };
    let organization = caller.organization;
    let to_response = move |scheduled: &Scheduled| Created::of(Schedule::of_scheduled(scheduled, &organization));
    idempotency
        .command(to_response, |attached_changes| app.engine.schedules.create(caller.company, new, attached_changes))
        .await
}

/// `GET /schedules/{scheduleId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<ScheduleId>) -> ApiResult<Json<Schedule>> {
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let schedule = schedules::find_listed(db, caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(Json::of(Schedule::of_listed(schedule, &caller.organization)))
}

/// `PUT /schedules/{scheduleId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<ScheduleId>,
    body: Body<ScheduleUpdate>,
    idempotency: Idempotency,
) -> ApiResult<Json<Schedule>> {
    let changes = body.0.0;
    if let Some(channel) = changes.channel {
        check_channel(&caller, channel)?;
    }
    caller.check_queue(changes.queue.flatten())?;
    check_contact(&caller, &app, changes.contact).await?;
    let organization = caller.organization;
    let to_response = move |scheduled: &Scheduled| Json::of(Schedule::of_scheduled(scheduled, &organization));
    idempotency
        .command(to_response, |attached_changes| {
            app.engine.schedules.update(caller.company, id.0, changes, attached_changes)
        })
        .await
}

/// `DELETE /schedules/{scheduleId}`.
pub async fn cancel(caller: Caller, app: Data<App>, id: PathId<ScheduleId>) -> ApiResult<NoContent> {
    app.engine.schedules.cancel(caller.company, id.0).await?;
    Ok(NoContent)
}
