//! Zone maps: between which times the rows of a zone of ids lie. A list in the order of ids passes over the zones that
//! hold nothing of the span it is asked for.
//!
//! PostgreSQL's own (BRIN) are by page of the table, are in no order a list could stop in, and keep rows from being
//! updated in place before version 16.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use sqlx::PgConnection;

use crate::CompanyId;
use crate::select::Select;
use crate::table::Span;

/// Rows of one zone have ids that differ in so many of their last bits.
pub(crate) const BITS: i32 = 10;

/// Times in a zone map are those of whole hours: a zone in use is written once an hour, and not with each of its rows.
const GRAIN: TimeDelta = TimeDelta::hours(1);

/// The tables that have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zoned {
    Message,
    Ticket,
}

impl Zoned {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Ticket => "ticket",
        }
    }

    const fn table(self) -> &'static str {
        match self {
            Self::Message => "messages",
            Self::Ticket => "tickets",
        }
    }
}

/// The times a list may be asked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Created,
    Opened,
    Closed,
    Updated,
}

impl Time {
    /// The latest of a zone.
    const fn until(self) -> &'static str {
        match self {
            Self::Created => "z.created_until",
            Self::Opened => "z.opened_until",
            Self::Closed => "z.closed_until",
            Self::Updated => "z.updated_until",
        }
    }
}

/// Begins a list, in the order of ids, of the rows whose zones may hold some of all these spans; `before` stands before
/// the `select`. The rows are `t`. That their own times are in the spans is still to be said.
pub(crate) fn list(before: &str, noun: Zoned, company: CompanyId, spans: &[(Time, Span)]) -> Select {
    // `offset 0` keeps each zone's rows a search of their own: joined in another way they would have to be sorted.
    let table = noun.table();
    let begin = format!(
        "{before}select t.* from zones z cross join lateral (select * from {table}
             where company_id = z.company_id and id >= z.zone << {BITS} and id < (z.zone + 1) << {BITS} offset 0) t"
    );
    let list = Select::new(&begin, "z.company_id", company);
    let mut list = list.ordered_within("z.zone").equals("z.noun", Some(noun.as_str()));
    for (time, (from, to)) in spans {
        list = list.at_least(time.until(), *from);
        // Nothing of a row is earlier than the row.
        list = list.at_most("z.created_from", *to);
    }
    list
}

/// Where a row lies, and what times it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) company: CompanyId,
    pub(crate) id: i64,
    pub(crate) created: DateTime<Utc>,
    pub(crate) opened: Option<DateTime<Utc>>,
    pub(crate) closed: Option<DateTime<Utc>>,
    pub(crate) updated: Option<DateTime<Utc>>,
}

/// What is known of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    created_from: DateTime<Utc>,
    created_until: DateTime<Utc>,
    opened_until: Option<DateTime<Utc>>,
    closed_until: Option<DateTime<Utc>>,
    updated_until: Option<DateTime<Utc>>,
}

impl Zone {
    fn of(place: &Place) -> Self {
        Self {
            created_from: floor(place.created),
            created_until: ceil(place.created),
            opened_until: place.opened.map(ceil),
            closed_until: place.closed.map(ceil),
            updated_until: place.updated.map(ceil),
        }
    }

    fn widen(&mut self, more: &Self) {
        self.created_from = self.created_from.min(more.created_from);
        self.created_until = self.created_until.max(more.created_until);
        // Of nothing and a time, the time.
        self.opened_until = self.opened_until.max(more.opened_until);
        self.closed_until = self.closed_until.max(more.closed_until);
        self.updated_until = self.updated_until.max(more.updated_until);
    }
}

/// Times beyond what can be rounded are kept as they are.
fn floor(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(GRAIN).unwrap_or(at)
}

fn ceil(at: DateTime<Utc>) -> DateTime<Utc> {
    floor(at).checked_add_signed(GRAIN).unwrap_or(at)
}

/// Notes rows that were written in the same transaction.
pub(crate) async fn note(
    db: &mut PgConnection,
    noun: Zoned,
    places: impl Iterator<Item = Place>,
) -> Result<(), sqlx::Error> {
    let mut zones = BTreeMap::<(CompanyId, i64), Zone>::new();
    for place in places {
        let more = Zone::of(&place);
        zones.entry((place.company, place.id >> BITS)).and_modify(|zone| zone.widen(&more)).or_insert(more);
    }
    if zones.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into zones as z (company_id, noun, zone, created_from, created_until, opened_until, closed_until,
             updated_until)
         select company_id, $1, zone, created_from, created_until, opened_until, closed_until, updated_until
         from unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[],
             $7::timestamptz[], $8::timestamptz[]) as x (company_id, zone, created_from, created_until, opened_until,
             closed_until, updated_until)
         on conflict (company_id, noun, zone) do update set
             created_from = least(z.created_from, excluded.created_from),
             created_until = greatest(z.created_until, excluded.created_until),
             opened_until = greatest(z.opened_until, excluded.opened_until),
             closed_until = greatest(z.closed_until, excluded.closed_until),
             updated_until = greatest(z.updated_until, excluded.updated_until)
         where (z.created_from, z.created_until, z.opened_until, z.closed_until, z.updated_until) is distinct from
             (least(z.created_from, excluded.created_from), greatest(z.created_until, excluded.created_until),
              greatest(z.opened_until, excluded.opened_until), greatest(z.closed_until, excluded.closed_until),
              greatest(z.updated_until, excluded.updated_until))",
    )
    .bind(noun.as_str())
    .bind(zones.keys().map(|(company, _)| *company).collect::<Vec<_>>())
    .bind(zones.keys().map(|(_, zone)| *zone).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.created_from).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.created_until).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.opened_until).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.closed_until).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.updated_until).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn a_zone_holds_the_times_of_all_its_rows() {
        let place = |created, closed| Place {
            company: CompanyId::new(1),
            id: 1,
            created: at(created),
            opened: Some(at(created)),
            closed,
            updated: None,
        };
        let mut zone = Zone::of(&place("2026-03-01T10:20:00Z", None));
        zone.widen(&Zone::of(&place("2026-03-01T12:00:00Z", Some(at("2026-03-02T00:00:00Z")))));
        zone.widen(&Zone::of(&place("2026-03-01T11:59:59Z", None)));
        let held = Zone {
            created_from: at("2026-03-01T10:00:00Z"),
            created_until: at("2026-03-01T13:00:00Z"),
            opened_until: Some(at("2026-03-01T13:00:00Z")),
            closed_until: Some(at("2026-03-02T01:00:00Z")),
            updated_until: None,
        };
        assert_eq!(zone, held);
    }

    #[test]
    fn a_time_that_cannot_be_rounded_is_kept() {
        assert_eq!(floor(DateTime::<Utc>::MIN_UTC), DateTime::<Utc>::MIN_UTC);
        assert_eq!(ceil(DateTime::<Utc>::MAX_UTC), DateTime::<Utc>::MAX_UTC);
    }
}
