//! Counts the bytes of responses that are in memory until they are sent: by address, by company, and in total.

use std::time::Duration;

use hotline_persistence::CompanyId;
use hotline_persistence::limits::{BudgetLimits, KeyedBudget, ReservedBytes};

use crate::web::connections::origin::Address;

/// Limits of responses in memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryLimits {
    /// Of all responses: enough for a few pages of the longest texts. A client that keeps reading receives such a page
    /// within milliseconds.
    pub(super) all: usize,
    /// Beyond `all`, only for holders with small usage: their pages do not wait for those of others.
    pub(super) extra_for_small: usize,
    /// The usage of an address or a company up to this counts as small.
    pub(super) small: usize,
    /// Of the responses to one company's integrations and people.
    pub(super) company: usize,
    /// Of the responses to one company's visitors: strangers, who must not use up the company's own share.
    pub(super) visitors: usize,
    /// Of the responses to one address: enough for a page of a hundred messages of 60,000 characters.
    pub(super) address: usize,
    /// Of responses that are complete and wait for a reservation.
    pub(super) waiting: usize,
    /// How long a response waits for a reservation.
    pub(super) wait: Duration,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            all: 20 << 20,
            extra_for_small: 4 << 20,
            small: 1 << 20,
            company: 12 << 20,
            visitors: 4 << 20,
            address: 6 << 20,
            waiting: 4 << 20,
            wait: Duration::from_secs(2),
        }
    }
}

/// The recipient of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    /// `None`: unknown, as on a listener without a network.
    pub(super) address: Option<Address>,
    /// `None`: the response belongs to no company.
    pub(super) company: Option<CompanyId>,
    /// Whether the reader is a visitor of the company's website.
    pub(super) is_visitor: bool,
}

/// Whose share a response uses.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Address(Address),
    Company(CompanyId),
    Visitors(CompanyId),
}

/// The bytes in use, by holder. Clones share the same state.
#[derive(Clone)]
pub(super) struct Ledger {
    memory: KeyedBudget<Holder>,
    /// The bytes of responses that are complete and wait for a reservation, of all holders together.
    waiting: KeyedBudget<()>,
    wait: Duration,
}

/// Reserved bytes; dropping it releases them.
pub(super) type Reservation = ReservedBytes<Holder>;

impl Default for Ledger {
    fn default() -> Self {
        Self::with(MemoryLimits::default())
    }
}

impl Ledger {
    pub(super) fn with(limits: MemoryLimits) -> Self {
        let MemoryLimits { all, extra_for_small, small, company, visitors, address, waiting, wait } = limits;
        let share_of = move |holder: &Holder| match holder {
            Holder::Address(_) => address,
            Holder::Company(_) => company,
            Holder::Visitors(_) => visitors,
        };
        let memory = KeyedBudget::new(BudgetLimits { all, reserved: extra_for_small, small }, share_of);
        Self { memory, waiting: KeyedBudget::new(BudgetLimits::new(waiting), move |()| waiting), wait }
    }

    /// Reserves bytes, if they are available now. A response above a limit fits when its reader has nothing else in
    /// memory, because a page by number, unlike one by cursor, cannot be shortened.
    pub(super) fn try_reserve(&self, reader: Reader, bytes: usize) -> Option<Reservation> {
        self.memory.try_reserve(reader.holders(), bytes)
    }

    /// Waits for bytes for a response that is not built yet; `None` if none become free in time.
    pub(super) async fn reserve(&self, reader: Reader, bytes: usize) -> Option<Reservation> {
        self.memory.reserve(reader.holders(), bytes, self.wait).await
    }

    /// Waits for bytes for a response that is already in memory; `None` if too many such responses wait, or no bytes
    /// become free in time.
    pub(super) async fn reserve_in_memory(&self, reader: Reader, bytes: usize) -> Option<Reservation> {
        if let Some(reservation) = self.try_reserve(reader, bytes) {
            return Some(reservation);
        }
        let _waiting = self.waiting.try_reserve(Vec::new(), bytes)?;
        self.reserve(reader, bytes).await
    }
}

