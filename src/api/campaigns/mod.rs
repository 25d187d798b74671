//! Campaigns: a message to every contact of a list. A campaign is a plain record, which changes only while its actor
//! sends nothing. The status of its recipients is live: the actor changes it.

mod recipients;
mod verbs;
mod write;

use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::tables::campaigns::{self, Campaign, CampaignStatus, UNFINISHED_MAX};
use hotline_persistence::tables::contact_lists::ContactList;
use hotline_persistence::{CampaignId, ChannelId, CompanyId, Database, table};
use sqlx::PgConnection;

pub use recipients::list_recipients;
pub use verbs::{cancel, pause, resume, start};
pub use write::{create, update};

use super::contacts::check_channel;
use super::plain;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Filter, Json, NoContent, Page, Params, PathId, Query};

/// Filters of the list.
pub struct Filters {
    filter: table::Filter,
    channel: Option<ChannelId>,
}

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        let channel = query.filter("channelId");
        let filter = plain::Filters::read(query, |list| {
            list.equals::<CampaignStatus>("status");
            list.refers::<ContactList>("contactListId");
        });
        Self { filter, channel }
    }
}

/// `GET /campaigns`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<Campaign>> {
    let Filters { mut filter, channel } = query.filter;
    let mut db = app.engine.reads().acknowledged_tables(caller.company).await?;
    if let Some(channel) = channel {
        check_channel(&caller, channel)?;
        filter.equals("channelId", channel);
        db = db.heavy();
    }
    let rows = campaigns::list(db, caller.company, &filter, query.page).await?;
    Ok(Page::of(query.page, rows, |row| row))
}

/// `GET /campaigns/{campaignId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<CampaignId>) -> ApiResult<Json<Campaign>> {
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let campaign: Option<Campaign> = table::find(db, caller.company, id.0).await?;
    Ok(Json::of(campaign.ok_or_else(ApiError::not_found)?))
}

/// `DELETE /campaigns/{campaignId}`: also deletes its recipients; the messages remain.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<CampaignId>) -> ApiResult<NoContent> {
    let (company, id) = (caller.company, id.0);
    let _hold = app.engine.campaigns.hold(company, id).await?;
    let mut transaction = app.db(company).heavy().begin().await?;
    let campaign = campaigns::lock(transaction.connection()?, company, id).await?;
    match campaign.status {
        CampaignStatus::Processing | CampaignStatus::Paused => return Err(status_conflict(&campaign)),
        // The campaign's row is needed until the withdrawals of its messages are recorded.
        CampaignStatus::Canceled if campaign.counts.pending > 0 => {
            let state = "the campaign was canceled, but some recipients are still pending; try again later";
            return Err(Refusal::Conflict(Conflict::of(state, "canceled", "campaignId", id)).into());
        }
        CampaignStatus::Completed | CampaignStatus::Canceled if campaign.counts.unknown > 0 => {
            let state = "it is unknown whether some of the campaign's messages were sent; try again later";
            return Err(Refusal::Conflict(Conflict::of(state, campaign.status.as_str(), "campaignId", id)).into());
        }
        CampaignStatus::Scheduled | CampaignStatus::Completed | CampaignStatus::Canceled => {}
    }
    campaigns::remove(transaction.connection()?, company, id).await?;
    transaction.commit().await?;
    Ok(NoContent)
}

/// Checks that the company can have one more unfinished campaign.
///
/// # Errors
/// `409` with the limit.
async fn check_unfinished_limit(db: &mut PgConnection, company: CompanyId) -> ApiResult<()> {
    if !campaigns::has_unfinished_max(db, company).await? {
        return Ok(());
    }
    let state = "the company has reached its maximum number of unfinished campaigns";
    Err(Refusal::Conflict(Conflict::used_by(state, "limit", [("campaign", UNFINISHED_MAX)])).into())
}

/// The error of a request that the campaign's status does not allow.
fn status_conflict(campaign: &Campaign) -> ApiError {
    let state = match campaign.status {
        CampaignStatus::Scheduled => "the campaign has not started",
        CampaignStatus::Processing => "the campaign is being sent",
        CampaignStatus::Paused => "the campaign is paused",
        CampaignStatus::Completed => "the campaign is completed",
        CampaignStatus::Canceled => "the campaign was canceled",
    };
    Refusal::Conflict(Conflict::of(state, campaign.status.as_str(), "campaignId", campaign.id)).into()
}
