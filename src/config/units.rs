//! Durations and sizes with their unit: `30s`, `64MiB`. A number without a unit has the option's default unit: that of
//! the option's old name, if there is one, such as seconds for `--idle-after-s`.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Units of time, from the longest.
const TIME_UNITS: [(&str, Duration); 5] =
    [("d", DAY), ("h", HOUR), ("m", Duration::from_secs(60)), ("s", SECOND), ("ms", MILLISECOND)];

/// A unit of time.
pub const MILLISECOND: Duration = Duration::from_millis(1);
/// A unit of time.
pub const SECOND: Duration = Duration::from_secs(1);
/// A unit of time.
pub const HOUR: Duration = Duration::from_secs(3600);
/// A unit of time.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// Upper bound of durations that have no smaller one: a hundred years. The present minus a duration must be a date that
/// `chrono` and PostgreSQL can represent.
const DURATION_MAX: Duration = Duration::from_secs(36_500 * DAY.as_secs());

/// Any duration up to [`DURATION_MAX`].
pub const ANY: RangeInclusive<Duration> = Duration::ZERO..=DURATION_MAX;

/// Units of size, from the largest.
const SIZE_UNITS: [(&str, Size); 5] = [("TiB", Size(1 << 40)), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", BYTE)];

/// A unit of size.
pub const BYTE: Size = Size(1);
/// A unit of size.
pub const KIB: Size = Size(1 << 10);
/// A unit of size.
pub const MIB: Size = Size(1 << 20);
/// A unit of size.
pub const GIB: Size = Size(1 << 30);

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = SIZE_UNITS.iter().find(|(_, unit)| self.0 >= unit.0 && self.0.is_multiple_of(unit.0));
        match unit {
            Some((name, unit)) => write!(formatter, "{}{name}", self.0 / unit.0),
            None => write!(formatter, "{}", self.0),
        }
    }
}

/// A duration as it is written on the command line.
pub fn display(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let unit = TIME_UNITS.iter().find(|(_, unit)| {
        let unit = unit.as_millis();
        milliseconds >= unit && milliseconds.is_multiple_of(unit)
    });
    unit.map_or_else(|| "0".to_owned(), |(name, unit)| format!("{}{name}", milliseconds / unit.as_millis()))
}

/// A parser of durations in a range; `default_unit` is that of a number without one.
pub fn durations(
    default_unit: Duration,
    range: RangeInclusive<Duration>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text: &str| {
        let error = || "must be a number with ms, s, m, h or d, for example 30s".to_owned();
        let (number, unit) = split_unit(text).ok_or_else(error)?;
        let unit = match unit {
            "" => default_unit,
            name => {
                TIME_UNITS.iter().find(|(unit_name, _)| *unit_name == name).map(|(_, unit)| *unit).ok_or_else(error)?
            }
        };
        let milliseconds = u64::try_from(unit.as_millis()).ok().and_then(|unit| number.checked_mul(unit));
        let duration = Duration::from_millis(milliseconds.ok_or_else(|| "is too long".to_owned())?);
        if range.contains(&duration) {
            return Ok(duration);
        }
        Err(format!("must be from {} to {}", display(*range.start()), display(*range.end())))
    }
}

/// A parser of durations of whole days in a range; a number without a unit is in days.
pub fn days(
    range: RangeInclusive<Duration>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    let parse = durations(DAY, range);
    move |text: &str| {
        let duration = parse(text)?;
        let is_whole = duration.as_secs().is_multiple_of(DAY.as_secs()) && duration.subsec_nanos() == 0;
        if is_whole { Ok(duration) } else { Err("must be whole days, for example 30d".to_owned()) }
    }
}

