//! The codes and parameters, for programs, of the reasons why a field is refused.
//!
//! Reasons are phrases for people, defined where a value is read. This table is the only place that gives them codes,
//! so that a code has one meaning everywhere. Tests fail on a reason without a code.

use serde_json::{Map, Value, json};

/// The code of a reason that this table does not know.
pub const OTHER: &str = "not_accepted";

/// The forms of reasons: a code, and a phrase in which `{name}` stands for a parameter, and `…` at its end for any
/// text. The first form that matches a reason gives its code.
const FORMS: &[(&str, &str)] = &[
    ("required", "is required"),
    ("required", "is required without {without}"),
    ("required", "is required, or {or}"),
    ("required", "is required …"),
    ("required", "is required: …"),
    ("required", "must include a value for `{key}`"),
    ("required", "must be given again …"),
    ("null", "must not be null…"),
    ("blank", "must not be blank…"),
    ("empty", "must not be empty…"),
    ("empty", "must grant at least one permission"),
    ("not_a_string", "must be a string"),
    ("not_a_number", "must be a number…"),
    ("not_an_integer", "must be an integer"),
    ("not_an_integer", "must be an integer from {min} to {max}"),
    ("not_an_integer", "must be an integer from {min}, or latest"),
    ("not_an_integer", "must be an integer from {min}"),
    ("not_an_integer", "must be a whole number from {min} to {max}"),
    ("not_a_boolean", "must be true or false"),
    ("not_an_object", "must be an object…"),
    ("not_an_object", "must be a JSON object…"),
    ("not_a_list", "must be a list"),
    ("not_a_list", "must be a JSON array of {options}"),
    ("not_a_list", "must have a list of methods for {module}"),
    ("not_a_date", "must be a date like …"),
    ("not_a_date_time", "must be a date-time string"),
    ("not_a_date_time", "must be an RFC 3339 date-time"),
    ("not_in_the_future", "must be in the future"),
    ("out_of_range", "must be between the years {min} and {max}"),
    ("out_of_range", "must be at most {maxDays} days before to"),
    ("out_of_range", "must not be before from"),
    ("not_an_option", "must be one of {options}"),
    ("not_an_option", "contains an unknown module; must be one of {options}"),
    ("not_an_option", "contains an unknown method of {module}; must be one of {options}"),
    ("not_an_option", "contains the unknown event type `{value}`"),
    ("not_an_option", "must be an option of the message"),
    ("too_deep", "must be at most {max} levels deep"),
    ("too_deep", "must have at most {max} rows before it…"),
    ("too_many_decimals", "must have at most {max} decimals"),
    ("too_long", "must have at most {max} {unit} once its variables are filled in"),
    ("too_long", "must have words of {min} to {max} characters"),
    ("too_long", "must have at most {max} characters"),
    ("too_long", "must have at most {max} bytes"),
    ("too_many", "must have at most {max} {unit}"),
    ("too_short", "must have at least {min} characters"),
    ("wrong_count", "must have {min} to {max} …"),
    ("wrong_count", "must have {expected} items, one for each placeholder of the template's {part}"),
    ("wrong_count", "must have {expected} parameters for the {part}, not {count}"),
    ("too_large", "must be below {max}"),
    ("too_large", "must be smaller…"),
    ("too_large", "must keep {total} below {max}"),
    ("too_small", "must be above {min}"),
    ("negative", "must not be negative"),
    ("not_a_number", "must not contain the number {value}"),
    ("not_one_line", "must be one line"),
    ("not_one_word", "must be one word"),
    ("not_digits", "must have digits only"),
    ("forbidden_characters", "must not contain …"),
    ("forbidden_characters", "must be UTF-8"),
    ("not_an_email", "must be an e-mail address"),
    ("not_a_phone_number", "must be a phone number of {min} to {max} digits"),
    ("not_a_tax_number", "must be a CPF of …"),
    ("not_a_color", "must be a colour as #rrggbb"),
    ("not_a_key", "must be a letter followed by up to …"),
    ("not_a_time_zone", "must be a time zone of …"),
    ("not_a_url", "must be an http or https …"),
    ("not_a_url", "must be a URL that starts with …"),
    ("not_a_url", "must start with …"),
    ("not_a_url", "must include a host"),
    ("address_forbidden", "is not allowed: …"),
    ("not_an_ip_range", "must be an IPv4 address or range…"),
    ("not_an_origin", "must be an origin…"),
    ("too_broad", "would allow every website …"),
    ("reserved", "is a reserved name"),
    ("given_together", "must not be given together with {other}"),
    ("given_together", "must not be given with {other}"),
    ("given_together", "must be the only one given"),
    ("given_twice", "must be given once"),
    ("given_twice", "contains {value} twice"),
    ("not_unique", "must be unique"),
    ("not_unique", "is already set on another stage"),
    ("not_every_record_once", "must be the ids of all …"),
    ("not_this_list", "must be a cursor of this list…"),
    ("unknown_key", "`{key}` is not a custom field"),
    ("unknown_record", "is not a tag of …"),
    ("unknown_record", "is not one of your companies"),
    ("not_applicable", "does not apply to a {of} channel"),
    ("not_applicable", "is accepted only for …"),
    ("not_applicable", "are accepted only with the type media"),
    ("not_applicable", "does not exist on …"),
    ("not_applicable", "must be given by link…"),
    ("not_applicable", "cannot fill this template…"),
    ("wrong_password", "is not your password"),
    ("wrong_code", "is not the current code"),
    ("common_password", "is one of the most common passwords"),
    ("easy_password", "is too easy to guess: …"),
    ("changed_elsewhere", "must be changed …"),
    ("second_factor_missing", "cannot be required before you set up a second factor yourself"),
    ("fixed", "is fixed…"),
    ("fixed", "cannot be changed…"),
    ("wrong_record", "must be the ticket's channel"),
    ("wrong_record", "must be a webchat"),
    ("wrong_record", "must be another …"),
    ("wrong_record", "must be a board …"),
    ("wrong_record", "must be a stage of the card's board"),
    ("wrong_record", "must be an active …"),
    ("wrong_record", "must be an approved template…"),
    ("wrong_record", "must be a template of the channel"),
    ("wrong_record", "must be linked to the ticket's queue"),
    ("wrong_record", "must be a message that the contact can see"),
    ("wrong_record", "must belong to the queue"),
    ("wrong_record", "must identify the sender"),
    ("wrong_count", "must have a button with the index {index}"),
    ("required", "must have a link (name: cta_url) or buttons"),
];

