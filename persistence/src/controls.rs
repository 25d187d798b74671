//! Control characters that no text may contain: U+0000 to U+001F, except tab, line feed and carriage return.
//!
//! PostgreSQL cannot store U+0000; the others are invisible, and each takes six bytes in JSON. Requests with such a
//! character are refused. Texts from providers and visitors are accepted without it, so that no message is lost.

use serde_json::Value;

/// The reason given when a text with a control character is refused.
pub const REFUSED: &str = "must not contain control characters except tab, line feed and carriage return";

/// Whether a character is one that no text may contain.
pub fn is_refused(character: char) -> bool {
    character < ' ' && !matches!(character, '\t' | '\n' | '\r')
}

/// Whether a text contains a refused character.
pub fn contains_refused(text: &str) -> bool {
    text.contains(is_refused)
}

/// Whether a value contains a refused character in any of its texts, or in the name of a field.
pub fn value_contains_refused(value: &Value) -> bool {
    match value {
        Value::String(text) => contains_refused(text),
        Value::Array(items) => items.iter().any(value_contains_refused),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| contains_refused(name) || value_contains_refused(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Removes refused characters from a text.
pub fn remove_from_text(text: &mut String) {
    if contains_refused(text) {
        text.retain(|character| !is_refused(character));
    }
}

/// Removes refused characters from every text of a value. The names of its fields stay: readers look them up.
pub fn remove_from_value(value: &mut Value) {
    match value {
        Value::String(text) => remove_from_text(text),
        Value::Array(items) => items.iter_mut().for_each(remove_from_value),
        Value::Object(fields) => fields.values_mut().for_each(remove_from_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_tab_line_feed_and_carriage_return_are_allowed() {
        let refused: Vec<u32> = ('\0'..='\u{ff}').filter(|character| is_refused(*character)).map(u32::from).collect();
        let expected: Vec<u32> = (0..0x20).filter(|code| ![9, 10, 13].contains(code)).collect();
        assert_eq!(refused, expected);
    }

    #[test]
    fn control_characters_are_removed_from_every_text_of_a_value() {
        let mut value = json!({"a": "x\u{1}\ty", "b": ["\u{1f}", 7, null, {"c": "\r\n\u{b}é"}]});
        assert!(value_contains_refused(&value));
        remove_from_value(&mut value);
        assert_eq!(value, json!({"a": "x\ty", "b": ["", 7, null, {"c": "\r\né"}]}));
        assert!(!value_contains_refused(&value) && value_contains_refused(&json!({"\u{2}": 1})));
    }
}
