//! Rotates a webchat's identity secret.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_persistence::ChannelId;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, ChannelType};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::api::directory::refresh_after;
use crate::app::App;
use crate::panel::extractors::Administrator;
use crate::web::response::reply::{Confidential, HasSecrets};
use crate::web::{ApiError, ApiResult, Body, Fields, Idempotency, Input, Json, PathId};

/// The body of `POST /channels/{channelId}/identity-secret`.
pub struct SecretRotation {
    revoke_previous: bool,
}

impl Input for SecretRotation {
    fn name() -> Cow<'static, str> {
        "IdentitySecretRotate".into()
    }

    fn text() -> Option<String> {
        Some("How to handle the previous secret.".to_owned())
    }

    const MAY_BE_EMPTY: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { revoke_previous: fields.optional("revokePrevious").unwrap_or(false) })
    }
}

/// A webchat's new identity secret, which is shown only once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentitySecret {
    /// The secret that signs visitors' identities, shown only once; `null` in the response to a retry.
    #[schema(nullable, example = "ids_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub identity_secret: String,
    /// Number of valid secrets.
    #[schema(example = 2)]
    pub identity_secrets: usize,
}

impl HasSecrets for IdentitySecret {
    const SECRETS: &'static [&'static str] = &["identitySecret"];
}

/// `POST /channels/{channelId}/identity-secret`. The previous secret remains valid until the next rotation, unless it
/// is revoked.
pub async fn rotate_secret(
    administrator: Administrator,
    app: Data<App>,
    id: PathId<ChannelId>,
    body: Body<SecretRotation>,
    idempotency: Idempotency,
) -> ApiResult<Confidential<Json<IdentitySecret>>> {
    let company = administrator.company;
    let rotation = idempotency.transaction(app.db(company), async |db| {
        let mut new_secret = None;
        let rotate = |row: &mut ChannelRow, settings: &mut ChannelSettings| -> ApiResult<()> {
            if row.kind != ChannelType::Webchat {
                let details = json!({"state": row.kind, "reason": "type"});
                return Err(ApiError::conflict("only webchat channels have an identity secret", details));
            }
            let secret = settings.rotate_identity_secret(!body.0.revoke_previous);
            new_secret =
                Some(IdentitySecret { identity_secret: secret.0, identity_secrets: settings.identity_secrets.len() });
            Ok(())
        };
        channels::update_in(db, &app.engine.store().keys, company, id.0, rotate).await?;
        new_secret
            .map(|new_secret| Confidential(Json::of(new_secret)))
            .ok_or_else(|| ApiError::internal("no secret was created"))
    });
    refresh_after(&app, company, rotation).await
}
