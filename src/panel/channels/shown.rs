//! The setup of a channel as administrators see it: which secrets exist, but not their values.

use actix_web::HttpRequest;
use hotline_persistence::table::Named;
use hotline_persistence::tables::channels::{ChannelRow, ChannelStatus, ChannelType, Position, PreChatField};
use hotline_persistence::{ChannelId, QueueId, Timestamp};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::channel_values::{embed_line, hook_url};
use crate::web::origin;

/// A channel as it is set up.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelSetup {
    /// Its id.
    pub id: ChannelId,
    /// What it is called.
    #[schema(example = "Website")]
    pub name: String,
    /// What it speaks.
    #[serde(rename = "type")]
    pub kind: ChannelType,
    /// Whether it delivers.
    pub status: ChannelStatus,
    /// What went wrong last.
    #[schema(example = "the access token has expired")]
    pub last_error: Option<String>,
    /// Its phone number.
    #[schema(example = "5511999990000")]
    pub number: Option<String>,
    /// Where new tickets go.
    pub queue: Option<Named<QueueId>>,
    /// What names it where no token is held.
    #[schema(example = "ch_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub public_key: String,
    /// The line that a page embeds the webchat by; none of other channels.
    #[schema(example = "<script src=\"https://desk.example/webchat/ch_4f0X/widget.js\" async></script>")]
    pub embed: Option<String>,
    /// What is entered at the provider as the callback URL; none of a webchat.
    #[schema(example = "https://desk.example/hooks/ch_4f0X")]
    pub hook_url: Option<String>,
    /// What its type takes, without its secrets.
    pub settings: ChannelSettingsShown,
    /// Which secrets are there.
    pub secrets: ChannelSecrets,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// The settings of a channel, without its secrets. Those that its type does not take are none.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelSettingsShown {
    /// Names the number at the provider (whatsapp).
    #[schema(example = "106540352")]
    pub phone_number_id: Option<String>,
    /// Names the business account of the number (whatsapp).
    #[schema(example = "102290129")]
    pub business_account_id: Option<String>,
    /// Names the page or account at the provider (messenger, instagram).
    #[schema(example = "113355")]
    pub page_id: Option<String>,
    /// Where the provider is called; none: its usual address.
    #[schema(example = "https://graph.facebook.com")]
    pub provider_url: Option<String>,
    /// Messages a second to all recipients together; 0: as many as go; none: the installation's.
    #[schema(example = 20)]
    pub sends_per_second: Option<u32>,
    /// Milliseconds between messages to one recipient; 0: none; none: the installation's.
    #[schema(example = 1000)]
    pub recipient_interval_ms: Option<u32>,
    /// Messages to one recipient that may go at once after a pause; none: the installation's.
    #[schema(example = 5)]
    pub recipient_burst: Option<u32>,
    /// Websites that may embed the webchat.
    #[schema(example = json!(["https://shop.example"]))]
    pub allowed_origins: Vec<String>,
    /// The webchat's colour.
    #[schema(example = "#0f766e")]
    pub color: Option<String>,
    /// What stands above the conversation.
    #[schema(example = "Acme")]
    pub title: Option<String>,
    /// What a visitor reads first.
    #[schema(example = "How can we help?")]
    pub greeting: Option<String>,
    /// The side of the page it opens on.
    #[schema(value_type = Option<String>, example = "right")]
    pub position: Option<Position>,
    /// What a visitor is asked before the conversation.
    #[schema(value_type = Vec<String>, example = json!(["name"]))]
    pub pre_chat_fields: Vec<PreChatField>,
    /// Whether nobody is let in without an identity that the company's server has signed.
    #[schema(example = false)]
    pub require_identity: bool,
}

/// Which secrets a channel has; none is ever shown.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelSecrets {
    /// What Hotline shows to the provider.
    #[schema(example = true)]
    pub access_token: bool,
    /// What the provider signs its calls with.
    #[schema(example = true)]
    pub app_secret: bool,
    /// What the provider shows when it is pointed to Hotline.
    #[schema(example = true)]
    pub verify_token: bool,
    /// How many identity secrets are good.
    #[schema(example = 1)]
    pub identity_secrets: usize,
}

/// Converts a channel; its URLs use the address under which the caller reaches the service.
pub(super) fn shown(app: &App, request: &HttpRequest, row: ChannelRow) -> ChannelSetup {
    let base = match app.media.public_url() {
        Some(base) => base.to_owned(),
        None => origin::site(request, &app.trusted_proxies).unwrap_or_default(),
    };
    let has = |field: &str| row.settings.get(field).is_some_and(|value| !value.is_null());
    let secrets = ChannelSecrets {
        access_token: has("accessToken"),
        app_secret: has("appSecret"),
        verify_token: has("verifyToken"),
        identity_secrets: row.settings.get("identitySecrets").and_then(Value::as_array).map_or(0, Vec::len),
    };
    let known = row.settings_shown().unwrap_or_default();
    let is_webchat = row.kind == ChannelType::Webchat;
    let organization = app.engine.directory().company(row.company_id);
    let queue = organization.and_then(|known| crate::api::named::queue(&known, row.queue_id).map(Named::from));
    ChannelSetup {
        id: row.id,
        name: row.name,
        kind: row.kind,
        status: row.status,
        last_error: row.last_error,
        number: row.number,
        queue,
        embed: is_webchat.then(|| embed_line(&base, &row.public_key)),
        hook_url: (!is_webchat).then(|| hook_url(&base, &row.public_key)),
        public_key: row.public_key,
        settings: ChannelSettingsShown {
            phone_number_id: known.phone_number_id,
            business_account_id: known.business_account_id,
            page_id: known.page_id,
            provider_url: known.provider_url,
            sends_per_second: known.sends_per_second,
            recipient_interval_ms: known.recipient_interval_ms,
            recipient_burst: known.recipient_burst,
            allowed_origins: known.allowed_origins,
            color: known.color,
            title: known.title,
            greeting: known.greeting,
            position: known.position,
            pre_chat_fields: known.pre_chat_fields,
            require_identity: known.require_identity,
        },
        secrets,
        created_at: row.created_at.into(),
        updated_at: row.updated_at.into(),
    }
}
