//! How many bytes of answers are in memory for readers that have not taken them: by address, by company, and in all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hotline_persistence::CompanyId;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::web::origin::Address;

/// Limits of the bytes that answers hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// Of all answers: some pages of the longest texts. Who reads takes one within milliseconds.
    pub(super) all: usize,
    /// On top of that, for readers who hold little: their pages do not wait for those of others.
    pub(super) kept_back: usize,
    /// What is little, of an address and of a company.
    pub(super) little: usize,
    /// Of the answers to one company's callers, people and visitors.
    pub(super) company: usize,
    /// Of the answers to one address: a page of a hundred messages of 60,000 characters.
    pub(super) address: usize,
    /// Of answers that are complete and wait for their place.
    pub(super) waiting: usize,
    /// How long an answer waits.
    pub(super) wait: Duration,
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            all: 20 << 20,
            kept_back: 4 << 20,
            little: 1 << 20,
            company: 12 << 20,
            address: 6 << 20,
            waiting: 4 << 20,
            wait: Duration::from_secs(2),
        }
    }
}

/// Who an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    /// `None`: unknown, as on a listener that is no network's.
    pub(super) address: Option<Address>,
    /// `None`: the answer is no company's.
    pub(super) company: Option<CompanyId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Address(Address),
    Company(CompanyId),
}

/// What is held now.
#[derive(Default)]
struct Held {
    all: usize,
    waiting: usize,
    of: HashMap<Holder, usize>,
}

/// The bytes in use. Clones share the same state.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Inner>);

#[derive(Default)]
struct Inner {
    shares: Shares,
    held: Mutex<Held>,
    freed: Notify,
}

/// Bytes in use; dropping it frees them.
pub(super) struct Place {
    ledger: Ledger,
    reader: Reader,
    bytes: usize,
}

/// An answer that is complete and waits for its place.
struct Waiting<'a> {
    ledger: &'a Ledger,
    bytes: usize,
}

impl Ledger {
    #[cfg(test)]
    pub(super) fn with(shares: Shares) -> Self {
        Self(Arc::new(Inner { shares, ..Inner::default() }))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if there is one now. An answer that is larger than a share has one when its reader holds nothing
    /// else: a page by number cannot be shorter.
    pub(super) fn try_take(&self, reader: Reader, bytes: usize) -> Option<Place> {
        let mut held = self.held();
        if !held.fits(self.0.shares, reader, bytes) {
            return None;
        }
        held.add(reader, bytes);
        drop(held);
        Some(Place { ledger: self.clone(), reader, bytes })
    }

    /// Waits for a place for an answer that is not built yet.
    pub(super) async fn take(&self, reader: Reader, bytes: usize) -> Option<Place> {
        let deadline = Instant::now() + self.0.shares.wait;
        loop {
            // Registered before it is looked at, so that no place is missed in between.
            let mut freed = std::pin::pin!(self.0.freed.notified());
            freed.as_mut().enable();
            if let Some(place) = self.try_take(reader, bytes) {
                return Some(place);
            }
            timeout_at(deadline, freed).await.ok()?;
        }
    }

    /// Waits for a place for an answer that is in memory already. Few may wait like this.
    pub(super) async fn take_for(&self, reader: Reader, bytes: usize) -> Option<Place> {
        if let Some(place) = self.try_take(reader, bytes) {
            return Some(place);
        }
        let _waiting = self.begin_waiting(bytes)?;
        self.take(reader, bytes).await
    }

    fn begin_waiting(&self, bytes: usize) -> Option<Waiting<'_>> {
        let mut held = self.held();
        if held.waiting > 0 && held.waiting + bytes > self.0.shares.waiting {
            return None;
        }
        held.waiting += bytes;
        drop(held);
        Some(Waiting { ledger: self, bytes })
    }

    /// The number of addresses and companies that hold something.
    #[cfg(test)]
    pub(super) fn holders(&self) -> usize {
        self.held().of.len()
    }
}

impl Held {
    fn of(&self, holder: Option<Holder>) -> usize {
        holder.and_then(|holder| self.of.get(&holder)).copied().unwrap_or_default()
    }

    fn fits(&self, shares: Shares, reader: Reader, bytes: usize) -> bool {
        let [address, company] = reader.holders().map(|holder| self.of(holder));
        let fits = |held: usize, share: usize| held + bytes.min(share) <= share;
        let is_little = address.max(company) + bytes <= shares.little;
        let all = if is_little { shares.all + shares.kept_back } else { shares.all };
        fits(address, shares.address) && fits(company, shares.company) && fits(self.all, all)
    }

