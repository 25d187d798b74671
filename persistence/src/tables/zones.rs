//! Zone maps: for each zone of 1,024 consecutive ids, the earliest and latest times in its rows, and the words (types,
//! statuses, …), channels and queues that occur in them. A list in id order skips the zones that cannot contain a match
//! for its filter.
//!
//! PostgreSQL's own zone maps (BRIN) are per table page, and do not return rows in an order in which a list could stop
//! early. Before version 16 they also prevent HOT updates.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use sqlx::PgConnection;

use crate::select::{PageRequest, Select};
use crate::table::Span;
use crate::{ChannelId, CompanyId, QueueId};

/// Number of low bits in which the ids of one zone differ.
pub(crate) const BITS: i32 = 10;

/// Times in a zone map are rounded to hours, so that an active zone is updated once an hour rather than for each row.
const TIME_GRAIN: TimeDelta = TimeDelta::hours(1);

/// The tables with a zone map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZonedTable {
    Message,
    Ticket,
    /// Deliveries of events to webhooks: zoned by event id, independent of the webhook.
    Delivery,
}

impl ZonedTable {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Ticket => "ticket",
            Self::Delivery => "delivery",
        }
    }

    const fn table(self) -> &'static str {
        match self {
            Self::Message => "messages",
            Self::Ticket => "tickets",
            Self::Delivery => "webhook_deliveries",
        }
    }

    /// The column by which rows are assigned to zones.
    const fn key(self) -> &'static str {
        match self {
            Self::Message | Self::Ticket => "id",
            Self::Delivery => "event_id",
        }
    }
}

/// The times a list can be filtered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeColumn {
    Created,
    Opened,
    Closed,
    Updated,
}

impl TimeColumn {
    /// The SQL expression for a zone's latest time.
    const fn until(self) -> &'static str {
        match self {
            Self::Created => "z.created_until",
            Self::Opened => "z.opened_until",
            Self::Closed => "z.closed_until",
            // Zones of messages lack this time if none has changed since it was created.
            Self::Updated => "greatest(z.updated_until, z.created_until)",
        }
    }
}

/// The words that have a bit in a zone's `marks`, in the bit order of the database's function `hotline_mark`.
const WORDS: [&str; 19] = [
    "text",
    "media",
    "template",
    "interactive",
    "note",
    "inbound",
    "outbound",
    "internal",
    "queued",
    "sent",
    "delivered",
    "read",
    "failed",
    "received",
    "open",
    "closed",
    UNASSIGNED,
    ASSIGNED,
    "system",
];

/// The words of a ticket without an assigned user, and of one with it.
pub(crate) const UNASSIGNED: &str = "unassigned";
pub(crate) const ASSIGNED: &str = "assigned";

/// The bit of a word; `None` for a word without a bit, which every zone may contain.
fn word_bit(word: &str) -> Option<i64> {
    WORDS.iter().position(|candidate| *candidate == word).map(|index| 1 << index)
}

/// The bit of a channel or queue, shared with other ids; the database's function `hotline_bit` computes the same.
fn bit(id: i64) -> i64 {
    // Ids are positive.
    1 << (id % 61).unsigned_abs()
}

/// The parts of a list's filter that a zone map covers.
#[derive(Debug, Default)]
pub(crate) struct ZoneFilter<'a> {
    pub(crate) spans: &'a [(TimeColumn, Span)],
    /// Words that must occur; `None` adds no condition.
    pub(crate) words: &'a [Option<&'a str>],
    pub(crate) channel: Option<ChannelId>,
    pub(crate) queue: Option<QueueId>,
}

impl ZoneFilter<'_> {
    /// Whether any condition is set: without one, no zone is excluded.
    pub(crate) fn has_condition(&self) -> bool {
        self.spans.iter().any(|(_, (from, to))| from.is_some() || to.is_some())
            || self.words.iter().any(Option::is_some)
            || self.channel.is_some()
            || self.queue.is_some()
    }
}

