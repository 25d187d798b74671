//! `GET …/config`: the widget's appearance, and the fields of its form.

use actix_web::HttpResponse;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::Data;
use hotline_persistence::tables::channels::{ChannelSettings, Position, PreChatField};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::Webchat;
use crate::app::App;
use crate::openapi::{DocumentedResponse, Operation, ResponseDescription};
use crate::web::response::reply::{Json, Reply};
use crate::web::response::schema::Schemas;

/// Default colour of a channel: white text on it has sufficient contrast (WCAG AA).
const DEFAULT_COLOR: &str = "#2563eb";

/// Browsers may cache a response only briefly, because it contains the current availability.
const CACHE_DIRECTIVES: &str = "public, max-age=15";

/// The widget's configuration.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WidgetConfig)]
pub(super) struct WidgetSettings<'a> {
    title: Option<&'a str>,
    color: &'a str,
    position: Position,
    greeting: Option<&'a str>,
    pre_chat_fields: &'a [PreChatField],
    /// Whether visitors must have a signed identity.
    identity_required: bool,
    attachments: Attachments,
    availability: Availability,
}

/// Whether a visitor can expect a reply.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WidgetAvailability)]
struct Availability {
    /// Whether an agent is available: in the last ten minutes, an active user of the channel's queue (without a queue:
    /// of the company) has used the panel, or an integration has replied on the channel.
    now: bool,
}

/// Attachments that a visitor may send.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WidgetAttachments)]
struct Attachments {
    /// Bytes of one file.
    bytes_max: u64,
}

impl<'a> WidgetSettings<'a> {
    fn of(webchat: &'a Webchat, app: &App) -> Self {
        let settings: &ChannelSettings = &webchat.settings;
        Self {
            title: settings.title.as_deref(),
            color: settings.color.as_deref().unwrap_or(DEFAULT_COLOR),
            position: settings.position.unwrap_or(Position::Right),
            greeting: settings.greeting.as_deref(),
            pre_chat_fields: &settings.pre_chat_fields,
            identity_required: settings.require_identity,
            attachments: Attachments { bytes_max: app.media.bytes_max() },
            availability: Availability {
                now: app.engine.attendance.is_attended(&webchat.organization, webchat.channel),
            },
        }
    }
}

impl ResponseDescription for WidgetSettings<'static> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.success = (Json::<Self>::STATUS, Json::<Self>::schema(schemas));
    }
}

/// `GET …/config`.
pub async fn show(webchat: Webchat, app: Data<App>) -> DocumentedResponse<WidgetSettings<'static>> {
    HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, CACHE_DIRECTIVES))
        .json(json!({"data": WidgetSettings::of(&webchat, &app)}))
        .into()
}
