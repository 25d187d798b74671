//! JSON in which numbers may be too large for a float.

use serde_json::{Error, Value};

/// Parses JSON. A number that is too large for a float is clamped, so that its field decides whether to accept it. A
/// decimal field reads the original digits.
pub(super) fn parse(json: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(json).or_else(|error| serde_json::from_slice(&clamp_numbers(json)).map_err(|_| error))
}

/// Replaces each number that is too large for a float with `1e308`, or with `-1e308` if it is negative.
fn clamp_numbers(json: &[u8]) -> Vec<u8> {
    let (mut clamped, mut rest) = (Vec::with_capacity(json.len()), json);
    while let [first, ..] = rest {
        let length = match first {
            b'"' => string_length(rest),
            b'-' | b'0'..=b'9' => {
                rest.iter().take_while(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')).count()
            }
            _ => 1,
        };
        let (token, remainder) = rest.split_at(length);
        let number = str::from_utf8(token).ok().and_then(|token| token.parse::<f64>().ok());
        match number.filter(|number| number.is_infinite()) {
            Some(number) => clamped.extend_from_slice(if number > 0.0 { b"1e308" } else { b"-1e308" }),
            None => clamped.extend_from_slice(token),
        }
        rest = remainder;
    }
    clamped
}

/// Length of the string at the beginning of the JSON, including its quotation marks.
fn string_length(json: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = json.iter().skip(1).position(|byte| {
        let is_closing = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_closing
    });
    end.map_or(json.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_too_large_for_a_float_are_clamped() {
        for (json, clamped) in [
            (r#"{"a":1e400,"b":-1e999, "c":[1e308,-0.5e-400]}"#, r#"{"a":1e308,"b":-1e308, "c":[1e308,-0.5e-400]}"#),
            (r#"{"1e400":"1e400 \" 1e400 \\","x":1e400}"#, r#"{"1e400":"1e400 \" 1e400 \\","x":1e308}"#),
            ("1e400\"", "1e308\""),
            ("-", "-"),
        ] {
            assert_eq!(String::from_utf8_lossy(&clamp_numbers(json.as_bytes())), clamped);
        }
    }
}
