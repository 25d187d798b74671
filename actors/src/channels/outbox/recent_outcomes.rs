//! Messages whose outcome was recorded recently. The tables lag behind the log and may still list them as `queued`.

use hotline_persistence::MessageId;
use hotline_persistence::journal::Seq;

/// Maximum messages in memory. A full list is cleared: the tables are then read only once they have its outcomes.
const RECENT_MAX: usize = 10_000;

/// Messages whose outcome is durable, each with a place in the log at or after its entry.
#[derive(Debug, Default)]
pub(super) struct RecentOutcomes {
    entries: Vec<(Seq, MessageId)>,
    /// Outcomes up to this place may have been cleared: the tables must have them before messages are read.
    required_seq: Seq,
}

impl RecentOutcomes {
    pub(super) fn record(&mut self, seq: Seq, message: MessageId) {
        if self.entries.len() >= RECENT_MAX {
            self.required_seq = self.entries.drain(..).fold(self.required_seq, |newest, (seq, _)| newest.max(seq));
        }
        self.entries.push((seq, message));
    }

    /// Messages that the tables may still list as `queued`. Drops those up to `flushed`, which the tables have.
    pub(super) fn unflushed(&mut self, flushed: Seq) -> impl Iterator<Item = MessageId> {
        self.entries.retain(|(seq, _)| *seq > flushed);
        self.entries.iter().map(|(_, message)| *message)
    }

    /// All messages in memory.
    pub(super) fn ids(&self) -> impl Iterator<Item = MessageId> {
        self.entries.iter().map(|(_, message)| *message)
    }

    /// The place up to which the tables must have all entries before they are read.
    pub(super) fn required_seq(&self) -> Seq {
        self.required_seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushed_outcomes_are_dropped_and_a_full_list_is_cleared() {
        let mut recent = RecentOutcomes::default();
        for (seq, message) in [(3, 1), (5, 2), (4, 3)] {
            recent.record(seq, MessageId::new(message));
        }
        assert_eq!(recent.unflushed(3).collect::<Vec<_>>(), [MessageId::new(2), MessageId::new(3)]);
        assert_eq!(recent.unflushed(4).collect::<Vec<_>>(), [MessageId::new(2)]);
        assert_eq!((recent.unflushed(5).count(), recent.required_seq()), (0, 0));
        (0..=RECENT_MAX as Seq).for_each(|seq| recent.record(seq + 10, MessageId::new(7)));
        assert_eq!(recent.unflushed(0).count(), 1);
        assert_eq!(recent.required_seq(), RECENT_MAX as Seq + 9, "the newest of the cleared outcomes");
    }
}
