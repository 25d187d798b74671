//! Text values.

use std::fmt;
use std::ops::RangeInclusive;

use hotline_persistence::controls;
use hotline_persistence::password::{self, Password};
use hotline_persistence::tables::global_variables::BUILT_IN;
use hotline_persistence::tables::messages::EMOJI_CHARACTERS_MAX;
use hotline_persistence::visible_text;
use phonenumber::Type;
use phonenumber::metadata::{DATABASE, Metadata};
use serde_json::{Value, json};

use super::mailbox::is_mailbox;
use super::{BODY_BYTES_MAX, FromField, NAME_CHARACTERS_MAX};
use crate::web_address;
use crate::webhooks::{URL_CHARACTERS_MAX, check_url_form};

/// Maximum length of a free text, in characters.
const TEXT_CHARACTERS_MAX: usize = 10_000;
/// Maximum length of a quick message's shortcut, in characters.
const SHORTCUT_CHARACTERS_MAX: usize = 60;
/// Maximum length of a global variable's key, in characters.
const VARIABLE_KEY_CHARACTERS_MAX: usize = 60;
/// Maximum length of a password, in characters.
const PASSWORD_CHARACTERS_MAX: usize = 200;
/// Maximum length of a visitor's own id for a message, in characters.
const CLIENT_ID_CHARACTERS_MAX: usize = 64;
/// Number of digits of a phone number with its calling code. E.164 allows at most 15; fewer than 8 are most likely a
/// number without a calling code.
const NUMBER_DIGITS: RangeInclusive<usize> = 8..=15;

/// Why a string with a refused control character is refused.
pub(crate) const CONTROLS_REFUSED: &str = controls::REFUSED;

/// The text of a JSON string, which must have no refused control character.
fn untrimmed(value: &Value) -> Result<&str, String> {
    let text = value.as_str().ok_or("must be a string")?;
    if controls::contains_refused(text) { Err(CONTROLS_REFUSED.to_owned()) } else { Ok(text) }
}

/// The trimmed text of a JSON string. Control characters are checked first, because trimming removes some of them.
fn trimmed(value: &Value) -> Result<&str, String> {
    untrimmed(value).map(str::trim)
}

/// The text, if it is short enough.
fn bounded_text(text: String, characters_max: usize) -> Result<String, String> {
    if text.chars().count() > characters_max {
        return Err(format!("must have at most {characters_max} characters"));
    }
    Ok(text)
}

/// The trimmed text, if it is short enough.
fn bounded(value: &Value, characters_max: usize) -> Result<String, String> {
    bounded_text(trimmed(value)?.to_owned(), characters_max)
}

fn one_line(text: String) -> Result<String, String> {
    if visible_text::has_line_break(&text) { Err("must be one line".to_owned()) } else { Ok(text) }
}

/// A text in its normalized form, without the characters that are never visible.
fn normalized(value: &Value, characters_max: usize) -> Result<String, String> {
    normalized_by(visible_text::normalize, value, characters_max)
}

fn normalized_by(normalize: fn(&str) -> String, value: &Value, characters_max: usize) -> Result<String, String> {
    bounded_text(normalize(trimmed(value)?), characters_max)
}

