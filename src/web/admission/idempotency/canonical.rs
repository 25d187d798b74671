//! A canonical form of JSON bodies: it is the same for equal values, whatever the order of keys, the white space,
//! and the notation of numbers and texts.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Number of levels of a body that are parsed: more than any field has. Parsing a level also reads everything below it,
/// so the cost grows with the number of levels. Deeper values are equal if their bytes are.
const DEPTH_MAX: usize = 16;

/// Feeds the canonical form of a body to `emit`. Some bytes are fed unchanged, and are equal only to the same bytes:
/// invalid JSON, values deeper than [`DEPTH_MAX`], texts with half of a surrogate pair, and objects with such a key.
pub(super) fn feed(body: &[u8], emit: &mut impl FnMut(&[u8])) {
    match serde_json::from_slice::<&RawValue>(body) {
        Ok(value) => feed_value(value.get().trim(), DEPTH_MAX, emit),
        // An empty body feeds nothing: many calls need no body.
        Err(_) if body.is_empty() => {}
        Err(_) => feed_raw(body, emit),
    }
}

/// Feeds bytes unchanged, marked and prefixed with their length, so that they differ from every canonical form and its
/// parts.
fn feed_raw(bytes: &[u8], emit: &mut impl FnMut(&[u8])) {
    emit(format!("!{}:", bytes.len()).as_bytes());
    emit(bytes);
}

/// Feeds a valid JSON value. It is parsed level by level and its numbers stay text, because a parsed number would lose
/// digits.
fn feed_value(json: &str, levels: usize, emit: &mut impl FnMut(&[u8])) {
    match json.as_bytes().first() {
        Some(b'{' | b'[') if levels == 0 => feed_raw(json.as_bytes(), emit),
        // If a key occurs twice, its last value counts, as in the handlers.
        Some(b'{') => match serde_json::from_str::<BTreeMap<String, &RawValue>>(json) {
            Ok(members) => {
                emit(b"{");
                for (key, value) in members {
                    feed_text(&key, emit);
                    feed_value(value.get().trim(), levels - 1, emit);
                }
                emit(b"}");
            }
            Err(_) => feed_raw(json.as_bytes(), emit),
        },
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(json) {
            Ok(items) => {
                emit(b"[");
                for item in items {
                    feed_value(item.get().trim(), levels - 1, emit);
                    emit(b",");
                }
                emit(b"]");
            }
            Err(_) => feed_raw(json.as_bytes(), emit),
        },
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => feed_text(&text, emit),
            Err(_) => feed_raw(json.as_bytes(), emit),
        },
        Some(b'-' | b'0'..=b'9') => emit(canonical_number(json).as_bytes()),
        _ => emit(json.as_bytes()),
    }
}

/// Feeds a text, prefixed with its length so that no text equals a part of another value.
fn feed_text(text: &str, emit: &mut impl FnMut(&[u8])) {
    emit(format!("\"{}:", text.len()).as_bytes());
    emit(text.as_bytes());
}

/// The significant digits of a number, and the power of ten of the last digit.
fn canonical_number(json: &str) -> String {
    let (sign, rest) = json.strip_prefix('-').map_or(("", json), |rest| ("-", rest));
    let (digits, power) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // An exponent out of range is compared as text.
    let Ok(power) = power.trim_start_matches('+').parse::<i64>() else { return json.to_owned() };
    let all_digits = format!("{whole}{fraction}");
    let significant = all_digits.trim_end_matches('0');
    let trailing_zeros = i64::try_from(all_digits.len() - significant.len()).unwrap_or(i64::MAX);
    let fraction_length = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    format!("{sign}{significant}e{}", power.saturating_sub(fraction_length).saturating_add(trailing_zeros))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(body: &str) -> Vec<u8> {
        let mut form = Vec::new();
        feed(body.as_bytes(), &mut |part| form.extend_from_slice(part));
        form
    }

    #[test]
    fn a_body_of_any_depth_is_fed() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(canonical(&deep(DEPTH_MAX)), canonical(&format!(" {} ", deep(DEPTH_MAX))));
        assert_ne!(canonical(&deep(50_000)), canonical(&deep(50_001)));
    }

    #[test]
    fn equal_values_have_the_same_form_and_different_values_do_not() {
        for (first, second) in [
            (r#"{"a":1,"b":[1,2]}"#, " {\n\"b\" : [ 1.0 , 2e0 ],\t\"a\":10e-1 }"),
            (r#"{"a":"\u00e9\/"}"#, r#"{"a":"é/"}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            ("-0", "0.000"),
            ("100", "1e2"),
            ("[]", "[ ]"),
        ] {
            assert_eq!(canonical(first), canonical(second), "{first} {second}");
        }
        let different = [
            "1",
            "-1",
            "10",
            "0.1",
            "12345678901234.5671",
            "12345678901234.5672",
            "\"1\"",
            "[1]",
            "[1,1]",
            "[[1],1]",
            "{}",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"b":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":{},"b":1}"#,
            "null",
            "true",
            "\"null\"",
            "[]",
            "[null]",
            "\"\"",
            "1e99999999999999999999",
            "not json",
            "{\"a\":1",
            // Not JSON, but identical to the canonical form of `{"a":1}`.
            "{\"1:a1e0}",
            "!2:{}",
            "",
            r#"{"\ud800":1}"#,
            r#"{"\ud801":1}"#,
            r#"{"a":{"\ud800":1}}"#,
            r#"[{"\ud800":1}]"#,
            r#""\ud800""#,
            r#"["\ud800"]"#,
            r#"["\ud801"]"#,
        ];
        for (index, first) in different.iter().enumerate() {
            for second in &different[index + 1..] {
                assert_ne!(canonical(first), canonical(second), "{first} {second}");
            }
        }
    }
}
