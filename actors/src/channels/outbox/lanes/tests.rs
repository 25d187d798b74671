use std::time::Duration;

use super::super::outgoing::tests::outgoing;
use super::*;
use crate::channels::Withdrawals;

const ANA: ContactId = ContactId::new(1);
const BEN: ContactId = ContactId::new(2);

fn id(outgoing: Option<Outgoing>) -> Option<i64> {
    outgoing.map(|outgoing| outgoing.id().0)
}

#[test]
fn each_lane_keeps_its_order_and_has_one_message_under_way() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    for (message, contact) in [(1, ANA), (2, ANA), (3, BEN)] {
        if lanes.add(outgoing(message, contact.0)) {
            lanes.schedule(contact, now, now);
        }
    }
    assert_eq!(id(lanes.next(now)), Some(1));
    assert_eq!(id(lanes.next(now)), Some(3));
    assert_eq!(id(lanes.next(now)), None, "2 waits for 1");
    // 1 is retried, and 2 still waits for it.
    assert_eq!((lanes.record_failure(ANA), lanes.record_failure(ANA)), (1, 2));
    let later = now + Duration::from_secs(1);
    lanes.schedule(ANA, later, now);
    assert_eq!((id(lanes.next(now)), lanes.next_at()), (None, Some(later)));
    assert_eq!(id(lanes.next(later)), Some(1));
    assert!(lanes.remove_first(ANA), "2 is next");
    assert_eq!(lanes.record_failure(ANA), 1, "failures are counted by message");
    lanes.schedule(ANA, later, later);
    assert_eq!(id(lanes.next(later)), Some(2));
    assert!(!lanes.remove_first(ANA) && !lanes.remove_first(BEN) && lanes.ids().is_empty());
}

#[test]
fn messages_after_a_merge_wait_for_those_before_it() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    assert!(lanes.add(outgoing(1, ANA.0)));
    lanes.schedule(ANA, now, now);
    assert_eq!(id(lanes.next(now)), Some(1));
    lanes.merge(ANA, BEN);
    assert!(!lanes.add(outgoing(2, BEN.0)), "2 waits for 1");
    // 1 is retried, and is then sent.
    let later = now + Duration::from_secs(1);
    lanes.schedule(ANA, later, now);
    assert_eq!((id(lanes.next(now)), id(lanes.next(later))), (None, Some(1)));
    assert!(lanes.remove_first(ANA));
    lanes.schedule(BEN, later, later);
    assert_eq!(id(lanes.next(later)), Some(2));
    assert!(!lanes.remove_first(BEN) && lanes.joined.is_empty() && lanes.lanes.is_empty());
    // Without messages of the merged contact, the merge is forgotten.
    lanes.merge(ANA, BEN);
    lanes.end_merge(ANA, BEN);
    assert!(lanes.add(outgoing(3, BEN.0)) && lanes.lanes.contains_key(&BEN) && lanes.joined.is_empty());
}

#[test]
fn waiting_messages_of_merged_contacts_are_sent_in_order_whichever_lane_is_under_way() {
    let now = Instant::now();
    // The messages of each contact, the contacts whose first message is under way, and the order of the sends.
    for (of_ana, of_ben, under_way, expected) in [
        (vec![1, 3], vec![2, 4], vec![], vec![1, 2, 3, 4, 5]),
        (vec![2, 4], vec![1, 3], vec![], vec![1, 2, 3, 4, 5]),
        (vec![2, 4], vec![1, 3], vec![ANA], vec![2, 1, 3, 4, 5]),
        (vec![1, 3], vec![2, 4], vec![BEN], vec![2, 1, 3, 4, 5]),
    ] {
        let mut lanes = Lanes::default();
        for (message, contact) in of_ana.iter().map(|id| (*id, ANA)).chain(of_ben.iter().map(|id| (*id, BEN))) {
            if lanes.add(outgoing(message, contact.0)) && under_way.contains(&contact) {
                lanes.schedule(contact, now, now);
            }
        }
        let mut first_sent = lanes.next(now);
        [ANA, BEN].into_iter().filter(|contact| !under_way.contains(contact)).for_each(|contact| {
            lanes.schedule(contact, now, now);
        });
        lanes.merge(ANA, BEN);
        lanes.end_merge(ANA, BEN);
        assert!(!lanes.add(outgoing(5, BEN.0)));
        let mut sent = Vec::new();
        while let Some(outgoing) = first_sent.take().or_else(|| lanes.next(now)) {
            assert_eq!(id(lanes.next(now)), None, "one at a time");
            sent.push(outgoing.id().0);
            if lanes.remove_first(outgoing.contact()) {
                lanes.schedule(outgoing.contact(), now, now);
            }
        }
        assert_eq!(sent, expected, "{of_ana:?} {of_ben:?} {under_way:?}");
        assert!(lanes.is_empty() && lanes.joined.is_empty() && !lanes.has_next(now));
    }
}