/// The code of a reason, and its parameters.
pub fn code_of(reason: &str) -> (&'static str, Map<String, Value>) {
    // A custom field's value: `of \`size\` must be a number`.
    if let Some((key, rest)) = reason.strip_prefix("of `").and_then(|rest| rest.split_once("` ")) {
        let (code, mut params) = code_of(rest);
        params.insert("key".to_owned(), json!(key));
        return (code, params);
    }
    // An item of a list: `item 2 must be a string`.
    if let Some((item, rest)) = reason.strip_prefix("item ").and_then(|rest| rest.split_once(' '))
        && let Ok(item) = item.parse::<u32>()
    {
        let (code, mut params) = code_of(rest);
        params.insert("item".to_owned(), json!(item));
        return (code, params);
    }
    let code_and_params = FORMS.iter().find_map(|(code, form)| Some((*code, match_form(form, reason)?)));
    code_and_params.unwrap_or_else(|| (OTHER, Map::new()))
}

/// Every code, for the API document.
pub fn codes() -> Vec<&'static str> {
    let mut codes: Vec<&str> = FORMS.iter().map(|(code, _)| *code).chain([OTHER]).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// The parameters of a reason that matches a form; `None` if it does not match.
fn match_form(form: &str, reason: &str) -> Option<Map<String, Value>> {
    let (fixed, rest) = match form.find(['{', '…']) {
        Some(index) => form.split_at(index),
        None => return (form == reason).then(Map::new),
    };
    let reason = reason.strip_prefix(fixed)?;
    let Some(rest) = rest.strip_prefix('{') else {
        // A `…` follows, which matches any text and ends the form.
        return Some(Map::new());
    };
    let (name, rest) = rest.split_once('}')?;
    // The parameter ends where the next fixed words begin.
    let next_fixed = &rest[..rest.find(['{', '…']).unwrap_or(rest.len())];
    let value = if rest.is_empty() { reason } else { &reason[..reason.find(next_fixed)?] };
    if value.is_empty() {
        return None;
    }
    let mut params = match_form(rest, &reason[value.len()..])?;
    params.insert(name.to_owned(), param_value(name, value));
    Some(params)
}

fn param_value(name: &str, value: &str) -> Value {
    if name == "options" {
        return value.split(", ").collect();
    }
    value.parse::<i64>().map_or_else(|_| json!(value), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_a_code_and_parameters() {
        for (reason, code, params) in [
            ("is required", "required", json!({})),
            ("is required without productId", "required", json!({"without": "productId"})),
            ("is required, or template", "required", json!({"or": "template"})),
            ("is required: the template exists in en_US, pt_BR", "required", json!({})),
            ("must be a number", "not_a_number", json!({})),
            ("must be an integer from 1 to 6000", "not_an_integer", json!({"min": 1, "max": 6000})),
            ("must be one of asc, desc", "not_an_option", json!({"options": ["asc", "desc"]})),
            ("must have at most 255 characters", "too_long", json!({"max": 255})),
            ("must have at most 100 items", "too_many", json!({"max": 100, "unit": "items"})),
            ("must have at most 4 decimals", "too_many_decimals", json!({"max": 4})),
            ("of `size` must be a number like 12.5", "not_a_number", json!({"key": "size"})),
            ("must not be given together with page", "given_together", json!({"other": "page"})),
            ("must be between the years 1970 and 9999", "out_of_range", json!({"min": 1970, "max": 9999})),
            ("item 2 must be a string", "not_a_string", json!({"item": 2})),
            ("is something else", OTHER, json!({})),
        ] {
            assert_eq!(code_of(reason), (code, params.as_object().expect("an object").clone()), "{reason}");
        }
    }

    #[test]
    fn an_ellipsis_ends_a_form_and_words_separate_parameters() {
        for (_, form) in FORMS {
            assert!(form.find('…').is_none_or(|index| form.len() == index + '…'.len_utf8()), "{form}");
            assert!(!form.contains("}{"), "{form}");
        }
    }
}
