//! Settings of a channel: a provider's credentials, or a webchat's origins and appearance.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ChannelType;
use crate::key::new_key;
use crate::sealed::Secret;
use crate::tables::text_enum;
use crate::{Error, Result};

/// Number of identity secrets that are valid at the same time: the new one and its predecessor.
const IDENTITY_SECRETS_MAX: usize = 2;

text_enum! {
    /// The side of the page where the widget opens.
    Position { Left = "left", Right = "right" }
}

text_enum! {
    /// A field that a webchat asks for before the conversation.
    PreChatField { Name = "name", Email = "email", Number = "number" }
}

/// The settings of a channel of any type; those that belong to other types are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChannelSettings {
    /// The number's id at the provider (whatsapp).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number_id: Option<String>,
    /// The id of the number's business account, whose templates it may send (whatsapp).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub business_account_id: Option<String>,
    /// The id of the page or account at the provider (messenger, instagram).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_id: Option<String>,
    /// The token with which Hotline authenticates to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token: Option<Secret>,
    /// The secret with which the provider signs its calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_secret: Option<Secret>,
    /// The token that the provider presents when its webhook is set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_token: Option<Secret>,
    /// The provider's base URL; `None`: the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_url: Option<String>,
    /// Whether `provider_url` was set on the command line. The operator's URL may lead into a private network; one that
    /// was set in the panel is checked on every call.
    #[serde(rename = "isProviderUrlOperators", skip_serializing_if = "std::ops::Not::not")]
    pub is_provider_url_from_operator: bool,
    /// Messages per second to all recipients, 0: unlimited; `None`: the installation's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sends_per_second: Option<u32>,
    /// Milliseconds between messages to one recipient, 0: none; `None`: the installation's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient_interval_ms: Option<u32>,
    /// Maximum messages in a burst to one recipient after a pause; `None`: the installation's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient_burst: Option<u32>,
    /// Origins that may embed the webchat, in the browsers' notation; empty: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_origins: Vec<String>,
    /// The webchat's colour, `#rrggbb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The title above the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The first text a visitor sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greeting: Option<String>,
    /// The side of the page on which the webchat opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Fields a visitor fills in before the conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pre_chat_fields: Vec<PreChatField>,
    /// The secrets with which the company's server signs its visitors' identities, newest first: the previous one stays
    /// valid, so that the server can switch without a gap.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identity_secrets: Vec<Secret>,
    /// Whether the webchat requires a signed identity.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_identity: bool,
    /// Settings of another release, which are preserved. They may be secret.
    #[serde(flatten)]
    pub other: UnknownSettings,
}

/// Settings of another release, unchanged.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnknownSettings(Map<String, Value>);

impl fmt::Debug for UnknownSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl ChannelSettings {
    /// Decodes stored settings.
    ///
    /// # Errors
    /// [`Error::Database`] when this release cannot read them.
    pub fn read(stored: &Value) -> Result<Self> {
        Self::deserialize(stored).map_err(|error| Error::Database(sqlx::Error::Decode(error.into())))
    }

    /// Whether a channel of this type has what it needs to reach its provider; a webchat has no provider.
    pub fn has_required_credentials(&self, kind: ChannelType) -> bool {
        let id = match kind {
            ChannelType::Whatsapp => &self.phone_number_id,
            ChannelType::Messenger | ChannelType::Instagram => &self.page_id,
            ChannelType::Webchat => return true,
        };
        id.is_some() && self.access_token.is_some() && self.app_secret.is_some() && self.verify_token.is_some()
    }

    /// Adds a new identity secret and returns it. The previous one stays valid if `keep_previous` is set; older ones
    /// are dropped.
    pub fn rotate_identity_secret(&mut self, keep_previous: bool) -> Secret {
        // RFC 7518 requires a key as long as the hash, 32 bytes. Two keys of these characters also have that much
        // entropy.
        let secret = Secret(format!("{}{}", new_key("ids_"), new_key("")));
        self.identity_secrets.truncate(if keep_previous { IDENTITY_SECRETS_MAX - 1 } else { 0 });
        self.identity_secrets.insert(0, secret.clone());
        secret
    }

    /// The settings that may be shown: no credentials, and nothing unknown to this release.
    pub fn into_visible(self) -> Self {
        let identity_secrets = Vec::new();
        Self {
            access_token: None,
            app_secret: None,
            verify_token: None,
            identity_secrets,
            other: UnknownSettings::default(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_keys_are_preserved_and_secrets_are_hidden() {
        let stored = json!({"pageId": "7", "accessToken": "hidden", "allowedOrigins": ["https://shop.example"],
            "position": "left", "preChatFields": ["name"], "identitySecrets": ["hidden"], "requireIdentity": true,
            "laterKey": {"also": "hidden"}});
        let settings = ChannelSettings::read(&stored).expect("settings");
        assert!(serde_json::to_value(&settings).is_err(), "a secret was serialized unsealed");
        let without = ChannelSettings { access_token: None, identity_secrets: Vec::new(), ..settings.clone() };
        assert_eq!(serde_json::to_value(&without).expect("json")["laterKey"], stored["laterKey"]);
        assert!(!format!("{settings:?}").contains("hidden"), "{settings:?}");
        let visible = serde_json::to_string(&settings.into_visible()).expect("json");
        assert!(!visible.contains("hidden") && visible.contains("\"pageId\":\"7\""), "{visible}");
    }

    #[test]
    fn at_most_two_identity_secrets_are_valid() {
        let mut settings = ChannelSettings::default();
        let first = settings.rotate_identity_secret(true);
        let second = settings.rotate_identity_secret(true);
        assert_eq!(settings.identity_secrets, [second.clone(), first.clone()]);
        assert!(second.0.len() >= 64 && second.0.starts_with("ids_") && second != first);
        let third = settings.rotate_identity_secret(true);
        assert_eq!(settings.identity_secrets, [third, second]);
        let fourth = settings.rotate_identity_secret(false);
        assert_eq!(settings.identity_secrets, [fourth]);
    }

    #[test]
    fn a_channel_needs_the_credentials_of_its_own_type() {
        let secret = || Some(Secret("x".to_owned()));
        let settings = ChannelSettings {
            phone_number_id: Some("1".to_owned()),
            access_token: secret(),
            app_secret: secret(),
            verify_token: secret(),
            ..ChannelSettings::default()
        };
        assert!(settings.has_required_credentials(ChannelType::Whatsapp));
        assert!(!settings.has_required_credentials(ChannelType::Messenger));
        let without = ChannelSettings { app_secret: None, ..settings };
        assert!(!without.has_required_credentials(ChannelType::Whatsapp));
        assert!(ChannelSettings::default().has_required_credentials(ChannelType::Webchat));
    }
}
