//! The names and value types of a channel's settings, as the panel and the command line accept them.

use hotline_persistence::tables::channels::ChannelType::{self, Instagram, Messenger, Webchat, Whatsapp};
use hotline_persistence::tables::channels::Secret;
use serde_json::{Value, json};
use url::Url;

use super::origins;
use super::values::FromField;
use crate::web_address;

/// Maximum length of a provider's credential, in bytes.
pub const CREDENTIAL_BYTES_MAX: usize = 4096;

/// Maximum length of the id of an account at a provider, in digits. Real ones have fewer than twenty.
const PROVIDER_ID_DIGITS_MAX: usize = 32;

/// Upper bound for counts: a larger number is a typing error.
pub const COUNT_MAX: u32 = 1_000_000;

/// Maximum number of websites that may embed a webchat.
pub const ORIGINS_MAX: usize = 100;

const PHONE: &[ChannelType] = &[Whatsapp];
const SOCIAL: &[ChannelType] = &[Messenger, Instagram];
const WITH_PROVIDER: &[ChannelType] = &[Whatsapp, Messenger, Instagram];
const WEBSITE: &[ChannelType] = &[Webchat];

/// A setting of a channel.
pub struct Setting {
    /// Its field in a body.
    pub name: &'static str,
    /// Its option on the command line.
    pub option: &'static str,
    /// The channel types that accept it.
    kinds: &'static [ChannelType],
}

impl Setting {
    /// Whether a channel of this type accepts the setting.
    pub fn applies_to(&self, kind: ChannelType) -> bool {
        self.kinds.contains(&kind)
    }
}

/// All settings.
pub const SETTINGS: [Setting; 18] = [
    Setting { name: "number", option: "--number", kinds: PHONE },
    Setting { name: "phoneNumberId", option: "--phone-number-id", kinds: PHONE },
    Setting { name: "businessAccountId", option: "--business-account-id", kinds: PHONE },
    Setting { name: "pageId", option: "--page-id", kinds: SOCIAL },
    Setting { name: "accessToken", option: "--access-token", kinds: WITH_PROVIDER },
    Setting { name: "appSecret", option: "--app-secret", kinds: WITH_PROVIDER },
    Setting { name: "verifyToken", option: "--verify-token", kinds: WITH_PROVIDER },
    Setting { name: "providerUrl", option: "--provider-url", kinds: WITH_PROVIDER },
    Setting { name: "sendsPerSecond", option: "--sends-per-second", kinds: WITH_PROVIDER },
    Setting { name: "recipientIntervalMs", option: "--recipient-interval", kinds: WITH_PROVIDER },
    Setting { name: "recipientBurst", option: "--recipient-burst", kinds: WITH_PROVIDER },
    Setting { name: "allowedOrigins", option: "--allow-origin", kinds: WEBSITE },
    Setting { name: "color", option: "--color", kinds: WEBSITE },
    Setting { name: "title", option: "--title", kinds: WEBSITE },
    Setting { name: "greeting", option: "--greeting", kinds: WEBSITE },
    Setting { name: "position", option: "--position", kinds: WEBSITE },
    Setting { name: "preChatFields", option: "--pre-chat-field", kinds: WEBSITE },
    Setting { name: "requireIdentity", option: "--require-identity", kinds: WEBSITE },
];

/// A credential of a provider: one word without whitespace.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(pub String);

impl Credential {
    /// Parses a credential.
    ///
    /// # Errors
    /// A phrase that follows the field's name; it never contains the value itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.contains(|character: char| character.is_whitespace() || character.is_control()) {
            Err("must be one word".to_owned())
        } else if text.len() > CREDENTIAL_BYTES_MAX {
            Err(format!("must have at most {CREDENTIAL_BYTES_MAX} bytes"))
        } else if text.is_empty() {
            Err("must not be blank".to_owned())
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// The value as a secret.
    pub fn into_secret(self) -> Secret {
        Secret(self.0)
    }
}

impl FromField for Credential {
    fn from_json(value: &Value) -> Result<Self, String> {
        Self::parse(value.as_str().ok_or("must be a string")?)
    }

    fn schema() -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": CREDENTIAL_BYTES_MAX, "pattern": r"^\s*\S+\s*$", "example": "EAAGm0PX4ZCpsBA"})
    }

    const IS_TEXT: bool = true;
}

/// The id of an account at a provider. It becomes a part of the paths of requests, so it has digits only.
pub struct ProviderId(pub String);

