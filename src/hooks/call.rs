//! The provider-independent content of a call, and lenient readers for its JSON: one unreadable part never spoils the
//! others.

use chrono::{DateTime, Utc};
use hotline_actors::channels::PROVIDER_ID_BYTES_MAX;
use hotline_actors::services::{ChangedSender, EchoMessage, InboundMessage, MessageRevision, Notice, Sender};
use hotline_persistence::MessageId;
use hotline_persistence::controls;
use hotline_persistence::tables::channels::{ChangedTemplate, PhoneNews};
use hotline_persistence::tables::contacts::Referral;
use hotline_persistence::tables::messages::{
    DeliveryStatus, EMOJI_CHARACTERS_MAX, MessageError, Reaction, Reactor, Revision,
};
use hotline_persistence::visible_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum size of a message's body, the same as in the API.
const BODY_BYTES_MAX: usize = 65_536;

/// Maximum length of a name, the same as in the API.
const NAME_CHARACTERS_MAX: usize = 255;

/// Maximum length of a URL or other free text, in characters.
const TEXT_CHARACTERS_MAX: usize = 10_000;

/// Maximum size of an id, the same as for the ids of sent messages.
const ID_BYTES_MAX: usize = PROVIDER_ID_BYTES_MAX;

/// A number above this is a time in milliseconds: in seconds it would be after the year 5138.
const SECONDS_MAX: i64 = 100_000_000_000;

/// The content of a call.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// The events, in the order of the call.
    pub events: Vec<CallEvent>,
    /// News of the account itself.
    pub news: Vec<AccountNews>,
    /// The number of parts that have no effect here, such as other news of the account.
    pub ignored: usize,
    /// The number of unreadable parts.
    pub unreadable: usize,
}

/// News of an account that channels share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AccountNews {
    /// The account, as the provider names it.
    pub account: Option<String>,
    pub kind: AccountNewsKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AccountNewsKind {
    /// A template was approved, paused, changed or removed; which one, if the provider says so.
    Template(Option<Box<ChangedTemplate>>),
    /// The account can no longer send, for this reason.
    Disabled { reason: &'static str },
    /// The account can send again, after it was disabled for this reason.
    Enabled { reason: &'static str },
    /// The provider warns of something.
    Alert { alert: String },
    /// The quality or the limit of the account's number with these digits has changed.
    Phone { number: Option<String>, news: PhoneNews },
}

/// One event of a call.
#[derive(Debug)]
pub(super) struct CallEvent {
    /// The number or page that the event belongs to, as the provider names it.
    pub account: Option<String>,
    /// The event.
    pub kind: EventKind,
}

#[derive(Debug)]
pub(super) enum EventKind {
    /// A contact has sent a message.
    Message(Box<InboundMessage>),
    /// The account has sent a message.
    Echo(Box<EchoMessage>),
    /// A message was edited or deleted, or somebody has reacted to it.
    Revision(Box<MessageRevision>),
    /// News without an effect of its own.
    Notice(Box<Notice>),
    /// The status of one of our messages has changed.
    Status {
        message_id: String,
        /// Our own id of the message, if the provider returns it.
        names: Option<MessageId>,
        status: DeliveryStatus,
        at: Option<DateTime<Utc>>,
    },
    /// A reaction of ours, sent with this id, is refused after all.
    ReactionRefused { id: MessageId, target: MessageId, error: MessageError, at: Option<DateTime<Utc>> },
    /// The status of the text that follows the file of one of our messages has changed.
    TextStatus { message: MessageId, status: DeliveryStatus },
    /// The status of all our messages to a contact up to a time has changed.
    StatusesUntil { address: String, status: DeliveryStatus, until: DateTime<Utc> },
    /// A contact has stopped the business's marketing messages at the provider.
    OptOut { from: Box<Sender> },
    /// A person has another number or id from now on.
    IdentityChanged(Box<ChangedSender>),
    /// A contact came through a link, and has not written yet.
    Referral { address: String, referral: Referral },
}

impl EventKind {
    /// Marks the event as sent to another app, which handles the conversation.
    pub(super) fn set_standby(&mut self) {
        match self {
            Self::Message(message) => message.standby = true,
            Self::Echo(echo) => echo.message.standby = true,
            _ => {}
        }
    }
}

/// A file at the provider. Until it is downloaded, its message stores this in the column `media`, under `wanted`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FileReference {
    /// The provider's id of the file; its URL must be requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The URL of the file, if there is no id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The declared content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The declared file name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// Whether it is a voice message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub voice: bool,
}

impl FileReference {
    /// The value for the column `media`.
    pub(super) fn into_media(self) -> Value {
        serde_json::json!({"wanted": self})
    }

    /// The file that a message still waits for.
    pub(super) fn of(media: &Value) -> Option<Self> {
        Self::deserialize(media.get("wanted")?).ok()
    }
}

/// Parses the JSON of a body. Unpaired surrogates, as in a truncated name, are replaced and not refused: otherwise the
/// provider would repeat the call for days.
pub(super) fn parse(bytes: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Some(value);
    }
    serde_json::from_str(&replace_unpaired_surrogates(&String::from_utf8_lossy(bytes))).ok()
}

