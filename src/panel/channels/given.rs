//! The settings in a request, and how they change a channel.

use hotline_actors::FieldError;
use hotline_persistence::tables::channels::{ChannelSettings, ChannelType, Position, PreChatField};

use crate::web::channel_values::{Count, ORIGINS_MAX, ProviderId, ProviderUrl, WebOrigin, Word, settings, takes};
use crate::web::values::{Color, Name, Number, Text};
use crate::web::{ApiError, ApiResult, Fields, Patch};

/// The given settings of a channel.
pub(super) struct Given {
    names: Vec<&'static str>,
    number: Patch<Number>,
    phone_number_id: Patch<ProviderId>,
    business_account_id: Patch<ProviderId>,
    page_id: Patch<ProviderId>,
    pub(super) access_token: Patch<Word>,
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
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
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

    /// Refuses settings that a channel of this type does not have.
    pub(super) fn check(&self, kind: ChannelType) -> ApiResult<()> {
        let strange: Vec<_> = self.names.iter().filter(|name| !takes(kind, name)).collect();
        if strange.is_empty() {
            return Ok(());
        }
        let reason = format!("does not apply to a {} channel", kind.as_str());
        let errors = strange.into_iter().map(|name| FieldError { field: (*name).to_owned(), reason: reason.clone() });
        Err(ApiError::validation(&errors.collect::<Vec<_>>()))
    }

    /// Whether any given setting affects the connection to the provider.
    pub(super) fn has_credentials(&self) -> bool {
        let ids = [&self.phone_number_id, &self.page_id];
        let words = [&self.access_token, &self.app_secret, &self.verify_token];
        ids.iter().any(|id| !matches!(id, Patch::Absent)) || words.iter().any(|word| !matches!(word, Patch::Absent))
    }

    /// Refuses another address of the provider, unless an administrator of the installation gives it, and with it the
    /// access token anew: the token that is stored was meant for the address before.
    pub(super) fn check_address(&self, is_installer: bool, settings: &ChannelSettings) -> ApiResult<()> {
        let given = match &self.provider_url {
            Patch::Absent => return Ok(()),
            Patch::Null => None,
            Patch::Value(url) => Some(&url.0),
        };
        if given == settings.provider_url.as_ref() {
            return Ok(());
        }
        if !is_installer {
            return Err(ApiError::installation_admins_only("providerUrl"));
        }
        if settings.access_token.is_some() && matches!(self.access_token, Patch::Absent) {
            let reason = "must be given again when providerUrl changes".to_owned();
            return Err(ApiError::validation(&[FieldError { field: "accessToken".to_owned(), reason }]));
        }
        Ok(())
    }

    pub(super) fn apply(self, number: &mut Option<String>, settings: &mut ChannelSettings) {
        put(number, self.number, |number| number.0);
        put(&mut settings.phone_number_id, self.phone_number_id, |id| id.0);
        put(&mut settings.business_account_id, self.business_account_id, |id| id.0);
        put(&mut settings.page_id, self.page_id, |id| id.0);
        put(&mut settings.access_token, self.access_token, Word::into_secret);
        put(&mut settings.app_secret, self.app_secret, Word::into_secret);
        put(&mut settings.verify_token, self.verify_token, Word::into_secret);
        let address = settings.provider_url.clone();
        put(&mut settings.provider_url, self.provider_url, |url| url.0);
        // What the panel gives is checked whenever it is called; only the command line's is taken on trust.
        settings.is_provider_url_operators &= settings.provider_url == address;
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

pub(super) fn put<G, T>(place: &mut Option<T>, given: Patch<G>, read: impl FnOnce(G) -> T) {
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
