//! The options for a channel's settings; those of another channel type are refused by name.

use std::time::Duration;

use clap::Args;
use hotline_persistence::tables::channels::{ChannelSettings, ChannelType, Position, PreChatField, Secret};

use super::secrets::{PROVIDER, SecretFiles};
use crate::cli::Failure;
use crate::config::{MILLISECOND, durations};
use crate::web::request::channel_values::{COUNT_MAX, Count, ProviderId, ProviderUrl, Word, takes};
use crate::web::request::origins;
use crate::web::request::values::{FromField, Name, Number, Text};

const WEBCHAT: &str = "Webchat";

/// The settings of a channel besides its name. An empty value removes a setting. The look and the texts of a webchat are
/// hidden: they are set in the panel, and need not be without a browser.
#[derive(Args)]
pub struct Options {
    /// Phone number (whatsapp)
    #[arg(long, help_heading = PROVIDER)]
    number: Option<String>,
    /// Phone number ID at the provider (whatsapp)
    #[arg(long, value_name = "ID", help_heading = PROVIDER)]
    phone_number_id: Option<String>,
    /// Business account ID at the provider, for templates (whatsapp)
    #[arg(long, value_name = "ID", help_heading = PROVIDER)]
    business_account_id: Option<String>,
    /// Page or account ID at the provider (messenger, instagram)
    #[arg(long, value_name = "ID", help_heading = PROVIDER)]
    page_id: Option<String>,
    /// Access token for calls to the provider
    #[arg(long, value_name = "TOKEN", help_heading = PROVIDER)]
    pub access_token: Option<String>,
    /// App secret with which the provider signs its calls
    #[arg(long, value_name = "SECRET", help_heading = PROVIDER)]
    app_secret: Option<String>,
    /// Token with which the provider verifies the callback URL; choose any word
    #[arg(long, value_name = "TOKEN", help_heading = PROVIDER)]
    verify_token: Option<String>,
    #[command(flatten)]
    files: SecretFiles,
    /// URL of the provider, if it is not the default
    #[arg(long, value_name = "URL", help_heading = PROVIDER)]
    provider_url: Option<String>,
    /// Maximum messages per second; 0 for no limit
    #[arg(long, value_name = "COUNT", help_heading = PROVIDER)]
    sends_per_second: Option<String>,
    /// Minimum time between messages to the same recipient; 0 for none
    #[arg(long, alias = "recipient-interval-ms", value_name = "DURATION", help_heading = PROVIDER)]
    recipient_interval: Option<String>,
    /// Maximum messages sent at once to the same recipient after a pause
    #[arg(long, value_name = "COUNT", help_heading = PROVIDER)]
    recipient_burst: Option<String>,
    /// Website that may embed the webchat, for example `https://shop.example`, or all subdomains:
    /// `https://*.shop.example` (repeatable)
    #[arg(long, value_name = "ORIGIN", help_heading = WEBCHAT)]
    allow_origin: Vec<String>,
    /// Accent color
    #[arg(long, value_name = "#rrggbb", help_heading = WEBCHAT, hide = true)]
    color: Option<String>,
    /// Title above the conversation
    #[arg(long, value_name = "TEXT", help_heading = WEBCHAT, hide = true)]
    title: Option<String>,
    /// Greeting that visitors see first
    #[arg(long, value_name = "TEXT", help_heading = WEBCHAT, hide = true)]
    greeting: Option<String>,
    /// Side of the page on which the webchat opens
    #[arg(long, value_name = "left|right", help_heading = WEBCHAT, hide = true)]
    position: Option<String>,
    /// Field that visitors fill in before the conversation (repeatable)
    #[arg(long, value_name = "name|email|number", help_heading = WEBCHAT, hide = true)]
    pre_chat_field: Vec<String>,
    /// Accept only visitors with an identity signed by your server; see `hotline channel rotate-identity-secret`
    #[arg(long, help_heading = WEBCHAT)]
    require_identity: Option<bool>,
}

