//! A company's API tokens. They are created, changed, rotated and revoked here and on the command line, and never with
//! a token.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use actix_web::web::Data;
use chrono::{DateTime, Utc};
use hotline_actors::{Conflict, Refusal, clock};
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::tokens::{self, NewToken, TOKENS_MAX, TokenFilter, TokenRow, TokenStatus};
use hotline_persistence::{CompanyId, Error, Timestamp, TokenId};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::extractors::Administrator;
use crate::api::directory::refresh_after;
use crate::app::App;
use crate::web::admission::permissions::Permitted;
use crate::web::request::addresses::{ALLOWED_IPS_MAX, AddressRange, allowed_ips};
use crate::web::request::values::{FutureTime, Name, Search};
use crate::web::response::reply::{Confidential, HasSecrets};
use crate::web::{
    ApiError, ApiResult, Body, Created, Fields, Filter, Idempotency, Input, Json, Page, Params, Patch, PathId, Query,
};

/// An API token, without its key.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// The id.
    pub id: TokenId,
    /// The name, shown in lists and events.
    #[schema(example = "Shop")]
    pub name: String,
    /// The beginning of its key.
    #[schema(example = "sk_live_4f0XkLmZ")]
    pub prefix: String,
    /// Whether the token is valid.
    pub status: TokenStatus,
    /// Allowed methods, by module.
    #[schema(example = json!({"tickets": ["GET", "POST"]}))]
    pub permissions: BTreeMap<String, BTreeSet<String>>,
    /// IPv4 addresses and ranges the token may be used from; empty for any.
    #[schema(example = json!(["203.0.113.0/24"]))]
    pub allowed_ips: Vec<String>,
    /// When the token expires; `null` for never.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last updated.
    pub updated_at: Timestamp,
}

impl From<TokenRow> for Token {
    fn from(row: TokenRow) -> Self {
        Self {
            status: row.status(clock::now()),
            id: row.id,
            name: row.name,
            prefix: row.prefix,
            permissions: row.permissions.0,
            allowed_ips: row.allowed_ips,
            expires_at: row.expires_at.map(Timestamp::from),
            revoked_at: row.revoked_at.map(Timestamp::from),
            last_used_at: row.last_used_at.map(Timestamp::from),
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// A token with its key, which is shown only once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenWithKey {
    /// The token.
    pub token: Token,
    /// The key, shown only once; `null` in the response to a retry.
    #[schema(nullable, example = "sk_live_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub key: String,
}

impl HasSecrets for TokenWithKey {
    const SECRETS: &'static [&'static str] = &["key"];
}

/// Filters of the list of tokens.
pub struct Filters(TokenFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        let search = query.filter::<Search>("search").map(|text| text.0);
        let status = query.filter("status");
        Self(TokenFilter { search, status, created: query.span("created"), updated: query.span("updated") })
    }
}

