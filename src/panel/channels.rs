//! Channels with what only their administrators see. A credential is written and never shown.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_persistence::table::Named;
use hotline_persistence::tables::channels::{
    self, ChannelRow, ChannelSettings, ChannelStatus, ChannelType, NewChannel, Position, PreChatField,
};
use hotline_persistence::{ChannelId, CompanyId, QueueId, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::signed::Administrator;
use super::tokens::wrong;
use crate::api::directory::changed;
use crate::app::App;
use crate::web::channel_values::{
    Count, ORIGINS_MAX, ProviderUrl, WebOrigin, Word, embed_line, hook_url, settings, takes,
};
use crate::web::values::{Color, Name, Number, Text};
use crate::web::{ApiError, ApiResult, Body, Confidential, Created, Fields, Input, Json, Patch, PathId, origin};

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

/// Shown of a channel, as the service is reached by who asks.
async fn shown(app: &App, request: &HttpRequest, row: ChannelRow) -> ApiResult<ChannelSetup> {
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
    Ok(ChannelSetup {
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
    })
}

/// `GET /channels/{channelId}/setup`.
pub async fn show(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    id: PathId<ChannelId>,
) -> ApiResult<Json<ChannelSetup>> {
    let company = administrator.company;
    let row = channels::find(app.db(company), company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(Json::of(shown(&app, &request, row).await?))
}

/// What is given of a channel's settings.
struct Given {
    names: Vec<&'static str>,
    number: Patch<Number>,
    phone_number_id: Patch<Word>,
    business_account_id: Patch<Word>,
    page_id: Patch<Word>,
    access_token: Patch<Word>,
    app_secret: Patch<Word>,
    verify_token: Patch<Word>,
    provider_url: Patch<ProviderUrl>,
    sends_per_second: Patch<Count<0>>,
    recipient_interval_ms: Patch<Count<0>>,
    recipient_burst: Patch<Count<1>>,
    allowed_origins: Option<Vec<WebOrigin>>,
    color: Patch<Color>,
    title: Patch<Name>,
    greeting: Patch<Text>,
    position: Patch<Position>,
    pre_chat_fields: Option<Vec<PreChatField>>,
    require_identity: Option<bool>,
}

impl Given {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            names: settings().filter(|name| fields.has(name)).collect(),
            number: fields.patch("number"),
            phone_number_id: fields.patch("phoneNumberId"),
            business_account_id: fields.patch("businessAccountId"),
            page_id: fields.patch("pageId"),
            access_token: fields.patch("accessToken"),
            app_secret: fields.patch("appSecret"),
            verify_token: fields.patch("verifyToken"),
            provider_url: fields.patch("providerUrl"),
            sends_per_second: fields.patch("sendsPerSecond"),
            recipient_interval_ms: fields.patch("recipientIntervalMs"),
            recipient_burst: fields.patch("recipientBurst"),
            allowed_origins: fields.changed_list("allowedOrigins", ORIGINS_MAX),
            color: fields.patch("color"),
            title: fields.patch("title"),
            greeting: fields.patch("greeting"),
            position: fields.patch("position"),
            pre_chat_fields: fields.changed_list("preChatFields", PreChatField::ALL.len()),
            require_identity: fields.changed("requireIdentity"),
        }
    }

    /// Refuses what a channel of this type does not take.
    fn check(&self, kind: ChannelType) -> ApiResult<()> {
        let strange: Vec<_> = self.names.iter().filter(|name| !takes(kind, name)).collect();
        if strange.is_empty() {
            return Ok(());
        }
        let reason = format!("is nothing of a {} channel", kind.as_str());
        let errors = strange
            .into_iter()
            .map(|name| hotline_actors::FieldError { field: (*name).to_owned(), reason: reason.clone() });
        Err(ApiError::validation(&errors.collect::<Vec<_>>()))
    }

    /// Whether something is given that decides whether the provider is reached.
    fn has_credentials(&self) -> bool {
        let words = [&self.phone_number_id, &self.page_id, &self.access_token, &self.app_secret, &self.verify_token];
        words.iter().any(|word| !matches!(word, Patch::Absent))
    }

    fn apply(self, number: &mut Option<String>, settings: &mut ChannelSettings) {
        put(number, self.number, |number| number.0);
        put(&mut settings.phone_number_id, self.phone_number_id, |word| word.0);
        put(&mut settings.business_account_id, self.business_account_id, |word| word.0);
        put(&mut settings.page_id, self.page_id, |word| word.0);
        put(&mut settings.access_token, self.access_token, Word::into_secret);
        put(&mut settings.app_secret, self.app_secret, Word::into_secret);
        put(&mut settings.verify_token, self.verify_token, Word::into_secret);
        put(&mut settings.provider_url, self.provider_url, |url| url.0);
        put(&mut settings.sends_per_second, self.sends_per_second, |count| count.0);
        put(&mut settings.recipient_interval_ms, self.recipient_interval_ms, |count| count.0);
        put(&mut settings.recipient_burst, self.recipient_burst, |count| count.0);
        put(&mut settings.color, self.color, |color| color.0);
        put(&mut settings.title, self.title, |title| title.0);
        put(&mut settings.greeting, self.greeting, |text| text.0);
        put(&mut settings.position, self.position, |position| position);
        if let Some(origins) = self.allowed_origins {
            settings.allowed_origins = each_once(origins.into_iter().map(|origin| origin.0));
        }
        if let Some(asked) = self.pre_chat_fields {
            settings.pre_chat_fields = each_once(asked);
        }
        settings.require_identity = self.require_identity.unwrap_or(settings.require_identity);
    }
}

