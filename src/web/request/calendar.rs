//! Calendar days in a time zone.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use hotline_persistence::Period;
use serde_json::{Value, json};

use super::values::FromField;

/// A time zone of the IANA database, such as `America/Sao_Paulo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone(pub Tz);

impl Zone {
    /// The company's own time zone; an unknown name falls back to UTC.
    pub fn of_company(name: &str) -> Self {
        Self(name.parse().unwrap_or(Tz::UTC))
    }

    /// The day that contains a moment.
    pub fn day_of(self, moment: DateTime<Utc>) -> NaiveDate {
        moment.with_timezone(&self.0).date_naive()
    }

    /// When a day begins. If clocks are put forward at midnight, it begins after the gap; if the day is skipped, with
    /// the next day; if midnight occurs twice, with the first one.
    pub fn start_of_day(self, day: NaiveDate) -> DateTime<Utc> {
        let midnight = day.and_time(NaiveTime::MIN);
        // Tries each minute of two days: since 1973, clocks have been put forward by whole minutes, or by a whole day.
        let minutes = (0..=2 * 24 * 60).map(|minute| midnight + TimeDelta::minutes(minute));
        let mut moments = minutes.filter_map(|time| self.0.from_local_datetime(&time).earliest());
        moments.next().map_or_else(|| midnight.and_utc(), |moment| moment.to_utc())
    }

    /// The month that contains a moment.
    pub fn month_of(self, moment: DateTime<Utc>) -> Period {
        let day = self.day_of(moment);
        let first = day.with_day(1).unwrap_or(day);
        let next = first.checked_add_months(Months::new(1)).unwrap_or(first);
        Period { from: self.start_of_day(first), to: self.start_of_day(next) }
    }

    /// The year that contains a moment.
    pub fn year_of(self, moment: DateTime<Utc>) -> Period {
        let year = self.day_of(moment).year();
        let first = |year| self.start_of_day(NaiveDate::from_ymd_opt(year, 1, 1).unwrap_or_default());
        Period { from: first(year), to: first(year + 1) }
    }

