//! Loads the contacts of cards, up to a limit in bytes.
//!
//! A contact may have hundreds of kilobytes, a card a hundred contacts, and a page a hundred cards. So contacts are
//! read a hundred at a time, those that cards share are in memory once, and a caller gets the cards that fit.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::PgConnection;

use super::{Card, LoadedCard};
use crate::error::with_timeout;
use crate::large;
use crate::tables::contacts::{self, ContactRow};
use crate::{CompanyId, ContactId, Database, Result};

/// Maximum contacts that one statement reads: as many as a page of contacts has.
const CONTACTS_PER_STATEMENT: usize = 100;

/// The first cards with their contacts, and the cards that do not fit beside them.
pub(super) type Loaded = (Vec<LoadedCard>, Vec<Card>);

/// Loads the contacts of the first cards: of one at least, and of those whose contacts have at most `bytes_max` as
/// JSON, counted for each card. Contacts that were deleted meanwhile are left out.
pub(super) async fn load(
    db: impl Database<'_>,
    company: CompanyId,
    cards: Vec<Card>,
    bytes_max: usize,
) -> Result<Loaded> {
    let mut loading = CardLoading::new(cards, bytes_max);
    while let Some(ids) = loading.next_ids() {
        let rows = contacts::find_all(db, company, &ids).await?;
        loading.add(&ids, rows);
        with_timeout(large::hold(company, loading.bytes_read)).await?;
    }
    Ok(loading.finish())
}

/// As [`load`], in an open transaction.
pub(super) async fn load_in(
    db: &mut PgConnection,
    company: CompanyId,
    cards: Vec<Card>,
    bytes_max: usize,
) -> Result<Loaded> {
    let mut loading = CardLoading::new(cards, bytes_max);
    while let Some(ids) = loading.next_ids() {
        let rows = contacts::find_all(&mut *db, company, &ids).await?;
        loading.add(&ids, rows);
    }
    Ok(loading.finish())
}

/// Cards whose contacts are being read, in the order of the cards.
struct CardLoading {
    /// The cards that fit, as far as their contacts are known.
    cards: Vec<Card>,
    /// The cards that do not fit.
    rest: Vec<Card>,
    /// How many of the first `cards` have only contacts that were read, and the bytes of those.
    complete: (usize, usize),
    /// The contacts that were read, with their bytes as JSON; `None` for those that do not exist.
    contacts: HashMap<ContactId, Option<(Arc<ContactRow>, usize)>>,
    /// Bytes of all contacts that were read, each counted once.
    bytes_read: usize,
    bytes_max: usize,
}

impl CardLoading {
    fn new(cards: Vec<Card>, bytes_max: usize) -> Self {
        Self { cards, rest: Vec::new(), complete: (0, 0), contacts: HashMap::new(), bytes_read: 0, bytes_max }
    }

    /// The contacts to be read next; `None` once those of all cards that fit are known.
    fn next_ids(&self) -> Option<Vec<ContactId>> {
        let mut ids: Vec<ContactId> = Vec::new();
        for id in self.cards.iter().skip(self.complete.0).flat_map(|card| &card.contact_ids) {
            if ids.len() < CONTACTS_PER_STATEMENT && !self.contacts.contains_key(id) && !ids.contains(id) {
                ids.push(*id);
            }
        }
        (!ids.is_empty()).then_some(ids)
    }

    /// Adds the contacts with these ids that exist, and leaves out the cards that no longer fit.
    fn add(&mut self, ids: &[ContactId], rows: Vec<ContactRow>) {
        self.contacts.extend(ids.iter().map(|id| (*id, None)));
        for row in rows {
            let bytes = serde_json::to_vec(&row).map_or(0, |json| json.len());
            self.bytes_read += bytes;
            self.contacts.insert(row.id, Some((Arc::new(row), bytes)));
        }
        let fitting = self.count_fitting();
        let mut rest = self.cards.split_off(fitting);
        rest.append(&mut self.rest);
        self.rest = rest;
    }

