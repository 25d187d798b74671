//! The verbs of a webhook: rotate the secret, test, and replay.

use std::borrow::Cow;

use actix_web::web::Data;
use actix_web::{HttpMessage, HttpRequest};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use hotline_actors::{Conflict, Refusal, clock};
use hotline_persistence::key::new_key;
use hotline_persistence::tables::webhooks::{self, WebhookId, replays};
use hotline_persistence::{LoggedEventId, Presence, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{WebhookWithSecret, find, visibility};
use crate::api::events::EventsEnabled;
use crate::app::App;
use crate::web::request::values::FromField;
use crate::web::response::reply::{Accepted, Confidential};
use crate::web::{ApiError, ApiResult, Body, Caller, Fields, Idempotency, Input, Json, PathId};
use crate::webhooks::{AttemptResult, new_secret};

/// `POST /webhooks/{webhookId}/rotate-secret`.
pub async fn rotate_secret(
    caller: Caller,
    _: EventsEnabled,
    app: Data<App>,
    id: PathId<WebhookId>,
    idempotency: Idempotency,
) -> ApiResult<Confidential<Json<WebhookWithSecret>>> {
    let keys = &app.engine.store().keys;
    visibility::check_types(&caller, &find(&app, &caller, id.0).await?.types)?;
    idempotency
        .transaction(app.db(caller.company), async |db| {
            let secret = new_secret();
            let webhook = webhooks::rotate_secret(db, keys, caller.company, id.0, &secret, clock::now()).await?;
            Ok(Confidential(Json::of(WebhookWithSecret { webhook, secret: secret.0 })))
        })
        .await
}

/// The result of a test.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookTest)]
pub struct TestResult {
    /// Whether the delivery succeeded.
    #[schema(example = true)]
    pub delivered: bool,
    /// The endpoint's HTTP status; `null` if it did not respond.
    #[schema(example = 200)]
    pub status: Option<u16>,
    /// Why the delivery failed.
    #[schema(example = json!(null))]
    pub error: Option<String>,
    #[schema(example = 41)]
    pub duration_ms: u64,
    /// The first 1,000 characters of the response.
    #[schema(example = "ok")]
    pub body: String,
}

impl From<AttemptResult> for TestResult {
    fn from(attempt: AttemptResult) -> Self {
        Self {
            delivered: attempt.error.is_none(),
            status: attempt.status,
            duration_ms: attempt.duration_ms(),
            error: attempt.error,
            body: attempt.body,
        }
    }
}

/// The payload of a test: an event that is not in the log.
pub fn test_event(webhook: WebhookId, now: DateTime<Utc>) -> Value {
    json!({
        "id": 0,
        "type": "webhook.test",
        "createdAt": Timestamp::from(now),
        "by": {"type": "system", "id": null, "name": null},
        "data": {"webhookId": webhook},
        "previous": null,
    })
}

/// `POST /webhooks/{webhookId}/test`.
pub async fn test(
    request: HttpRequest,
    caller: Caller,
    _: EventsEnabled,
    app: Data<App>,
    id: PathId<WebhookId>,
    idempotency: Idempotency,
) -> ApiResult<Json<TestResult>> {
    let (company, keys) = (caller.company, &app.engine.store().keys);
    let endpoint = webhooks::endpoint(app.db(company), keys, company, id.0).await?;
    let endpoint = endpoint.ok_or_else(ApiError::not_found)?;
    // One test at a time: a test occupies its request until the endpoint has responded.
    let Some(_permit) = app.webhooks.begin_test(company, id.0) else {
        let state = "a test of this webhook is already running";
        return Err(Refusal::Conflict(Conflict::of(state, "test_running", "webhookId", id.0.0)).into());
    };
    let json = Bytes::from(test_event(id.0, clock::now()).to_string());
    let secrets = endpoint.secrets_at(clock::now());
    // Until the endpoint responds, the request does not count as work of the company: closing the company does not wait
    // for it.
    request.extensions_mut().remove::<Presence>();
    let attempt = app.webhooks.deliver(&endpoint.url, secrets, &new_key("test_"), json).await;
    let presence = app.engine.enter(company).await?;
    request.extensions_mut().insert(presence);
    // The delivery is not part of a transaction, so its result is recorded once it is known.
    idempotency
        .transaction(app.db(company), async |db| {
            if attempt.error.is_none() {
                webhooks::clear_failure(db, &endpoint).await?;
            }
            Ok(Json::of(TestResult::from(attempt)))
        })
        .await
}

/// The position after an event; 0: before all events.
struct EventPosition(LoggedEventId);

impl FromField for EventPosition {
    fn from_json(value: &Value) -> Result<Self, String> {
        let id = LoggedEventId::from_json(value).ok().filter(|id| id.0 >= 0);
        id.map(Self).ok_or_else(|| "must be an integer from 0".to_owned())
    }

    fn schema() -> Value {
        json!({"type": "integer", "format": "int64", "minimum": 0, "example": 4711})
    }
}

/// The body of `POST /webhooks/{webhookId}/replay`.
pub struct Replay(ReplayRange);

enum ReplayRange {
    After(LoggedEventId),
    Delivery(LoggedEventId),
    FailedSince(DateTime<Utc>),
}

impl Input for Replay {
    fn name() -> Cow<'static, str> {
        "WebhookReplay".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        const NAMES: [&str; 3] = ["after", "deliveryId", "failedSince"];
        let given_names: Vec<&str> = NAMES.into_iter().filter(|name| fields.has_text(name)).collect();
        let after = fields.optional::<EventPosition>("after").map(|after| ReplayRange::After(after.0));
        let delivery = fields.optional("deliveryId").map(ReplayRange::Delivery);
        let failed = fields.optional("failedSince").map(ReplayRange::FailedSince);
        match given_names.as_slice() {
            [] => fields.refuse("after", "is required, or deliveryId, or failedSince"),
            [_, others @ ..] => others.iter().for_each(|name| fields.refuse(name, "must be the only one given")),
        }
        after.or(delivery).or(failed).map(Self)
    }

    fn examples() -> Vec<(&'static str, Value)> {
        vec![
            ("after", json!({"after": 4711})),
            ("deliveryId", json!({"deliveryId": 4712})),
            ("failedSince", json!({"failedSince": "2026-01-31T12:00:00.000Z"})),
        ]
    }
}

