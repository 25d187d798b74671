//! Checks the values of an archive. PostgreSQL accepts some that the service cannot read: infinite times, numbers where
//! text is expected, `null` in lists, and any text in a column that the service parses as an enum or an id.

use chrono::{DateTime, Datelike};
use serde_json::Value;

use crate::tables::contacts::identities::IdentityKind;
use crate::tables::custom_fields::CustomFieldType;
use crate::tables::media::MediaId;
use crate::tables::messages::MessageType;
use crate::tables::source::Source;
use crate::tables::ticket_events::EventType;

/// Largest id: half of what every reader of JSON can represent, so that as many ids are left for new records.
const ID_MAX: i64 = 1 << 52;

/// Largest number other than an id: what every reader of JSON can represent.
const NUMBER_MAX: i64 = 1 << 53;

/// Years that a time may have: four digits, as in the API.
const YEARS: std::ops::RangeInclusive<i32> = 1..=9999;

/// The type of a column, as far as its values are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Integer,
    Time,
    Text,
    List,
    Other,
}

impl ColumnType {
    /// The type with this name in `pg_type`.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "int2" | "int4" | "int8" => Self::Integer,
            "timestamptz" => Self::Time,
            "text" => Self::Text,
            _ if name.starts_with('_') => Self::List,
            _ => Self::Other,
        }
    }

    /// Why a value is not of this type; `None` if it is, or if it is `null`: PostgreSQL checks whether the column may
    /// be null.
    fn refusal(self, column: &str, value: &Value) -> Option<&'static str> {
        let is_id = column == "id" || column.ends_with("_id");
        let number = value.as_i64();
        match self {
            _ if value.is_null() => None,
            Self::Integer if is_id => {
                number.is_none_or(|id| !(1..=ID_MAX).contains(&id)).then_some("is not a valid id")
            }
            Self::Integer => number
                .is_none_or(|number| !(-NUMBER_MAX..=NUMBER_MAX).contains(&number))
                .then_some("is not a valid integer"),
            Self::Time => {
                let time = value.as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
                time.is_none_or(|time| !YEARS.contains(&time.year())).then_some("is not a valid time")
            }
            Self::Text => (!value.is_string()).then_some("is not a string"),
            Self::List => {
                let elements = value.as_array();
                elements.is_none_or(|elements| elements.iter().any(Value::is_null)).then_some("is not a valid list")
            }
            Self::Other => None,
        }
    }
}

/// Why the service could not read a value in this column; `None` if it can.
pub(super) fn refusal(table: &str, column: &str, column_type: ColumnType, value: &Value) -> Option<&'static str> {
    if let Some(reason) = column_type.refusal(column, value) {
        return Some(reason);
    }
    let text = value.as_str().unwrap_or_default();
    let is_known = match (table, column) {
        _ if value.is_null() => true,
        ("messages", "type") => text.parse::<MessageType>().is_ok(),
        ("messages" | "ticket_events", "source") | ("tickets", "creation_source") => text.parse::<Source>().is_ok(),
        ("ticket_events", "type") => text.parse::<EventType>().is_ok(),
        ("custom_fields", "type") => text.parse::<CustomFieldType>().is_ok(),
        ("contact_merge_suggestions" | "contact_addresses", "kind") => text.parse::<IdentityKind>().is_ok(),
        ("messages", "media") => {
            let id = value.get("id");
            id.is_none_or(|id| id.is_null() || id.as_str().is_some_and(|id| id.parse::<MediaId>().is_ok()))
        }
        _ => true,
    };
    (!is_known).then_some("is unknown")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_the_service_cannot_read_are_refused() {
        let check = |table, column, kind: &str, value| refusal(table, column, ColumnType::of(kind), &value);
        for (table, column, kind, value) in [
            ("tickets", "id", "int8", json!("9223372036854775806")),
            ("tickets", "id", "int8", json!(1_i64 << 53)),
            ("tickets", "contact_id", "int8", json!(0)),
            ("tickets", "id", "int8", json!(1.5)),
            ("tickets", "unread_count", "int4", json!(1e300)),
            ("contacts", "created_at", "timestamptz", json!("infinity")),
            ("contacts", "created_at", "timestamptz", json!("290000-01-01T00:00:00Z")),
            ("contacts", "created_at", "timestamptz", json!("4713-01-01 00:00:00 BC")),
            ("contacts", "name", "text", json!(7)),
            ("companies", "stop_words", "_text", json!([null])),
            ("companies", "stop_words", "_text", json!("stop")),
            ("messages", "type", "text", json!("bogus")),
            ("messages", "source", "text", json!("zz")),
            ("tickets", "creation_source", "text", json!("zz")),
            ("messages", "media", "jsonb", json!({"id": "../../../../etc/passwd"})),
            ("messages", "media", "jsonb", json!({"id": 5})),
        ] {
            assert!(check(table, column, kind, value.clone()).is_some(), "{table}.{column} {value}");
        }
        for (table, column, kind, value) in [
            ("tickets", "id", "int8", json!(1)),
            ("tickets", "user_id", "int8", json!(null)),
            ("webchat_sessions", "id", "text", json!("ses_1")),
            ("contacts", "created_at", "timestamptz", json!("2026-01-31T12:00:00.123456+00:00")),
            ("companies", "stop_words", "_text", json!(["stop"])),
            ("messages", "type", "text", json!("note")),
            ("messages", "media", "jsonb", json!({"mimeType": "image/png", "id": null})),
            ("messages", "error", "jsonb", json!(["anything"])),
        ] {
            assert_eq!(check(table, column, kind, value.clone()), None, "{table}.{column} {value}");
        }
    }
}
