//! The setup of channels, for administrators only. Credentials can be written but are never returned.

mod secret;
mod setup;

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::tables::channels::{self, CHANNELS_MAX, ChannelRow, ChannelSettings, ChannelType, NewChannel};
use hotline_persistence::{ChannelId, QueueId};

pub use self::secret::rotate_secret;
use self::setup::{ChannelSetup, setup_of};
use super::extractors::Administrator;
use crate::api::directory::refresh_after;
use crate::app::App;
use crate::web::request::channel_settings::{ChannelSettingsInput, apply_patch};
use crate::web::request::values::Name;
use crate::web::{ApiError, ApiResult, Body, Created, Fields, Idempotency, Input, Json, Patch, PathId};

/// `GET /channels/{channelId}/setup`.
pub async fn show(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    id: PathId<ChannelId>,
) -> ApiResult<Json<ChannelSetup>> {
    let company = administrator.company;
    let row = channels::find(app.db(company), company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(Json::of(setup_of(&app, &request, row)))
}

/// The body of `POST /channels`.
pub struct ChannelCreate {
    kind: ChannelType,
    name: Name,
    queue: Option<QueueId>,
    input: ChannelSettingsInput,
}

impl Input for ChannelCreate {
    fn name() -> Cow<'static, str> {
        "ChannelCreate".into()
    }

    fn text() -> Option<String> {
        Some("A new channel. Fields that do not apply to its type are rejected.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (kind, name) = (fields.required("type"), fields.required("name"));
        let queue = fields.optional("queueId");
        let input = ChannelSettingsInput::of(fields);
        Some(Self { kind: kind?, name: name?, queue, input })
    }
}

/// `POST /channels`: the channel is connected once it has all settings its type requires.
pub async fn create(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    body: Body<ChannelCreate>,
    idempotency: Idempotency,
) -> ApiResult<Created<ChannelSetup>> {
    let ChannelCreate { kind, name, queue, input } = body.0;
    input.check(kind)?;
    let (mut number, mut settings) = (None, ChannelSettings::default());
    input.check_provider_url(administrator.is_installation_admin(), &settings)?;
    input.apply(&mut number, &mut settings);
    let company = administrator.company;
    let create = idempotency.transaction(app.db(company), async |db| {
        if channels::has_max_channels(&mut *db, company).await? {
            let limit_reached = Conflict::used_by(
                "the company has reached its maximum number of channels",
                "limit",
                [("channel", CHANNELS_MAX)],
            );
            return Err(Refusal::Conflict(limit_reached).into());
        }
        let new = NewChannel { name: &name.0, kind, number: number.as_deref(), queue_id: queue, settings };
        let row = channels::insert_in(db, &app.engine.store().keys, company, new).await?;
        Ok(Created::of(setup_of(&app, &request, row)))
    });
    refresh_after(&app, company, create).await
}

/// The body of `PUT /channels/{channelId}/setup`.
pub struct ChannelUpdate {
    name: Option<Name>,
    queue: Patch<QueueId>,
    input: ChannelSettingsInput,
}

impl Input for ChannelUpdate {
    fn name() -> Cow<'static, str> {
        "ChannelUpdate".into()
    }

    fn text() -> Option<String> {
        Some("Changes to a channel; `null` clears a setting.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (name, queue) = (fields.non_null("name"), fields.patch("queueId"));
        Some(Self { name, queue, input: ChannelSettingsInput::of(fields) })
    }
}

/// `PUT /channels/{channelId}/setup`.
pub async fn update(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    id: PathId<ChannelId>,
    body: Body<ChannelUpdate>,
    idempotency: Idempotency,
) -> ApiResult<Json<ChannelSetup>> {
    let ChannelUpdate { name, queue, input } = body.0;
    let (company, is_installation_admin) = (administrator.company, administrator.is_installation_admin());
    let change = |row: &mut ChannelRow, settings: &mut ChannelSettings| -> ApiResult<()> {
        input.check(row.kind)?;
        input.check_provider_url(is_installation_admin, settings)?;
        if let Some(name) = name {
            row.name = name.0;
        }
        apply_patch(&mut row.queue_id, queue, |queue| queue);
        let (is_token_new, has_credentials) = (input.has_new_token(), input.has_credentials());
        input.apply(&mut row.number, settings);
        if has_credentials {
            row.update_status(settings, is_token_new);
        }
        Ok(())
    };
    let update = idempotency.transaction(app.db(company), async |db| {
        let row = channels::update_in(db, &app.engine.store().keys, company, id.0, change).await?;
        Ok(Json::of(setup_of(&app, &request, row)))
    });
    refresh_after(&app, company, update).await
}
