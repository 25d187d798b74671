//! Webhooks: endpoints that receive a company's events. Plain: changed by transactions, not by actors. The dispatcher
//! delivers to them (`src/deliveries/`). A service that stores no events has no webhooks, whatever the table contains,
//! because it would never deliver to them.

mod deliveries;
pub mod document;
mod verbs;
mod visibility;

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::{Conflict, FieldError, Refusal};
use hotline_persistence::UserId;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::events::{self, EventKind};
use hotline_persistence::tables::webhooks::{self, WEBHOOKS_MAX, Webhook, WebhookId};
use serde::Serialize;
use utoipa::ToSchema;

pub use deliveries::{Delivery, list_deliveries};
pub use verbs::{ReplayResult, TestResult, replay, rotate_secret, test, test_event};

use crate::api::events::EventsEnabled;
use crate::app::App;
use crate::web::request::values::{Name, Search, WebhookAddress};
use crate::web::response::reply::{Confidential, HasSecrets};
use crate::web::{
    ApiError, ApiResult, Body, Caller, Created, Fields, Filter, Idempotency, Input, Json, NoContent, Page, Params,
    Patch, PathId, Query,
};
use crate::webhooks::{Webhooks, new_secret};

/// A webhook with its secret, which is shown only once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookWithSecret {
    #[serde(flatten)]
    pub webhook: Webhook,
    /// The signing secret: `whsec_` and a key in base64. `null` in the response to a retry.
    #[schema(nullable, example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub secret: String,
}

impl HasSecrets for WebhookWithSecret {
    const SECRETS: &'static [&'static str] = &["secret"];
}

/// Maximum items of the list of event types: one of each.
const TYPES_MAX: usize = EventKind::ALL.len();

/// The distinct words of a list of event types; an empty list means all.
fn type_words(kinds: Vec<EventKind>) -> Vec<&'static str> {
    EventKind::words(kinds)
}

/// The body of `POST /webhooks`.
pub struct NewWebhook(Columns);

impl Input for NewWebhook {
    fn name() -> Cow<'static, str> {
        "WebhookCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut columns = Columns::default();
        let url = fields.required::<WebhookAddress>("url");
        let description = fields.optional::<Name>("description");
        let types = fields.list("types", TYPES_MAX).map(type_words);
        let active = fields.optional::<bool>("active");
        columns.set("url", url?);
        if let Some(description) = description {
            columns.set("description", description);
        }
        if let Some(types) = types {
            columns.set("types", types);
        }
        if let Some(active) = active {
            columns.set("active", active);
        }
        Some(Self(columns))
    }
}

/// The body of `PUT /webhooks/{webhookId}`.
pub struct WebhookChange(Columns);

impl Input for WebhookChange {
    fn name() -> Cow<'static, str> {
        "WebhookUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut columns = Columns::default();
        if let Some(url) = fields.non_null::<WebhookAddress>("url") {
            columns.set("url", url);
        }
        match fields.patch::<Name>("description") {
            Patch::Absent => {}
            Patch::Null => columns.set("description", serde_json::Value::Null),
            Patch::Value(description) => columns.set("description", description),
        }
        if let Some(types) = fields.changed_list("types", TYPES_MAX).map(type_words) {
            columns.set("types", types);
        }
        if let Some(active) = fields.non_null::<bool>("active") {
            columns.set("active", active);
        }
        Some(Self(columns))
    }
}

/// Checks the webhook's URL, without resolving its host.
fn check_url(webhooks: &Webhooks, columns: &Columns) -> ApiResult<()> {
    match columns.text("url").map(|url| webhooks.check(url)) {
        Some(Err(reason)) => Err(ApiError::validation(&[FieldError { field: "url".to_owned(), reason }])),
        _ => Ok(()),
    }
}

/// Filters of the list: `search` matches address and description.
pub struct Filters(table::Filter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        let mut filter = table::Filter::default();
        filter.search = query.filter::<Search>("search").map(|text| text.0);
        if let Some(active) = query.filter::<bool>("active") {
            filter.equals("active", active);
        }
        filter.created = query.span("created");
        filter.updated = query.span("updated");
        Self(filter)
    }
}

/// `GET /webhooks`.
pub async fn list(caller: Caller, _: EventsEnabled, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<Webhook>> {
    let rows = table::list(app.db(caller.company), caller.company, &query.filter.0, query.page).await?;
    Ok(Page::of(query.page, rows, |row| row))
}

/// `POST /webhooks`.
pub async fn create(
    caller: Caller,
    _: EventsEnabled,
    app: Data<App>,
    body: Body<NewWebhook>,
    idempotency: Idempotency,
) -> ApiResult<Confidential<Created<WebhookWithSecret>>> {
    let columns = body.0.0;
    visibility::check_types(&caller, &columns.texts("types").unwrap_or_default())?;
    check_url(&app.webhooks, &columns)?;
    let keys = &app.engine.store().keys;
    idempotency
        .transaction(app.db(caller.company), async |db| {
            let secret = new_secret();
            // Only events after this id are delivered.
            let last_event = events::last_id(&mut *db, caller.company).await?;
            let webhook =
                webhooks::insert(db, keys, caller.company, columns, &secret, (owner(&caller), last_event.0)).await?;
            let webhook = webhook.ok_or_else(too_many_webhooks)?;
            Ok(Confidential(Created::of(WebhookWithSecret { webhook, secret: secret.0 })))
        })
        .await
}

/// The user whose permissions decide whether a webhook receives events of cards; `None`: the company.
fn owner(caller: &Caller) -> Option<UserId> {
    caller.user().map(|(id, _)| id)
}

fn too_many_webhooks() -> ApiError {
    let conflict = Conflict::used_by(
        "the company has reached its maximum number of webhooks",
        "limit",
        [("webhook", WEBHOOKS_MAX)],
    );
    Refusal::Conflict(conflict).into()
}

/// `GET /webhooks/{webhookId}`.
pub async fn show(caller: Caller, _: EventsEnabled, app: Data<App>, id: PathId<WebhookId>) -> ApiResult<Json<Webhook>> {
    Ok(Json::of(find(&app, &caller, id.0).await?))
}

async fn find(app: &App, caller: &Caller, id: WebhookId) -> ApiResult<Webhook> {
    let webhook: Option<Webhook> = table::find(app.db(caller.company), caller.company, id).await?;
    webhook.ok_or_else(ApiError::not_found)
}

/// `PUT /webhooks/{webhookId}`.
pub async fn update(
    caller: Caller,
    _: EventsEnabled,
    app: Data<App>,
    id: PathId<WebhookId>,
    body: Body<WebhookChange>,
    idempotency: Idempotency,
) -> ApiResult<Json<Webhook>> {
    let columns = body.0.0;
    check_url(&app.webhooks, &columns)?;
    idempotency
        .transaction(app.db(caller.company), async |db| {
            // The previous types count as well as the new ones: another URL would receive the pending deliveries.
            if let Some(webhook) = table::find::<Webhook>(&mut *db, caller.company, id.0).await? {
                visibility::check_types(&caller, &webhook.types)?;
            }
            let updated = webhooks::update(db, caller.company, id.0, columns, owner(&caller)).await?;
            visibility::check_types(&caller, &updated.types)?;
            Ok(Json::of(updated))
        })
        .await
}

/// `DELETE /webhooks/{webhookId}`.
pub async fn remove(caller: Caller, _: EventsEnabled, app: Data<App>, id: PathId<WebhookId>) -> ApiResult<NoContent> {
    webhooks::remove(app.db(caller.company), caller.company, id.0).await?;
    Ok(NoContent)
}
