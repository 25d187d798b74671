//! The deliveries of a webhook.

use actix_web::web::Data;
use hotline_persistence::tables::events::EventKind;
use hotline_persistence::tables::webhooks::WebhookId;
use hotline_persistence::tables::webhooks::deliveries::{self, DeliveryFilter, DeliveryRow, DeliveryStatus};
use hotline_persistence::{LoggedEventId, Timestamp};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{find, visibility};
use crate::api::events::EventsEnabled;
use crate::app::App;
use crate::web::{ApiResult, Caller, Filter, Page, Params, PathId, Query};

/// The delivery of an event to a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookDelivery)]
pub struct Delivery {
    /// The event's id; unique within the webhook.
    #[schema(value_type = LoggedEventId)]
    pub id: i64,
    #[schema(value_type = LoggedEventId)]
    pub event_id: i64,
    #[serde(rename = "type")]
    #[schema(value_type = EventKind)]
    pub kind: String,
    pub status: DeliveryStatus,
    /// The latest attempts, at most 20.
    #[schema(value_type = Vec<WebhookAttempt>)]
    pub attempts: Value,
    /// When a pending delivery is retried; `null` while an earlier event of the same record is pending.
    pub next_attempt_at: Option<Timestamp>,
    /// When the event happened.
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// An attempt to deliver an event.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)]
struct WebhookAttempt {
    at: Timestamp,
    /// The endpoint's HTTP status; `null` if it did not respond.
    #[schema(example = 503)]
    status: Option<u16>,
    /// Why the delivery failed.
    #[schema(example = "the endpoint responded with 503")]
    error: Option<String>,
    #[schema(example = 41)]
    duration_ms: u64,
}

impl From<DeliveryRow> for Delivery {
    fn from(row: DeliveryRow) -> Self {
        Self {
            id: row.event_id,
            event_id: row.event_id,
            kind: row.kind,
            status: row.status,
            attempts: row.attempts,
            next_attempt_at: row.next_attempt_at.map(Timestamp::from),
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of the list.
pub struct Filters(DeliveryFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(DeliveryFilter {
            status: query.filter("status"),
            created: query.span("created"),
            updated: query.span("updated"),
            ..DeliveryFilter::default()
        })
    }
}

/// `GET /webhooks/{webhookId}/deliveries`.
pub async fn list_deliveries(
    caller: Caller,
    _: EventsEnabled,
    app: Data<App>,
    id: PathId<WebhookId>,
    query: Query<Filters>,
) -> ApiResult<Page<Delivery>> {
    find(&app, &caller, id.0).await?;
    let db = app.db(caller.company);
    let filter = DeliveryFilter { excluded_types: visibility::hidden_types(&caller), ..query.filter.0 };
    let rows = deliveries::list(db, caller.company, id.0, &filter, query.page).await?;
    Ok(Page::of(query.page, rows, Delivery::from))
}
