//! The recipients of a campaign, with the status of each message.

use actix_web::web::Data;
use hotline_persistence::tables::campaigns::{self, Campaign, ListedRecipient, RecipientFilter, RecipientStatus};
use hotline_persistence::{CampaignId, ContactId, MessageId, Timestamp, table};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Filter, Page, Params, PathId, Query};

/// A recipient of a campaign.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignRecipient {
    /// The contact; `null` if it has been deleted.
    pub contact: Option<RecipientContact>,
    pub status: RecipientStatus,
    /// The message, even before the provider has accepted it.
    pub message_id: Option<MessageId>,
    /// Why the message failed or the contact was skipped.
    #[schema(value_type = Option<RecipientFailure>)]
    pub error: Option<Value>,
    pub updated_at: Timestamp,
}

/// The contact of a recipient.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecipientContact {
    pub id: ContactId,
    #[schema(example = "Maria Lima")]
    pub name: String,
    #[schema(example = "5511987654321")]
    pub number: Option<String>,
}

/// Why a recipient did not receive the message.
#[derive(ToSchema)]
#[allow(dead_code)]
struct RecipientFailure {
    /// The error code of `POST /messages`, or of the message.
    #[schema(example = "ERR_API_CONTACT_UNREACHABLE")]
    code: String,
    /// A message for people.
    #[schema(example = "the contact cannot receive on this channel: they have no phone number")]
    message: String,
}

impl From<ListedRecipient> for CampaignRecipient {
    fn from(row: ListedRecipient) -> Self {
        let ListedRecipient { contact_id, status, message_id, error, updated_at, contact_name, contact_number } = row;
        let contact = contact_name.map(|name| RecipientContact { id: contact_id, name, number: contact_number });
        Self { contact, status, message_id, error, updated_at: updated_at.into() }
    }
}

/// Filters of the list.
pub struct Filters(RecipientFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(RecipientFilter { status: query.filter("status"), updated: query.span("updated") })
    }
}

/// `GET /campaigns/{campaignId}/recipients`.
pub async fn list_recipients(
    caller: Caller,
    app: Data<App>,
    id: PathId<CampaignId>,
    query: Query<Filters>,
) -> ApiResult<Page<CampaignRecipient>> {
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    if !table::exists::<Campaign>(db, caller.company, id.0).await? {
        return Err(ApiError::not_found());
    }
    let rows = campaigns::recipients(db, caller.company, id.0, &query.filter.0, query.page).await?;
    Ok(Page::of(query.page, rows, CampaignRecipient::from))
}