/// Replaces escapes of unpaired surrogates.
fn replace_unpaired_surrogates(json: &str) -> String {
    let mut replaced = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.find('\\') {
        let (before, escape) = rest.split_at(start);
        replaced.push_str(before);
        let length = match (code_unit(escape), escape.get(6..).and_then(code_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                replaced.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            (Some(_), _) => 6,
            // The backslash and the character it escapes.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        replaced.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    replaced.push_str(rest);
    replaced
}

/// The code unit of a `\uXXXX` escape at the beginning of a string.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// The elements of a field that is a list.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text field, or a number converted to text; `None` when it is empty.
pub(super) fn text(value: &Value, field: &str) -> Option<String> {
    scalar(value.get(field)?).map(|text| truncate(text, TEXT_CHARACTERS_MAX)).filter(|text| !text.is_empty())
}

/// A text field of a nested object.
pub(super) fn text_at(value: &Value, pointer: &str) -> Option<String> {
    scalar(value.pointer(pointer)?).map(|text| truncate(text, TEXT_CHARACTERS_MAX)).filter(|text| !text.is_empty())
}

/// An id. It is never truncated, since a part of it would identify something else.
pub(super) fn id(value: &Value, field: &str) -> Option<String> {
    scalar(value.get(field)?).filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX)
}

/// An id in a nested object.
pub(super) fn id_at(value: &Value, pointer: &str) -> Option<String> {
    scalar(value.pointer(pointer)?).filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX)
}

/// A name: one line, and not blank.
pub(super) fn name_at(value: &Value, pointer: &str) -> Option<String> {
    let name = scalar(value.pointer(pointer)?)?;
    let line: Vec<&str> = name.split_whitespace().collect();
    let name = truncate(visible_text::normalize_contact_name(&line.join(" ")), NAME_CHARACTERS_MAX);
    let name = visible_text::normalize_contact_name(&name);
    Some(name).filter(|name| !visible_text::is_blank(name))
}

/// The last four characters of a string.
pub(super) fn last_four(text: &str) -> &str {
    let start = text.char_indices().rev().nth(3).map_or(0, |(start, _)| start);
    &text[start..]
}

/// A time in seconds or milliseconds since 1970, as a number or a string.
pub(super) fn time(value: &Value, field: &str) -> Option<DateTime<Utc>> {
    let number: i64 = scalar(value.get(field)?)?.parse().ok()?;
    if number > SECONDS_MAX { DateTime::from_timestamp_millis(number) } else { DateTime::from_timestamp(number, 0) }
        .filter(|at| *at > DateTime::UNIX_EPOCH)
}

/// The body of a message, truncated to the maximum; `None` when it is blank.
pub(super) fn body(text: impl Into<String>) -> Option<String> {
    let mut text = text.into();
    controls::remove_from_text(&mut text);
    if text.len() > BODY_BYTES_MAX {
        text.truncate(text.floor_char_boundary(BODY_BYTES_MAX));
    }
    (!text.trim().is_empty()).then_some(text)
}

/// A text with one part per line; missing parts are left out.
pub(super) fn lines(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let lines: Vec<String> = parts.into_iter().flatten().collect();
    body(lines.join("\n"))
}

/// The text for content that messages cannot represent: its kind.
pub(super) fn placeholder(kind: &str) -> String {
    format!("[{}]", truncate(kind.to_owned(), NAME_CHARACTERS_MAX))
}

/// A reaction; without an emoji it is withdrawn.
pub(super) fn new_reaction(
    by: Reactor,
    key: String,
    emoji: Option<String>,
    name: Option<String>,
    at: Option<DateTime<Utc>>,
) -> Revision {
    let emoji = emoji.map(|emoji| truncate(emoji, EMOJI_CHARACTERS_MAX));
    let now = hotline_actors::clock::now();
    let at = at.map_or(now, |at| at.min(now));
    let (user_id, user_name, integration_id, error) = (None, None, None, None);
    let (sent_as, before) = (None, None);
    Revision::Reacted(Reaction { key, by, emoji, name, user_id, user_name, integration_id, error, sent_as, before, at })
}

/// A location as a text with a link; `coordinates` is the object with its latitude and longitude.
pub(super) fn location_text(name: Option<String>, address: Option<String>, coordinates: &Value) -> Option<String> {
    let coordinate =
        |short: &str, long: &str| coordinates.get(short).or_else(|| coordinates.get(long)).and_then(Value::as_f64);
    let link = coordinate("lat", "latitude")
        .zip(coordinate("long", "longitude"))
        .map(|(latitude, longitude)| format!("https://www.google.com/maps?q={latitude},{longitude}"));
    lines([name, address, link])
}

/// Why a message failed, from the first of the provider's errors.
pub(super) fn failure(errors: &[Value]) -> MessageError {
    let error = errors.first().unwrap_or(&Value::Null);
    let message =
        text_at(error, "/error_data/details").or_else(|| text(error, "message")).or_else(|| text(error, "title"));
    MessageError {
        code: text(error, "code").unwrap_or_else(|| "unknown".to_owned()),
        message: message.unwrap_or_else(|| "the provider gave no reason".to_owned()),
    }
}

/// A string, or a number as a string, without characters that cannot be stored.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let mut text = text.clone();
            controls::remove_from_text(&mut text);
            Some(text)
        }
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn truncate(text: String, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_character_does_not_spoil_a_body() {
        let whole = br#"{"a": "\ud83d\ude00", "b": "\\ud83d", "c": "\"\u00e9"}"#;
        assert_eq!(parse(whole), Some(json!({"a": "😀", "b": "\\ud83d", "c": "\"é"})));
        let half = br#"{"name": "An\ud83d", "b": "\ud83d\ude00 \\ud83d \udE00", "c": 1}"#;
        assert_eq!(parse(half), Some(json!({"name": "An\u{fffd}", "b": "😀 \\ud83d \u{fffd}", "c": 1})));
        assert_eq!(parse(b"{\"a\": \"x\xff\"}"), Some(json!({"a": "x\u{fffd}"})));
        for broken in [&b"{"[..], b"", b"\\", b"{\"a\": \"\\u", b"{\"a\": \"\\ud83d", b"\"\\\xc3\xa9"] {
            assert_eq!(parse(broken), None);
        }
    }

    #[test]
    fn texts_fit_where_they_are_stored_and_ids_are_whole_or_none() {
        let value = json!({"name": format!("  A\n {}", "é".repeat(300)), "nul": "a\0b", "number": 7, "no": null,
            "long": "x".repeat(ID_BYTES_MAX + 1), "s": "1749416383", "ms": 1_749_416_383_500_i64, "bad": "soon"});
        assert_eq!(name_at(&value, "/name").map(|name| name.chars().count()), Some(255));
        assert_eq!(text(&value, "nul").as_deref(), Some("ab"));
        assert_eq!((id(&value, "number").as_deref(), id(&value, "no"), id(&value, "long")), (Some("7"), None, None));
        assert_eq!(time(&value, "s").map(|at| at.timestamp()), Some(1_749_416_383));
        assert_eq!(time(&value, "ms").map(|at| at.timestamp_millis()), Some(1_749_416_383_500));
        assert_eq!(time(&value, "bad"), None);
        assert_eq!(body("é".repeat(40_000)).map(|body| body.len()), Some(BODY_BYTES_MAX));
        assert_eq!(body(" \n"), None);
    }
}
