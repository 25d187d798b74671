//! The verbs of a campaign: start, pause, resume, cancel. Each responds once no message can be sent under the previous
//! status.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::campaigns::{self, Campaign, CampaignStatus};
use hotline_persistence::{CampaignId, CompanyId, Database};
use serde_json::Value;
use sqlx::PgConnection;

use super::write::rebuild_template;
use super::{check_unfinished_limit, status_conflict};
use crate::app::App;
use crate::openapi::{Operation, OperationPart};
use crate::web::response::schema::Schemas;
use crate::web::{ApiError, ApiResult, Caller, Idempotency, Json, PathId};

/// Documents that a verb responds with `422` if the channel's provider would refuse the campaign's template.
pub struct TemplateErrorDocs;

impl FromRequest for TemplateErrorDocs {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(_: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self))
    }
}

impl OperationPart for TemplateErrorDocs {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.errors.push(422);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Start,
    Pause,
    Resume,
    Cancel,
}

impl Verb {
    fn is_allowed(self, status: CampaignStatus) -> bool {
        match self {
            Self::Start => status == CampaignStatus::Scheduled,
            Self::Pause => status == CampaignStatus::Processing,
            Self::Resume => status == CampaignStatus::Paused,
            Self::Cancel => !status.is_over(),
        }
    }

    /// Changes the status of a locked campaign.
    async fn apply(self, db: &mut PgConnection, company: CompanyId, id: CampaignId) -> ApiResult<Campaign> {
        Ok(match self {
            Self::Start => campaigns::start(db, company, id).await?,
            Self::Pause => campaigns::pause(db, company, id, None).await?,
            Self::Resume => campaigns::resume(db, company, id).await?,
            Self::Cancel => campaigns::cancel(db, company, id).await?,
        })
    }
}

/// Applies a verb to a campaign during a hold, in which its actor sends nothing. For a start or resume, the template is
/// rebuilt before the hold.
async fn change_status(
    verb: Verb,
    caller: &Caller,
    app: &App,
    id: CampaignId,
    idempotency: &Idempotency,
) -> ApiResult<Json<Campaign>> {
    let company = caller.company;
    let rebuilt_template = RebuiltTemplate::for_verb(verb, caller, app, id).await?;
    let hold = app.engine.campaigns.hold(company, id).await?;
    let mut db = app.db(company);
    if matches!(verb, Verb::Start | Verb::Cancel) {
        // Both write the campaign's recipients, of which there may be a million.
        db = db.heavy();
    }
    let change = idempotency.transaction(db, async |db| {
        let campaign = campaigns::lock(db, company, id).await?;
        if !verb.is_allowed(campaign.status) {
            return Err(status_conflict(&campaign));
        }
        if verb == Verb::Resume {
            check_unfinished_limit(db, company).await?;
        }
        if let Some(RebuiltTemplate { built_from, template }) = rebuilt_template {
            if (built_from.channel_id, &built_from.template) != (campaign.channel_id, &campaign.template) {
                // Another request has changed the values that the template was built from.
                return Err(ApiError::unavailable());
            }
            campaigns::update(db, company, id, None, &Columns::from([("builtTemplate", template)])).await?;
        }
        Ok(Json::of(verb.apply(db, company, id).await?))
    });
    let response = change.await;
    // Released before the response: the campaign's actor then reads the new status.
    drop(hold);
    response
}

/// The template of a campaign, rebuilt while the campaign was not locked.
struct RebuiltTemplate {
    built_from: Campaign,
    template: Value,
}

impl RebuiltTemplate {
    /// Rebuilds the template for a verb that begins to send; `None` if there is nothing to rebuild.
    async fn for_verb(verb: Verb, caller: &Caller, app: &App, id: CampaignId) -> ApiResult<Option<Self>> {
        let found: Option<Campaign> = match verb {
            Verb::Start | Verb::Resume => table::find(app.db(caller.company), caller.company, id).await?,
            Verb::Pause | Verb::Cancel => None,
        };
        let Some(campaign) = found.filter(|campaign| verb.is_allowed(campaign.status)) else { return Ok(None) };
        let template = rebuild_template(caller, app, &campaign).await?;
        Ok(template.map(|template| Self { built_from: campaign, template }))
    }
}

/// `POST /campaigns/{campaignId}/start`.
pub async fn start(
    caller: Caller,
    app: Data<App>,
    id: PathId<CampaignId>,
    idempotency: Idempotency,
    _: TemplateErrorDocs,
) -> ApiResult<Json<Campaign>> {
    change_status(Verb::Start, &caller, &app, id.0, &idempotency).await
}

/// `POST /campaigns/{campaignId}/pause`.
pub async fn pause(
    caller: Caller,
    app: Data<App>,
    id: PathId<CampaignId>,
    idempotency: Idempotency,
) -> ApiResult<Json<Campaign>> {
    change_status(Verb::Pause, &caller, &app, id.0, &idempotency).await
}

/// `POST /campaigns/{campaignId}/resume`.
pub async fn resume(
    caller: Caller,
    app: Data<App>,
    id: PathId<CampaignId>,
    idempotency: Idempotency,
    _: TemplateErrorDocs,
) -> ApiResult<Json<Campaign>> {
    change_status(Verb::Resume, &caller, &app, id.0, &idempotency).await
}

/// `POST /campaigns/{campaignId}/cancel`.
pub async fn cancel(
    caller: Caller,
    app: Data<App>,
    id: PathId<CampaignId>,
    idempotency: Idempotency,
) -> ApiResult<Json<Campaign>> {
    change_status(Verb::Cancel, &caller, &app, id.0, &idempotency).await
}
