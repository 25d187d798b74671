//! The options for a channel's settings. They are read like the body of a request, so that both accept the same values.

use std::time::Duration;

use clap::Args;
use hotline_persistence::tables::channels::{ChannelSettings, ChannelType};
use serde::Serialize;
use serde_json::{Map, Value};

use super::secrets::{PROVIDER, SecretFiles};
use crate::cli::Failure;
use crate::config::{MILLISECOND, durations};
use crate::web::ApiError;
use crate::web::request::body;
use crate::web::request::channel_settings::ChannelSettingsInput;
use crate::web::request::channel_values::{COUNT_MAX, SETTINGS};

const WEBCHAT: &str = "Webchat";

/// The settings of a channel besides its name. An empty value removes a setting. `--help` hides the look and the texts
/// of a webchat: they are set in the panel.
#[derive(Args, Serialize)]
#[serde(rename_all = "camelCase")]
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
    access_token: Option<String>,
    /// App secret with which the provider signs its calls
    #[arg(long, value_name = "SECRET", help_heading = PROVIDER)]
    app_secret: Option<String>,
    /// Token with which the provider verifies the callback URL; choose any word
    #[arg(long, value_name = "TOKEN", help_heading = PROVIDER)]
    verify_token: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    files: SecretFiles,
    /// URL of the provider, if it is not the default
    #[arg(long, value_name = "URL", help_heading = PROVIDER)]
    provider_url: Option<String>,
    /// Maximum messages per second; 0 for no limit
    #[arg(long, value_name = "COUNT", help_heading = PROVIDER)]
    sends_per_second: Option<String>,
    /// Minimum time between messages to the same recipient; 0 for none
    #[arg(long, alias = "recipient-interval-ms", value_name = "DURATION", help_heading = PROVIDER, value_parser = parse_interval_ms)]
    #[serde(rename = "recipientIntervalMs")]
    recipient_interval: Option<String>,
    /// Maximum messages sent at once to the same recipient after a pause
    #[arg(long, value_name = "COUNT", help_heading = PROVIDER)]
    recipient_burst: Option<String>,
    /// Website that may embed the webchat, for example `https://shop.example`, or all subdomains:
    /// `https://*.shop.example` (repeatable)
    #[arg(long, value_name = "ORIGIN", help_heading = WEBCHAT)]
    #[serde(rename = "allowedOrigins")]
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
    #[serde(rename = "preChatFields")]
    pre_chat_field: Vec<String>,
    /// Accept only visitors with an identity signed by your server; see `hotline channel rotate-identity-secret`
    #[arg(long, help_heading = WEBCHAT)]
    require_identity: Option<bool>,
}

impl Options {
    /// Reads the credentials that are given as files.
    ///
    /// # Errors
    /// When one cannot be read; the error never contains its content.
    pub fn read_files(&mut self) -> Result<(), Failure> {
        let files = std::mem::take(&mut self.files);
        files.read([&mut self.access_token, &mut self.app_secret, &mut self.verify_token])
    }

    /// The given settings; `None` if no option is given.
    ///
    /// # Errors
    /// When options are refused: the error names them, and never contains a secret.
    pub fn into_input(self) -> Result<Option<ChannelSettingsInput>, Failure> {
        let Value::Object(options) = serde_json::to_value(self)? else { return Ok(None) };
        let is_given = |value: &Value| !value.is_null() && value.as_array().is_none_or(|values| !values.is_empty());
        let given = options.into_iter().filter(|(_, value)| is_given(value));
        let given: Map<String, Value> = given.map(|(name, value)| (name, clear_if_empty(value))).collect();
        if given.is_empty() {
            return Ok(None);
        }
        Ok(Some(body::parse(&serde_json::to_vec(&given)?).map_err(refusal)?))
    }
}

/// Applies settings of the command line to a channel of this type.
///
/// # Errors
/// When options are refused: the error names them.
pub fn apply(
    input: ChannelSettingsInput,
    kind: ChannelType,
    number: &mut Option<String>,
    settings: &mut ChannelSettings,
) -> Result<(), Failure> {
    let is_installation_admin = true;
    let checked = input.check(kind).and_then(|()| input.check_provider_url(is_installation_admin, settings));
    checked.map_err(refusal)?;
    let has_provider_url = input.has_provider_url();
    input.apply(number, settings);
    // A URL on the command line is the operator's own, even if the panel had set the same URL before.
    if has_provider_url {
        settings.is_provider_url_from_operator = settings.provider_url.is_some();
    }
    Ok(())
}

/// An empty value clears a setting; among the values of a repeatable option it is ignored.
fn clear_if_empty(value: Value) -> Value {
    let is_empty = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    match value {
        Value::Array(values) => values.into_iter().filter(|value| !is_empty(value)).collect(),
        value if is_empty(&value) => Value::Null,
        value => value,
    }
}

/// The failure for a refused body: it names the options instead of the body's fields.
fn refusal(error: ApiError) -> Failure {
    let details = error.details.as_deref().and_then(Value::as_array).into_iter().flatten();
    let reasons = details.filter_map(|detail| {
        let (field, reason) = (detail["field"].as_str()?, detail["reason"].as_str()?);
        let name = field.split('[').next().unwrap_or(field);
        let option = SETTINGS.iter().find(|setting| setting.name == name).map_or(field, |setting| setting.option);
        Some(format!("{option} {}", reason.replace("providerUrl", "--provider-url")))
    });
    reasons.collect::<Vec<_>>().join("; ").into()
}

/// A duration in milliseconds; an empty string clears it.
fn parse_interval_ms(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    let max = Duration::from_millis(COUNT_MAX.into());
    Ok(durations(MILLISECOND, Duration::ZERO..=max)(text)?.as_millis().to_string())
}

#[cfg(test)]
mod tests {
    use super::parse_interval_ms;

    #[test]
    fn an_interval_is_a_duration_or_milliseconds() {
        for (text, milliseconds) in [("6s", "6000"), ("250ms", "250"), ("700", "700"), ("0", "0"), ("", "")] {
            assert_eq!(parse_interval_ms(text).as_deref(), Ok(milliseconds), "{text}");
        }
        for bad in ["6 seconds", "-1", "1d 2h"] {
            assert!(parse_interval_ms(bad).is_err(), "{bad}");
        }
    }
}