#[test]
fn if_a_message_of_each_merged_contact_is_under_way_each_keeps_its_lane() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    for (message, contact) in [(1, ANA), (2, BEN)] {
        assert!(lanes.add(outgoing(message, contact.0)));
        lanes.schedule(contact, now, now);
    }
    assert_eq!((id(lanes.next(now)), id(lanes.next(now))), (Some(1), Some(2)));
    lanes.merge(ANA, BEN);
    lanes.end_merge(ANA, BEN);
    assert!(!lanes.remove_first(ANA) && !lanes.remove_first(BEN) && lanes.is_empty());
}

#[test]
fn only_first_messages_of_campaigns_are_settleable_and_once_for_each_version_of_withdrawals() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    let withdrawals = Withdrawals::default();
    let company = outgoing(1, 1).message.company_id;
    for (message, contact) in [(1, ANA), (2, BEN), (3, BEN)] {
        let text = outgoing(message, contact.0);
        if lanes.add(if contact == BEN { text.of_campaign() } else { text }) {
            lanes.schedule(contact, now, now);
        }
    }
    let take_settleable = |lanes: &mut Lanes| {
        let version = withdrawals.version(company);
        lanes.take_settleable(10, version, now).iter().map(|outgoing| outgoing.id().0).collect::<Vec<_>>()
    };
    assert_eq!(take_settleable(&mut lanes), [2]);
    assert_eq!(take_settleable(&mut lanes), [0; 0], "it is under way");
    lanes.record_check(BEN, withdrawals.version(company));
    lanes.schedule(BEN, now, now);
    assert_eq!(take_settleable(&mut lanes), [0; 0], "nothing was withdrawn since");
    withdrawals.invalidate(company);
    assert_eq!(take_settleable(&mut lanes), [2]);
    assert!(lanes.remove_first(BEN));
    lanes.schedule(BEN, now, now);
    assert_eq!(take_settleable(&mut lanes), [3]);
    assert_eq!(id(lanes.next(now)), Some(1), "a message of no campaign waits for the channel");
}

#[test]
fn withdrawn_messages_behind_the_first_are_removed_and_the_others_keep_their_order() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    for (message, contact) in [(1, ANA), (2, ANA), (3, ANA), (4, ANA), (5, BEN)] {
        if lanes.add(outgoing(message, contact.0)) {
            lanes.schedule(contact, now, now);
        }
    }
    let withdrawn = [1, 2, 4, 5].map(MessageId::new).into();
    let taken: Vec<_> = lanes.take_behind_first(&withdrawn).iter().map(|outgoing| outgoing.id().0).collect();
    assert_eq!(taken, [2, 4], "the first of a lane stays");
    assert_eq!((id(lanes.next(now)), id(lanes.next(now))), (Some(1), Some(5)));
    assert!(lanes.remove_first(ANA) && !lanes.remove_first(BEN));
    lanes.schedule(ANA, now, now);
    assert_eq!(id(lanes.next(now)), Some(3));
}

#[test]
fn the_messages_of_a_deleted_contact_are_removed_unless_under_way() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    for (message, contact) in [(1, ANA), (2, ANA), (3, BEN), (4, BEN)] {
        if lanes.add(outgoing(message, contact.0)) {
            lanes.schedule(contact, now, now);
        }
    }
    let first = lanes.next(now).expect("Ana's first");
    let removed: Vec<i64> = lanes.remove_messages_of(ANA).iter().map(|outgoing| outgoing.id().0).collect();
    assert!(removed == [2] && first.is_removed(), "{removed:?}");
    assert!(!lanes.remove_first(ANA), "nothing is left of Ana");
    // A message that waits for a retry is not under way.
    assert_eq!(id(lanes.next(now)), Some(3));
    lanes.schedule(BEN, now + Duration::from_secs(1), now);
    assert_eq!(lanes.remove_messages_of(BEN).len(), 2);
    assert!(lanes.lanes.is_empty() && !lanes.has_next(now) && lanes.next_at().is_none());
}

#[test]
fn the_messages_of_a_merged_contact_are_removed_with_those_of_the_remaining_one() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    for (message, contact) in [(1, ANA), (2, BEN)] {
        assert!(lanes.add(outgoing(message, contact.0)));
        lanes.schedule(contact, now, now);
    }
    lanes.merge(ANA, BEN);
    lanes.end_merge(ANA, BEN);
    lanes.mark_changed(&HashSet::from([BEN]));
    let removed = lanes.remove_messages_of(BEN);
    assert!(removed.len() == 2 && removed.iter().all(|outgoing| outgoing.is_number_stale));
    assert!(lanes.remove_messages_of(ANA).is_empty() && lanes.ids().is_empty());
}

#[test]
fn the_message_accepted_first_is_sent_first() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    for (message, contact) in [(2, BEN), (1, ANA)] {
        assert!(lanes.add(outgoing(message, contact.0)));
        lanes.schedule(contact, now, now);
    }
    assert_eq!((id(lanes.next(now)), id(lanes.next(now))), (Some(1), Some(2)));
    // Both are refused, in either order.
    lanes.schedule(BEN, now, now);
    lanes.schedule(ANA, now, now);
    assert_eq!((id(lanes.next(now)), id(lanes.next(now))), (Some(1), Some(2)));
    assert_eq!(lanes.ids().len(), 2);
}