impl FromField for ProviderId {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or("must be a string")?.trim();
        if text.is_empty() {
            Err("must not be blank".to_owned())
        } else if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            Err("must have digits only".to_owned())
        } else if text.len() > PROVIDER_ID_DIGITS_MAX {
            Err(format!("must have at most {PROVIDER_ID_DIGITS_MAX} digits"))
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    fn schema() -> Value {
        let pattern = format!(r"^\s*[0-9]{{1,{PROVIDER_ID_DIGITS_MAX}}}\s*$");
        json!({"type": "string", "pattern": pattern, "example": "106540352"})
    }

    const IS_TEXT: bool = true;
}

/// The provider's base URL. Paths are appended to it, so it ends without a slash.
pub struct ProviderUrl(pub String);

impl FromField for ProviderUrl {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or("must be a string")?.trim();
        let url = parse_plain_url(text).filter(|url| url.query().is_none() && url.fragment().is_none());
        let url = url.ok_or("must be a URL that starts with https:// or http://")?;
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }

    fn schema() -> Value {
        json!({"type": "string", "format": "uri", "example": "https://graph.facebook.com"})
    }

    const IS_TEXT: bool = true;
}

fn parse_plain_url(text: &str) -> Option<Url> {
    // The URL parser is made for browsers and silently corrects mistakes; these are reported instead.
    let has_scheme = ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme));
    let is_plain = !text.contains(|character: char| character.is_whitespace() || character == '\\' || character == '@');
    web_address::parse(text).ok().filter(|_| has_scheme && is_plain)
}

/// A website that may embed a webchat.
#[derive(PartialEq, Eq)]
pub struct WebOrigin(pub String);

impl FromField for WebOrigin {
    fn from_json(value: &Value) -> Result<Self, String> {
        origins::normalize(value.as_str().ok_or("must be a string")?.trim()).map(Self)
    }

    fn schema() -> Value {
        json!({"type": "string", "example": "https://shop.example"})
    }
}

/// A whole number from `MIN` to [`COUNT_MAX`].
pub struct Count<const MIN: u32>(pub u32);

impl<const MIN: u32> FromField for Count<MIN> {
    fn from_json(value: &Value) -> Result<Self, String> {
        let number = match value {
            Value::String(text) => text.trim().parse().ok(),
            number => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        let number = number.filter(|number| (MIN..=COUNT_MAX).contains(number));
        number.map(Self).ok_or_else(|| format!("must be a whole number from {MIN} to {COUNT_MAX}"))
    }

    fn schema() -> Value {
        json!({"type": "integer", "minimum": MIN, "maximum": COUNT_MAX, "example": 10})
    }
}

/// The one-line HTML snippet that embeds a webchat in a page.
pub fn embed_snippet(base: &str, public_key: &str) -> String {
    format!(r#"<script src="{base}/webchat/{public_key}/widget.js" async></script>"#)
}

/// The URL of the hook that the provider calls.
pub fn hook_url(base: &str, public_key: &str) -> String {
    format!("{base}/hooks/{public_key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_urls_are_normalized_and_mistakes_refused() {
        let read = |text: &str| ProviderUrl::from_text(text).map(|url| url.0);
        assert_eq!(read("http://127.0.0.1:9/v1/").as_deref(), Ok("http://127.0.0.1:9/v1"));
        for bad in [
            "provider.example",
            "https:provider.example",
            "https://a..b",
            "https://a b",
            "https://provider.example?x",
            "file:///etc",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_provider_id_has_digits_only() {
        let read = |text: &str| ProviderId::from_text(text).map(|id| id.0);
        assert_eq!(read(" 106540352 ").as_deref(), Ok("106540352"));
        for bad in ["", "..", "../me", "1/2", "1%2F2", "1?x=", "1#", "１", "+1", "-1", "1e3", &"1".repeat(33)] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_channel_type_has_its_own_settings() {
        let settings_of = |kind: ChannelType| -> Vec<&str> {
            SETTINGS.iter().filter(|setting| setting.applies_to(kind)).map(|setting| setting.name).collect()
        };
        assert!(settings_of(Whatsapp).contains(&"phoneNumberId") && !settings_of(Messenger).contains(&"phoneNumberId"));
        assert!(settings_of(Webchat).contains(&"color") && !settings_of(Webchat).contains(&"accessToken"));
        assert!(SETTINGS.iter().all(|setting| ChannelType::ALL.iter().any(|kind| setting.applies_to(*kind))));
    }
}
