//! Values as the contract accepts them: what cannot be accepted cannot be held.

use std::fmt;
use std::num::IntErrorKind::{NegOverflow, PosOverflow};

use chrono::{DateTime, SubsecRound, Utc};
use hotline_actors::clock;
use hotline_persistence::Id;
use hotline_persistence::password::{self, Password};
use hotline_persistence::tables::custom_fields::POSITION_MAX;
use hotline_persistence::tables::global_variables::BUILT_IN;
use phonenumber::Type;
use phonenumber::metadata::{DATABASE, Metadata};
use serde_json::{Map, Number as JsonNumber, Value, json};

use crate::webhooks::check_address;

/// Characters of a name.
const NAME_CHARACTERS_MAX: usize = 255;
/// Characters of a free text.
const TEXT_CHARACTERS_MAX: usize = 10_000;
/// Characters of a quick message's shortcut.
const SHORTCUT_CHARACTERS_MAX: usize = 60;
/// Characters of a global variable's key.
const VARIABLE_KEY_CHARACTERS_MAX: usize = 60;
/// Options of a custom field: more than anybody scrolls through, and a definition stays small.
const OPTIONS_MAX: usize = 200;
/// Characters of a password.
const PASSWORD_CHARACTERS_MAX: usize = 200;
/// Bytes of a message's body.
const BODY_BYTES_MAX: usize = 65_536;
/// Digits of a phone number: E.164 allows 15; below 8 none is reachable from abroad.
const NUMBER_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// A value read from JSON, or from the text of a query or form.
pub trait FromField: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong, as a phrase that follows the field's name.
    fn from_json(value: &Value) -> Result<Self, String>;

    /// Reads it from text. By default text is a JSON string.
    ///
    /// # Errors
    /// As [`FromField::from_json`].
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_json(&Value::String(text.to_owned()))
    }

    /// What the API document says of it.
    fn schema() -> Value;

    /// Whether it is a number whose every digit counts, which a [`Value`] does not keep: of a JSON number its digits are
    /// read as text.
    const IS_DECIMAL: bool = false;

    /// Whether it is text: where it may be left out, a blank one is the same as `null`.
    const IS_TEXT: bool = false;
}

fn trimmed(value: &Value) -> Result<&str, String> {
    let text = value.as_str().ok_or("must be a string")?.trim();
    if text.contains('\0') { Err("must not contain U+0000".to_owned()) } else { Ok(text) }
}

fn bounded(value: &Value, characters_max: usize) -> Result<String, String> {
    let text = trimmed(value)?;
    if text.chars().count() > characters_max {
        return Err(format!("must have at most {characters_max} characters"));
    }
    Ok(text.to_owned())
}

fn one_line(text: String) -> Result<String, String> {
    if text.contains(['\n', '\r']) { Err("must be one line".to_owned()) } else { Ok(text) }
}

