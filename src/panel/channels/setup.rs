//! The setup of a channel as administrators see it: which secrets exist, but not their values.

use actix_web::HttpRequest;
use hotline_persistence::table::Named;
use hotline_persistence::tables::channels::{
    ChannelQuality, ChannelRow, ChannelSettings, ChannelStatus, ChannelType, Position, PreChatField,
};
use hotline_persistence::{ChannelId, QueueId, Timestamp};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::connections::origin;
use crate::web::request::channel_values::{embed_snippet, hook_url};

/// A channel's setup.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelSetup {
    /// The id.
    pub id: ChannelId,
    /// The name.
    #[schema(example = "Website")]
    pub name: String,
    /// The channel's type.
    #[serde(rename = "type")]
    pub kind: ChannelType,
    /// Whether the channel delivers messages.
    pub status: ChannelStatus,
    /// The last error; `null` if there is none.
    #[schema(example = "the access token has expired")]
    pub last_error: Option<String>,
    /// The quality of the number's messages, as its provider last reported it.
    pub quality: Option<ChannelQuality>,
    /// How many conversations the number may begin in a day, as its provider names that limit.
    #[schema(example = "TIER_10K")]
    pub messaging_limit: Option<String>,
    /// The phone number.
    #[schema(example = "5511999990000")]
    pub number: Option<String>,
    /// The queue of new tickets.
    pub queue: Option<Named<QueueId>>,
    /// The public key, which identifies the channel without an API token.
    #[schema(example = "ch_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub public_key: String,
    /// The HTML snippet that embeds the webchat; `null` for other channels.
    #[schema(example = "<script src=\"https://desk.example/webchat/ch_4f0X/widget.js\" async></script>")]
    pub embed: Option<String>,
    /// The callback URL to enter at the provider; `null` for a webchat.
    #[schema(example = "https://desk.example/hooks/ch_4f0X")]
    pub hook_url: Option<String>,
    /// The settings of its type, without secrets.
    pub settings: ChannelSettingsShown,
    /// Which secrets are set.
    pub secrets: ChannelSecrets,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last updated.
    pub updated_at: Timestamp,
}

/// The settings of a channel, without its secrets. Those that do not apply to its type are `null`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelSettingsShown {
    /// Id of the number at the provider (whatsapp).
    #[schema(example = "106540352")]
    pub phone_number_id: Option<String>,
    /// Id of the number's business account (whatsapp).
    #[schema(example = "102290129")]
    pub business_account_id: Option<String>,
    /// Id of the page or account at the provider (messenger, instagram).
    #[schema(example = "113355")]
    pub page_id: Option<String>,
    /// Base URL of the provider's API; `null` for the default.
    #[schema(example = "https://graph.facebook.com")]
    pub provider_url: Option<String>,
    /// Maximum messages per second to all recipients; 0 for no limit; `null` for the installation's default.
    #[schema(example = 20)]
    pub sends_per_second: Option<u32>,
    /// Minimum milliseconds between messages to one recipient; 0 for none; `null` for the installation's default.
    #[schema(example = 1000)]
    pub recipient_interval_ms: Option<u32>,
    /// Messages that may be sent to one recipient at once after a pause; `null` for the installation's default.
    #[schema(example = 5)]
    pub recipient_burst: Option<u32>,
    /// Websites that may embed the webchat.
    #[schema(example = json!(["https://shop.example"]))]
    pub allowed_origins: Vec<String>,
    /// The widget's colour.
    #[schema(example = "#0f766e")]
    pub color: Option<String>,
    /// The widget's title.
    #[schema(example = "Acme")]
    pub title: Option<String>,
    /// The text a visitor sees first.
    #[schema(example = "How can we help?")]
    pub greeting: Option<String>,
    /// The side of the page where the widget opens.
    #[schema(value_type = Option<String>, example = "right")]
    pub position: Option<Position>,
    /// Fields to ask a visitor for before the conversation.
    #[schema(value_type = Vec<String>, example = json!(["name"]))]
    pub pre_chat_fields: Vec<PreChatField>,
    /// Whether visitors must have an identity signed by the company's server.
    #[schema(example = false)]
    pub require_identity: bool,
}

impl From<ChannelSettings> for ChannelSettingsShown {
    fn from(settings: ChannelSettings) -> Self {
        Self {
            phone_number_id: settings.phone_number_id,
            business_account_id: settings.business_account_id,
            page_id: settings.page_id,
            provider_url: settings.provider_url,
            sends_per_second: settings.sends_per_second,
            recipient_interval_ms: settings.recipient_interval_ms,
            recipient_burst: settings.recipient_burst,
            allowed_origins: settings.allowed_origins,
            color: settings.color,
            title: settings.title,
            greeting: settings.greeting,
            position: settings.position,
            pre_chat_fields: settings.pre_chat_fields,
            require_identity: settings.require_identity,
        }
    }
}

/// Which secrets a channel has. Secrets are never returned.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelSecrets {
    /// Whether it has an access token for the provider.
    #[schema(example = true)]
    pub access_token: bool,
    /// Whether it has the app secret that signs the provider's calls.
    #[schema(example = true)]
    pub app_secret: bool,
    /// Whether it has a token to verify the webhook URL.
    #[schema(example = true)]
    pub verify_token: bool,
    /// Number of valid identity secrets.
    #[schema(example = 1)]
    pub identity_secrets: usize,
}

/// Converts a channel's row. Its URLs begin with the configured public URL, or else with the address of the caller's
/// request.
pub(super) fn setup_of(app: &App, request: &HttpRequest, row: ChannelRow) -> ChannelSetup {
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
    let settings = ChannelSettingsShown::from(row.visible_settings().unwrap_or_default());
    let is_webchat = row.kind == ChannelType::Webchat;
    let organization = app.engine.directory().company(row.company_id);
    let queue = organization
        .and_then(|organization| crate::api::references::queue(&organization, row.queue_id).map(Named::from));
    ChannelSetup {
        id: row.id,
        name: row.name,
        kind: row.kind,
        status: row.status,
        last_error: row.last_error,
        quality: row.quality,
        messaging_limit: row.messaging_limit,
        number: row.number,
        queue,
        embed: is_webchat.then(|| embed_snippet(&base, &row.public_key)),
        hook_url: (!is_webchat).then(|| hook_url(&base, &row.public_key)),
        public_key: row.public_key,
        settings,
        secrets,
        created_at: row.created_at.into(),
        updated_at: row.updated_at.into(),
    }
}
