//! Phone numbers in the provider's format.

/// Number of digits, as everywhere.
const DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// Whether the text is a valid phone number of a contact.
pub(super) fn is_phone_number(text: &str) -> bool {
    DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The country of a number, ISO 3166-1 alpha-2.
pub(super) fn country(digits: &str) -> Option<String> {
    crate::web::request::values::country_of(digits)
}

/// The same number in people's usual spelling, which may differ from the provider's: the provider omits the ninth digit
/// of many Brazilian mobile numbers, and adds one to Mexican and Argentinian ones. A contact that was created with
/// either spelling is the sender.
pub(super) fn other_spellings(digits: &str) -> Vec<String> {
    let other = match (digits.get(..2), digits.len()) {
        // 55, two digits of the area code, eight or nine of the number.
        (Some("55"), 12) if matches!(digits.as_bytes()[4], b'6'..=b'9') => {
            Some(format!("{}9{}", &digits[..4], &digits[4..]))
        }
        (Some("55"), 13) if digits.as_bytes()[4] == b'9' => Some(format!("{}{}", &digits[..4], &digits[5..])),
        // 52, the old mobile prefix 1, ten digits.
        (Some("52"), 13) if digits.as_bytes()[2] == b'1' => Some(format!("52{}", &digits[3..])),
        (Some("52"), 12) => Some(format!("521{}", &digits[2..])),
        // 54, the mobile prefix 9, ten digits.
        (Some("54"), 13) if digits.as_bytes()[2] == b'9' => Some(format!("54{}", &digits[3..])),
        (Some("54"), 12) => Some(format!("549{}", &digits[2..])),
        _ => None,
    };
    other.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_spellings_its_country_knows() {
        for (one, other) in
            [("551187654321", "5511987654321"), ("5215512345678", "525512345678"), ("5491112345678", "541112345678")]
        {
            assert!(is_phone_number(one) && is_phone_number(other));
            assert_eq!(other_spellings(one), [other]);
            assert_eq!(other_spellings(other), [one], "{other}");
        }
        for only in ["16505551234", "551132165432", "12345678", "123456789012345"] {
            assert!(other_spellings(only).is_empty(), "{only}");
        }
        assert_eq!(country("5511987654321").as_deref(), Some("BR"));
        assert!(!is_phone_number("1234567") && !is_phone_number("1650555123a") && !is_phone_number("+16505551234"));
    }
}
