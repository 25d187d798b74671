//! Changes to a channel's settings, as the panel and the command line request them.

use std::borrow::Cow;

use hotline_actors::FieldError;
use hotline_persistence::tables::channels::{ChannelSettings, ChannelType, Position, PreChatField};

use super::channel_values::{Count, Credential, ORIGINS_MAX, ProviderId, ProviderUrl, SETTINGS, WebOrigin};
use super::fields::{Fields, Input, Patch};
use super::values::{Color, Name, Number, Text};
use crate::web::{ApiError, ApiResult};

/// The settings of a request. Settings that are absent do not change.
pub struct ChannelSettingsInput {
    /// The settings that are present and not `null`.
    present_names: Vec<&'static str>,
    number: Patch<Number>,
    phone_number_id: Patch<ProviderId>,
    business_account_id: Patch<ProviderId>,
    page_id: Patch<ProviderId>,
    access_token: Patch<Credential>,
    app_secret: Patch<Credential>,
    verify_token: Patch<Credential>,
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

impl Input for ChannelSettingsInput {
    fn name() -> Cow<'static, str> {
        "ChannelSettingsInput".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self::of(fields))
    }
}

impl ChannelSettingsInput {
    /// Reads the settings among the fields of a body.
    pub fn of(fields: &mut Fields<'_>) -> Self {
        Self {
            present_names: SETTINGS.iter().map(|setting| setting.name).filter(|name| fields.has(name)).collect(),
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
            require_identity: fields.non_null("requireIdentity"),
        }
    }

    /// Refuses settings that a channel of this type does not have.
    ///
    /// # Errors
    /// `422` with each such setting.
    pub fn check(&self, kind: ChannelType) -> ApiResult<()> {
        let inapplicable =
            SETTINGS.iter().filter(|setting| self.present_names.contains(&setting.name) && !setting.applies_to(kind));
        let reason = format!("does not apply to a {} channel", kind.as_str());
        let errors = inapplicable.map(|setting| FieldError { field: setting.name.to_owned(), reason: reason.clone() });
        match errors.collect::<Vec<_>>() {
            errors if errors.is_empty() => Ok(()),
            errors => Err(ApiError::validation(&errors)),
        }
    }

    /// Whether the settings include an id or credential that decides whether the channel is connected.
    pub fn has_credentials(&self) -> bool {
        let ids = [&self.phone_number_id, &self.page_id];
        let credentials = [&self.access_token, &self.app_secret, &self.verify_token];
        ids.iter().any(|id| !matches!(id, Patch::Absent))
            || credentials.iter().any(|credential| !matches!(credential, Patch::Absent))
    }

    /// Whether the settings include a new access token.
    pub fn has_new_token(&self) -> bool {
        matches!(self.access_token, Patch::Value(_))
    }

    /// Whether the settings include the provider's URL, or `null` to restore the default one.
    pub fn has_provider_url(&self) -> bool {
        !matches!(self.provider_url, Patch::Absent)
    }

    /// Refuses a different provider URL, unless an administrator of the installation sets it. The same request must
    /// replace or clear a stored access token, which was meant for the previous URL.
    ///
    /// # Errors
    /// `403` for anyone else, `422` if the stored token would remain.
    pub fn check_provider_url(&self, is_installation_admin: bool, settings: &ChannelSettings) -> ApiResult<()> {
        let url = match &self.provider_url {
            Patch::Absent => return Ok(()),
            Patch::Null => None,
            Patch::Value(url) => Some(&url.0),
        };
        if url == settings.provider_url.as_ref() {
            return Ok(());
        }
        if !is_installation_admin {
            return Err(ApiError::installation_admins_only("providerUrl"));
        }
        if settings.access_token.is_some() && matches!(self.access_token, Patch::Absent) {
            let reason = "must be given again when providerUrl changes".to_owned();
            return Err(ApiError::validation(&[FieldError { field: "accessToken".to_owned(), reason }]));
        }
        Ok(())
    }

    /// Changes a channel's number and settings.
    pub fn apply(self, number: &mut Option<String>, settings: &mut ChannelSettings) {
        apply_patch(number, self.number, |number| number.0);
        apply_patch(&mut settings.phone_number_id, self.phone_number_id, |id| id.0);
        apply_patch(&mut settings.business_account_id, self.business_account_id, |id| id.0);
        apply_patch(&mut settings.page_id, self.page_id, |id| id.0);
        apply_patch(&mut settings.access_token, self.access_token, Credential::into_secret);
        apply_patch(&mut settings.app_secret, self.app_secret, Credential::into_secret);
        apply_patch(&mut settings.verify_token, self.verify_token, Credential::into_secret);
        let previous_url = settings.provider_url.clone();
        apply_patch(&mut settings.provider_url, self.provider_url, |url| url.0);
        // The operator's URL is trusted; a new one from the panel is checked on every call. The command line sets the
        // flag itself.
        settings.is_provider_url_from_operator &= settings.provider_url == previous_url;
        apply_patch(&mut settings.sends_per_second, self.sends_per_second, |count| count.0);
        apply_patch(&mut settings.recipient_interval_ms, self.recipient_interval_ms, |count| count.0);
        apply_patch(&mut settings.recipient_burst, self.recipient_burst, |count| count.0);
        apply_patch(&mut settings.color, self.color, |color| color.0);
        apply_patch(&mut settings.title, self.title, |title| title.0);
        apply_patch(&mut settings.greeting, self.greeting, |text| text.0);
        apply_patch(&mut settings.position, self.position, |position| position);
        if let Some(origins) = self.allowed_origins {
            settings.allowed_origins = deduplicate(origins.into_iter().map(|origin| origin.0));
        }
        if let Some(fields) = self.pre_chat_fields {
            settings.pre_chat_fields = deduplicate(fields);
        }
        settings.require_identity = self.require_identity.unwrap_or(settings.require_identity);
    }
}

/// Changes a value: absent keeps it, `null` clears it.
pub fn apply_patch<G, T>(target: &mut Option<T>, patch: Patch<G>, convert: impl FnOnce(G) -> T) {
    match patch {
        Patch::Absent => {}
        Patch::Null => *target = None,
        Patch::Value(value) => *target = Some(convert(value)),
    }
}

fn deduplicate<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    values.into_iter().fold(Vec::new(), |mut unique, value| {
        if !unique.contains(&value) {
            unique.push(value);
        }
        unique
    })
}
