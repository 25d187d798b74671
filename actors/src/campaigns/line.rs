//! The campaign's next recipients that are loaded in memory, in order.

use std::collections::VecDeque;

use hotline_persistence::ContactId;

use crate::channels::Stamp;

/// Maximum recipients in memory: some tens of bytes each.
const PAGE_MAX: i64 = 500;

/// Pages per minute: the data of a recipient in memory is at most some ten seconds old.
const PAGES_PER_MINUTE: i64 = 6;

/// A recipient in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NextRecipient {
    pub(super) contact_id: ContactId,
    /// Whether the contact has opted out of campaigns.
    pub(super) is_opted_out: bool,
    /// Whether the contact was cached for this campaign alone.
    pub(super) is_fetched: bool,
    /// When they were read: what has changed since is to be looked at.
    pub(super) looked: Stamp,
    /// Of which line they are.
    pub(super) generation: u64,
}

/// A campaign's recipients in memory.
#[derive(Debug, Default)]
pub(super) struct Line {
    ahead: VecDeque<NextRecipient>,
    /// The last recipient that was loaded.
    after: Option<ContactId>,
    is_loading: bool,
    /// The tables have no more pending recipients.
    has_ended: bool,
    /// Incremented when the line restarts: results of earlier readings are then ignored.
    generation: u64,
}

/// A page to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) generation: u64,
    pub(super) after: ContactId,
    pub(super) limit: i64,
}

/// The size of a page: recipients of some seconds.
pub(super) fn page_of(rate_per_minute: i32) -> i64 {
    (i64::from(rate_per_minute) / PAGES_PER_MINUTE).clamp(1, PAGE_MAX)
}

impl Line {
    /// Takes the next recipient.
    pub(super) fn next(&mut self) -> Option<NextRecipient> {
        self.ahead.pop_front()
    }

    /// One could not be written to now, and goes first. One of an earlier line is read again with the others.
    pub(super) fn put_back(&mut self, recipient: NextRecipient) {
        if recipient.generation == self.generation {
            self.ahead.push_front(recipient);
        }
    }

    /// Restarts the line: everything is read again from the tables, which must have all earlier decisions first.
    pub(super) fn begin_anew(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    /// Whether nothing was loaded since the line began.
    pub(super) fn is_new(&self) -> bool {
        self.after.is_none() && self.ahead.is_empty()
    }

    /// Whether no recipients are left.
    pub(super) fn is_done(&self) -> bool {
        self.ahead.is_empty() && self.has_ended
    }

    pub(super) fn len(&self) -> usize {
        self.ahead.len()
    }

    /// The page to read now, if one is due: once half a page is left.
    pub(super) fn begin_reading(&mut self, page: i64) -> Option<Reading> {
        let is_low = i64::try_from(self.ahead.len()).unwrap_or(i64::MAX) <= page / 2;
        if self.is_loading || self.has_ended || !is_low {
            return None;
        }
        self.is_loading = true;
        let after = self.after.unwrap_or(ContactId::new(0));
        Some(Reading { generation: self.generation, after, limit: page })
    }

    /// Adds a page that was read; none: it could not be read.
    pub(super) fn end_reading(&mut self, reading: Reading, found: Option<Vec<NextRecipient>>) {
        if reading.generation != self.generation {
            return;
        }
        self.is_loading = false;
        let Some(found) = found else { return };
        self.has_ended = i64::try_from(found.len()).unwrap_or(i64::MAX) < reading.limit;
        self.after = found.last().map(|last| last.contact_id).or(self.after);
        self.ahead.extend(found);
    }
}

#[cfg(test)]
mod tests {
    use hotline_persistence::CompanyId;

    use super::*;
    use crate::channels::Withdrawals;

    fn recipient(id: i64) -> NextRecipient {
        let looked = Withdrawals::default().stamp(CompanyId::new(1));
        NextRecipient { contact_id: ContactId::new(id), is_opted_out: false, is_fetched: true, looked, generation: 0 }
    }

    fn all(line: &mut Line) -> Vec<i64> {
        std::iter::from_fn(|| line.next()).map(|recipient| recipient.contact_id.0).collect()
    }

    #[test]
    fn pages_follow_each_other_and_who_was_put_back_goes_first() {
        let mut line = Line::default();
        let first = line.begin_reading(4).expect("the first page");
        assert_eq!((first.after.0, first.limit, line.begin_reading(4)), (0, 4, None));
        line.end_reading(first, Some((1..=4).map(recipient).collect()));
        assert_eq!(line.begin_reading(4), None, "more than half is left");
        let taken = line.next().expect("the first");
        line.put_back(taken.clone());
        assert_eq!(line.next(), Some(taken));
        assert_eq!(line.next(), Some(recipient(2)));
        let second = line.begin_reading(4).expect("the second page");
        assert_eq!(second.after.0, 4);
        line.end_reading(second, None);
        assert_eq!(line.begin_reading(4), Some(second), "it could not be read");
        line.end_reading(second, Some(vec![recipient(7)]));
        assert!(!line.is_done());
        assert_eq!(all(&mut line), [3, 4, 7]);
        assert!(line.is_done() && line.begin_reading(4).is_none());
    }

    #[test]
    fn what_was_read_for_an_earlier_line_is_of_no_use() {
        let mut line = Line::default();
        let reading = line.begin_reading(2).expect("a page");
        line.begin_anew();
        line.end_reading(reading, Some(vec![recipient(1)]));
        assert!(line.is_new() && !line.is_done());
        assert!(line.begin_reading(2).is_some());
    }

    #[test]
    fn who_was_taken_from_an_earlier_line_is_not_at_hand_twice() {
        let mut line = Line::default();
        let reading = line.begin_reading(2).expect("a page");
        line.end_reading(reading, Some(vec![recipient(1), recipient(2)]));
        let taken = line.next().expect("the first");
        line.begin_anew();
        line.put_back(taken.clone());
        assert!(line.is_new(), "nobody is at hand");
        let again = line.begin_reading(2).expect("the page again");
        let read = |id| NextRecipient { generation: again.generation, ..recipient(id) };
        line.end_reading(again, Some(vec![read(1), read(2)]));
        line.put_back(taken);
        assert_eq!(all(&mut line), [1, 2]);
    }

    #[test]
    fn a_page_is_what_leaves_in_ten_seconds() {
        assert_eq!([1, 60, 600, 6000].map(page_of), [1, 10, 100, 500]);
    }
}