    fn add(&mut self, reader: Reader, bytes: usize) {
        self.all += bytes;
        for holder in reader.holders().into_iter().flatten() {
            *self.of.entry(holder).or_default() += bytes;
        }
    }

    fn remove(&mut self, reader: Reader, bytes: usize) {
        self.all = self.all.saturating_sub(bytes);
        for holder in reader.holders().into_iter().flatten() {
            if let Some(held) = self.of.get_mut(&holder) {
                *held = held.saturating_sub(bytes);
                if *held == 0 {
                    self.of.remove(&holder);
                }
            }
        }
    }
}

impl Reader {
    fn holders(self) -> [Option<Holder>; 2] {
        [self.address.map(Holder::Address), self.company.map(Holder::Company)]
    }
}

impl Place {
    /// Frees all but so many of its bytes.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        if spare > 0 {
            self.bytes -= spare;
            self.ledger.held().remove(self.reader, spare);
            self.ledger.0.freed.notify_waiters();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.ledger.held().remove(self.reader, self.bytes);
        self.ledger.0.freed.notify_waiters();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut held = self.ledger.held();
        held.waiting = held.waiting.saturating_sub(self.bytes);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    const SHARES: Shares = Shares {
        all: 100,
        kept_back: 20,
        little: 10,
        company: 60,
        address: 40,
        waiting: 30,
        wait: Duration::from_secs(2),
    };

    fn reader(address: u8, company: i64) -> Reader {
        Reader { address: Some(Address::of([192, 0, 2, address].into())), company: Some(CompanyId::new(company)) }
    }

    #[test]
    fn an_address_a_company_and_all_have_their_shares_and_who_holds_little_has_more() {
        let ledger = Ledger::with(SHARES);
        let take = |address, company, bytes| ledger.try_take(reader(address, company), bytes);
        let first = take(1, 1, 40).expect("a whole share");
        assert!(take(1, 2, 1).is_none(), "the address has none left");
        let second = take(2, 1, 20).expect("the rest of the company");
        assert!(take(3, 1, 1).is_none(), "the company has none left");
        let third = take(4, 2, 40).expect("the rest of all");
        assert!(take(5, 3, 11).is_none(), "all have none left");
        let little = take(5, 3, 10).expect("who holds little");
        assert!(take(5, 3, 1).is_none(), "no longer little");
        drop((first, second, third, little));
        assert_eq!(ledger.holders(), 0, "nothing is kept of who holds nothing");
        let held = ledger.held();
        assert_eq!((held.all, held.waiting), (0, 0));
    }

    #[test]
    fn an_answer_above_a_share_has_a_place_alone() {
        let ledger = Ledger::with(SHARES);
        let large = ledger.try_take(reader(1, 1), 1_000).expect("nothing else is held");
        assert!(ledger.try_take(reader(1, 2), 1).is_none() && ledger.try_take(reader(2, 1), 1).is_none());
        drop(large);
        let small = ledger.try_take(reader(1, 1), 1).expect("a place");
        assert!(ledger.try_take(reader(1, 1), 1_000).is_none(), "not beside another");
        drop(small);
        assert!(ledger.try_take(reader(1, 1), 1_000).is_some());
    }

    #[test]
    fn a_place_that_is_larger_than_what_it_is_for_shrinks() {
        let ledger = Ledger::with(SHARES);
        let mut place = ledger.try_take(reader(1, 1), 40).expect("a place");
        place.shrink(60);
        assert!(ledger.try_take(reader(1, 1), 1).is_none(), "it does not grow");
        place.shrink(10);
        assert!(ledger.try_take(reader(1, 1), 31).is_none());
        assert!(ledger.try_take(reader(1, 1), 30).is_some());
        drop(place);
        assert_eq!((ledger.holders(), ledger.held().all), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_a_place_and_not_for_ever_and_few_wait_in_memory() {
        let ledger = Ledger::with(SHARES);
        let held = ledger.try_take(reader(1, 1), 40).expect("a place");
        let (one, two) = (ledger.clone(), ledger.clone());
        let waiting = tokio::spawn(async move { one.take_for(reader(1, 1), 30).await.is_some() });
        tokio::task::yield_now().await;
        assert!(two.take_for(reader(1, 1), 1).await.is_none(), "no more may wait");
        drop(held);
        assert!(waiting.await.expect("a task"));
        let _held = ledger.try_take(reader(1, 1), 40).expect("a place");
        let begun = Instant::now();
        assert!(ledger.take_for(reader(1, 1), 1).await.is_none());
        assert_eq!(begun.elapsed(), SHARES.wait);
        assert_eq!(ledger.held().waiting, 0);
    }
}