fn not_blank(text: String) -> Result<String, String> {
    if text.is_empty() { Err("must not be blank".to_owned()) } else { Ok(text) }
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

text! {
    /// A name: not blank, one line, at most 255 characters.
    Name, {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[^\r\n]*\S[^\r\n]*$", "example": "Maria Lima"}, |value| one_line(not_blank(bounded(value, NAME_CHARACTERS_MAX)?)?)
}

text! {
    /// A free text: at most 10,000 characters.
    Text, {"type": "string", "maxLength": 10_000, "example": "Asked for a refund."}, |value| bounded(value, TEXT_CHARACTERS_MAX)
}

text! {
    /// A free text that says something: not blank, at most 10,000 characters.
    FilledText, {"type": "string", "minLength": 1, "maxLength": 10_000, "example": "We are open from 9 to 18."}, |value| {
        not_blank(bounded(value, TEXT_CHARACTERS_MAX)?)
    }
}

text! {
    /// What a quick message is called up by: 1 to 60 characters, no blanks.
    Shortcut, {"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^\\S+$", "example": "/hours"}, |value| {
        let text = not_blank(bounded(value, SHORTCUT_CHARACTERS_MAX)?)?;
        if text.contains(char::is_whitespace) { Err("must not contain blanks".to_owned()) } else { Ok(text) }
    }
}

text! {
    /// The key of a global variable: not one that every message has anyway.
    VariableKey, {
        "type": "string",
        "pattern": "^[A-Za-z][A-Za-z0-9_]{0,59}$",
        "description": "None of the names every message has: name, firstName, number, email, ticketId, queue, agent, channel, company, date, time, greeting",
        "example": "openingHours"
    }, |value| {
        let text = trimmed(value)?;
        let mut bytes = text.bytes();
        let is_key = bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && text.len() <= VARIABLE_KEY_CHARACTERS_MAX;
        if !is_key {
            Err(format!("must be a letter and up to {} letters, digits and `_`", VARIABLE_KEY_CHARACTERS_MAX - 1))
        } else if BUILT_IN.contains(&text) {
            Err("is a name every message has".to_owned())
        } else {
            Ok(text.to_owned())
        }
    }
}

text! {
    /// A search: like a name, but may be empty, which finds everything.
    Search, {"type": "string", "maxLength": 255, "example": "maria"}, |value| bounded(value, NAME_CHARACTERS_MAX)
}

text! {
    /// What is said in a message: not blank, at most 65,536 bytes.
    MessageBody, {"type": "string", "minLength": 1, "pattern": r"\S", "description": "At most 65,536 bytes", "example": "Hello {{firstName}}!"}, |value| {
        let text = not_blank(trimmed(value)?.to_owned())?;
        if text.len() > BODY_BYTES_MAX { Err(format!("must have at most {BODY_BYTES_MAX} bytes")) } else { Ok(text) }
    }
}

text! {
    /// A phone number: 8 to 15 digits, once the usual formatting characters are gone.
    Number, {"type": "string", "pattern": r"^[-+(). ]*([0-9][-+(). ]*){8,15}$", "description": "8 to 15 digits; `+ ( ) - .` and blanks are taken out", "example": "5511987654321"}, |value| {
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
    /// The country of the number, ISO 3166-1 alpha-2.
    pub fn country(&self) -> Option<String> {
        country_of(&self.0)
    }
}

/// Kinds of number a country's plan may have.
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

/// The country that the calling code of these digits belongs to, ISO 3166-1 alpha-2: of several the one whose plan the
/// number fits, else the main one. None when no country has the code.
pub fn country_of(digits: &str) -> Option<String> {
    // No calling code begins with another one.
    let (mut countries, national) = (1..=3).find_map(|length| {
        let (code, national) = digits.split_at_checked(length)?;
        Some((DATABASE.by_code(&code.parse::<u16>().ok()?)?, national))
    })?;
    countries.retain(|country| country.id().len() == 2);
    countries.sort_by_key(|country| !country.is_main_country_for_code());
    let fits = |country: &&&Metadata| {
        let plan = country.descriptors();
        match country.leading_digits() {
            Some(leading) => leading.find(national).is_some_and(|found| found.start() == 0),
            None => {
                plan.general().is_match(national)
                    && NUMBER_KINDS.iter().any(|kind| plan.get(*kind).is_some_and(|kind| kind.is_match(national)))
            }
        }
    };
    let country = countries.iter().find(fits).or(countries.first())?;
    Some(country.id().to_owned())
}

text! {
    /// An e-mail address: something, one `@`, something, no blanks.
    Email, {"type": "string", "format": "email", "maxLength": 255, "example": "maria@example.com"}, |value| {
        let text = bounded(value, NAME_CHARACTERS_MAX)?;
        let is_address = text.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty() && !host.is_empty() && !host.contains('@') && !text.contains(char::is_whitespace)
        });
        if is_address { Ok(text) } else { Err("must be an e-mail address".to_owned()) }
    }
}

text! {
    /// The address of a webhook, as far as its form goes.
    WebAddress, {"type": "string", "format": "uri", "pattern": "^\\s*[hH][tT][tT][pP][sS]://[^/?#]", "maxLength": 2_000, "description": "`https`; of a demo's own machine also `http`", "example": "https://example.com/hotline"}, |value| {
        let text = bounded(value, 2_000)?;
        check_address(&text)?;
        Ok(text)
    }
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
    /// A visitor's id for a message: 1 to 64 characters.
    ClientId, {"type": "string", "minLength": 1, "maxLength": 64, "pattern": r"\S", "example": "m-1"}, |value| not_blank(bounded(value, 64)?)
}

text! {
    /// A text that a page says of a visitor: of one that is too long the beginning is kept, at most 10,000 characters.
    CutText, {"type": "string", "description": "Of more than 10,000 characters the beginning is kept", "example": "newsletter"}, |value| {
        Ok(trimmed(value)?.chars().take(TEXT_CHARACTERS_MAX).collect())
    }
}

/// 12 to 200 characters, and the one text that is not trimmed: whoever types it in types all of it. A blank one is no way
/// to clear it: a form that was not filled in must not take anybody's password.
impl FromField for Password {
    fn from_json(value: &Value) -> Result<Self, String> {
        not_blank(trimmed(value)?.to_owned())?;
        let text = value.as_str().unwrap_or_default();
        if text.chars().count() > PASSWORD_CHARACTERS_MAX {
            return Err(format!("must have at most {PASSWORD_CHARACTERS_MAX} characters"));
        }
        Self::chosen(text.to_owned())
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

impl FromField for bool {
    fn from_json(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| "must be true or false".to_owned())
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be true or false".to_owned())
    }

    fn schema() -> Value {
        json!({"type": "boolean"})
    }
}

impl FromField for DateTime<Utc> {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or("must be a date-time string")?;
        let time = DateTime::parse_from_rfc3339(text.trim()).map_err(|_| "must be an RFC 3339 date-time")?.to_utc();
        // PostgreSQL holds far more years than anybody means; a typo should not reach it.
        let is_sane = (1970..=9999).contains(&chrono::Datelike::year(&time));
        if is_sane { Ok(time) } else { Err("must be between the years 1970 and 9999".to_owned()) }
    }

    fn schema() -> Value {
        json!({"type": "string", "format": "date-time", "example": "2026-01-31T12:00:00.000Z"})
    }

    const IS_TEXT: bool = true;
}

/// A time that has not come yet, in the milliseconds that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutureTime(pub DateTime<Utc>);

impl FromField for FutureTime {
    fn from_json(value: &Value) -> Result<Self, String> {
        let time = DateTime::<Utc>::from_json(value)?.trunc_subsecs(3);
        if time > clock::now() { Ok(Self(time)) } else { Err("must be in the future".to_owned()) }
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "format": "date-time",
            "description": "A time that has not come yet",
            "example": "2099-01-31T12:00:00.000Z",
        })
    }
}

