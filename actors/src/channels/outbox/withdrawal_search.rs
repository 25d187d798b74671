//! The search for withdrawn messages of campaigns that wait behind others, while their channel is not connected. The
//! first message of a lane is settled where it is; without this search, one behind a message that needs the channel would
//! keep its campaign from ending.

use std::collections::HashSet;

use hotline_persistence::MessageId;

use super::lanes::Lanes;
use super::outgoing::Outgoing;
use crate::channels::WithdrawalVersion;

/// The progress of the search.
#[derive(Default)]
pub(super) struct WithdrawalSearch {
    /// The version of the company's withdrawals at which messages were checked.
    version: Option<WithdrawalVersion>,
    /// The messages that are not withdrawn at this version.
    checked: HashSet<MessageId>,
    /// Whether messages are being checked.
    is_checking: bool,
}

impl WithdrawalSearch {
    /// Begins to check up to `max` messages that were not checked at this version; none while others are being checked.
    pub(super) fn begin(&mut self, lanes: &Lanes, version: WithdrawalVersion, max: usize) -> Vec<Outgoing> {
        if self.is_checking {
            return Vec::new();
        }
        if self.version != Some(version) {
            *self = Self { version: Some(version), ..Self::default() };
        }
        let is_unchecked = |outgoing: &&Outgoing| outgoing.is_of_campaign() && !self.checked.contains(&outgoing.id());
        let unchecked: Vec<_> = lanes.behind_first().filter(is_unchecked).take(max).cloned().collect();
        self.is_checking = !unchecked.is_empty();
        unchecked
    }

    /// Ends the check at this version, with the messages that are not withdrawn.
    pub(super) fn end(&mut self, version: WithdrawalVersion, not_withdrawn: Vec<MessageId>) {
        self.is_checking = false;
        if self.version == Some(version) {
            self.checked.extend(not_withdrawn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::outgoing::tests::outgoing;
    use super::*;
    use crate::channels::Withdrawals;

    #[test]
    fn messages_of_campaigns_behind_others_are_checked_once_for_each_version() {
        let (mut lanes, mut search, withdrawals) =
            (Lanes::default(), WithdrawalSearch::default(), Withdrawals::default());
        let company = outgoing(1, 1).message.company_id;
        lanes.add(outgoing(1, 1));
        lanes.add(outgoing(2, 1));
        for id in 3..=5 {
            lanes.add(outgoing(id, 1).of_campaign());
        }
        let ids = |found: Vec<Outgoing>| found.iter().map(Outgoing::id).collect::<Vec<_>>();
        let [third, fourth, fifth] = [3, 4, 5].map(MessageId::new);
        let version = withdrawals.version(company);
        assert_eq!(ids(search.begin(&lanes, version, 2)), [third, fourth]);
        assert!(search.begin(&lanes, version, 2).is_empty(), "two are being checked");
        search.end(version, vec![third]);
        assert_eq!(ids(search.begin(&lanes, version, 2)), [fourth, fifth], "one was withdrawn, and is still there");
        withdrawals.invalidate(company);
        search.end(version, vec![fourth, fifth]);
        assert!(search.begin(&lanes, version, 2).is_empty(), "all are checked");
        assert_eq!(ids(search.begin(&lanes, withdrawals.version(company), 9)), [third, fourth, fifth]);
    }
}
