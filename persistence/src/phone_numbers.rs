//! Spellings of one phone number.
//!
//! A provider omits the ninth digit of many Brazilian mobile numbers, and adds a digit to Mexican and Argentinian ones;
//! people write both. Everywhere, both spellings count as the same number.

/// The other spelling of a number in digits, if its country has two.
pub fn other_spelling(digits: &str) -> Option<String> {
    if !digits.is_ascii() {
        return None;
    }
    match (digits.get(..2)?, digits.len()) {
        // Brazil: 55, a two-digit area code, eight or nine digits.
        ("55", 12) if matches!(digits.as_bytes()[4], b'6'..=b'9') => Some(format!("{}9{}", &digits[..4], &digits[4..])),
        // Without the ninth digit it must be a mobile number, too: only those have one.
        ("55", 13) if digits.as_bytes()[4] == b'9' && matches!(digits.as_bytes()[5], b'6'..=b'9') => {
            Some(format!("{}{}", &digits[..4], &digits[5..]))
        }
        // Mexico: 52, the old mobile prefix 1, ten digits.
        ("52", 13) if digits.as_bytes()[2] == b'1' => Some(format!("52{}", &digits[3..])),
        ("52", 12) => Some(format!("521{}", &digits[2..])),
        // Argentina: 54, the mobile prefix 9, ten digits.
        ("54", 13) if digits.as_bytes()[2] == b'9' => Some(format!("54{}", &digits[3..])),
        ("54", 12) => Some(format!("549{}", &digits[2..])),
        _ => None,
    }
}

/// All spellings of a number, the given one first.
pub fn spellings(digits: &str) -> Vec<String> {
    std::iter::once(digits.to_owned()).chain(other_spelling(digits)).collect()
}

/// Whether both are spellings of one number.
pub fn is_same(one: &str, other: &str) -> bool {
    one == other || other_spelling(one).is_some_and(|spelling| spelling == other)
}

/// The shortest spelling of a number, the same for all of its spellings.
pub fn shortest_spelling(digits: &str) -> String {
    match other_spelling(digits) {
        Some(other) if other.len() < digits.len() => other,
        _ => digits.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_spellings_its_country_knows() {
        for (one, other) in
            [("551187654321", "5511987654321"), ("5215512345678", "525512345678"), ("5491112345678", "541112345678")]
        {
            assert_eq!(spellings(one), [one, other]);
            assert_eq!(spellings(other), [other, one]);
            assert_eq!(shortest_spelling(one), shortest_spelling(other));
            assert!(is_same(one, other) && is_same(other, one) && is_same(one, one));
        }
        for only in ["16505551234", "551132165432", "5531932165432", "12345678", "123456789012345", "é55", ""] {
            assert_eq!(spellings(only), [only]);
            assert_eq!(shortest_spelling(only), only);
        }
        assert!(!is_same("5511987654321", "5511987654322"));
    }
}