/// Levels of an object that somebody else has a say in. What is read nests it a few levels deeper, and readers stop at
/// 128 of them; no provider has more than ten.
const OBJECT_DEPTH_MAX: usize = 64;

/// An object of a shape that somebody else has a say in: at most 65,536 bytes as it is stored, and only what can be
/// read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object(pub Map<String, Value>);

impl FromField for Object {
    fn from_json(value: &Value) -> Result<Self, String> {
        let object = value.as_object().ok_or("must be an object")?;
        let bytes = value.to_string().len() + stored(value, 1)?;
        if bytes > BODY_BYTES_MAX {
            return Err(format!("must have at most {BODY_BYTES_MAX} bytes"));
        }
        Ok(Self(object.clone()))
    }

    /// In a form an object is JSON text.
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_json(&serde_json::from_str(text).map_err(|_| "must be a JSON object")?)
    }

    fn schema() -> Value {
        json!({"type": "object", "description": "At most 65,536 bytes", "example": {}})
    }
}

/// Whether PostgreSQL can store a value, and we read it again: answers how many bytes more it takes there, where numbers
/// are written out.
fn stored(value: &Value, depth: usize) -> Result<usize, String> {
    if depth > OBJECT_DEPTH_MAX && matches!(value, Value::Array(_) | Value::Object(_)) {
        return Err(format!("must be at most {OBJECT_DEPTH_MAX} levels deep"));
    }
    let text = |text: &str| if text.contains('\0') { Err("must not contain U+0000".to_owned()) } else { Ok(0) };
    match value {
        Value::Null | Value::Bool(_) => Ok(0),
        Value::String(inner) => text(inner),
        Value::Number(number) => written_out(number).ok_or_else(|| format!("must not hold the number {number}")),
        Value::Array(items) => items.iter().map(|inner| stored(inner, depth + 1)).sum(),
        Value::Object(object) => object.iter().map(|(key, inner)| Ok(text(key)? + stored(inner, depth + 1)?)).sum(),
    }
}