fn put<G, T>(place: &mut Option<T>, given: Patch<G>, read: impl FnOnce(G) -> T) {
    match given {
        Patch::Absent => {}
        Patch::Null => *place = None,
        Patch::Value(value) => *place = Some(read(value)),
    }
}

fn each_once<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    values.into_iter().fold(Vec::new(), |mut kept, value| {
        if !kept.contains(&value) {
            kept.push(value);
        }
        kept
    })
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
        Some("A channel to be created. What its type does not take is refused.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (kind, name) = (fields.required("type"), fields.required("name"));
        let queue = fields.optional("queueId");
        let given = Given::read(fields);
        Some(Self { kind: kind?, name: name?, queue, given })
    }
}

/// `POST /channels`: connected once it has all its type needs.
pub async fn create(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    body: Body<ChannelNew>,
) -> ApiResult<Created<ChannelSetup>> {
    let ChannelNew { kind, name, queue, given } = body.0;
    given.check(kind)?;
    let (mut number, mut settings) = (None, ChannelSettings::default());
    given.apply(&mut number, &mut settings);
    let company = administrator.company;
    let made = changed(&app, company, async {
        let new = NewChannel { name: &name.0, kind, number: number.as_deref(), queue_id: queue, settings };
        Ok(channels::insert(app.db(company), &app.engine.store().keys, company, new).await?)
    });
    let made = made.await?;
    Ok(Created::of(shown(&app, &request, made).await?))
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
        Some("What changes of a channel; `null` takes away what was there.".to_owned())
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (name, queue) = (fields.changed("name"), fields.patch("queueId"));
        Some(Self { name, queue, given: Given::read(fields) })
    }
}

/// Changes a channel of the company.
async fn change(
    app: &App,
    company: CompanyId,
    id: ChannelId,
    change: impl FnOnce(&mut ChannelRow, &mut ChannelSettings) -> ApiResult<()>,
) -> ApiResult<ChannelRow> {
    changed(app, company, async {
        let store = app.engine.store();
        let mine = |row: &mut ChannelRow, settings: &mut ChannelSettings| {
            // The statement finds it by its id alone; another company's is none.
            if row.company_id == company { change(row, settings) } else { Err(ApiError::not_found()) }
        };
        channels::update(store.db(company), &store.keys, id, mine).await
    })
    .await
}

/// `PUT /channels/{channelId}/setup`.
pub async fn update(
    administrator: Administrator,
    app: Data<App>,
    request: HttpRequest,
    id: PathId<ChannelId>,
    body: Body<ChannelChange>,
) -> ApiResult<Json<ChannelSetup>> {
    let ChannelChange { name, queue, given } = body.0;
    let row = change(&app, administrator.company, id.0, |row, settings| {
        given.check(row.kind)?;
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
    });
    let row = row.await?;
    Ok(Json::of(shown(&app, &request, row).await?))
}

/// The body of `POST /channels/{channelId}/identity-secret`.
pub struct SecretRotation {
    revoke_previous: bool,
}

impl Input for SecretRotation {
    fn name() -> Cow<'static, str> {
        "IdentitySecretRotate".into()
    }

    fn text() -> Option<String> {
        Some("What becomes of the secret before.".to_owned())
    }

    const MAY_BE_EMPTY: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { revoke_previous: fields.optional("revokePrevious").unwrap_or(false) })
    }
}

/// A webchat's new identity secret, which nobody can read again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentitySecret {
    /// What the company's server signs its visitors' identities with, shown once.
    #[schema(example = "ids_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub identity_secret: String,
    /// How many are good now.
    #[schema(example = 2)]
    pub identity_secrets: usize,
}

/// `POST /channels/{channelId}/identity-secret`. The one before stays good until the next is made, unless it is to go.
pub async fn rotate_secret(
    administrator: Administrator,
    app: Data<App>,
    id: PathId<ChannelId>,
    body: Body<SecretRotation>,
) -> ApiResult<Confidential<Json<IdentitySecret>>> {
    let mut made = None;
    change(&app, administrator.company, id.0, |row, settings| {
        if row.kind != ChannelType::Webchat {
            let details = json!({"state": row.kind, "reason": "type"});
            return Err(ApiError::conflict("an identity secret is of a webchat", details));
        }
        let secret = settings.rotate_identity_secret(!body.0.revoke_previous);
        made = Some(IdentitySecret { identity_secret: secret.0, identity_secrets: settings.identity_secrets.len() });
        Ok(())
    })
    .await?;
    made.map(|made| Confidential(Json::of(made))).ok_or_else(|| wrong("revokePrevious", "was not read"))
}
