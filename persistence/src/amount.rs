//! Money and quantities: decimals with at most four places, exact from the request to the response.
//!
//! Neither this code nor the code that serializes a response uses a binary float
//! (`docs/decisions/0032-amounts-are-parsed-from-their-digits.md`).

use std::borrow::Cow;
use std::fmt;

use rust_decimal::{Decimal, RoundingStrategy};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Maximum digits of a stored amount, including decimals: the columns are `numeric(18, 4)`.
pub const DIGITS_MAX: u32 = 18;
/// Maximum decimals, as in the API.
pub const DECIMALS_MAX: u32 = 4;
/// Exclusive upper bound of stored amounts: 14 digits before the point. A product line or a card whose total reaches it
/// is refused; sums over cards may have ten digits more.
pub const LIMIT: i64 = 100_000_000_000_000;

/// An amount of money, or a quantity: at most four decimals.
///
/// Serialized as a JSON number with its exact digits, without trailing zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct Amount(Decimal);

/// Why a string is not a valid amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not a JSON number.
    NotANumber,
    /// More than [`DECIMALS_MAX`] decimals.
    TooManyDecimals,
    /// Not below [`LIMIT`].
    TooLarge,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber => write!(f, "must be a number"),
            Self::TooManyDecimals => write!(f, "must have at most {DECIMALS_MAX} decimals"),
            Self::TooLarge => write!(f, "must be below {LIMIT}"),
        }
    }
}

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(Decimal::ZERO);
    /// One.
    pub const ONE: Self = Self(Decimal::ONE);

    /// Parses the digits of a JSON number. Notation does not matter: `1e2` is `100`, and `1.50000` has one decimal.
    ///
    /// # Errors
    /// When it is not a valid amount.
    pub fn parse(digits: &str) -> Result<Self, Malformed> {
        let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
        let (unsigned, is_negative) = mantissa.strip_prefix('-').map_or((mantissa, false), |rest| (rest, true));
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let power = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if !are_digits(whole) || !are_digits(fraction) || !are_digits(power) {
            return Err(Malformed::NotANumber);
        }
        let all_digits = format!("{whole}{fraction}");
        let significant = all_digits.trim_matches('0');
        if significant.is_empty() {
            return Ok(Self::ZERO);
        }
        // The position of the decimal point relative to the first significant digit. An exponent that does not fit i64
        // means a number that is far too large or too fine.
        let leading_zeros = all_digits.len() - all_digits.trim_start_matches('0').len();
        let is_power_negative = exponent.starts_with('-');
        let power: i64 = power.parse().unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
        let point = whole.len() as i64 - leading_zeros as i64 + if is_power_negative { -power } else { power };
        let decimals = significant.len() as i64 - point;
        if decimals > i64::from(DECIMALS_MAX) {
            return Err(Malformed::TooManyDecimals);
        }
        if point > i64::from(DIGITS_MAX - DECIMALS_MAX) {
            return Err(Malformed::TooLarge);
        }
        let units: i64 = significant.parse().map_err(|_| Malformed::NotANumber)?;
        let shift = u32::try_from(i64::from(DECIMALS_MAX) - decimals).map_err(|_| Malformed::TooLarge)?;
        let units = units * 10_i64.pow(shift);
        Ok(Self(Decimal::new(if is_negative { -units } else { units }, DECIMALS_MAX).normalize()))
    }

    /// This price times a quantity, rounded to four decimals, half away from zero, like PostgreSQL's `round`. `None` if
    /// it is not below [`LIMIT`].
    pub fn times(self, quantity: Self) -> Option<Self> {
        // Two 18-digit factors give 36 digits, and a `Decimal` holds 28. So only products far above the limit are
        // inexact.
        let exact = self.0.checked_mul(quantity.0)?;
        Self(exact.round_dp_with_strategy(DECIMALS_MAX, RoundingStrategy::MidpointAwayFromZero)).within_limit()
    }

    /// The sum; `None` if it is not below [`LIMIT`].
    pub fn plus(self, other: Self) -> Option<Self> {
        Self(self.0.checked_add(other.0)?).within_limit()
    }

    /// The sum of two totals from tables, which may exceed [`LIMIT`]. It is exact below 10^24, and saturates at
    /// [`Decimal::MAX`].
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; `None` if it is not below [`LIMIT`].
    pub fn minus(self, other: Self) -> Option<Self> {
        Self(self.0.checked_sub(other.0)?).within_limit()
    }

    /// This amount as a fraction of `whole`, to four decimals; `None` if `whole` is zero.
    pub fn fraction_of(self, whole: Self) -> Option<Self> {
        let part = self.0.checked_div(whole.0)?;
        Some(Self(part.round_dp_with_strategy(DECIMALS_MAX, RoundingStrategy::MidpointAwayFromZero)))
    }

    /// A whole number as an amount.
    pub fn of(count: i64) -> Self {
        Self(count.into())
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self < Self::ZERO
    }

    /// The decimal value.
    pub fn decimal(self) -> Decimal {
        self.0
    }

    fn within_limit(self) -> Option<Self> {
        let limit = Decimal::from(LIMIT);
        (self.0.abs() < limit).then_some(self)
    }
}