impl Options {
    /// Applies the given options to a channel of this type.
    ///
    /// # Errors
    /// The option that is refused; the error never contains a secret.
    pub fn apply(
        self,
        kind: ChannelType,
        number: &mut Option<String>,
        settings: &mut ChannelSettings,
    ) -> Result<(), Failure> {
        if let Some((option, ..)) = self.presence().into_iter().find(|(_, name, is_set)| *is_set && !takes(kind, name))
        {
            return Err(format!("{option} does not apply to a {} channel", kind.as_str()).into());
        }
        set_option(number, "--number", self.number, |text| Ok(Number::from_text(text)?.0))?;
        set_option(&mut settings.phone_number_id, "--phone-number-id", self.phone_number_id, id)?;
        set_option(&mut settings.business_account_id, "--business-account-id", self.business_account_id, id)?;
        set_option(&mut settings.page_id, "--page-id", self.page_id, id)?;
        set_provider_url(settings, self.provider_url, self.access_token.is_some())?;
        set_option(&mut settings.access_token, "--access-token", self.access_token, secret)?;
        set_option(&mut settings.app_secret, "--app-secret", self.app_secret, secret)?;
        set_option(&mut settings.verify_token, "--verify-token", self.verify_token, secret)?;
        set_option(&mut settings.sends_per_second, "--sends-per-second", self.sends_per_second, |text| {
            Ok(Count::<0>::from_text(text)?.0)
        })?;
        let interval = self.recipient_interval;
        set_option(&mut settings.recipient_interval_ms, "--recipient-interval", interval, interval_ms)?;
        set_option(&mut settings.recipient_burst, "--recipient-burst", self.recipient_burst, |text| {
            Ok(Count::<1>::from_text(text)?.0)
        })?;
        set_list(&mut settings.allowed_origins, "--allow-origin", self.allow_origin, origins::read)?;
        set_option(&mut settings.color, "--color", self.color, color)?;
        set_option(&mut settings.title, "--title", self.title, |text| Ok(Name::from_text(text)?.0))?;
        set_option(&mut settings.greeting, "--greeting", self.greeting, |text| Ok(Text::from_text(text)?.0))?;
        set_option(&mut settings.position, "--position", self.position, position)?;
        settings.require_identity = self.require_identity.unwrap_or(settings.require_identity);
        set_list(&mut settings.pre_chat_fields, "--pre-chat-field", self.pre_chat_field, pre_chat_field)
    }

    /// Reads the credentials that are given as files.
    ///
    /// # Errors
    /// When one cannot be read; the error never contains its content.
    pub fn read_files(&mut self) -> Result<(), Failure> {
        let files = std::mem::take(&mut self.files);
        files.read([&mut self.access_token, &mut self.app_secret, &mut self.verify_token])
    }

    /// Whether no option is given.
    pub fn are_empty(&self) -> bool {
        self.presence().iter().all(|(.., is_set)| !is_set)
    }

    /// Whether any given option affects the connection to the provider.
    pub fn have_credentials(&self) -> bool {
        [&self.phone_number_id, &self.page_id, &self.access_token, &self.app_secret, &self.verify_token]
            .iter()
            .any(|credential| credential.is_some())
    }

    /// Each option with its setting, and whether it is given.
    fn presence(&self) -> [(&'static str, &'static str, bool); 18] {
        [
            ("--number", "number", self.number.is_some()),
            ("--phone-number-id", "phoneNumberId", self.phone_number_id.is_some()),
            ("--business-account-id", "businessAccountId", self.business_account_id.is_some()),
            ("--page-id", "pageId", self.page_id.is_some()),
            ("--access-token", "accessToken", self.access_token.is_some()),
            ("--app-secret", "appSecret", self.app_secret.is_some()),
            ("--verify-token", "verifyToken", self.verify_token.is_some()),
            ("--provider-url", "providerUrl", self.provider_url.is_some()),
            ("--sends-per-second", "sendsPerSecond", self.sends_per_second.is_some()),
            ("--recipient-interval", "recipientIntervalMs", self.recipient_interval.is_some()),
            ("--recipient-burst", "recipientBurst", self.recipient_burst.is_some()),
            ("--allow-origin", "allowedOrigins", !self.allow_origin.is_empty()),
            ("--color", "color", self.color.is_some()),
            ("--title", "title", self.title.is_some()),
            ("--greeting", "greeting", self.greeting.is_some()),
            ("--position", "position", self.position.is_some()),
            ("--pre-chat-field", "preChatFields", !self.pre_chat_field.is_empty()),
            ("--require-identity", "requireIdentity", self.require_identity.is_some()),
        ]
    }
}

