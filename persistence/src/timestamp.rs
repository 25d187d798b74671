//! Times as the API writes them.

use chrono::{DateTime, Datelike, SecondsFormat, Timelike, Utc};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// A time as the API writes it: UTC, milliseconds, `Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::Type, ToSchema)]
#[sqlx(transparent)]
#[schema(value_type = String, format = DateTime, example = "2026-01-31T12:00:00.000Z")]
pub struct Timestamp(pub DateTime<Utc>);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = digits(self.0);
        match digits.as_ref().and_then(|digits| std::str::from_utf8(digits).ok()) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.serialize_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true)),
        }
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time)
    }
}

/// The text of a usual time, without the general way through a formatter: a page of a hundred tickets holds five
/// hundred times. None in a leap second, and outside the years that have four digits.
fn digits(time: DateTime<Utc>) -> Option<[u8; 24]> {
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let milliseconds = time.timestamp_subsec_millis();
    let year = u32::try_from(time.year()).ok().filter(|year| *year <= 9999)?;
    if milliseconds > 999 {
        return None;
    }
    for (place, value) in [
        (0..4, year),
        (5..7, time.month()),
        (8..10, time.day()),
        (11..13, time.hour()),
        (14..16, time.minute()),
        (17..19, time.second()),
        (20..23, milliseconds),
    ] {
        let mut rest = value;
        for digit in text[place].iter_mut().rev() {
            *digit += u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use chrono::{NaiveDate, NaiveTime};
    use proptest::prelude::*;

    use super::*;

    fn written(time: DateTime<Utc>) -> String {
        serde_json::to_string(&Timestamp(time)).expect("JSON")
    }

    fn expected(time: DateTime<Utc>) -> String {
        format!("\"{}\"", time.to_rfc3339_opts(SecondsFormat::Millis, true))
    }

    proptest! {
        #[test]
        fn a_time_is_written_as_rfc_3339_has_it(ms in -70_000_000_000_000_i64..300_000_000_000_000, ns in 0..1_000_000_i64) {
            let time = DateTime::from_timestamp_millis(ms).expect("in range") + chrono::TimeDelta::nanoseconds(ns);
            prop_assert_eq!(written(time), expected(time));
        }
    }

    #[test]
    fn the_unusual_is_written_as_well() {
        let day = NaiveDate::from_ymd_opt(2016, 12, 31).expect("date");
        let leap = NaiveTime::from_hms_milli_opt(23, 59, 59, 1_500).expect("time");
        assert_eq!(written(day.and_time(leap).and_utc()), "\"2016-12-31T23:59:60.500Z\"");
        for year in [-1, 0, 9_999, 10_000] {
            let time = NaiveDate::from_ymd_opt(year, 1, 2).expect("date").and_time(NaiveTime::MIN).and_utc();
            assert_eq!(written(time), expected(time));
        }
    }
}