/// Starts a list, in id order, of the rows `t` in zones that may match; `before` is prepended to the `select`. The
/// exact conditions must still be added.
///
/// `indexed_columns` are indexed columns with their required ids: within a zone their indexes find the rows.
pub(crate) fn list(
    before: &str,
    noun: ZonedTable,
    company: CompanyId,
    filter: &ZoneFilter<'_>,
    indexed_columns: &[(&'static str, Option<i64>)],
    page: PageRequest,
) -> Select {
    let zones = format!("{before}select t.* from (select z.company_id, z.zone from zones z");
    let mut list = Select::new(&zones, "z.company_id", company).equals("z.noun", Some(noun.as_str()));
    for (time, (from, to)) in filter.spans {
        list = list.at_least(time.until(), *from);
        // No time of a row precedes its creation.
        list = list.at_most("z.created_from", *to);
    }
    for word in filter.words.iter().flatten() {
        list = list.has_bit("z.marks", word_bit(word));
    }
    let (table, key) = (noun.table(), noun.key());
    let rows = format!(
        ") z cross join lateral (select * from {table} where company_id = z.company_id
             and {key} >= z.zone << {BITS} and {key} < (z.zone + 1) << {BITS}"
    );
    let from = page.after().map(|id| id >> BITS);
    let list = if page.descending { list.number_at_most("z.zone", from) } else { list.number_at_least("z.zone", from) };
    let mut list = list
        .has_bit("z.channels", filter.channel.map(|id| bit(id.0)))
        .has_bit("z.queues", filter.queue.map(|id| bit(id.0)))
        .order_groups_by("z.zone", page, &rows);
    for (column, id) in indexed_columns {
        list = list.equals(column, *id);
    }
    list.order_within_group(key, page, ") t")
}

/// Wraps an update of deliveries in a statement that also updates the zone map and returns the number of changed rows.
/// The update must set `updated_at` to the current time, return `event_id`, and use `$1` for the company.
pub(crate) fn wrap_delivery_update(update: &str) -> String {
    format!(
        "with changed as ({update}),
         zones_updated as (
             update zones z
             set updated_until = greatest(z.updated_until, date_trunc('hour', now(), 'UTC') + interval '1 hour')
             from (select distinct event_id >> {BITS} as zone from changed) x
             where z.company_id = $1 and z.noun = 'delivery' and z.zone = x.zone)
         select count(*) from changed"
    )
}

/// A row's zone, and its values in the zone map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZonedRow {
    pub(crate) company: CompanyId,
    pub(crate) id: i64,
    pub(crate) created: DateTime<Utc>,
    pub(crate) opened: Option<DateTime<Utc>>,
    pub(crate) closed: Option<DateTime<Utc>>,
    pub(crate) updated: Option<DateTime<Utc>>,
    pub(crate) words: [Option<&'static str>; 3],
    pub(crate) channel: Option<ChannelId>,
    pub(crate) queue: Option<QueueId>,
}

/// The values that a zone map stores for a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    created_from: DateTime<Utc>,
    created_until: DateTime<Utc>,
    opened_until: Option<DateTime<Utc>>,
    closed_until: Option<DateTime<Utc>>,
    updated_until: Option<DateTime<Utc>>,
    marks: i64,
    channels: i64,
    queues: i64,
}

impl Zone {
    fn of(zoned_row: &ZonedRow) -> Self {
        Self {
            created_from: start_of_hour(zoned_row.created),
            created_until: end_of_hour(zoned_row.created),
            opened_until: zoned_row.opened.map(end_of_hour),
            closed_until: zoned_row.closed.map(end_of_hour),
            updated_until: zoned_row.updated.map(end_of_hour),
            marks: zoned_row.words.iter().flatten().filter_map(|word| word_bit(word)).fold(0, |marks, bit| marks | bit),
            channels: zoned_row.channel.map_or(0, |id| bit(id.0)),
            queues: zoned_row.queue.map_or(0, |id| bit(id.0)),
        }
    }

    fn widen(&mut self, other: &Self) {
        self.created_from = self.created_from.min(other.created_from);
        self.created_until = self.created_until.max(other.created_until);
        // `None` is less than any time.
        self.opened_until = self.opened_until.max(other.opened_until);
        self.closed_until = self.closed_until.max(other.closed_until);
        self.updated_until = self.updated_until.max(other.updated_until);
        self.marks |= other.marks;
        self.channels |= other.channels;
        self.queues |= other.queues;
    }
}

/// A time that cannot be rounded stays unchanged.
fn start_of_hour(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TIME_GRAIN).unwrap_or(at)
}

fn end_of_hour(at: DateTime<Utc>) -> DateTime<Utc> {
    start_of_hour(at).checked_add_signed(TIME_GRAIN).unwrap_or(at)
}

/// Wraps an update of messages `m` in a statement that also updates the zone map and returns the messages whose status
/// changed. `previous_status` is the SQL expression for a message's status before the update.
pub(crate) fn wrap_status_update(update: &str, previous_status: &str) -> String {
    format!(
        "with changed as (
             {update} returning m.company_id, m.id, m.ticket_id, m.status, {previous_status} as was, m.updated_at),
         zones_updated as ({UPDATE_CHANGED_ZONES})
         select company_id, id, ticket_id, was, status, updated_at from changed where status <> was"
    )
}

/// As [`wrap_status_update`], for an update that changes no status; the statement returns all updated messages.
pub(crate) fn wrap_message_update(update: &str) -> String {
    format!(
        "with changed as ({update} returning m.company_id, m.id, m.ticket_id, m.status, m.status as was, m.updated_at),
         zones_updated as ({UPDATE_CHANGED_ZONES})
         select company_id, id, ticket_id, was, status, updated_at from changed"
    )
}