/// Its digits, in the notation of JSON and PostgreSQL.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.normalize().fmt(f)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// Deserialized from text: statements that return amounts within JSON return them as text, because a JSON number would
/// be rounded.
impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = <Cow<'de, str>>::deserialize(deserializer)?;
        Decimal::from_str_exact(&digits).map(Self).map_err(D::Error::custom)
    }
}

impl PartialSchema for Amount {
    #[expect(deprecated, reason = "client generators only know `example`")]
    fn schema() -> RefOr<Schema> {
        // No format: it would make clients use a float type, which holds fewer digits than are sent.
        let text = "An exact decimal with at most four decimal places.";
        ObjectBuilder::new().schema_type(Type::Number).description(Some(text)).example(Some(json!(19.9))).into()
    }
}

impl ToSchema for Amount {}

/// Serialized as text, which PostgreSQL converts back to a number: a numeric [`Value`](serde_json::Value) would round
/// it.
impl From<Amount> for serde_json::Value {
    fn from(amount: Amount) -> Self {
        amount.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(digits: &str) -> Amount {
        Amount::parse(digits).unwrap_or_else(|malformed| panic!("{digits} {malformed}"))
    }

    #[test]
    fn digits_are_preserved_exactly() {
        for (read, written) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("0e400", "0"),
            ("7", "7"),
            ("-7.5", "-7.5"),
            ("19.90", "19.9"),
            ("1.50000", "1.5"),
            ("0.0001", "0.0001"),
            ("1e2", "100"),
            ("1E+2", "100"),
            ("1.5e-1", "0.15"),
            ("0.00015e1", "0.0015"),
            ("12300e-2", "123"),
            ("1234567890123.4567", "1234567890123.4567"),
            ("99999999999999.9999", "99999999999999.9999"),
            ("123456789012345678e-4", "12345678901234.5678"),
            ("-99999999999999.9999", "-99999999999999.9999"),
        ] {
            assert_eq!(amount(read).to_string(), written, "{read}");
            assert_eq!(serde_json::to_string(&amount(read)).ok().as_deref(), Some(written), "{read}");
        }
    }

    #[test]
    fn invalid_amounts_are_refused_with_a_reason() {
        for digits in ["", "-", "x", "1.", ".5", "1,5", "1e", "e2", "0x10", "1.5.5", "NaN", "+1", "1e2.5", "١", "1 000"]
        {
            assert_eq!(Amount::parse(digits), Err(Malformed::NotANumber), "{digits}");
        }
        for digits in ["0.00001", "1.23456", "1e-5", "0.1e-4", "-0.00001", "1e-99999999999999999999"] {
            assert_eq!(Amount::parse(digits), Err(Malformed::TooManyDecimals), "{digits}");
        }
        for digits in ["100000000000000", "1e14", "-1e14", "123456789012345678", "1e99999999999999999999"] {
            assert_eq!(Amount::parse(digits), Err(Malformed::TooLarge), "{digits}");
        }
    }

    #[test]
    fn sums_are_exact_and_products_are_rounded_away_from_zero() {
        assert_eq!(amount("0.1").plus(amount("0.2")), Some(amount("0.3")));
        for (price, quantity, total) in [
            ("0.0001", "0.5", "0.0001"),
            ("0.0001", "0.4999", "0"),
            ("19.9", "3", "59.7"),
            ("0.3333", "0.3333", "0.1111"),
            ("1.0001", "1.0001", "1.0002"),
        ] {
            assert_eq!(amount(price).times(amount(quantity)), Some(amount(total)), "{price} x {quantity}");
        }
        let maximum = amount("99999999999999.9999");
        assert_eq!(maximum.times(amount("1")), Some(maximum));
        for (price, quantity) in
            [(maximum, amount("1.0001")), (maximum, maximum), (amount("10000000"), amount("10000000"))]
        {
            assert_eq!(price.times(quantity), None, "{price} x {quantity}");
        }
        assert_eq!(maximum.plus(amount("0.0001")), None);
        assert_eq!(amount("1").fraction_of(amount("3")), Some(amount("0.3333")));
        assert_eq!(amount("2").fraction_of(amount("3")), Some(amount("0.6667")));
        assert_eq!(amount("1").fraction_of(Amount::ZERO), None);
    }

    proptest! {
        #[test]
        fn every_amount_round_trips(units in -999_999_999_999_999_999_i64..=999_999_999_999_999_999) {
            let decimal = Decimal::new(units, DECIMALS_MAX);
            let read = amount(&decimal.to_string());
            prop_assert_eq!(read.decimal(), decimal);
            prop_assert_eq!(amount(&read.to_string()), read);
            // The same value with the point moved into the exponent.
            prop_assert_eq!(amount(&format!("{units}e-{DECIMALS_MAX}")), read);
        }

        #[test]
        fn products_match_integer_arithmetic(price in 0..=999_999_999_999_999_999_i64, quantity in 1..=999_999_999_999_999_999_i64) {
            let units = i128::from(price) * i128::from(quantity);
            // Factors and result count ten-thousandths; all are non-negative.
            let rounded = (units + 5_000) / 10_000;
            let total = Amount(Decimal::new(price, DECIMALS_MAX)).times(Amount(Decimal::new(quantity, DECIMALS_MAX)));
            let fits = i64::try_from(rounded).ok().filter(|units| *units < LIMIT * 10_000);
            prop_assert_eq!(total, fits.map(|units| Amount(Decimal::new(units, DECIMALS_MAX))));
        }
    }
}
