//! The tax number of a person (CPF) or a company (CNPJ).

use serde_json::{Value, json};

use crate::web::request::values::FromField;

/// Number of digits of a CPF and of a CNPJ.
const PERSON_DIGITS: usize = 11;
const COMPANY_DIGITS: usize = 14;

/// 11 or 14 digits, the last two of which are check digits; `.`, `-` and `/` are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaxNumber(pub String);

impl FromField for TaxNumber {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or("must be a string")?.trim();
        let digits: String = text.chars().filter(|character| !matches!(character, '.' | '-' | '/')).collect();
        if is_valid(&digits) {
            Ok(Self(digits))
        } else {
            Err("must be a CPF of 11 or a CNPJ of 14 digits with valid check digits".to_owned())
        }
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "description": "11 digits for a person or 14 for a company, with valid check digits; `. - /` are removed",
            "example": "52998224725",
        })
    }

    const IS_TEXT: bool = true;
}

fn is_valid(text: &str) -> bool {
    let Some(digits) = text.chars().map(|character| character.to_digit(10)).collect::<Option<Vec<u32>>>() else {
        return false;
    };
    // The weights increase from the right; for a company they restart after 9.
    let weight_max = match digits.len() {
        PERSON_DIGITS => PERSON_DIGITS,
        COMPANY_DIGITS => 9,
        _ => return false,
    };
    // A number of one repeated digit has valid check digits but is never issued.
    let is_repeated = digits.windows(2).all(|pair| pair[0] == pair[1]);
    let length = digits.len();
    !is_repeated && (length - 2..length).all(|index| digits[index] == check_digit(&digits[..index], weight_max))
}

fn check_digit(digits: &[u32], weight_max: usize) -> u32 {
    let weights = (2..=weight_max as u32).cycle();
    let sum: u32 = digits.iter().rev().zip(weights).map(|(digit, weight)| digit * weight).sum();
    match sum % 11 {
        0 | 1 => 0,
        remainder => 11 - remainder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tax_number_with_correct_check_digits_is_stored_as_digits() {
        for (given, stored) in [
            ("529.982.247-25", "52998224725"),
            (" 52998224725 ", "52998224725"),
            ("111.444.777-35", "11144477735"),
            ("11.222.333/0001-81", "11222333000181"),
            ("11444777000161", "11444777000161"),
        ] {
            assert_eq!(TaxNumber::from_json(&json!(given)), Ok(TaxNumber(stored.to_owned())), "{given}");
        }
        for bad in [
            json!("52998224724"),
            json!("52998224735"),
            json!("11222333000180"),
            json!("11222333000191"),
            json!("11111111111"),
            json!("00000000000000"),
            json!("5299822472"),
            json!("529982247250"),
            json!("529 982 247 25"),
            json!("5299822472a"),
            json!("٥٢٩٩٨٢٢٤٧٢٥"),
            json!(""),
            json!(52_998_224_725_i64),
            json!(null),
        ] {
            assert!(TaxNumber::from_json(&bad).is_err(), "{bad}");
        }
    }
}
