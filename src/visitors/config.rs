//! `GET …/config`: the look of the widget, and the fields it asks for.

use actix_web::HttpResponse;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::Data;
use hotline_persistence::tables::channels::{ChannelSettings, Position, PreChatField};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::Door;
use crate::app::App;
use crate::media::Media;
use crate::openapi::{Describes, Operation, Written};
use crate::web::reply::{Json, Reply};
use crate::web::schema::Schemas;

/// Default colour of a channel: white text on it has sufficient contrast (WCAG AA).
const COLOR: &str = "#2563eb";

/// How the widget looks, and what it asks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WidgetConfig)]
pub(super) struct Look<'a> {
    title: Option<&'a str>,
    color: &'a str,
    position: Position,
    greeting: Option<&'a str>,
    pre_chat_fields: &'a [PreChatField],
    /// Whether only visitors with a signed identity are let in.
    identity_required: bool,
    attachments: Attachments,
}

/// What a visitor may attach.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WidgetAttachments)]
struct Attachments {
    /// Bytes of one file.
    bytes_max: u64,
}

impl<'a> Look<'a> {
    fn of(settings: &'a ChannelSettings, media: &Media) -> Self {
        Self {
            title: settings.title.as_deref(),
            color: settings.color.as_deref().unwrap_or(COLOR),
            position: settings.position.unwrap_or(Position::Right),
            greeting: settings.greeting.as_deref(),
            pre_chat_fields: &settings.pre_chat_fields,
            identity_required: settings.require_identity,
            attachments: Attachments { bytes_max: media.bytes_max() },
        }
    }
}

impl Describes for Look<'static> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.success = (Json::<Self>::STATUS, Json::<Self>::schema(schemas));
    }
}

/// Returns it.
pub async fn show(door: Door, app: Data<App>) -> Written<Look<'static>> {
    HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "public, max-age=60"))
        .json(json!({"data": Look::of(&door.settings, &app.media)}))
        .into()
}
