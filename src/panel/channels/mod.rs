//! The setup of channels, for administrators only. Credentials can be written and are never returned.

mod given;
mod secret;
mod shown;

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, ChannelType, NewChannel};
use hotline_persistence::{ChannelId, CompanyId, QueueId};
use sqlx::PgConnection;

use self::given::{Given, put};
pub use self::secret::rotate_secret;
use self::shown::{ChannelSetup, shown};
use super::signed::Administrator;
use crate::api::directory::changed;
use crate::app::App;
use crate::web::values::Name;
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
    Ok(Json::of(shown(&app, &request, row)))
}

/// The body of `POST /channels`.
pub struct ChannelNew {
    kind: ChannelType,
    name: Name,
    queue: Option<QueueId>,
    given: Given,
}

impl Input for ChannelNew {
    fn name() -> Cow<'static, str> {
        "ChannelCreate".into()
    }

    fn text() -> Option<String> {
        Some("A new channel. Fields that do not apply to its type are rejected.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (kind, name) = (fields.required("type"), fields.required("name"));
        let queue = fields.optional("queueId");
        let given = Given::read(fields);
        Some(Self { kind: kind?, name: name?, queue, given })
    }
}

/// `POST /channels`: the channel is connected once it has all settings its type requires.
pub async fn create(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    body: Body<ChannelNew>,
    once: Idempotency,
) -> ApiResult<Created<ChannelSetup>> {
    let ChannelNew { kind, name, queue, given } = body.0;
    given.check(kind)?;
    let (mut number, mut settings) = (None, ChannelSettings::default());
    given.check_address(administrator.is_installer(), &settings)?;
    given.apply(&mut number, &mut settings);
    let company = administrator.company;
    let made = once.transaction(app.db(company), async |db| {
        let new = NewChannel { name: &name.0, kind, number: number.as_deref(), queue_id: queue, settings };
        let made = channels::insert_in(db, &app.engine.store().keys, company, new).await?;
        Ok(Created::of(shown(&app, &request, made)))
    });
    changed(&app, company, made).await
}

/// The body of `PUT /channels/{channelId}/setup`.
pub struct ChannelChange {
    name: Option<Name>,
    queue: Patch<QueueId>,
    given: Given,
}

impl Input for ChannelChange {
    fn name() -> Cow<'static, str> {
        "ChannelUpdate".into()
    }

    fn text() -> Option<String> {
        Some("Changes of a channel; `null` clears a setting.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (name, queue) = (fields.changed("name"), fields.patch("queueId"));
        Some(Self { name, queue, given: Given::read(fields) })
    }
}

/// Changes a channel of the company.
async fn change(
    db: &mut PgConnection,
    app: &App,
    (company, id): (CompanyId, ChannelId),
    change: impl FnOnce(&mut ChannelRow, &mut ChannelSettings) -> ApiResult<()>,
) -> ApiResult<ChannelRow> {
    let mine = |row: &mut ChannelRow, settings: &mut ChannelSettings| {
        // The statement looks channels up by id alone, so the company is checked here.
        if row.company_id == company { change(row, settings) } else { Err(ApiError::not_found()) }
    };
    channels::update_in(db, &app.engine.store().keys, id, mine).await
}

/// `PUT /channels/{channelId}/setup`.
pub async fn update(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    id: PathId<ChannelId>,
    body: Body<ChannelChange>,
    once: Idempotency,
) -> ApiResult<Json<ChannelSetup>> {
    let ChannelChange { name, queue, given } = body.0;
    let (company, is_installer) = (administrator.company, administrator.is_installer());
    let changes = |row: &mut ChannelRow, settings: &mut ChannelSettings| -> ApiResult<()> {
        given.check(row.kind)?;
        given.check_address(is_installer, settings)?;
        if let Some(name) = name {
            row.name = name.0;
        }
        put(&mut row.queue_id, queue, |queue| queue);
        let (is_token_new, are_given) = (matches!(given.access_token, Patch::Value(_)), given.has_credentials());
        given.apply(&mut row.number, settings);
        if are_given {
            row.credentials_changed(settings, is_token_new);
        }
        Ok(())
    };
    let update = once.transaction(app.db(company), async |db| {
        let row = change(db, &app, (company, id.0), changes).await?;
        Ok(Json::of(shown(&app, &request, row)))
    });
    changed(&app, company, update).await
}
