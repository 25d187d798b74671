//! Parses the values of custom fields of contacts and cards, and validates them against their fields.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate};
use hotline_actors::{FieldError, Refusal};
use hotline_persistence::tables::custom_fields::{
    Application, CustomField, CustomFieldId, CustomFieldType, FIELDS_MAX,
};
use hotline_persistence::visible_text;
use hotline_persistence::{CompanyId, Db, table};
use serde_json::Value;
use sqlx::PgConnection;

use crate::web::request::values::{Email, FromField, Name, Number, Text};
use crate::web::{ApiResult, Fields, Input, Patch};
use crate::web_address;

/// Maximum number of values in a request: one of each field.
const VALUES_MAX: usize = FIELDS_MAX;

/// Maximum length of a number, in characters.
const NUMBER_CHARACTERS_MAX: usize = 30;

/// One value of a body.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomValueInput {
    /// The path of this item in the body, which prefixes its fields in errors, like `customFields[0].`.
    path: String,
    /// The field's key.
    key: String,
    /// The new value. `Some(None)` clears the field; `None` means that the value was refused when it was read.
    value: Option<Option<String>>,
}

/// A body with values of custom fields.
pub trait HasCustomValues: Input {
    /// What the custom fields belong to.
    const APPLICATION: Application;
    /// Whether the body creates a record, which needs the values of all required fields.
    const IS_NEW: bool;
}

/// A body that was read. If some of its fields are invalid, its custom values are validated too, so that the response
/// has every error.
pub struct BodyWithValues<T>(Result<T, RefusedBody>);

/// A body with invalid fields, and its custom values.
struct RefusedBody {
    errors: Vec<FieldError>,
    values: Vec<CustomValueInput>,
}

impl<T: HasCustomValues> Input for BodyWithValues<T> {
    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn text() -> Option<String> {
        T::text()
    }

    const MAY_BE_EMPTY: bool = T::MAY_BE_EMPTY;
    const BYTES_MAX: usize = T::BYTES_MAX;
    const MAY_BE_REFUSED: bool = T::MAY_BE_REFUSED;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let body = T::read(fields);
        let errors = fields.take_errors();
        if errors.is_empty() {
            return body.map(|body| Self(Ok(body)));
        }
        // The values are read again, because the body is discarded. `errors` has their errors already.
        let values = read(fields, T::IS_NEW);
        fields.take_errors();
        Some(Self(Err(RefusedBody { errors, values })))
    }

    fn examples() -> Vec<(&'static str, Value)> {
        T::examples()
    }

    fn form_examples() -> Vec<(&'static str, Value)> {
        T::form_examples()
    }
}

impl<T: HasCustomValues> BodyWithValues<T> {
    /// The body, if all its fields are valid. Its values are validated later, in the transaction that stores them.
    ///
    /// # Errors
    /// `422` with every error, also of the values.
    pub async fn check(self, db: Db<'_>, company: CompanyId) -> ApiResult<T> {
        let RefusedBody { mut errors, values } = match self.0 {
            Ok(body) => return Ok(body),
            Err(refused) => refused,
        };
        // If the custom fields cannot be read, the response has only the errors of the body.
        if let Ok(custom_fields) = table::all_of::<CustomField>(db, company, T::APPLICATION).await
            && let Err(value_errors) = check_all(&custom_fields, &values, T::IS_NEW)
        {
            errors.extend(value_errors);
        }
        Err(Refusal::Invalid(errors).into())
    }
}

/// Reads `customFields`: `[{key, value}]`. A change must not set it to `null`.
pub fn read(fields: &mut Fields<'_>, is_new: bool) -> Vec<CustomValueInput> {
    let values = if is_new {
        fields.objects("customFields", VALUES_MAX, read_item)
    } else {
        fields.changed_objects("customFields", VALUES_MAX, read_item)
    };
    values.unwrap_or_default()
}

fn read_item(fields: &mut Fields<'_>) -> Option<CustomValueInput> {
    match fields.required::<Name>("key") {
        Some(Name(key)) => {
            let value = fields.with_prefix(&format!("of `{key}`"), read_value);
            Some(CustomValueInput { path: fields.path().to_owned(), key, value })
        }
        None => {
            read_value(fields);
            None
        }
    }
}