/// How many bytes longer a number is when it is written out as PostgreSQL does, in digits without an exponent; none when
/// it is not the same once that is read.
fn written_out(number: &JsonNumber) -> Option<usize> {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else { return Some(0) };
    // The shortest digits that mean this number, without an exponent: `Display` has none.
    let digits = format!("{value}");
    let read: JsonNumber = serde_json::from_str(&digits).ok()?;
    // Reading rounds in the last place.
    let is_same = (read.as_f64()? - value).abs() <= value.abs() * 1e-12;
    is_same.then(|| digits.len().saturating_sub(number.to_string().len()))
}

/// What a value of a custom field may be chosen from: at most 200, each a name and each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options(pub Vec<String>);

impl FromField for Options {
    fn from_json(value: &Value) -> Result<Self, String> {
        let items = value.as_array().ok_or("must be a list")?;
        if items.len() > OPTIONS_MAX {
            return Err(format!("must have at most {OPTIONS_MAX} items"));
        }
        let mut options: Vec<String> = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let Name(option) = Name::from_json(item).map_err(|reason| format!("item {} {reason}", index + 1))?;
            if options.contains(&option) {
                return Err(format!("holds {option} twice"));
            }
            options.push(option);
        }
        Ok(Self(options))
    }

    fn schema() -> Value {
        let option = json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARACTERS_MAX, "example": "Blue"});
        json!({
            "type": "array",
            "items": option,
            "maxItems": OPTIONS_MAX,
            "description": "For `select` and `multiselect`, which need at least one; each is there once",
            // With the first of the types, as tools put examples together, there are none.
            "example": [],
        })
    }
}

impl From<Options> for Value {
    fn from(options: Options) -> Self {
        options.0.into()
    }
}

/// Ids in the order their records are to have: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedIds<T>(pub Vec<T>);

impl<T: FromField> FromField for OrderedIds<T> {
    fn from_json(value: &Value) -> Result<Self, String> {
        let items = value.as_array().ok_or("must be a list")?;
        if items.is_empty() {
            return Err("must not be empty".to_owned());
        }
        let id = |(index, item)| T::from_json(item).map_err(|reason| format!("item {} {reason}", index + 1));
        items.iter().enumerate().map(id).collect::<Result<_, _>>().map(Self)
    }

    fn schema() -> Value {
        json!({"type": "array", "items": T::schema(), "minItems": 1, "description": "All of them, each once"})
    }
}

/// A place among others: lower ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(pub i32);

impl FromField for Position {
    fn from_json(value: &Value) -> Result<Self, String> {
        let position = value.as_i64().filter(|position| (0..=i64::from(POSITION_MAX)).contains(position));
        let position = position.and_then(|position| i32::try_from(position).ok());
        position.map(Self).ok_or_else(|| format!("must be an integer from 0 to {POSITION_MAX}"))
    }

    fn schema() -> Value {
        json!({"type": "integer", "format": "int32", "description": "From 0 to 1,000,000; lower ones come first", "example": 1})
    }
}

impl From<Position> for Value {
    fn from(position: Position) -> Self {
        position.0.into()
    }
}

/// A whole number that is written with a fraction or an exponent, or is too large to exist: then one nobody has.
#[allow(clippy::cast_possible_truncation)] // A cast of a float stops at the ends of the integers.
fn beyond(value: &Value) -> Option<i64> {
    value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64)
}