    /// How many of the first cards fit: at least one, if there is any.
    fn count_fitting(&mut self) -> usize {
        let (first, mut bytes) = self.complete;
        let mut is_complete = true;
        for (index, card) in self.cards.iter().enumerate().skip(first) {
            let known = card.contact_ids.iter().filter_map(|id| self.contacts.get(id)?.as_ref());
            bytes += known.map(|(_, bytes)| bytes).sum::<usize>();
            if bytes > self.bytes_max {
                return index.max(1);
            }
            is_complete = is_complete && card.contact_ids.iter().all(|id| self.contacts.contains_key(id));
            if is_complete {
                self.complete = (index + 1, bytes);
            }
        }
        self.cards.len()
    }

    fn finish(self) -> Loaded {
        let Self { cards, rest, contacts, .. } = self;
        let with_contacts = |card: Card| {
            let known = card.contact_ids.iter().filter_map(|id| contacts.get(id)?.as_ref());
            let contacts = known.map(|(contact, _)| Arc::clone(contact)).collect();
            LoadedCard { card, contacts }
        };
        (cards.into_iter().map(with_contacts).collect(), rest)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A failed expectation fails the test.
mod tests {
    use chrono::DateTime;
    use serde_json::json;
    use sqlx::types::Json;

    use super::*;
    use crate::tables::cards::CardSource;
    use crate::{Amount, BoardId, CardId};

    fn card(id: i64, contacts: &[i64]) -> Card {
        Card {
            id: CardId::new(id),
            name: "Deal".to_owned(),
            description: None,
            won: false,
            won_at: None,
            lost: false,
            lost_at: None,
            status_reason: None,
            board_id: BoardId::new(1),
            list: None,
            status: None,
            business: None,
            origin: None,
            assigned_to: None,
            contact_ids: contacts.iter().copied().map(ContactId::new).collect(),
            products: Json(Vec::new()),
            products_total: Amount::default(),
            custom_fields: Json(Vec::new()),
            creation_source: CardSource::Api,
            due: None,
            ticket_id: None,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        }
    }

    fn contact(id: ContactId) -> ContactRow {
        let row = json!({
            "id": id, "name": "x".repeat(10_000), "isGroup": false, "verified": false, "marketingOptOut": false,
            "tags": [], "customFields": [], "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
        });
        serde_json::from_value(row).expect("a contact")
    }

    /// Loads cards of contacts of some 11,000 bytes, and returns the loaded cards, the ids of the others, and how many
    /// contacts each statement has read.
    fn load(cards: Vec<Card>, bytes_max: usize) -> (Vec<LoadedCard>, Vec<i64>, Vec<usize>) {
        let mut loading = CardLoading::new(cards, bytes_max);
        let mut counts = Vec::new();
        while let Some(ids) = loading.next_ids() {
            counts.push(ids.len());
            loading.add(&ids, ids.iter().copied().map(contact).collect());
        }
        let (loaded, rest) = loading.finish();
        (loaded, rest.iter().map(|card| card.id.0).collect(), counts)
    }

    #[test]
    fn a_shared_contact_is_in_memory_once_and_counts_for_each_card() {
        let cards = || (1..=5).map(|id| card(id, &[1, 2])).collect::<Vec<_>>();
        let (loaded, rest, counts) = load(cards(), 70_000);
        assert_eq!((loaded.len(), rest, counts), (3, vec![4, 5], vec![2]));
        assert!(Arc::ptr_eq(&loaded[0].contacts[1], &loaded[2].contacts[1]));
        let (loaded, rest, _) = load(cards(), 1);
        assert_eq!((loaded.len(), rest), (1, vec![2, 3, 4, 5]), "one card at least");
        assert_eq!(loaded[0].contacts.len(), 2);
        assert_eq!(load(cards(), usize::MAX).1, [0; 0]);
    }

    #[test]
    fn contacts_are_read_a_hundred_at_a_time_until_no_more_cards_fit() {
        let cards = || (0..10).map(|id| card(id, &(id * 50..id * 50 + 50).collect::<Vec<_>>())).collect::<Vec<_>>();
        let (loaded, rest, counts) = load(cards(), 1_700_000);
        assert_eq!((loaded.len(), rest.len(), counts), (3, 7, vec![100, 100]), "the other contacts are not read");
        let (loaded, rest, counts) = load(cards(), usize::MAX);
        assert_eq!((loaded.len(), rest.len(), counts), (10, 0, vec![100; 5]));
    }
}