/// Updates the zone map for the messages in `changed`.
const UPDATE_CHANGED_ZONES: &str =
    "update zones z set marks = z.marks | x.marks, updated_until = greatest(z.updated_until, x.until)
    from (
        select company_id, id >> 10 as zone, bit_or(hotline_mark(status)) as marks,
            date_trunc('hour', max(updated_at), 'UTC') + interval '1 hour' as until
        from changed group by 1, 2
    ) x
    where z.company_id = x.company_id and z.noun = 'message' and z.zone = x.zone
        and (z.marks & x.marks <> x.marks or z.updated_until is null or z.updated_until < x.until)";

// The statement above contains `BITS` as a number.
const _: () = assert!(BITS == 10);

/// Updates the zone map for rows written in the same transaction.
pub(crate) async fn update(
    db: &mut PgConnection,
    noun: ZonedTable,
    rows: impl Iterator<Item = ZonedRow>,
) -> Result<(), sqlx::Error> {
    let mut zones = BTreeMap::<(CompanyId, i64), Zone>::new();
    for zoned_row in rows {
        let other = Zone::of(&zoned_row);
        zones.entry((zoned_row.company, zoned_row.id >> BITS)).and_modify(|zone| zone.widen(&other)).or_insert(other);
    }
    if zones.is_empty() {
        return Ok(());
    }
    let bits = |field: fn(&Zone) -> i64| zones.values().map(field).collect::<Vec<_>>();
    sqlx::query(
        "insert into zones as z (company_id, noun, zone, created_from, created_until, opened_until, closed_until,
             updated_until, marks, channels, queues)
         select company_id, $1, zone, created_from, created_until, opened_until, closed_until, updated_until, marks,
             channels, queues
         from unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[],
             $7::timestamptz[], $8::timestamptz[], $9::bigint[], $10::bigint[], $11::bigint[])
             as x (company_id, zone, created_from, created_until, opened_until, closed_until, updated_until, marks,
                 channels, queues)
         on conflict (company_id, noun, zone) do update set
             created_from = least(z.created_from, excluded.created_from),
             created_until = greatest(z.created_until, excluded.created_until),
             opened_until = greatest(z.opened_until, excluded.opened_until),
             closed_until = greatest(z.closed_until, excluded.closed_until),
             updated_until = greatest(z.updated_until, excluded.updated_until),
             marks = z.marks | excluded.marks,
             channels = z.channels | excluded.channels,
             queues = z.queues | excluded.queues
         where (z.created_from, z.created_until, z.opened_until, z.closed_until, z.updated_until, z.marks, z.channels,
                 z.queues) is distinct from
             (least(z.created_from, excluded.created_from), greatest(z.created_until, excluded.created_until),
              greatest(z.opened_until, excluded.opened_until), greatest(z.closed_until, excluded.closed_until),
              greatest(z.updated_until, excluded.updated_until), z.marks | excluded.marks,
              z.channels | excluded.channels, z.queues | excluded.queues)",
    )
    .bind(noun.as_str())
    .bind(zones.keys().map(|(company, _)| *company).collect::<Vec<_>>())
    .bind(zones.keys().map(|(_, zone)| *zone).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.created_from).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.created_until).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.opened_until).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.closed_until).collect::<Vec<_>>())
    .bind(zones.values().map(|zone| zone.updated_until).collect::<Vec<_>>())
    .bind(bits(|zone| zone.marks))
    .bind(bits(|zone| zone.channels))
    .bind(bits(|zone| zone.queues))
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
    fn a_zone_covers_the_values_of_all_its_rows() {
        let zoned_row = |created, closed| ZonedRow {
            company: CompanyId::new(1),
            id: 1,
            created: at(created),
            opened: Some(at(created)),
            closed,
            updated: None,
            words: [Some("open"), closed.map(|_| "closed"), None],
            channel: Some(ChannelId::new(2)),
            queue: closed.map(|_| QueueId::new(62)),
        };
        let mut zone = Zone::of(&zoned_row("2026-03-01T10:20:00Z", None));
        zone.widen(&Zone::of(&zoned_row("2026-03-01T12:00:00Z", Some(at("2026-03-02T00:00:00Z")))));
        zone.widen(&Zone::of(&zoned_row("2026-03-01T11:59:59Z", None)));
        let expected = Zone {
            created_from: at("2026-03-01T10:00:00Z"),
            created_until: at("2026-03-01T13:00:00Z"),
            opened_until: Some(at("2026-03-01T13:00:00Z")),
            closed_until: Some(at("2026-03-02T01:00:00Z")),
            updated_until: None,
            marks: (1 << 14) | (1 << 15),
            channels: 1 << 2,
            queues: 1 << 1,
        };
        assert_eq!(zone, expected);
    }

    #[test]
    fn a_time_that_cannot_be_rounded_stays() {
        assert_eq!(start_of_hour(DateTime::<Utc>::MIN_UTC), DateTime::<Utc>::MIN_UTC);
        assert_eq!(end_of_hour(DateTime::<Utc>::MAX_UTC), DateTime::<Utc>::MAX_UTC);
    }
}
