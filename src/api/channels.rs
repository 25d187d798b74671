//! Channels: a company's lines to its contacts. The API only reads them; the panel and the command line change them.

use actix_web::web::Data;
use hotline_actors::Organization;
use hotline_persistence::table::Named;
use hotline_persistence::tables::channels::{
    self, ChannelFilter, ChannelQuality, ChannelRow, ChannelStatus, ChannelType,
};
use hotline_persistence::{ChannelId, QueueId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::references;
use crate::app::App;
use crate::web::request::values::Search;
use crate::web::{ApiError, ApiResult, Caller, Filter, Json, Page, Params, PathId, Query};

/// A channel: a phone number, a social account or a webchat.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    pub id: ChannelId,
    #[schema(example = "Website")]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ChannelType,
    pub status: ChannelStatus,
    #[schema(example = "5511999990000")]
    pub number: Option<String>,
    /// The queue of new tickets.
    pub queue: Option<Named<QueueId>>,
    /// The last error.
    #[schema(example = "the access token has expired")]
    pub last_error: Option<String>,
    /// The quality of the number's messages, as its provider last reported it.
    pub quality: Option<ChannelQuality>,
    /// How many conversations the number may begin in a day, as its provider names that limit.
    #[schema(example = "TIER_10K")]
    pub messaging_limit: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Channel {
    fn of(organization: &Organization, row: ChannelRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            kind: row.kind,
            status: row.status,
            number: row.number,
            queue: references::queue(organization, row.queue_id).map(Named::from),
            last_error: row.last_error,
            quality: row.quality,
            messaging_limit: row.messaging_limit,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of the list: `search` matches name and number.
pub struct Filters(ChannelFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(ChannelFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            kind: query.filter("type"),
            status: query.filter("status"),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /channels`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<Channel>> {
    let rows = channels::list(app.db(caller.company), caller.company, &query.filter.0, query.page).await?;
    Ok(Page::of(query.page, rows, |row| Channel::of(&caller.organization, row)))
}

/// `GET /channels/{channelId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<ChannelId>) -> ApiResult<Json<Channel>> {
    let row = channels::find(app.db(caller.company), caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(Json::of(Channel::of(&caller.organization, row)))
}