/// Checks that a text has a visible character.
fn not_blank(text: String) -> Result<String, String> {
    if visible_text::is_blank(&text) { Err("must not be blank".to_owned()) } else { Ok(text) }
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $schema:tt, $read:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub String);

        impl FromField for $name {
            fn from_json(value: &Value) -> Result<Self, String> {
                let read: fn(&Value) -> Result<String, String> = $read;
                read(value).map(Self)
            }

            fn schema() -> Value {
                json!($schema)
            }

            const IS_TEXT: bool = true;
        }

        impl From<$name> for Value {
            fn from(text: $name) -> Self {
                text.0.into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

/// The pattern of a text that is not blank and has one line.
const ONE_LINE: &str = r"^[^\r\n\u0085\u2028\u2029]*\S[^\r\n\u0085\u2028\u2029]*$";

text! {
    /// A name: not blank, one line, at most 255 characters.
    Name, {"type": "string", "minLength": 1, "maxLength": 255, "pattern": ONE_LINE, "example": "Maria Lima"}, |value| one_line(not_blank(normalized(value, NAME_CHARACTERS_MAX)?)?)
}

text! {
    /// A contact's name ([`visible_text::normalize_contact_name`]): not blank, one line, at most 255 characters.
    ContactName, {"type": "string", "minLength": 1, "maxLength": 255, "pattern": ONE_LINE, "example": "Maria Lima"}, |value| one_line(not_blank(normalized_by(visible_text::normalize_contact_name, value, NAME_CHARACTERS_MAX)?)?)
}

text! {
    /// An id of an external system, compared byte by byte: not blank, one line, at most 255 characters.
    ExternalId, {"type": "string", "minLength": 1, "maxLength": 255, "pattern": ONE_LINE, "example": "user-81"}, |value| one_line(not_blank(bounded(value, NAME_CHARACTERS_MAX)?)?)
}

text! {
    /// A free text: at most 10,000 characters.
    Text, {"type": "string", "maxLength": 10_000, "example": "Requested a refund."}, |value| bounded(value, TEXT_CHARACTERS_MAX)
}

text! {
    /// The id of an interactive message's option. It is not trimmed: messages keep ids as they were sent, so blanks
    /// around an id are part of it.
    OptionId, {"type": "string", "maxLength": 10_000, "example": "yes"}, |value| {
        bounded_text(untrimmed(value)?.to_owned(), TEXT_CHARACTERS_MAX)
    }
}

text! {
    /// A free text that is not blank: at most 10,000 characters.
    NonBlankText, {"type": "string", "minLength": 1, "maxLength": 10_000, "example": "We are open from 9 to 18."}, |value| {
        not_blank(bounded(value, TEXT_CHARACTERS_MAX)?)
    }
}

text! {
    /// The shortcut of a quick message: 1 to 60 characters, no blanks.
    Shortcut, {"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^\\S+$", "example": "/hours"}, |value| {
        let text = not_blank(normalized(value, SHORTCUT_CHARACTERS_MAX)?)?;
        if text.contains(char::is_whitespace) { Err("must not contain spaces".to_owned()) } else { Ok(text) }
    }
}

text! {
    /// A reaction: an emoji with its modifiers, 1 to 32 characters without blanks.
    Emoji, {"type": "string", "minLength": 1, "maxLength": 32, "pattern": "^\\S+$", "example": "\u{1F44D}"}, |value| {
        let text = not_blank(bounded(value, EMOJI_CHARACTERS_MAX)?)?;
        if text.contains(char::is_whitespace) { Err("must not contain spaces".to_owned()) } else { Ok(text) }
    }
}

text! {
    /// The key of a global variable; the names of built-in variables are excluded.
    VariableKey, {
        "type": "string",
        "pattern": "^[A-Za-z][A-Za-z0-9_]{0,59}$",
        "description": "Reserved names are not allowed: name, firstName, number, email, ticketId, queue, agent, channel, company, date, time, greeting",
        "example": "openingHours"
    }, |value| {
        let text = trimmed(value)?;
        let mut bytes = text.bytes();
        let is_key = bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && text.len() <= VARIABLE_KEY_CHARACTERS_MAX;
        if !is_key {
            Err(format!("must be a letter followed by up to {} letters, digits or `_`", VARIABLE_KEY_CHARACTERS_MAX - 1))
        } else if BUILT_IN.contains(&text) {
            Err("is a reserved name".to_owned())
        } else {
            Ok(text.to_owned())
        }
    }
}

text! {
    /// A search text: at most 255 characters. An empty one matches everything.
    Search, {"type": "string", "maxLength": 255, "example": "maria"}, |value| bounded(value, NAME_CHARACTERS_MAX)
}

text! {
    /// The text of a message: not blank, at most 65,536 bytes.
    MessageBody, {"type": "string", "minLength": 1, "pattern": r"\S", "description": "At most 65,536 bytes", "example": "Hello {{firstName}}!"}, |value| {
        let text = not_blank(trimmed(value)?.to_owned())?;
        if text.len() > BODY_BYTES_MAX { Err(format!("must have at most {BODY_BYTES_MAX} bytes")) } else { Ok(text) }
    }
}

text! {
    /// A phone number: 8 to 15 digits, after the usual formatting characters are removed.
    Number, {"type": "string", "pattern": r"^[-+(). ]*([0-9][-+(). ]*){8,15}$", "description": "8 to 15 digits; `+ ( ) - .` and spaces are removed", "example": "5511987654321"}, |value| {
        let text = trimmed(value)?;
        let digits: String = text.chars().filter(|character| !matches!(character, '+' | '(' | ')' | '-' | '.' | ' ')).collect();
        if digits.bytes().all(|byte| byte.is_ascii_digit()) && NUMBER_DIGITS.contains(&digits.len()) {
            Ok(digits)
        } else {
            Err("must be a phone number of 8 to 15 digits".to_owned())
        }
    }
}

impl Number {
    /// The country of the number, ISO 3166-1 alpha-2; `None` when no country has its calling code.
    pub fn country(&self) -> Option<String> {
        country_of(&self.0)
    }
}

/// The kinds of number that a country's numbering plan may have.
const NUMBER_KINDS: [Type; 10] = [
    Type::FixedLine,
    Type::Mobile,
    Type::TollFree,
    Type::PremiumRate,
    Type::SharedCost,
    Type::PersonalNumber,
    Type::Voip,
    Type::Pager,
    Type::Uan,
    Type::Voicemail,
];

/// The country of the calling code that these digits start with, ISO 3166-1 alpha-2. If several countries share the
/// code: the one whose numbering plan matches, else the main one. `None` when no country has the code.
pub fn country_of(digits: &str) -> Option<String> {
    // No calling code is the beginning of another.
    let (mut countries, national) = (1..=3).find_map(|length| {
        let (code, national) = digits.split_at_checked(length)?;
        Some((DATABASE.by_code(&code.parse::<u16>().ok()?)?, national))
    })?;
    // A calling code that belongs to no country, such as that of satellite phones, has the id `001`.
    countries.retain(|country| country.id().len() == 2);
    countries.sort_by_key(|country| !country.is_main_country_for_code());
    let matches_number = |country: &&&Metadata| {
        let plan = country.descriptors();
        match country.leading_digits() {
            Some(leading) => leading.find(national).is_some_and(|found| found.start() == 0),
            None => {
                plan.general().is_match(national)
                    && NUMBER_KINDS.iter().any(|kind| plan.get(*kind).is_some_and(|pattern| pattern.is_match(national)))
            }
        }
    };
    let country = countries.iter().find(matches_number).or(countries.first())?;
    Some(country.id().to_owned())
}

text! {
    /// An e-mail address: a mailbox of RFC 5321, also with letters of other scripts (RFC 6531).
    Email, {"type": "string", "format": "email", "maxLength": 255, "example": "maria@example.com"}, |value| {
        let text = normalized(value, NAME_CHARACTERS_MAX)?;
        if is_mailbox(&text) { Ok(text) } else { Err("must be an e-mail address".to_owned()) }
    }
}

text! {
    /// The address of a webhook; only its form is checked.
    WebhookAddress, {"type": "string", "format": "uri", "pattern": "^\\s*[hH][tT][tT][pP][sS]://[^/?#]", "maxLength": URL_CHARACTERS_MAX, "description": "`https`; in a demo, also `http` to the same machine", "example": "https://example.com/hotline"}, |value| {
        let text = bounded(value, URL_CHARACTERS_MAX)?;
        check_url_form(&text)?;
        Ok(text)
    }
}

text! {
    /// The address of a picture that people see; a page may show it or link to it, so it must be a web address.
    PictureAddress, {"type": "string", "format": "uri", "pattern": r"^\s*[hH][tT][tT][pP][sS]?://[^/?#\s]", "maxLength": 10_000, "description": "`https` or `http`", "example": "https://cdn.example/maria.jpg"}, |value| {
        let text = not_blank(bounded(value, TEXT_CHARACTERS_MAX)?)?;
        if is_web_address(&text) { Ok(text) } else { Err("must be a URL that starts with https:// or http://".to_owned()) }
    }
}

/// Whether a text is an `http` or `https` address without whitespace.
fn is_web_address(text: &str) -> bool {
    !text.contains(char::is_whitespace) && web_address::parse(text).is_ok()
}

text! {
    /// A colour: `#rrggbb`.
    Color, {"type": "string", "pattern": "^#[0-9a-fA-F]{6}$", "example": "#64748b"}, |value| {
        let text = trimmed(value)?;
        let is_color = text.strip_prefix('#').is_some_and(|digits| {
            digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        if is_color { Ok(text.to_lowercase()) } else { Err("must be a colour as #rrggbb".to_owned()) }
    }
}

text! {
    /// A visitor's own id for a message: 1 to 64 characters.
    ClientId, {"type": "string", "minLength": 1, "maxLength": CLIENT_ID_CHARACTERS_MAX, "pattern": r"\S", "example": "m-1"}, |value| not_blank(bounded(value, CLIENT_ID_CHARACTERS_MAX)?)
}

text! {
    /// A text that the website's page provides about a visitor: it is truncated to 10,000 characters.
    TruncatedText, {"type": "string", "description": "Truncated to 10,000 characters", "example": "newsletter"}, |value| {
        Ok(trimmed(value)?.chars().take(TEXT_CHARACTERS_MAX).collect())
    }
}

/// 12 to 200 characters, not trimmed: every typed character counts. A blank one is refused and does not count as
/// `null`, so that an empty form field cannot remove a password.
impl FromField for Password {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = not_blank(untrimmed(value)?.to_owned())?;
        Self::parse(bounded_text(text, PASSWORD_CHARACTERS_MAX)?)
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "format": "password",
            "writeOnly": true,
            "minLength": password::CHARACTERS_MIN,
            "maxLength": PASSWORD_CHARACTERS_MAX,
            "example": "correct horse battery",
        })
    }
}