/// An omitted option keeps the value, an empty one clears it, any other is parsed.
fn set_option<T>(
    setting: &mut Option<T>,
    option: &str,
    value: Option<String>,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<(), Failure> {
    if let Some(text) = value {
        *setting = match text.trim() {
            "" => None,
            text => Some(read(text).map_err(|reason| format!("{option} {reason}"))?),
        };
    }
    Ok(())
}

/// Another address needs the access token anew: the one that is stored was meant for the address before. An address that
/// is given here is the operator's own, also when it is the same as before.
fn set_provider_url(settings: &mut ChannelSettings, value: Option<String>, is_token_set: bool) -> Result<(), Failure> {
    if value.is_none() {
        return Ok(());
    }
    let previous = settings.provider_url.clone();
    set_option(&mut settings.provider_url, "--provider-url", value, |text| Ok(ProviderUrl::from_text(text)?.0))?;
    settings.is_provider_url_operators = settings.provider_url.is_some();
    if settings.provider_url != previous && settings.access_token.is_some() && !is_token_set {
        return Err("changing --provider-url requires --access-token: the stored token is for the previous URL".into());
    }
    Ok(())
}

/// Like [`set_option`], for a list without duplicates.
fn set_list<T: PartialEq>(
    setting: &mut Vec<T>,
    option: &str,
    values: Vec<String>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<(), Failure> {
    if values.is_empty() {
        return Ok(());
    }
    setting.clear();
    for text in values.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
        let value = read(text).map_err(|reason| format!("{option} `{text}` {reason}"))?;
        if !setting.contains(&value) {
            setting.push(value);
        }
    }
    Ok(())
}

/// A duration, stored in milliseconds.
fn interval_ms(text: &str) -> Result<u32, String> {
    let most = Duration::from_millis(COUNT_MAX.into());
    let interval = durations(MILLISECOND, Duration::ZERO..=most)(text)?;
    u32::try_from(interval.as_millis()).map_err(|_| "is too long".to_owned())
}

fn secret(text: &str) -> Result<Secret, String> {
    Word::read(text).map(Word::into_secret)
}

fn id(text: &str) -> Result<String, String> {
    ProviderId::from_text(text).map(|id| id.0)
}

fn color(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
    let is_color = digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if is_color { Ok(text.to_ascii_lowercase()) } else { Err("must be #rrggbb".to_owned()) }
}

fn position(text: &str) -> Result<Position, String> {
    text.parse().map_err(|()| "must be left or right".to_owned())
}

fn pre_chat_field(text: &str) -> Result<PreChatField, String> {
    text.parse().map_err(|()| "must be name, email or number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{color, interval_ms};

    #[test]
    fn an_interval_is_a_duration_or_milliseconds() {
        for (text, milliseconds) in [("6s", 6000), ("250ms", 250), ("700", 700), ("0", 0)] {
            assert_eq!(interval_ms(text), Ok(milliseconds), "{text}");
        }
        for bad in ["6 seconds", "-1", "1d 2h"] {
            assert!(interval_ms(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_colour_has_six_digits() {
        assert_eq!(color("#0F766e").as_deref(), Ok("#0f766e"));
        for bad in ["0f766e", "#0f7", "#0f766g", "#0f766e0"] {
            assert!(color(bad).is_err(), "{bad}");
        }
    }
}
