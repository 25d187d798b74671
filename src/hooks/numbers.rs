//! Phone numbers in the provider's format.

/// Number of digits, the same as in the API.
const DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// Whether the text is a valid phone number of a contact.
pub(super) fn is_phone_number(text: &str) -> bool {
    DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The country of a number, ISO 3166-1 alpha-2.
pub(super) fn country(digits: &str) -> Option<String> {
    crate::web::request::values::country_of(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_digits_and_a_country() {
        assert_eq!(country("5511987654321").as_deref(), Some("BR"));
        assert!(!is_phone_number("1234567") && !is_phone_number("1650555123a") && !is_phone_number("+16505551234"));
    }
}