/// The events that are sent again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookReplayed)]
pub struct ReplayResult {
    /// Number of deliveries; with `after`, the number of events to examine.
    #[schema(example = 12)]
    pub deliveries: i64,
}

/// `POST /webhooks/{webhookId}/replay`.
pub async fn replay(
    caller: Caller,
    _: EventsEnabled,
    app: Data<App>,
    id: PathId<WebhookId>,
    body: Body<Replay>,
    idempotency: Idempotency,
) -> ApiResult<Accepted<ReplayResult>> {
    let company = caller.company;
    let webhook = find(&app, &caller, id.0).await?;
    visibility::check_types(&caller, &webhook.types)?;
    if !webhook.active {
        let state = "the webhook is disabled; enable it first";
        return Err(Refusal::Conflict(Conflict::of(state, "inactive", "webhookId", id.0.0)).into());
    }
    // The deliveries, which may be a million, are rescheduled before the transaction, in transactions of their own. If
    // one fails, no response is recorded under the idempotency key, and a retry continues from there.
    let rescheduled_count = match body.0.0 {
        ReplayRange::FailedSince(since) => replays::replay_failed(app.db(company), company, id.0, since).await?,
        ReplayRange::After(_) | ReplayRange::Delivery(_) => 0,
    };
    idempotency
        .transaction(app.db(company), async |db| {
            let deliveries = match body.0.0 {
                ReplayRange::After(event) => replays::replay_after(db, company, id.0, event.0).await?,
                ReplayRange::Delivery(event) => {
                    if !replays::replay_one(db, company, id.0, event.0).await? {
                        return Err(ApiError::not_found());
                    }
                    1
                }
                ReplayRange::FailedSince(_) => i64::try_from(rescheduled_count).unwrap_or(i64::MAX),
            };
            Ok(Accepted::of(ReplayResult { deliveries }))
        })
        .await
}