    /// Each day that overlaps the time from `from` (inclusive) to `to` (exclusive), and when it begins.
    pub fn days(self, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<(NaiveDate, DateTime<Utc>)> {
        let days = std::iter::successors(Some(self.day_of(from)), |day| day.checked_add_days(Days::new(1)));
        let with_start = days.map(|day| (day, self.start_of_day(day)));
        // A skipped day (Samoa had no 30 December 2011) has the same beginning as the next day, so it is left out.
        let days = with_start.take_while(|(_, start)| *start < to);
        days.filter(|(day, start)| self.day_of(*start) == *day).collect()
    }
}

impl FromField for Zone {
    fn from_json(value: &Value) -> Result<Self, String> {
        let name = value.as_str().ok_or("must be a string")?.trim();
        name.parse().map(Self).map_err(|_| "must be a time zone of the IANA database".to_owned())
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "description": "An IANA time zone. Default: the company's",
            "example": "America/Sao_Paulo",
        })
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use chrono_tz::TZ_VARIANTS;

    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a day")
    }

    #[test]
    fn a_day_begins_at_the_midnight_of_its_zone_or_right_after() {
        for (zone, date, start) in [
            (Tz::UTC, "2026-02-28", "2026-02-28T00:00:00Z"),
            (Tz::Asia__Kathmandu, "2026-02-28", "2026-02-27T18:15:00Z"),
            (Tz::Europe__Lisbon, "2026-03-29", "2026-03-29T00:00:00Z"),
            (Tz::Europe__Lisbon, "2026-03-30", "2026-03-29T23:00:00Z"),
            // The clock was set forward from 0:00 to 1:00.
            (Tz::America__Sao_Paulo, "2018-11-04", "2018-11-04T03:00:00Z"),
            // The clock is set back from 1:00 to 0:00: there are two midnights, and the day begins with the first.
            (Tz::Atlantic__Azores, "2026-10-25", "2026-10-25T00:00:00Z"),
        ] {
            assert_eq!(Zone(zone).start_of_day(day(date)), time(start), "{zone}, {date}");
            assert_eq!(Zone(zone).day_of(time(start)), day(date), "{zone}");
        }
    }

    #[test]
    fn each_day_that_overlaps_a_period_is_listed_once() {
        let zone = Zone(Tz::Europe__Lisbon);
        let days = |from, to| zone.days(time(from), time(to)).into_iter().map(|(day, _)| day).collect::<Vec<_>>();
        let march = days("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
        assert_eq!(march, ["2026-03-28", "2026-03-29", "2026-03-30"].map(day));
        assert_eq!(days("2026-03-29T23:00:00Z", "2026-03-30T23:00:00Z"), [day("2026-03-30")]);
        assert!(days("2026-03-29T23:00:00Z", "2026-03-29T23:00:00Z").len() <= 1);
    }

    #[test]
    fn skipped_days_are_left_out_in_every_zone() {
        let samoa = Zone(Tz::Pacific__Apia).days(time("2011-12-28T10:00:00Z"), time("2011-12-31T09:59:59.999Z"));
        let samoa: Vec<NaiveDate> = samoa.into_iter().map(|(day, _)| day).collect();
        assert_eq!(samoa, ["2011-12-28", "2011-12-29", "2011-12-31"].map(day));
        // The Marshall Islands, Kiribati and Samoa skipped a day in these years.
        for zone in TZ_VARIANTS {
            let days = Zone(zone).days(time("1993-01-01T00:00:00Z"), time("2012-01-01T00:00:00Z"));
            assert!(days.windows(2).all(|days| days[0].0 < days[1].0 && days[0].1 < days[1].1), "{zone}");
            let is_in_day = |(day, start): &(NaiveDate, DateTime<Utc>)| Zone(zone).day_of(*start) == *day;
            assert!(days.iter().all(is_in_day), "{zone}");
        }
    }

    #[test]
    fn months_and_years_begin_with_their_first_day_in_the_zone() {
        for (now, zone, month, year) in [
            ("2026-11-22T12:00:00Z", Tz::UTC, "2026-11-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            ("2026-12-01T02:59:59Z", Tz::America__Sao_Paulo, "2026-11-01T03:00:00Z", "2026-01-01T03:00:00Z"),
            ("2026-12-31T18:15:00Z", Tz::Asia__Kathmandu, "2026-12-31T18:15:00Z", "2026-12-31T18:15:00Z"),
            ("2026-07-01T00:00:00Z", Tz::Europe__Lisbon, "2026-06-30T23:00:00Z", "2026-01-01T00:00:00Z"),
            // In summer, Sao Paulo was two hours behind UTC.
            ("2018-12-15T00:00:00Z", Tz::America__Sao_Paulo, "2018-12-01T02:00:00Z", "2018-01-01T02:00:00Z"),
            // Clocks went forward at midnight: the month began at 1:00.
            ("2011-04-02T00:00:00Z", Tz::Asia__Amman, "2011-03-31T22:00:00Z", "2010-12-31T22:00:00Z"),
        ] {
            let now = now.parse().expect("a time");
            let begins = |period: Period| period.from.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            assert_eq!(
                (begins(Zone(zone).month_of(now)), begins(Zone(zone).year_of(now))),
                (month.to_owned(), year.to_owned()),
                "{zone} {now}"
            );
        }
    }

    #[test]
    fn months_follow_each_other_and_begin_on_a_quarter_of_an_hour_in_every_zone() {
        for zone in TZ_VARIANTS {
            let mut now: DateTime<Utc> = "1980-01-15T12:00:00Z".parse().expect("a time");
            let mut previous_month = Zone(zone).month_of(now);
            while now.year() < 2040 {
                let month = Zone(zone).month_of(now);
                assert!(month.from <= now && now < month.to, "{zone} {now}");
                assert!(month == previous_month || month.from == previous_month.to, "{zone} {now}");
                let year = Zone(zone).year_of(now);
                assert!(year.from <= month.from && month.to <= year.to, "{zone} {now}");
                assert_eq!(month.from.timestamp() % (15 * 60), 0, "{zone} {now}");
                previous_month = month;
                now += TimeDelta::days(9);
            }
        }
    }
}