/// A parser of sizes in a range; `default_unit` is that of a number without one.
pub fn sizes(
    default_unit: Size,
    range: RangeInclusive<Size>,
) -> impl Fn(&str) -> Result<Size, String> + Clone + Send + Sync + 'static {
    move |text: &str| {
        let error = || "must be a number with B, KiB, MiB, GiB or TiB, for example 64MiB".to_owned();
        let (number, unit) = split_unit(text).ok_or_else(error)?;
        let unit = match unit {
            "" => default_unit,
            name => {
                SIZE_UNITS.iter().find(|(unit_name, _)| *unit_name == name).map(|(_, unit)| *unit).ok_or_else(error)?
            }
        };
        let size = Size(number.checked_mul(unit.0).ok_or_else(|| "is too large".to_owned())?);
        if range.contains(&size) { Ok(size) } else { Err(format!("must be from {} to {}", range.start(), range.end())) }
    }
}

/// A parser of sizes of whole MiB in a range; a number without a unit is in MiB.
pub fn mebibytes(range: RangeInclusive<Size>) -> impl Fn(&str) -> Result<Size, String> + Clone + Send + Sync + 'static {
    let parse = sizes(MIB, range);
    move |text: &str| {
        let size = parse(text)?;
        if size.0.is_multiple_of(MIB.0) { Ok(size) } else { Err("must be whole MiB, for example 64MiB".to_owned()) }
    }
}

/// The number and its unit, which may be empty.
fn split_unit(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit_or_the_default_one() {
        let parse = durations(SECOND, ANY);
        for (text, milliseconds, displayed) in [
            ("500ms", 500, "500ms"),
            ("30s", 30_000, "30s"),
            ("300", 300_000, "5m"),
            ("1440m", 86_400_000, "1d"),
            ("30 d", 30 * 86_400_000, "30d"),
            ("0", 0, "0"),
            ("1500ms", 1500, "1500ms"),
        ] {
            let duration = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (duration, display(duration).as_str()),
                (Duration::from_millis(milliseconds), displayed),
                "{text}"
            );
        }
        for bad in ["", "s", "-1s", "1.5h", "1w", "1h30m", "99999999999999999999s", "18446744073709551615d"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(parse("36500d"), Ok(DURATION_MAX));
        for too_long in ["36501d", "213503982334d", "18446744073709551s"] {
            assert_eq!(parse(too_long), Err("must be from 0 to 36500d".to_owned()), "{too_long}");
        }
        let bounded = durations(MILLISECOND, MILLISECOND..=HOUR);
        assert_eq!(bounded("0"), Err("must be from 1ms to 1h".to_owned()));
        assert_eq!(bounded("61m"), Err("must be from 1ms to 1h".to_owned()));
        assert_eq!(days(DAY..=30 * DAY)("30"), Ok(30 * DAY));
        assert!(days(DAY..=30 * DAY)("36h").is_err_and(|error| error.contains("whole days")));
    }

    #[test]
    fn a_size_has_a_unit_or_the_default_one() {
        let parse = sizes(KIB, BYTE..=Size(u64::MAX));
        for (text, bytes, displayed) in [
            ("1000B", 1000, "1000B"),
            ("64", 65_536, "64KiB"),
            ("2048KiB", 2 << 20, "2MiB"),
            ("16 MiB", 16 << 20, "16MiB"),
            ("1GiB", 1 << 30, "1GiB"),
            ("3TiB", 3 << 40, "3TiB"),
        ] {
            let size = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((size.0, size.to_string().as_str()), (bytes, displayed), "{text}");
        }
        for bad in ["", "MiB", "1MB", "1mib", "1.5GiB", "-1", "0", "18446744073709551615TiB"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Size(0).to_string(), "0");
        assert_eq!(mebibytes(Size(0)..=GIB)("64"), Ok(Size(64 << 20)));
        assert_eq!(mebibytes(Size(0)..=GIB)("2GiB"), Err("must be from 0 to 1GiB".to_owned()));
        assert!(mebibytes(Size(0)..=GIB)("100KiB").is_err_and(|error| error.contains("whole MiB")));
    }
}