impl Reader {
    fn holders(self) -> Vec<Holder> {
        let address = self.address.map(Holder::Address);
        let of_company = if self.is_visitor { Holder::Visitors } else { Holder::Company };
        address.into_iter().chain(self.company.map(of_company)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use tokio::time::Instant;

    use super::*;

    const LIMITS: MemoryLimits = MemoryLimits {
        all: 100,
        extra_for_small: 20,
        small: 10,
        company: 60,
        visitors: 25,
        address: 40,
        waiting: 30,
        wait: Duration::from_secs(2),
    };

    fn reader(address: u8, company: i64) -> Reader {
        let address = Some(Address::of([192, 0, 2, address].into()));
        Reader { address, company: Some(CompanyId::new(company)), is_visitor: false }
    }

    #[test]
    fn addresses_companies_and_all_have_limits_and_small_usage_has_a_reserve() {
        let ledger = Ledger::with(LIMITS);
        let reserve = |address, company, bytes| ledger.try_reserve(reader(address, company), bytes);
        let first = reserve(1, 1, 40).expect("a whole share");
        assert!(reserve(1, 2, 1).is_none(), "the address has none left");
        let second = reserve(2, 1, 20).expect("the rest of the company");
        assert!(reserve(3, 1, 1).is_none(), "the company has none left");
        let third = reserve(4, 2, 40).expect("the rest of all");
        assert!(reserve(5, 3, 11).is_none(), "all have none left");
        let small = reserve(5, 3, 10).expect("small usage");
        assert!(reserve(5, 3, 1).is_none(), "no longer small");
        drop((first, second, third, small));
        assert_eq!(ledger.memory.key_count(), 0, "holders without bytes are removed");
        assert_eq!((ledger.memory.used(), ledger.waiting.used()), (0, 0));
    }

    #[test]
    fn visitors_do_not_use_the_share_of_their_company() {
        let ledger = Ledger::with(LIMITS);
        let visitor = |address| Reader { is_visitor: true, ..reader(address, 1) };
        let page = ledger.try_reserve(visitor(1), 60).expect("a single page above the limit");
        assert!(ledger.try_reserve(visitor(2), 1).is_none());
        assert!(ledger.try_reserve(reader(3, 1), 40).is_some());
        drop(page);
        assert_eq!(ledger.memory.key_count(), 0);
    }

    #[test]
    fn a_response_above_a_limit_fits_alone() {
        let ledger = Ledger::with(LIMITS);
        let large = ledger.try_reserve(reader(1, 1), 1_000).expect("nothing else is held");
        assert!(ledger.try_reserve(reader(1, 2), 1).is_none() && ledger.try_reserve(reader(2, 1), 1).is_none());
        drop(large);
        let small = ledger.try_reserve(reader(1, 1), 1).expect("a reservation");
        assert!(ledger.try_reserve(reader(1, 1), 1_000).is_none(), "not beside another");
        drop(small);
        assert!(ledger.try_reserve(reader(1, 1), 1_000).is_some());
    }

    #[test]
    fn a_reservation_shrinks_to_what_is_used() {
        let ledger = Ledger::with(LIMITS);
        let mut reservation = ledger.try_reserve(reader(1, 1), 40).expect("a reservation");
        reservation.shrink_to(60);
        assert!(ledger.try_reserve(reader(1, 1), 1).is_none(), "it does not grow");
        reservation.shrink_to(10);
        assert!(ledger.try_reserve(reader(1, 1), 31).is_none());
        assert!(ledger.try_reserve(reader(1, 1), 30).is_some());
        drop(reservation);
        assert_eq!((ledger.memory.key_count(), ledger.memory.used()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_times_out_and_the_bytes_of_waiting_responses_are_limited() {
        let ledger = Ledger::with(LIMITS);
        let reservation = ledger.try_reserve(reader(1, 1), 40).expect("a reservation");
        let (first_ledger, second_ledger) = (ledger.clone(), ledger.clone());
        let waiting = tokio::spawn(async move { first_ledger.reserve_in_memory(reader(1, 1), 30).await.is_some() });
        tokio::task::yield_now().await;
        assert!(second_ledger.reserve_in_memory(reader(1, 1), 1).await.is_none(), "no more may wait");
        drop(reservation);
        assert!(waiting.await.expect("a task"));
        let _reservation = ledger.try_reserve(reader(1, 1), 40).expect("a reservation");
        let started = Instant::now();
        assert!(ledger.reserve_in_memory(reader(1, 1), 1).await.is_none());
        assert_eq!(started.elapsed(), LIMITS.wait);
        assert_eq!(ledger.waiting.used(), 0);
    }
}
