//! Field values as the API defines them: a value of these types is always valid.

mod address;
mod mailbox;
mod object;
#[cfg(test)]
mod tests;
mod text;

use std::collections::HashSet;
use std::num::IntErrorKind::{NegOverflow, PosOverflow};

use chrono::{DateTime, SubsecRound, Utc};
use hotline_actors::clock;
use hotline_persistence::tables::custom_fields::POSITION_MAX;
use hotline_persistence::{Id, visible_text};
use serde_json::{Value, json};

pub use address::SignInEmail;
pub use object::Object;
pub(crate) use text::CONTROLS_REFUSED;
pub use text::{
    ClientId, Color, ContactName, Email, Emoji, ExternalId, MessageBody, Name, NonBlankText, Number, OptionId,
    PictureAddress, Search, Shortcut, Text, TruncatedText, VariableKey, WebhookAddress, country_of,
};

/// Maximum length of a name, in characters.
const NAME_CHARACTERS_MAX: usize = 255;
/// Maximum number of options of a custom field, which keeps definitions small.
const OPTIONS_MAX: usize = 200;
/// Maximum size of a message's body, in bytes.
const BODY_BYTES_MAX: usize = 65_536;

/// A value that is parsed from JSON, or from the text of a query or form.
pub trait FromField: Sized {
    /// Parses a value from JSON.
    ///
    /// # Errors
    /// A phrase that follows the field's name.
    fn from_json(value: &Value) -> Result<Self, String>;

    /// Parses a value from text; by default as a JSON string.
    ///
    /// # Errors
    /// As for [`FromField::from_json`].
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_json(&Value::String(text.to_owned()))
    }

    /// Its schema in the API document.
    fn schema() -> Value;

    /// Whether it is a number whose every digit matters. A [`Value`] may lose digits, so the number is parsed from its
    /// JSON text.
    const IS_DECIMAL: bool = false;

    /// Whether it is text: in an optional field, a blank string counts as `null`.
    const IS_TEXT: bool = false;
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
        // PostgreSQL accepts far more years than anyone needs; a typing error must not be stored.
        let is_sane = (1970..=9999).contains(&chrono::Datelike::year(&time));
        if is_sane { Ok(time) } else { Err("must be between the years 1970 and 9999".to_owned()) }
    }

    fn schema() -> Value {
        json!({"type": "string", "format": "date-time", "example": "2026-01-31T12:00:00.000Z"})
    }

    const IS_TEXT: bool = true;
}

/// A time in the future, in the precision of responses (milliseconds).
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
            "description": "A time in the future",
            "example": "2099-01-31T12:00:00.000Z",
        })
    }
}

/// The options of a custom field: at most 200 distinct names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options(pub Vec<String>);

impl FromField for Options {
    fn from_json(value: &Value) -> Result<Self, String> {
        let items = value.as_array().ok_or("must be a list")?;
        if items.len() > OPTIONS_MAX {
            return Err(format!("must have at most {OPTIONS_MAX} items"));
        }
        let mut options: Vec<String> = Vec::with_capacity(items.len());
        let mut appearances = HashSet::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let Name(option) = Name::from_json(item).map_err(|reason| format!("item {} {reason}", index + 1))?;
            if !appearances.insert(visible_text::appearance(&option)) {
                return Err(format!("contains {option} twice"));
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
            "description": "Required for `select` and `multiselect`; at least one, without duplicates",
            // Tools build a request from the examples, with the first of the field types, which has no options.
            "example": [],
        })
    }
}

impl From<Options> for Value {
    fn from(options: Options) -> Self {
        options.0.into()
    }
}

/// Ids in the new order of their records; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedIds<T>(pub Vec<T>);

impl<T: FromField> FromField for OrderedIds<T> {
    fn from_json(value: &Value) -> Result<Self, String> {
        let items = value.as_array().ok_or("must be a list")?;
        if items.is_empty() {
            return Err("must not be empty".to_owned());
        }
        let parse_item = |(index, item)| T::from_json(item).map_err(|reason| format!("item {} {reason}", index + 1));
        items.iter().enumerate().map(parse_item).collect::<Result<_, _>>().map(Self)
    }

    fn schema() -> Value {
        json!({"type": "array", "items": T::schema(), "minItems": 1, "description": "All ids, each once"})
    }
}

/// A position in an order: lower ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(pub i32);

impl FromField for Position {
    fn from_json(value: &Value) -> Result<Self, String> {
        let position = value.as_i64().filter(|position| (0..=i64::from(POSITION_MAX)).contains(position));
        let position = position.and_then(|position| i32::try_from(position).ok());
        position.map(Self).ok_or_else(|| format!("must be an integer from 0 to {POSITION_MAX}"))
    }

    fn schema() -> Value {
        json!({"type": "integer", "format": "int32", "description": "From 0 to 1,000,000, in ascending order", "example": 1})
    }
}

impl From<Position> for Value {
    fn from(position: Position) -> Self {
        position.0.into()
    }
}

/// The integer that a number with a decimal point or an exponent stands for (`7.0`). A number out of range becomes the
/// smallest or largest integer: an id that never exists.
#[allow(clippy::cast_possible_truncation)] // A cast from a float saturates.
fn whole_from_float(value: &Value) -> Option<i64> {
    value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64)
}

impl<N> FromField for Id<N> {
    fn from_json(value: &Value) -> Result<Self, String> {
        let integer = value.as_i64().or_else(|| whole_from_float(value));
        integer.map(Self::new).ok_or_else(|| "must be an integer".to_owned())
    }

    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim().parse::<i64>().map_err(|error| *error.kind()) {
            Ok(id) => Ok(Self::new(id)),
            // An id out of range counts as one that does not exist.
            Err(PosOverflow) => Ok(Self::new(i64::MAX)),
            Err(NegOverflow) => Ok(Self::new(i64::MIN)),
            Err(_) => Err("must be an integer".to_owned()),
        }
    }

    fn schema() -> Value {
        json!({"type": "integer", "format": "int64", "example": 7})
    }
}

/// Implements [`FromField`] for enums whose variants are written by name.
macro_rules! enums {
    ($($type:path)+) => {$(
        impl FromField for $type {
            fn from_json(value: &Value) -> Result<Self, String> {
                value.as_str().and_then(|name| name.trim().parse().ok()).ok_or_else(|| {
                    let names: Vec<&str> = Self::ALL.iter().map(|name| name.as_str()).collect();
                    format!("must be one of {}", names.join(", "))
                })
            }

            fn schema() -> Value {
                let names: Vec<&str> = Self::ALL.iter().map(|name| name.as_str()).collect();
                json!({"type": "string", "enum": names})
            }
        }
    )+};
}

enums! {
    hotline_persistence::tables::tickets::TicketSort
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