/// Reads the value of one field; see [`CustomValueInput::value`].
fn read_value(fields: &mut Fields<'_>) -> Option<Option<String>> {
    match fields.patch::<Text>("value") {
        Patch::Value(text) => Some(Some(text.0)),
        Patch::Null => Some(None),
        Patch::Absent => {
            if !fields.has("value") {
                fields.refuse("value", "is required, or null to clear it");
            }
            None
        }
    }
}

/// Validates values against the custom fields, and returns the values to store. Locks the fields until the transaction
/// ends. `is_new`: the record is being created.
///
/// # Errors
/// `422` with every error.
pub async fn validate(
    db: &mut PgConnection,
    company: CompanyId,
    application: Application,
    values: &[CustomValueInput],
    is_new: bool,
) -> ApiResult<Vec<(CustomFieldId, Option<String>)>> {
    if values.is_empty() && !is_new {
        return Ok(Vec::new());
    }
    let custom_fields = table::lock_all_of::<CustomField>(db, company, application).await?;
    check_all(&custom_fields, values, is_new).map_err(|errors| Refusal::Invalid(errors).into())
}

/// Validates values against the custom fields of one application. Returns the values to store, at most one per field:
/// the last one wins. With `is_new` every required field must have a value. A change may omit a required field, but
/// must not clear it.
///
/// # Errors
/// Every error, with the field's key.
pub fn check_all(
    custom_fields: &[CustomField],
    values: &[CustomValueInput],
    is_new: bool,
) -> Result<Vec<(CustomFieldId, Option<String>)>, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut validated: Vec<(CustomFieldId, Option<String>)> = Vec::with_capacity(values.len());
    for CustomValueInput { path, key, value } in values {
        let mut refuse = |property: &str, reason: String| {
            errors.push(FieldError { field: format!("{path}{property}"), reason });
        };
        let Some(value) = value else { continue };
        let Some(field) = custom_fields.iter().find(|field| field.key == *key) else {
            refuse("key", format!("`{key}` is not a custom field"));
            continue;
        };
        let value = match value {
            None if field.required => Err("is required".to_owned()),
            None => Ok(None),
            Some(value) => check_value(field.kind, &field.options, value).map(Some),
        };
        match value {
            Ok(value) => {
                validated.retain(|(id, _)| *id != field.id);
                validated.push((field.id, value));
            }
            Err(reason) => refuse("value", format!("of `{key}` {reason}")),
        }
    }
    if is_new {
        let is_present = |field: &CustomField| values.iter().any(|value| value.key == field.key);
        for field in custom_fields.iter().filter(|field| field.required && !is_present(field)) {
            let reason = format!("must include a value for `{}`", field.key);
            errors.push(FieldError { field: "customFields".to_owned(), reason });
        }
    }
    if errors.is_empty() { Ok(validated) } else { Err(errors) }
}

/// Validates one value by its field's type and options. Returns the value to store.
///
/// # Errors
/// The reason, a phrase that completes "of `key` …".
pub fn check_value(kind: CustomFieldType, options: &[String], value: &str) -> Result<String, String> {
    let value = value.trim();
    if visible_text::is_blank(value) {
        return Err("must not be blank".to_owned());
    }
    let is_accepted = match kind {
        CustomFieldType::Text if visible_text::has_line_break(value) => return Err("must be one line".to_owned()),
        CustomFieldType::Text | CustomFieldType::Textarea => true,
        CustomFieldType::Number => is_number(value),
        CustomFieldType::Boolean => matches!(value, "true" | "false"),
        CustomFieldType::Date => is_date(value),
        CustomFieldType::Datetime => DateTime::parse_from_rfc3339(value).is_ok(),
        CustomFieldType::Email => return Email::from_text(value).map(|email| email.0),
        CustomFieldType::Url => is_url(value),
        CustomFieldType::Phone => return Number::from_text(value).map(|number| number.0),
        CustomFieldType::Select => return find_option(options, value).ok_or_else(|| mismatch_reason(kind, options)),
        CustomFieldType::Multiselect => return parse_options(options, value),
    };
    if is_accepted { Ok(value.to_owned()) } else { Err(mismatch_reason(kind, options)) }
}

