//! The campaign's next recipients, as loaded into memory, in order.

use std::collections::VecDeque;

use hotline_persistence::ContactId;

use crate::channels::WithdrawalVersion;

/// Maximum recipients of a page, a few dozen bytes each in memory. A fast campaign sends ten thousand in a second:
/// with smaller pages it would wait for the tables.
const PAGE_MAX: i64 = 2000;

/// Pages per minute: a page holds ten seconds of sends, so that the data of recipients in memory stays recent.
const PAGES_PER_MINUTE: i64 = 6;

/// A recipient in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NextRecipient {
    pub(super) contact_id: ContactId,
    /// Whether the contact has opted out of campaigns.
    pub(super) is_opted_out: bool,
    /// Whether the contact is a group, to which campaigns do not write.
    pub(super) is_group: bool,
    /// Whether the contact was cached for this campaign alone, and is evicted after the send.
    pub(super) is_cached_for_campaign: bool,
    /// The version of withdrawals before the recipient was read: if it has changed since, opt-outs are checked again.
    pub(super) withdrawal_version: WithdrawalVersion,
    /// The generation of the queue that loaded the recipient.
    pub(super) generation: u64,
}

/// A campaign's next recipients in memory.
#[derive(Debug, Default)]
pub(super) struct RecipientQueue {
    waiting: VecDeque<NextRecipient>,
    /// The last recipient that was loaded.
    last_loaded: Option<ContactId>,
    is_loading: bool,
    /// The tables have no more pending recipients.
    is_exhausted: bool,
    /// Incremented when the queue restarts: results of earlier loads are then ignored.
    generation: u64,
}

/// A page to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageQuery {
    pub(super) generation: u64,
    pub(super) after: ContactId,
    pub(super) limit: i64,
}

/// The size of a page: the recipients of ten seconds, up to [`PAGE_MAX`].
pub(super) fn page_size(rate_per_minute: i32) -> i64 {
    (i64::from(rate_per_minute) / PAGES_PER_MINUTE).clamp(1, PAGE_MAX)
}

impl RecipientQueue {
    /// Takes the next recipient.
    pub(super) fn pop_front(&mut self) -> Option<NextRecipient> {
        self.waiting.pop_front()
    }

    /// Puts back, as the first, a recipient who could not be written to now. A recipient of an earlier generation is
    /// dropped: it is loaded again with the others.
    pub(super) fn push_front(&mut self, recipient: NextRecipient) {
        if recipient.generation == self.generation {
            self.waiting.push_front(recipient);
        }
    }

    /// Drops all recipients: they are loaded again from the tables, which must have all earlier decisions first.
    pub(super) fn restart(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    /// Whether nothing has been loaded since the last restart.
    pub(super) fn is_new(&self) -> bool {
        self.last_loaded.is_none() && self.waiting.is_empty()
    }

    /// Whether no recipients are left.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.is_exhausted
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The page to read now, if one is due: once at most half of `limit` recipients are left in memory.
    pub(super) fn begin_load(&mut self, limit: i64) -> Option<PageQuery> {
        let is_low = i64::try_from(self.waiting.len()).unwrap_or(i64::MAX) <= limit / 2;
        if self.is_loading || self.is_exhausted || !is_low {
            return None;
        }
        self.is_loading = true;
        let after = self.last_loaded.unwrap_or(ContactId::new(0));
        Some(PageQuery { generation: self.generation, after, limit })
    }

    /// Adds a page that was read; `None`: it could not be read.
    pub(super) fn end_load(&mut self, query: PageQuery, page: Option<Vec<NextRecipient>>) {
        if query.generation != self.generation {
            return;
        }
        self.is_loading = false;
        let Some(page) = page else { return };
        self.is_exhausted = i64::try_from(page.len()).unwrap_or(i64::MAX) < query.limit;
        self.last_loaded = page.last().map(|last| last.contact_id).or(self.last_loaded);
        self.waiting.extend(page);
    }
}

#[cfg(test)]
mod tests {
    use hotline_persistence::CompanyId;

    use super::*;
    use crate::channels::Withdrawals;

    fn recipient(id: i64) -> NextRecipient {
        let withdrawal_version = Withdrawals::default().version(CompanyId::new(1));
        NextRecipient {
            contact_id: ContactId::new(id),
            is_opted_out: false,
            is_group: false,
            is_cached_for_campaign: true,
            withdrawal_version,
            generation: 0,
        }
    }

    fn drain_ids(queue: &mut RecipientQueue) -> Vec<i64> {
        std::iter::from_fn(|| queue.pop_front()).map(|recipient| recipient.contact_id.0).collect()
    }

    #[test]
    fn pages_follow_each_other_and_a_returned_recipient_goes_first() {
        let mut queue = RecipientQueue::default();
        let first = queue.begin_load(4).expect("the first page");
        assert_eq!((first.after.0, first.limit, queue.begin_load(4)), (0, 4, None));
        queue.end_load(first, Some((1..=4).map(recipient).collect()));
        assert_eq!(queue.begin_load(4), None, "more than half is left");
        let head = queue.pop_front().expect("the first");
        queue.push_front(head.clone());
        assert_eq!(queue.pop_front(), Some(head));
        assert_eq!(queue.pop_front(), Some(recipient(2)));
        let second = queue.begin_load(4).expect("the second page");
        assert_eq!(second.after.0, 4);
        queue.end_load(second, None);
        assert_eq!(queue.begin_load(4), Some(second), "it could not be read");
        queue.end_load(second, Some(vec![recipient(7)]));
        assert!(!queue.is_done());
        assert_eq!(drain_ids(&mut queue), [3, 4, 7]);
        assert!(queue.is_done() && queue.begin_load(4).is_none());
    }

    #[test]
    fn a_page_of_an_earlier_generation_is_ignored() {
        let mut queue = RecipientQueue::default();
        let query = queue.begin_load(2).expect("a page");
        queue.restart();
        queue.end_load(query, Some(vec![recipient(1)]));
        assert!(queue.is_new() && !queue.is_done());
        assert!(queue.begin_load(2).is_some());
    }

    #[test]
    fn a_recipient_of_an_earlier_generation_is_not_queued_twice() {
        let mut queue = RecipientQueue::default();
        let query = queue.begin_load(2).expect("a page");
        queue.end_load(query, Some(vec![recipient(1), recipient(2)]));
        let head = queue.pop_front().expect("the first");
        queue.restart();
        queue.push_front(head.clone());
        assert!(queue.is_new(), "the queue is empty");
        let again = queue.begin_load(2).expect("the page again");
        let reloaded = |id| NextRecipient { generation: again.generation, ..recipient(id) };
        queue.end_load(again, Some(vec![reloaded(1), reloaded(2)]));
        queue.push_front(head);
        assert_eq!(drain_ids(&mut queue), [1, 2]);
    }

    #[test]
    fn a_page_holds_ten_seconds_of_sends() {
        assert_eq!([1, 60, 600, 6000].map(page_size), [1, 10, 100, 1000]);
    }
}
