//! The increments by which one transaction changes the report figures.

use std::collections::{BTreeMap, HashMap};
use std::ops::AddAssign;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{Dimension, start_of_day};
use crate::tables::messages::MessageType;
use crate::{ChannelId, CompanyId, QueueId, UserId, WrapupTypeId};

/// The attributes by which ticket events are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TicketCell {
    pub(crate) company: CompanyId,
    /// The start of the quarter of an hour.
    pub(crate) at: DateTime<Utc>,
    pub(crate) queue: Option<QueueId>,
    pub(crate) channel: ChannelId,
    pub(crate) user: Option<UserId>,
}

/// Counts of ticket events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TicketCounts {
    pub(crate) opened: i64,
    pub(crate) closed: i64,
    pub(crate) reopened: i64,
    pub(crate) answered: i64,
    pub(crate) answer_ms: i64,
    pub(crate) resolution_ms: i64,
}

impl AddAssign for TicketCounts {
    fn add_assign(&mut self, other: Self) {
        self.opened += other.opened;
        self.closed += other.closed;
        self.reopened += other.reopened;
        self.answered += other.answered;
        // Saturating, because sums over invalid rows may overflow.
        self.answer_ms = self.answer_ms.saturating_add(other.answer_ms);
        self.resolution_ms = self.resolution_ms.saturating_add(other.resolution_ms);
    }
}

/// The attributes by which messages are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageCell {
    pub(crate) company: CompanyId,
    /// The start of the quarter of an hour.
    pub(crate) at: DateTime<Utc>,
    pub(crate) channel: ChannelId,
    /// The user who wrote it, if any.
    pub(crate) user: Option<UserId>,
    pub(crate) kind: MessageType,
}

/// Counts of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageCounts {
    pub(crate) inbound: i64,
    pub(crate) outbound: i64,
    pub(crate) failed: i64,
}

impl AddAssign for MessageCounts {
    fn add_assign(&mut self, other: Self) {
        self.inbound += other.inbound;
        self.outbound += other.outbound;
        self.failed += other.failed;
    }
}

/// The attributes by which wrap-ups are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WrapupCell {
    pub(crate) company: CompanyId,
    /// The start of the quarter of an hour in which the ticket was closed.
    pub(crate) at: DateTime<Utc>,
    pub(crate) queue: Option<QueueId>,
    pub(crate) wrapup_type: WrapupTypeId,
}

/// Increments by cell: few cells, however many messages a batch has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) tickets: HashMap<TicketCell, TicketCounts>,
    pub(crate) messages: HashMap<MessageCell, MessageCounts>,
    pub(crate) wrapups: HashMap<WrapupCell, i64>,
}

/// The key of a row of figures. Rows are written in the order of these fields, the order of the tables' primary keys.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    company: CompanyId,
    dimension: &'static str,
    grain: Grain,
    at: DateTime<Utc>,
    key: String,
}

/// The time span of a row: a UTC day, or a quarter of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Grain {
    Day,
    Quarter,
}

impl Grain {
    const ALL: [Self; 2] = [Self::Day, Self::Quarter];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Quarter => "quarter",
        }
    }

    /// The start of the span that contains a quarter of an hour.
    fn start_of(self, quarter: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Self::Day => start_of_day(quarter),
            Self::Quarter => quarter,
        }
    }
}

/// Adds the counts of one cell to its rows: one for each dimension and grain.
fn add_to_rows<C: AddAssign + Copy + Default>(
    rows: &mut BTreeMap<RowKey, C>,
    company: CompanyId,
    at: DateTime<Utc>,
    keys: [(Dimension, String); 4],
    counts: C,
) {
    for (dimension, key) in keys {
        for grain in Grain::ALL {
            let (dimension, at) = (dimension.as_str(), grain.start_of(at));
            *rows.entry(RowKey { company, dimension, grain, at, key: key.clone() }).or_default() += counts;
        }
    }
}