/// `GET /tokens`.
pub async fn list(administrator: Administrator, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<Token>> {
    let company = administrator.company;
    let rows = tokens::list(app.db(company), company, &query.filter.0, query.page).await?;
    Ok(Page::of(query.page, rows, Token::from))
}

async fn load_token(app: &App, company: CompanyId, id: TokenId) -> ApiResult<TokenRow> {
    table::find(app.db(company), company, id).await?.ok_or_else(ApiError::not_found)
}

/// `GET /tokens/{tokenId}`.
pub async fn show(administrator: Administrator, app: Data<App>, id: PathId<TokenId>) -> ApiResult<Json<Token>> {
    Ok(Json::of(load_token(&app, administrator.company, id.0).await?))
}

/// The body of `POST /tokens`.
pub struct TokenCreate {
    name: Name,
    permissions: Permitted,
    allowed_ips: Vec<String>,
    expires_at: Option<DateTime<Utc>>,
}

/// The ranges as they are stored; `None` if the field is absent or refused.
fn format_ranges(fields: &mut Fields<'_>, ranges: Option<Vec<AddressRange>>) -> Option<Vec<String>> {
    match allowed_ips(&ranges?) {
        Ok(entries) => Some(entries),
        Err(reason) => {
            fields.refuse("allowedIps", reason);
            None
        }
    }
}

/// Refuses a token without permissions.
fn require_permission(fields: &mut Fields<'_>, permissions: Option<Permitted>) -> Option<Permitted> {
    if permissions.as_ref().is_some_and(|permitted| permitted.0.is_empty()) {
        fields.refuse("permissions", "must grant at least one permission");
        return None;
    }
    permissions
}

impl Input for TokenCreate {
    fn name() -> Cow<'static, str> {
        "TokenCreate".into()
    }

    fn text() -> Option<String> {
        Some("A new token.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.required("name");
        let permissions = fields.required("permissions");
        let permissions = require_permission(fields, permissions);
        let ranges = fields.list("allowedIps", ALLOWED_IPS_MAX);
        let allowed_ips = format_ranges(fields, ranges).unwrap_or_default();
        let expires_at = fields.optional::<FutureTime>("expiresAt").map(|time| time.0);
        Some(Self { name: name?, permissions: permissions?, allowed_ips, expires_at })
    }
}

/// `POST /tokens`.
pub async fn create(
    administrator: Administrator,
    app: Data<App>,
    body: Body<TokenCreate>,
    idempotency: Idempotency,
) -> ApiResult<Confidential<Created<TokenWithKey>>> {
    let company = administrator.company;
    let TokenCreate { name, permissions, allowed_ips, expires_at } = body.0;
    let create = idempotency.transaction(app.db(company), async |db| {
        if tokens::has_max_tokens(&mut *db, company).await? {
            let limit_reached = Conflict::used_by(
                "the company has reached its maximum number of tokens",
                "limit",
                [("token", TOKENS_MAX)],
            );
            return Err(Refusal::Conflict(limit_reached).into());
        }
        let new_token = NewToken { name: &name.0, permissions: permissions.0, allowed_ips, expires_at };
        let (row, key) = tokens::insert(&mut *db, company, new_token).await?;
        Ok(Confidential(Created::of(TokenWithKey { token: row.into(), key })))
    });
    refresh_after(&app, company, create).await
}

/// The body of `PUT /tokens/{tokenId}`.
pub struct TokenUpdate(Columns);

impl Input for TokenUpdate {
    fn name() -> Cow<'static, str> {
        "TokenUpdate".into()
    }

    fn text() -> Option<String> {
        Some("Changes to a token.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut columns = Columns::default();
        if let Some(name) = fields.non_null::<Name>("name") {
            columns.set("name", name);
        }
        let permissions = fields.non_null::<Permitted>("permissions");
        if let Some(permissions) = require_permission(fields, permissions) {
            columns.set("permissions", json!(permissions.0));
        }
        let ranges = fields.changed_list("allowedIps", ALLOWED_IPS_MAX);
        if let Some(entries) = format_ranges(fields, ranges) {
            columns.set("allowedIps", entries);
        }
        match fields.patch::<FutureTime>("expiresAt") {
            Patch::Absent => {}
            Patch::Null => columns.set("expiresAt", serde_json::Value::Null),
            Patch::Value(time) => columns.set("expiresAt", json!(time.0)),
        }
        Some(Self(columns))
    }
}

/// Refuses changes to a revoked token.
fn check_not_revoked(row: &TokenRow) -> ApiResult<()> {
    if row.revoked_at.is_none() { Ok(()) } else { Err(revoked()) }
}

fn revoked() -> ApiError {
    ApiError::conflict("the token is revoked", json!({"state": "revoked", "reason": "revoked"}))
}

/// `PUT /tokens/{tokenId}`: takes effect with the next request.
pub async fn update(
    administrator: Administrator,
    app: Data<App>,
    id: PathId<TokenId>,
    body: Body<TokenUpdate>,
    idempotency: Idempotency,
) -> ApiResult<Json<Token>> {
    let company = administrator.company;
    check_not_revoked(&load_token(&app, company, id.0).await?)?;
    let update = idempotency.transaction(app.db(company), async |db| {
        let row: TokenRow = table::update(db, company, id.0, &body.0.0).await?;
        Ok(Json::of(row))
    });
    refresh_after(&app, company, update).await
}

/// `POST /tokens/{tokenId}/rotate`: the previous key becomes invalid at once.
pub async fn rotate(
    administrator: Administrator,
    app: Data<App>,
    id: PathId<TokenId>,
    idempotency: Idempotency,
) -> ApiResult<Confidential<Json<TokenWithKey>>> {
    let company = administrator.company;
    check_not_revoked(&load_token(&app, company, id.0).await?)?;
    let rotate = idempotency.transaction(app.db(company), async |db| {
        let rotated = tokens::rotate_in_company(db, company, id.0).await;
        let (row, key) = rotated.map_err(|error| match error {
            // Tokens are never deleted, so it has been revoked since the check.
            Error::NotFound(_) => revoked(),
            error => error.into(),
        })?;
        Ok(Confidential(Json::of(TokenWithKey { token: row.into(), key })))
    });
    refresh_after(&app, company, rotate).await
}

/// `POST /tokens/{tokenId}/revoke`: permanent, and effective at once. Repeating it changes nothing.
pub async fn revoke(
    administrator: Administrator,
    app: Data<App>,
    id: PathId<TokenId>,
    idempotency: Idempotency,
) -> ApiResult<Json<Token>> {
    let company = administrator.company;
    let revoke = idempotency.transaction(app.db(company), async |db| {
        let row: Option<TokenRow> = table::find(&mut *db, company, id.0).await?;
        let row = row.ok_or_else(ApiError::not_found)?;
        if row.revoked_at.is_some() {
            return Ok(Json::of(row));
        }
        let columns = Columns::from([("revokedAt", json!(clock::now()))]);
        let row: TokenRow = table::update(db, company, id.0, &columns).await?;
        Ok(Json::of(row))
    });
    refresh_after(&app, company, revoke).await
}
