//! Money and quantities as fields of a body. They are parsed from their decimal digits, never from a float.

use hotline_persistence::Amount;
use hotline_persistence::amount::{DECIMALS_MAX, LIMIT, Malformed};
use serde_json::{Value, json};

use super::values::FromField;

/// Parses an integer. A float is refused, because its `Value` may have lost digits: a JSON number with a fraction or an
/// exponent is passed to `from_text` instead ([`FromField::IS_DECIMAL`]).
fn parse_integer(value: &Value) -> Result<Amount, String> {
    let number = value.as_number().filter(|number| !number.is_f64());
    number
        .ok_or(Malformed::NotANumber)
        .and_then(|number| Amount::parse(&number.to_string()))
        .map_err(|malformed| malformed.to_string())
}

fn parse_text(text: &str) -> Result<Amount, String> {
    Amount::parse(text.trim()).map_err(|malformed| malformed.to_string())
}

macro_rules! amounts {
    ($($(#[$doc:meta])* $name:ident, $minimum:literal, $is_refused:expr, $reason:literal, $example:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub Amount);

        impl $name {
            fn validate(amount: Amount) -> Result<Self, String> {
                let is_refused: fn(Amount) -> bool = $is_refused;
                if is_refused(amount) { Err($reason.to_owned()) } else { Ok(Self(amount)) }
            }
        }

        impl FromField for $name {
            fn from_json(value: &Value) -> Result<Self, String> {
                parse_integer(value).and_then(Self::validate)
            }

            fn from_text(text: &str) -> Result<Self, String> {
                parse_text(text).and_then(Self::validate)
            }

            fn schema() -> Value {
                json!({
                    "type": "number",
                    $minimum: 0,
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
    struct TestInput {
        goal: Option<Amount>,
        /// Prices and quantities.
        lines: Vec<(Amount, Option<Amount>)>,
        inner: Option<Amount>,
    }

    impl Input for TestInput {
        fn name() -> Cow<'static, str> {
            "TestInput".into()
        }

        fn read(fields: &mut Fields<'_>) -> Option<Self> {
            let goal = fields.optional::<Goal>("goal").map(|goal| goal.0);
            let lines = fields.objects("lines", 9, |fields| {
                let price = fields.required::<Price>("price").map(|price| price.0);
                let quantity = fields.optional::<Quantity>("quantity").map(|quantity| quantity.0);
                Some((price?, quantity))
            });
            let inner = fields.object("inner", |fields| fields.required::<Price>("price").map(|price| price.0));
            Some(Self { goal, lines: lines.unwrap_or_default(), inner })
        }
    }

    fn read(body: &str) -> Result<TestInput, String> {
        body::parse(body.as_bytes()).map_err(|error| error.message.to_string())
    }

    fn amount(digits: &str) -> Amount {
        Amount::parse(digits).expect("an amount")
    }

    #[test]
    fn every_digit_of_a_number_is_read_however_deeply_it_is_nested() {
        let body = r#"{"x": 0.5, "goal": 12345678901234.5671, "lines[0].price": 1.5, "lines": [{"price": 1},
            {"quantity": 0.1, "price": 7.5, "price": 98765432109876.5432}, {"price": 1e2, "quantity" : 99999999999999.9999 }],
            "inner": {"deep": [{"price": 2.5}], "price": 31415926535897.9323}}"#;
        let lines = vec![
            (amount("1"), None),
            (amount("98765432109876.5432"), Some(amount("0.1"))),
            (amount("100"), Some(amount("99999999999999.9999"))),
        ];
        let (goal, inner) = (Some(amount("12345678901234.5671")), Some(amount("31415926535897.9323")));
        assert_eq!(read(body), Ok(TestInput { goal, lines, inner }));
        // In a form, objects and lists are JSON text, and numbers are plain text.
        let form = json!({"goal": "0.3", "lines": r#"[{"price": 98765432109876.5432}]"#, "inner": r#"{"price": 0.1}"#});
        let form = Fields::parse_form::<TestInput>(form.as_object().expect("an object")).map_err(|_| ());
        let lines = vec![(amount("98765432109876.5432"), None)];
        assert_eq!(form, Ok(TestInput { goal: Some(amount("0.3")), lines, inner: Some(amount("0.1")) }));
    }

    #[test]
    fn an_amount_too_large_for_a_float_is_refused_with_its_path_also_in_a_form() {
        let (body, message) = (r#"{"lines": [{"price": 1e400}]}"#, "lines[0].price must be below 100000000000000");
        assert_eq!(read(body), Err(message.to_owned()));
        let form = json!({"lines": r#"[{"price": 1e400}]"#});
        let form = Fields::parse_form::<TestInput>(form.as_object().expect("an object"));
        assert_eq!(form.map_err(|error| error.message.to_string()), Err(message.to_owned()));
    }

    #[test]
    fn an_invalid_amount_is_refused_with_its_path() {
        for (body, message) in [
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
            assert_eq!(read(body), Err(message.to_owned()), "{body}");
        }
        assert_eq!(read(r#"{"goal": -0}"#), Ok(TestInput { goal: Some(Amount::ZERO), lines: Vec::new(), inner: None }));
    }
}