fn mismatch_reason(kind: CustomFieldType, options: &[String]) -> String {
    match kind {
        CustomFieldType::Number => "must be a number like 12.5".to_owned(),
        CustomFieldType::Boolean => "must be true or false".to_owned(),
        CustomFieldType::Date => "must be a date like 2026-01-31".to_owned(),
        CustomFieldType::Datetime => "must be an RFC 3339 date-time".to_owned(),
        CustomFieldType::Url => "must be an http or https URL".to_owned(),
        _ => format!("must be one of {}", options.join(", ")),
    }
}

/// Whether the text is a number as JSON writes it, without an exponent.
fn is_number(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
    text.len() <= NUMBER_CHARACTERS_MAX && is_digits(whole) && !has_leading_zero && is_digits(fraction)
}

fn is_date(text: &str) -> bool {
    // chrono would also accept signs, years of other lengths and single-digit days.
    let has_date_format = text.len() == "2026-01-31".len()
        && text
            .bytes()
            .enumerate()
            .all(|(index, byte)| if matches!(index, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
    has_date_format && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

fn is_url(text: &str) -> bool {
    !text.contains(char::is_whitespace) && web_address::parse(text).is_ok()
}

/// Parses a JSON array of options; each may occur once.
fn parse_options(options: &[String], text: &str) -> Result<String, String> {
    let reason = || format!("must be a JSON array of {}", options.join(", "));
    let values: Vec<String> = serde_json::from_str(text).map_err(|_| reason())?;
    let mut chosen: Vec<String> = Vec::with_capacity(values.len());
    for value in values {
        match find_option(options, &value).filter(|option| !chosen.contains(option)) {
            Some(option) => chosen.push(option),
            None => return Err(reason()),
        }
    }
    serde_json::to_string(&chosen).map_err(|_| reason())
}

/// The option that equals the value; without one, an option that looks the same. Equality comes first because earlier
/// releases accepted options that look alike.
fn find_option(options: &[String], value: &str) -> Option<String> {
    let value = visible_text::normalize(value);
    let appearance = visible_text::appearance(&value);
    let looks_same = |option: &&String| visible_text::appearance(&visible_text::normalize(option)) == appearance;
    options.iter().find(|option| **option == value).or_else(|| options.iter().find(looks_same)).cloned()
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use hotline_persistence::table::Stamps;

    use super::*;

    #[test]
    fn a_value_selects_the_option_that_looks_the_same() {
        let options = ["A\u{e7}\u{e3}o".to_owned()];
        assert_eq!(check_value(CustomFieldType::Select, &options, "Ac\u{327}a\u{303}o"), Ok(options[0].clone()));
        let list = "[\"Ac\u{327}a\u{303}o\"]";
        assert_eq!(check_value(CustomFieldType::Multiselect, &options, list), Ok("[\"A\u{e7}\u{e3}o\"]".to_owned()));
        let duplicates = "[\"A\u{e7}\u{e3}o\",\"Ac\u{327}a\u{303}o\"]";
        assert!(check_value(CustomFieldType::Multiselect, &options, duplicates).is_err());
        assert!(check_value(CustomFieldType::Text, &[], "\u{200b}").is_err());
    }

    #[test]
    fn a_value_is_accepted_by_its_fields_type() {
        let options = ["Blue".to_owned(), "Dark red".to_owned()];
        let long = "9".repeat(31);
        /// A type, the accepted values with their stored form, and refused values.
        type Case<'a> = (CustomFieldType, &'a [(&'a str, &'a str)], &'a [&'a str]);
        let cases: &[Case<'_>] = &[
            (CustomFieldType::Text, &[("  a b ", "a b"), ("12", "12")], &["a\nb", " ", ""]),
            (CustomFieldType::Textarea, &[("a\nb", "a\nb")], &["", "\n"]),
            (
                CustomFieldType::Number,
                &[("12.5", "12.5"), ("-0.05", "-0.05"), ("0", "0"), ("1000000", "1000000")],
                &["12,5", "1e3", "+1", ".5", "5.", "007", "-", "0x1", "NaN", "١", "1 000", long.as_str()],
            ),
            (CustomFieldType::Boolean, &[("true", "true"), ("false", "false")], &["True", "1", "yes"]),
            (
                CustomFieldType::Date,
                &[("2026-01-31", "2026-01-31"), ("2024-02-29", "2024-02-29"), ("1950-12-01", "1950-12-01")],
                &["2026-02-30", "31/01/2026", "2026-1-31", "2026-01-31T00:00:00Z", "+2026-1-31", "tomorrow"],
            ),
            (
                CustomFieldType::Datetime,
                &[
                    ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
                    ("2026-01-31T12:00:00.5-03:00", "2026-01-31T12:00:00.5-03:00"),
                ],
                &["2026-01-31", "2026-01-31T12:00:00", "1767225600"],
            ),
            (CustomFieldType::Email, &[("a@b.example", "a@b.example")], &["a", "a b@c", "@"]),
            (
                CustomFieldType::Url,
                &[
                    ("https://example.com/a?b=c", "https://example.com/a?b=c"),
                    ("http://localhost:8080", "http://localhost:8080"),
                ],
                &[
                    "example.com",
                    "https:///example.com",
                    "https:example.com",
                    "https://a..b/",
                    "ftp://example.com",
                    "javascript:alert(1)",
                    "https://",
                    "https://a b",
                ],
            ),
            (CustomFieldType::Phone, &[("+55 (11) 98765-4321", "5511987654321")], &["123", "abc"]),
            (CustomFieldType::Select, &[("Blue", "Blue"), (" Dark red ", "Dark red")], &["blue", "Red", "[\"Blue\"]"]),
            (
                CustomFieldType::Multiselect,
                &[("[\"Dark red\", \"Blue\"]", "[\"Dark red\",\"Blue\"]"), ("[]", "[]")],
                &["Blue", "[\"Red\"]", "[\"Blue\",\"Blue\"]", "[1]", "{}", "[\"Blue\""],
            ),
        ];
        assert_eq!(cases.len(), CustomFieldType::ALL.len(), "a type is missing");
        for (kind, accepted, refused) in cases {
            for (value, stored) in *accepted {
                assert_eq!(check_value(*kind, &options, value).as_deref(), Ok(*stored), "{kind:?} {value}");
            }
            for value in *refused {
                assert!(check_value(*kind, &options, value).is_err(), "{kind:?} {value}");
            }
        }
    }

    fn custom_field(id: i64, key: &str, kind: CustomFieldType, required: bool) -> CustomField {
        CustomField {
            id: CustomFieldId::new(id),
            key: key.to_owned(),
            name: key.to_owned(),
            application: Application::Contact,
            kind,
            options: Vec::new(),
            required,
            position: 1,
            stamps: Stamps::of(Utc::now().into()),
        }
    }

    #[test]
    fn each_error_has_the_key_of_its_custom_field() {
        let custom_fields = [
            custom_field(1, "size", CustomFieldType::Number, true),
            custom_field(2, "note", CustomFieldType::Text, false),
            custom_field(3, "born", CustomFieldType::Date, true),
        ];
        let inputs_of = |values: &[(&str, Option<&str>)]| -> Vec<CustomValueInput> {
            let input_of = |(index, (key, value)): (usize, &(&str, Option<&str>))| CustomValueInput {
                path: format!("customFields[{index}]."),
                key: (*key).to_owned(),
                value: Some(value.map(str::to_owned)),
            };
            values.iter().enumerate().map(input_of).collect()
        };
        let check_new = |values: &[(&str, Option<&str>)]| check_all(&custom_fields, &inputs_of(values), true);
        let check_change = |values: &[(&str, Option<&str>)]| check_all(&custom_fields, &inputs_of(values), false);
        let errors = check_new(&[("size", Some("x")), ("shoe", Some("1"))]).expect_err("refused");
        let errors: Vec<(&str, bool)> = errors
            .iter()
            .map(|error| {
                (error.field.as_str(), ["`size`", "`shoe`", "`born`"].iter().any(|key| error.reason.contains(key)))
            })
            .collect();
        assert_eq!(errors, [("customFields[0].value", true), ("customFields[1].key", true), ("customFields", true)]);
        assert!(check_change(&[("size", None)]).is_err(), "a change cannot clear a required field");
        assert_eq!(
            check_change(&[("note", Some("a")), ("note", None), ("size", Some("1"))]),
            Ok(vec![(CustomFieldId::new(2), None), (CustomFieldId::new(1), Some("1".to_owned()))]),
            "the last value of a field counts"
        );
    }
}