impl<N> FromField for Id<N> {
    fn from_json(value: &Value) -> Result<Self, String> {
        let whole = value.as_i64().or_else(|| beyond(value));
        whole.map(Self::new).ok_or_else(|| "must be an integer".to_owned())
    }

    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim().parse::<i64>().map_err(|error| *error.kind()) {
            Ok(id) => Ok(Self::new(id)),
            // Too large to exist is as good as not there.
            Err(PosOverflow) => Ok(Self::new(i64::MAX)),
            Err(NegOverflow) => Ok(Self::new(i64::MIN)),
            Err(_) => Err("must be an integer".to_owned()),
        }
    }

    fn schema() -> Value {
        json!({"type": "integer", "format": "int64", "example": 7})
    }
}

macro_rules! words {
    ($($word:path)+) => {$(
        impl FromField for $word {
            fn from_json(value: &Value) -> Result<Self, String> {
                value.as_str().and_then(|word| word.trim().parse().ok()).ok_or_else(|| {
                    let words: Vec<&str> = Self::ALL.iter().map(|word| word.as_str()).collect();
                    format!("must be one of {}", words.join(", "))
                })
            }

            fn schema() -> Value {
                let words: Vec<&str> = Self::ALL.iter().map(|word| word.as_str()).collect();
                json!({"type": "string", "enum": words})
            }
        }
    )+};
}

words! {
    hotline_persistence::tables::tickets::TicketStatus
    hotline_persistence::tables::messages::Direction
    hotline_persistence::tables::messages::MessageType
    hotline_persistence::tables::messages::MessageStatus
    hotline_persistence::tables::channels::ChannelType
    hotline_persistence::tables::channels::ChannelStatus
    hotline_persistence::tables::queues::Distribution
    hotline_persistence::tables::schedules::ScheduleStatus
    hotline_persistence::tables::campaigns::CampaignStatus
    hotline_persistence::tables::campaigns::RecipientStatus
    hotline_persistence::tables::custom_fields::Application
    hotline_persistence::tables::custom_fields::CustomFieldType
    hotline_persistence::tables::reports::TicketGrouping
    hotline_persistence::tables::reports::MessageGrouping
    hotline_persistence::tables::reports::sales::SalesGrouping
    hotline_persistence::tables::events::EventKind
    hotline_persistence::tables::webhooks::deliveries::DeliveryStatus
    hotline_persistence::tables::people::Language
    hotline_persistence::tables::channels::Position
    hotline_persistence::tables::channels::PreChatField
    hotline_persistence::tables::tokens::TokenStatus
}

#[cfg(test)]
mod tests {
    use hotline_persistence::TicketId;

    use super::*;

