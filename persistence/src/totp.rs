//! Authenticator app codes: RFC 6238 with SHA-1, six digits and 30 seconds, the parameters every app uses.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use ring::hmac;

/// Bytes of a secret: RFC 4226 recommends the hash length.
const SECRET_BYTES: usize = 20;

/// Length of a period in seconds: an app shows a new code in each period.
const PERIOD_S: i64 = 30;

/// Digits of a code, and the number of possible codes.
const DIGITS: usize = 6;
const CODES: u32 = 1_000_000;

/// Tolerated clock error of a phone, in periods.
const CLOCK_ERROR_STEPS_MAX: i64 = 1;

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A new secret.
pub fn new_secret() -> [u8; SECRET_BYTES] {
    rand::random()
}

/// Encodes a secret for an app: base32 (RFC 4648), without padding.
pub fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut bits = [0; 8];
        bits[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(bits);
        for index in 0..(chunk.len() * 8).div_ceil(5) {
            let digit = (bits >> (35 - 5 * index)) & 31;
            text.push(char::from(BASE32[usize::try_from(digit).unwrap_or(0)]));
        }
    }
    text
}

/// A secret as a URI, which apps scan as a QR code.
pub fn uri(secret: &[u8], issuer: &str, account: &str) -> String {
    let mut uri = "otpauth://totp/".to_owned();
    escape(&mut uri, issuer);
    uri.push(':');
    escape(&mut uri, account);
    uri.push_str("?secret=");
    uri.push_str(&base32(secret));
    uri.push_str("&issuer=");
    escape(&mut uri, issuer);
    uri
}

fn escape(uri: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
}

/// The number (step) of the period whose code this is; `None` for a wrong code. A code is also wrong if its period is
/// not near `now`, or is not later than `last_step`, the period of the last code used.
pub fn step_of(secret: &[u8], code: &str, now: DateTime<Utc>, last_step: i64) -> Option<i64> {
    let code = code.trim();
    if code.len() != DIGITS || !code.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let entered: u32 = code.parse().ok()?;
    let current_step = now.timestamp() / PERIOD_S;
    let near_steps = current_step - CLOCK_ERROR_STEPS_MAX..=current_step + CLOCK_ERROR_STEPS_MAX;
    near_steps.filter(|step| *step > last_step).find(|step| code_at(secret, *step) == Some(entered))
}

/// The code of a period: RFC 4226, section 5.3.
fn code_at(secret: &[u8], step: i64) -> Option<u32> {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let bytes = tag.as_ref();
    let offset = usize::from(bytes.last()? & 15);
    let word: [u8; 4] = bytes.get(offset..offset + 4)?.try_into().ok()?;
    Some((u32::from_be_bytes(word) & 0x7fff_ffff) % CODES)
}

/// The code that an app shows at this time.
pub fn code(secret: &[u8], now: DateTime<Utc>) -> Option<String> {
    code_at(secret, now.timestamp() / PERIOD_S).map(|code| format!("{code:0DIGITS$}"))
}

/// Decodes the output of [`base32`]; `None` if invalid.
pub fn from_base32(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut bit_count) = (Vec::new(), 0_u32, 0_u32);
    for character in text.bytes() {
        let digit = BASE32.iter().position(|letter| *letter == character.to_ascii_uppercase())?;
        bits = (bits << 5) | u32::try_from(digit).ok()?;
        bit_count += 5;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push(u8::try_from(bits >> bit_count).ok()?);
            bits &= (1 << bit_count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"12345678901234567890";

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).expect("time")
    }

    /// RFC 6238, appendix B, shortened to the last six digits.
    const VECTORS: [(i64, &str); 6] = [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ];

    #[test]
    fn the_codes_are_those_of_the_rfc() {
        for (seconds, expected) in VECTORS {
            assert_eq!(code(SECRET, at(seconds)).as_deref(), Some(expected), "{seconds}");
            assert_eq!(step_of(SECRET, expected, at(seconds), 0), Some(seconds / 30));
        }
    }

    #[test]
    fn a_code_is_accepted_once_and_only_near_its_time() {
        let (seconds, code) = VECTORS[1];
        let step = seconds / 30;
        for (offset, expected) in [(-60, None), (-30, Some(step)), (30, Some(step)), (60, None)] {
            assert_eq!(step_of(SECRET, code, at(seconds + offset), 0), expected, "{offset}");
        }
        assert_eq!(step_of(SECRET, code, at(seconds), step), None, "the code was used before");
        for wrong in ["", "81804", "0081804", "08180a", "+81804", "081805"] {
            assert_eq!(step_of(SECRET, wrong, at(seconds), 0), None, "{wrong}");
        }
    }

    #[test]
    fn secrets_are_encoded_as_apps_expect() {
        // RFC 4648, section 10.
        for (bytes, text) in
            [("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("foobar", "MZXW6YTBOI")]
        {
            assert_eq!(base32(bytes.as_bytes()), text);
            assert_eq!(from_base32(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(from_base32("0"), None);
        let uri = uri(SECRET, "Hotline: Ação", "ana@example.com");
        assert_eq!(
            uri,
            "otpauth://totp/Hotline%3A%20A%C3%A7%C3%A3o:ana%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
             &issuer=Hotline%3A%20A%C3%A7%C3%A3o"
        );
    }
}