fn row_key_text(id: Option<i64>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

impl Counts {
    /// Splits the increments into two halves; `None` if there is only one cell.
    pub(crate) fn split(self) -> Option<(Self, Self)> {
        if self.tickets.len() + self.messages.len() + self.wrapups.len() < 2 {
            return None;
        }
        let (mut first, mut second) = (Self::default(), Self::default());
        let mut is_for_first = false;
        let mut next_is_for_first = || {
            is_for_first = !is_for_first;
            is_for_first
        };
        for (cell, counts) in self.tickets {
            if next_is_for_first() { &mut first } else { &mut second }.tickets.insert(cell, counts);
        }
        for (cell, counts) in self.messages {
            if next_is_for_first() { &mut first } else { &mut second }.messages.insert(cell, counts);
        }
        for (cell, count) in self.wrapups {
            if next_is_for_first() { &mut first } else { &mut second }.wrapups.insert(cell, count);
        }
        Some((first, second))
    }

    /// Adds all increments to the tables.
    pub(crate) async fn write(&self, db: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.write_tickets(db).await?;
        self.write_messages(db).await?;
        self.write_wrapups(db).await
    }

    async fn write_tickets(&self, db: &mut PgConnection) -> Result<(), sqlx::Error> {
        if self.tickets.is_empty() {
            return Ok(());
        }
        let rows = self.ticket_rows();
        let column = |count: fn(&TicketCounts) -> i64| rows.values().map(count).collect::<Vec<_>>();
        let (companies, dimensions, grains, times, keys) = key_columns(&rows);
        sqlx::query(
            "insert into report_tickets as r (company_id, dimension, grain, at, key, opened, closed, reopened, answered,
                 answer_ms, resolution_ms)
             select * from unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::bigint[],
                 $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
             on conflict (company_id, dimension, grain, at, key) do update set
                 opened = r.opened + excluded.opened,
                 closed = r.closed + excluded.closed,
                 reopened = r.reopened + excluded.reopened,
                 answered = r.answered + excluded.answered,
                 answer_ms = r.answer_ms + excluded.answer_ms,
                 resolution_ms = r.resolution_ms + excluded.resolution_ms",
        )
        .bind(companies)
        .bind(dimensions)
        .bind(grains)
        .bind(times)
        .bind(keys)
        .bind(column(|counts| counts.opened))
        .bind(column(|counts| counts.closed))
        .bind(column(|counts| counts.reopened))
        .bind(column(|counts| counts.answered))
        .bind(column(|counts| counts.answer_ms))
        .bind(column(|counts| counts.resolution_ms))
        .execute(db)
        .await?;
        Ok(())
    }

    fn ticket_rows(&self) -> BTreeMap<RowKey, TicketCounts> {
        let mut rows = BTreeMap::new();
        for (cell, counts) in &self.tickets {
            let keys = [
                (Dimension::Company, String::new()),
                (Dimension::Queue, row_key_text(cell.queue.map(|id| id.0))),
                (Dimension::Channel, row_key_text(Some(cell.channel.0))),
                (Dimension::User, row_key_text(cell.user.map(|id| id.0))),
            ];
            add_to_rows(&mut rows, cell.company, cell.at, keys, *counts);
        }
        rows
    }

    async fn write_messages(&self, db: &mut PgConnection) -> Result<(), sqlx::Error> {
        if self.messages.is_empty() {
            return Ok(());
        }
        let mut rows = BTreeMap::<RowKey, MessageCounts>::new();
        for (cell, counts) in &self.messages {
            let keys = [
                (Dimension::Company, String::new()),
                (Dimension::Channel, row_key_text(Some(cell.channel.0))),
                (Dimension::User, row_key_text(cell.user.map(|id| id.0))),
                (Dimension::Type, cell.kind.as_str().to_owned()),
            ];
            add_to_rows(&mut rows, cell.company, cell.at, keys, *counts);
        }
        let column = |count: fn(&MessageCounts) -> i64| rows.values().map(count).collect::<Vec<_>>();
        let (companies, dimensions, grains, times, keys) = key_columns(&rows);
        sqlx::query(
            "insert into report_messages as r (company_id, dimension, grain, at, key, inbound, outbound, failed)
             select * from unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::bigint[],
                 $7::bigint[], $8::bigint[])
             on conflict (company_id, dimension, grain, at, key) do update set
                 inbound = r.inbound + excluded.inbound,
                 outbound = r.outbound + excluded.outbound,
                 failed = r.failed + excluded.failed",
        )
        .bind(companies)
        .bind(dimensions)
        .bind(grains)
        .bind(times)
        .bind(keys)
        .bind(column(|counts| counts.inbound))
        .bind(column(|counts| counts.outbound))
        .bind(column(|counts| counts.failed))
        .execute(db)
        .await?;
        Ok(())
    }

    async fn write_wrapups(&self, db: &mut PgConnection) -> Result<(), sqlx::Error> {
        let mut rows = BTreeMap::<(CompanyId, Grain, DateTime<Utc>, i64, WrapupTypeId), i64>::new();
        for (cell, count) in &self.wrapups {
            let queue = cell.queue.map_or(0, |queue| queue.0);
            for grain in Grain::ALL {
                let key = (cell.company, grain, grain.start_of(cell.at), queue, cell.wrapup_type);
                *rows.entry(key).or_default() += count;
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        sqlx::query(
            "insert into report_wrapups as r (company_id, grain, at, queue_id, wrapup_type_id, count)
             select * from unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::bigint[])
             on conflict (company_id, grain, at, queue_id, wrapup_type_id) do update set count = r.count + excluded.count",
        )
        .bind(rows.keys().map(|&(company, ..)| company).collect::<Vec<_>>())
        .bind(rows.keys().map(|(_, grain, ..)| grain.as_str()).collect::<Vec<_>>())
        .bind(rows.keys().map(|&(_, _, at, ..)| at).collect::<Vec<_>>())
        .bind(rows.keys().map(|&(_, _, _, queue, _)| queue).collect::<Vec<_>>())
        .bind(rows.keys().map(|&(.., wrapup_type)| wrapup_type).collect::<Vec<_>>())
        .bind(rows.values().copied().collect::<Vec<_>>())
        .execute(db)
        .await?;
        Ok(())
    }
}

/// The columns of row keys, in the order of [`RowKey`].
type KeyColumns<'a> = (Vec<CompanyId>, Vec<&'a str>, Vec<&'a str>, Vec<DateTime<Utc>>, Vec<&'a str>);

fn key_columns<C>(rows: &BTreeMap<RowKey, C>) -> KeyColumns<'_> {
    (
        rows.keys().map(|row| row.company).collect(),
        rows.keys().map(|row| row.dimension).collect(),
        rows.keys().map(|row| row.grain.as_str()).collect(),
        rows.keys().map(|row| row.at).collect(),
        rows.keys().map(|row| row.key.as_str()).collect(),
    )
}
