//! Money and quantities as fields of a body. They are parsed from their decimal digits, never from a float.

use hotline_persistence::Amount;
use hotline_persistence::amount::{DECIMALS_MAX, LIMIT, Malformed};
use serde_json::{Value, json};

use super::values::FromField;

/// Parses a JSON number whose `Value` preserves all digits.
fn of_json(value: &Value) -> Result<Amount, String> {
    let number = value.as_number().filter(|number| !number.is_f64());
    number
        .ok_or(Malformed::NoNumber)
        .and_then(|number| Amount::parse(&number.to_string()))
        .map_err(|bad| bad.to_string())
}

fn of_text(text: &str) -> Result<Amount, String> {
    Amount::parse(text.trim()).map_err(|bad| bad.to_string())
}

macro_rules! amounts {
    ($($(#[$doc:meta])* $name:ident, $least:literal, $refused:expr, $reason:literal, $example:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub Amount);

        impl $name {
            fn checked(amount: Amount) -> Result<Self, String> {
                let is_refused: fn(Amount) -> bool = $refused;
                if is_refused(amount) { Err($reason.to_owned()) } else { Ok(Self(amount)) }
            }
        }

        impl FromField for $name {
            fn from_json(value: &Value) -> Result<Self, String> {
                of_json(value).and_then(Self::checked)
            }

            fn from_text(text: &str) -> Result<Self, String> {
                of_text(text).and_then(Self::checked)
            }

            fn schema() -> Value {
                json!({
                    "type": "number",
                    $least: 0,
                    "exclusiveMaximum": LIMIT,
                    "description": format!("At most {DECIMALS_MAX} decimals; read and computed exactly"),
                    "example": $example,
                })
            }

            const IS_DECIMAL: bool = true;
        }

        impl From<$name> for Value {
            fn from(amount: $name) -> Self {
                amount.0.into()
            }
        }
    )+};
}

amounts! {
    /// A unit price.
    Price, "minimum", Amount::is_negative, "must not be negative", 19.9;
    /// A quantity.
    Quantity, "exclusiveMinimum", |amount| amount <= Amount::ZERO, "must be above 0", 1.5;
    /// A sales goal for a month or a year.
    Goal, "minimum", Amount::is_negative, "must not be negative", 50000;
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::web::request::body;
    use crate::web::request::fields::{Fields, Input};

    #[derive(Debug, PartialEq)]
    struct Lines(Option<Amount>, Vec<(Amount, Option<Amount>)>, Option<Amount>);

    impl Input for Lines {
        fn name() -> Cow<'static, str> {
            "Lines".into()
        }

        fn read(fields: &mut Fields<'_>) -> Option<Self> {
            let goal = fields.optional::<Goal>("goal").map(|goal| goal.0);
            let lines = fields.objects("lines", 9, |fields| {
                let price = fields.required::<Price>("price").map(|price| price.0);
                let quantity = fields.optional::<Quantity>("quantity").map(|quantity| quantity.0);
                Some((price?, quantity))
            });
            let inner = fields.object("inner", |fields| fields.required::<Price>("price").map(|price| price.0));
            Some(Self(goal, lines.unwrap_or_default(), inner))
        }
    }

    fn read(body: &str) -> Result<Lines, String> {
        body::parse(body.as_bytes()).map_err(|refused| refused.message.to_string())
    }

    fn amount(digits: &str) -> Amount {
        Amount::parse(digits).expect("an amount")
    }

    #[test]
    fn every_digit_of_a_number_is_read_however_deep_it_lies() {
        let body = r#"{"x": 0.5, "goal": 12345678901234.5671, "lines[0].price": 1.5, "lines": [{"price": 1},
            {"quantity": 0.1, "price": 7.5, "price": 98765432109876.5432}, {"price": 1e2, "quantity" : 99999999999999.9999 }],
            "inner": {"deep": [{"price": 2.5}], "price": 31415926535897.9323}}"#;
        let lines = vec![
            (amount("1"), None),
            (amount("98765432109876.5432"), Some(amount("0.1"))),
            (amount("100"), Some(amount("99999999999999.9999"))),
        ];
        let (goal, inner) = (amount("12345678901234.5671"), amount("31415926535897.9323"));
        assert_eq!(read(body), Ok(Lines(Some(goal), lines, Some(inner))));
        // In a form, objects and lists are JSON text, and numbers are plain text.
        let form = json!({"goal": "0.3", "lines": r#"[{"price": 98765432109876.5432}]"#, "inner": r#"{"price": 0.1}"#});
        let form = Fields::parse_form::<Lines>(form.as_object().expect("an object")).map_err(|_| ());
        let lines = vec![(amount("98765432109876.5432"), None)];
        assert_eq!(form, Ok(Lines(Some(amount("0.3")), lines, Some(amount("0.1")))));
    }

    #[test]
    fn what_is_no_amount_is_refused_by_its_path() {
        for (body, refused) in [
            (r#"{"goal": 1.23456}"#, "goal must have at most 4 decimals"),
            (r#"{"goal": "1"}"#, "goal must be a number"),
            (r#"{"goal": "1.5"}"#, "goal must be a number"),
            (r#"{"goal": true}"#, "goal must be a number"),
            (r#"{"goal": [1.5]}"#, "goal must be a number"),
            (r#"{"goal": -0.0001}"#, "goal must not be negative"),
            (r#"{"goal": 100000000000000}"#, "goal must be below 100000000000000"),
            (r#"{"goal": 18446744073709551616}"#, "goal must be below 100000000000000"),
            (r#"{"goal": 1e14}"#, "goal must be below 100000000000000"),
            (r#"{"lines": [{"price": 1, "quantity": -0}]}"#, "lines[0].quantity must be above 0"),
            (
                r#"{"lines": [{"price": -1.5, "quantity": 0}]}"#,
                "lines[0].price must not be negative; lines[0].quantity must be above 0",
            ),
            (r#"{"inner": {"price": 0.00001}}"#, "inner.price must have at most 4 decimals"),
        ] {
            assert_eq!(read(body), Err(refused.to_owned()), "{body}");
        }
        assert_eq!(read(r#"{"goal": -0}"#), Ok(Lines(Some(Amount::ZERO), Vec::new(), None)));
    }
}