    #[test]
    fn a_number_loses_its_formatting_and_keeps_its_digits() {
        assert_eq!(Number::from_json(&json!("+55 (11) 98765-4321")), Ok(Number("5511987654321".to_owned())));
        for bad in ["1234567", "1234567890123456", "12345678a", "٣٤٥٦٧٨٩٠١"] {
            assert!(Number::from_json(&json!(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_number_is_of_the_country_whose_plan_it_fits_and_else_of_the_main_one() {
        for (number, country) in [
            ("5511987654321", "BR"),
            ("447400123456", "GB"),
            // A mobile of Guernsey.
            ("447911123456", "GG"),
            ("447700900000", "GB"),
            ("447781123456", "GG"),
            ("390612345678", "IT"),
            ("390669812345", "VA"),
            ("12025550123", "US"),
            ("14165550123", "CA"),
            ("77012345678", "KZ"),
            ("79161234567", "RU"),
            ("4930123456", "DE"),
        ] {
            assert_eq!(country_of(number).as_deref(), Some(country), "{number}");
        }
        for number in ["80012345678", "99912345678", "00000000"] {
            assert_eq!(country_of(number), None, "{number}");
        }
    }

    #[test]
    fn text_postgres_cannot_store_is_refused() {
        assert!(Name::from_json(&json!("a\0b")).is_err());
        assert!(MessageBody::from_json(&json!("\0")).is_err());
    }

    #[test]
    fn a_variable_has_a_key_no_message_has_anyway() {
        for good in ["a", "Name", "opening_hours_2", &"x".repeat(60)] {
            assert_eq!(VariableKey::from_json(&json!(good)), Ok(VariableKey(good.to_owned())));
        }
        for bad in ["", "_a", "2a", "a-b", "a b", "é", "name", "greeting", &"x".repeat(61)] {
            assert!(VariableKey::from_json(&json!(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_are_names_and_each_is_there_once() {
        let options = |value| Options::from_json(&value).map(|options| options.0);
        assert_eq!(options(json!([" Blue", "blue"])), Ok(vec!["Blue".to_owned(), "blue".to_owned()]));
        for bad in [json!("Blue"), json!({}), json!([1]), json!([" "]), json!(["a\nb"]), json!(["Blue", "Blue "])] {
            assert!(options(bad.clone()).is_err(), "{bad}");
        }
        let numbered = |count: usize| json!((0..count).map(|number| number.to_string()).collect::<Vec<_>>());
        assert!(options(numbered(200)).is_ok());
        assert!(options(numbered(201)).is_err());
    }

    #[test]
    fn an_object_is_bounded_and_holds_what_can_be_stored() {
        assert!(Object::from_json(&json!({"any": [{"shape": null}]})).is_ok());
        assert_eq!(Object::from_text(r#" {"a": 1} "#).map(|object| Value::Object(object.0)), Ok(json!({"a": 1})));
        for bad in [json!([]), json!("{}"), json!(7), json!({"a\0": 1}), json!({"a": [{"b": "\0"}]})] {
            assert!(Object::from_json(&bad).is_err(), "{bad}");
        }
        for bad in ["", "[]", "{", "x"] {
            assert!(Object::from_text(bad).is_err(), "{bad}");
        }
        // What PostgreSQL writes out in 309 digits, of which the reader makes infinity.
        for unreadable in [json!({"a": f64::MAX}), json!({"a": [{"b": -1.797_693_134_862_315_7e308}]})] {
            assert!(Object::from_json(&unreadable).is_err(), "{unreadable}");
        }
        for readable in [json!({"a": 1e300}), json!({"a": -2.5e-300}), json!({"a": u64::MAX}), json!({"a": 0.1})] {
            assert!(Object::from_json(&readable).is_ok(), "{readable}");
        }
        let many = |count: usize| Object::from_json(&json!({"a": vec![1e300; count]}));
        assert!(many(200).is_ok() && many(300).is_err(), "numbers count as they are written out");
        let deep = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
        assert!(Object::from_json(&deep(64)).is_ok());
        assert!(Object::from_json(&deep(65)).is_err());
        // With the braces, the name and the quotes around them.
        let of = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
        assert!(Object::from_json(&of(65_536)).is_ok());
        assert!(Object::from_json(&of(65_537)).is_err());
    }

    #[test]
    fn an_id_is_an_integer_that_fits() {
        assert_eq!(TicketId::from_json(&json!(7)), Ok(TicketId::new(7)));
        assert_eq!(TicketId::from_json(&json!(7.0)), Ok(TicketId::new(7)));
        for bad in [json!("7"), json!(7.5), json!(null), json!([7])] {
            assert!(TicketId::from_json(&bad).is_err(), "{bad}");
        }
        // Too large to exist: as good as one nobody has.
        for far in [json!(9_223_372_036_854_775_808_u64), json!(u64::MAX), json!(1e30), json!(f64::MAX)] {
            assert_eq!(TicketId::from_json(&far), Ok(TicketId::new(i64::MAX)), "{far}");
        }
        assert_eq!(TicketId::from_json(&json!(-1e30)), Ok(TicketId::new(i64::MIN)));
        assert_eq!(TicketId::from_text("99999999999999999999"), Ok(TicketId::new(i64::MAX)));
        assert_eq!(TicketId::from_text("-99999999999999999999"), Ok(TicketId::new(i64::MIN)));
        assert!(TicketId::from_text("1e3").is_err());
    }

    #[test]
    fn a_body_is_measured_in_bytes() {
        assert!(MessageBody::from_json(&json!("é".repeat(32_768))).is_ok());
        assert!(MessageBody::from_json(&json!("é".repeat(32_769))).is_err());
    }
}
