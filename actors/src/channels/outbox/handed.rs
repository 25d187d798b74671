//! Messages that were handed over lately. The tables are some moments behind the log and may still call them `queued`.

use hotline_persistence::MessageId;
use hotline_persistence::journal::Seq;

/// Maximum messages in memory. A channel hands over that many during the tables' lag only while the database has
/// problems, and then nothing is read from it.
const RECENT_MAX: usize = 10_000;

/// Messages whose outcome is durable, each with a place in the log at or after its entry.
#[derive(Debug, Default)]
pub(super) struct Handed {
    recent: Vec<(Seq, MessageId)>,
    /// Messages up to this place are no longer listed: the tables must have them before they are read.
    forgotten_to: Seq,
}

impl Handed {
    pub(super) fn note(&mut self, seq: Seq, message: MessageId) {
        if self.recent.len() >= RECENT_MAX {
            self.forgotten_to = self.recent.drain(..).fold(self.forgotten_to, |newest, (seq, _)| newest.max(seq));
        }
        self.recent.push((seq, message));
    }

    /// Messages that the tables may still call `queued`, given that the tables have everything up to `flushed`.
    pub(super) fn unknown(&mut self, flushed: Seq) -> impl Iterator<Item = MessageId> {
        self.recent.retain(|(seq, _)| *seq > flushed);
        self.recent.iter().map(|(_, message)| *message)
    }

    /// The place up to which the tables must have all entries before they are read.
    pub(super) fn forgotten_to(&self) -> Seq {
        self.forgotten_to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tables_know_is_forgotten_and_what_does_not_fit_is_waited_for() {
        let mut handed = Handed::default();
        for (seq, message) in [(3, 1), (5, 2), (4, 3)] {
            handed.note(seq, MessageId::new(message));
        }
        assert_eq!(handed.unknown(3).collect::<Vec<_>>(), [MessageId::new(2), MessageId::new(3)]);
        assert_eq!(handed.unknown(4).collect::<Vec<_>>(), [MessageId::new(2)]);
        assert_eq!((handed.unknown(5).count(), handed.forgotten_to()), (0, 0));
        (0..=RECENT_MAX as Seq).for_each(|seq| handed.note(seq + 10, MessageId::new(7)));
        assert_eq!(handed.unknown(0).count(), 1);
        assert_eq!(handed.forgotten_to(), RECENT_MAX as Seq + 9, "the last of those that made room");
    }
}
