//! Channels: where contacts write. Plain; read-only over the API, made on the command line.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use hotline_actors::Organization;
use hotline_persistence::tables::channels::{self, ChannelFilter, ChannelRow, ChannelStatus, ChannelType};
use hotline_persistence::{ChannelId, QueueId};
use serde::Serialize;

use super::named::{self, Named};
use crate::app::App;
use crate::web::values::timestamp;
use crate::web::{Answer, ApiError, Caller, PageQuery, Params, PathId, data, listed};

/// A channel as shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Channel {
    pub id: ChannelId,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ChannelType,
    pub status: ChannelStatus,
    pub number: Option<String>,
    pub queue: Option<Named<QueueId>>,
    pub last_error: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}

impl Channel {
    fn of(organization: &Organization, row: ChannelRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            kind: row.kind,
            status: row.status,
            number: row.number,
            queue: named::queue(organization, row.queue_id),
            last_error: row.last_error,
            created_at: timestamp(row.created_at),
            updated_at: timestamp(row.updated_at),
        }
    }
}

/// `GET /channels`. Filters: `type`, `status`, `createdFrom/To`, `updatedFrom/To`.
pub async fn list(caller: Caller, app: Data<App>, mut query: Params) -> Answer<HttpResponse> {
    let page = query.page();
    let filter = ChannelFilter {
        kind: query.filter("type"),
        status: query.filter("status"),
        created: query.span("created"),
        updated: query.span("updated"),
    };
    query.done()?;
    let rows = channels::list(&app.engine.store().db, caller.company, &filter, page).await?;
    Ok(listed(page, rows, |row| Channel::of(&caller.organization, row)))
}

/// `GET /channels/{channelId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<ChannelId>) -> Answer<HttpResponse> {
    let row = channels::find(&app.engine.store().db, caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(data(StatusCode::OK, Channel::of(&caller.organization, row)))
}
