//! A page of a list: how it is requested, and what it holds.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// The requested page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Where it begins.
    pub place: Place,
    /// Rows per page.
    pub size: i64,
    /// Whether the newest rows come first.
    pub descending: bool,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The page with this number, from 1.
    Number(i64),
    /// After the row at this position in the list's order by id; `None`: at the first row. Rows that are added or
    /// deleted between two pages shift no other row, unlike with page numbers.
    Cursor(Option<i64>),
}

impl PageRequest {
    /// The first page by number.
    pub const fn first(size: i64) -> Self {
        Self { place: Place::Number(1), size, descending: false }
    }

    /// The page number, from 1; `None` for a page by cursor.
    pub const fn number(&self) -> Option<i64> {
        match self.place {
            Place::Number(number) => Some(number),
            Place::Cursor(_) => None,
        }
    }

    /// Whether the page begins at a cursor. Unless the list is sorted, such a page is in the order of ids; a page by
    /// number may be in another order.
    pub const fn is_by_cursor(&self) -> bool {
        matches!(self.place, Place::Cursor(_))
    }

    /// The position after which it begins; `None` at the first row, and for a page by number.
    pub const fn after(&self) -> Option<i64> {
        match self.place {
            Place::Number(_) => None,
            Place::Cursor(after) => after,
        }
    }

    /// Number of rows before the page that must be skipped.
    pub fn offset(&self) -> i64 {
        match self.place {
            Place::Number(number) => (number - 1).saturating_mul(self.size),
            Place::Cursor(_) => 0,
        }
    }

    /// Whether skipping the rows before the page dominates its cost.
    pub fn is_deep(&self) -> bool {
        self.offset() > DEEP_ROWS
    }
}

/// Rows that can be skipped in about the time it takes to return a page.
const DEEP_ROWS: i64 = 1_000;

/// One page of a list.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Whether there are more pages.
    pub has_more: bool,
    /// The position of each row in the list's order. Empty for a page by number.
    pub positions: Vec<Position>,
    /// The position of the last row that was found, even if that row could not be decoded and is not among `rows`.
    /// `None` for a page by number.
    pub end: Option<Position>,
}

/// The position of a row in its list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Position {
    /// The row's id.
    Id(i64),
    /// The row's unique name, where it has no id.
    Name(String),
    /// The time by which the list is sorted, and the row's id.
    Time(TimePosition),
}

/// The position of a row in a list that is sorted by a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimePosition {
    /// The row's time. Rows without one come last, in the order of their ids.
    pub at: Option<DateTime<Utc>>,
    /// The row's id; rows of the same time are in the order of their ids.
    pub id: i64,
}

impl From<i64> for Position {
    fn from(id: i64) -> Self {
        Self::Id(id)
    }
}

impl From<String> for Position {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl<T> Page<T> {
    /// A page by number.
    pub const fn of(rows: Vec<T>, has_more: bool) -> Self {
        Self { rows, has_more, positions: Vec::new(), end: None }
    }

    /// Replaces the rows of a page by cursor with others for its first rows only. The next page begins after them.
    pub(crate) fn with_first_rows<R>(mut self, rows: Vec<R>) -> Page<R> {
        self.positions.truncate(rows.len());
        Page { rows, has_more: true, positions: self.positions, end: None }
    }

    /// Replaces the rows of the page with as many others.
    pub fn with_rows<R>(self, rows: Vec<R>) -> Page<R> {
        Page { rows, has_more: self.has_more, positions: self.positions, end: self.end }
    }
}
