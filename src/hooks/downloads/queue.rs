//! The order of downloads: each company has a queue, and companies take turns. A file that waits for a retry occupies
//! memory, but no slot. When memory is full, waiting files are dropped, because the table still has them.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use hotline_persistence::limits::{KeyedPermit, KeyedPermits, PermitLimits};
use hotline_persistence::{ChannelId, CompanyId, MessageId};

/// Limits of concurrent downloads, and of files in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct DownloadLimits {
    /// Concurrent downloads.
    pub concurrent: usize,
    /// Per company. A company gets a second download only while more than a quarter of all slots is free, so that
    /// others get one.
    pub concurrent_per_company: usize,
    /// Per channel, so that a provider that does not respond delays only its own channel.
    pub concurrent_per_channel: usize,
    /// Files in memory, about 500 bytes each, to be downloaded now or later. Further ones wait in the table.
    pub in_memory: usize,
    /// Per company.
    pub in_memory_per_company: usize,
}

impl Default for DownloadLimits {
    fn default() -> Self {
        Self {
            concurrent: 64,
            concurrent_per_company: 8,
            concurrent_per_channel: 4,
            in_memory: 20_000,
            in_memory_per_company: 1000,
        }
    }
}

/// A file to download.
pub(super) trait PendingFile {
    fn company(&self) -> CompanyId;
    fn channel(&self) -> ChannelId;
    fn message(&self) -> MessageId;
}

/// The permits of a running download; dropping it releases them.
#[allow(dead_code, reason = "dropping it releases them")]
struct DownloadSlot {
    of_company: KeyedPermit<CompanyId>,
    of_channel: KeyedPermit<(CompanyId, ChannelId)>,
}

/// The queues of all companies.
pub(super) struct DownloadQueue<F> {
    limits: DownloadLimits,
    companies: HashMap<CompanyId, CompanyDownloads<F>>,
    /// Companies with files to download now, in turn.
    turns: VecDeque<CompanyId>,
    slots: KeyedPermits<CompanyId>,
    channel_slots: KeyedPermits<(CompanyId, ChannelId)>,
    in_memory: usize,
}

struct CompanyDownloads<F> {
    /// To be downloaded now.
    ready: BTreeMap<MessageId, F>,
    /// To be retried later.
    paused: BTreeMap<MessageId, F>,
    running: HashMap<MessageId, DownloadSlot>,
    /// Downloaded, but not yet stored in their messages.
    finishing: HashSet<MessageId>,
    /// The running and finishing files whose message was deleted.
    withdrawn: HashSet<MessageId>,
}

impl<F> Default for CompanyDownloads<F> {
    fn default() -> Self {
        Self {
            ready: BTreeMap::new(),
            paused: BTreeMap::new(),
            running: HashMap::new(),
            finishing: HashSet::new(),
            withdrawn: HashSet::new(),
        }
    }
}

impl<F> CompanyDownloads<F> {
    fn len(&self) -> usize {
        self.ready.len() + self.paused.len() + self.running.len() + self.finishing.len()
    }

    fn contains(&self, message: MessageId) -> bool {
        self.ready.contains_key(&message)
            || self.paused.contains_key(&message)
            || self.running.contains_key(&message)
            || self.finishing.contains(&message)
    }

    /// Drops the oldest file that is not being downloaded; a paused one if there is any.
    fn drop_oldest(&mut self) -> bool {
        self.paused.pop_first().or_else(|| self.ready.pop_first()).is_some()
    }
}

impl<F: PendingFile> DownloadQueue<F> {
    pub(super) fn new(limits: DownloadLimits) -> Self {
        let slots = PermitLimits::new(limits.concurrent, limits.concurrent_per_company);
        Self {
            limits,
            companies: HashMap::new(),
            turns: VecDeque::new(),
            slots: KeyedPermits::new(slots.reserve(limits.concurrent / 4)),
            channel_slots: KeyedPermits::new(PermitLimits::of_key(limits.concurrent_per_channel)),
            in_memory: 0,
        }
    }

    /// Adds a new file. When memory is full, [`CompanyDownloads::drop_oldest`] makes room: in the file's company if it
    /// has too many files, otherwise in the company with the most files.
    pub(super) fn add_new(&mut self, file: F) {
        let (id, message) = (file.company(), file.message());
        let company = self.companies.entry(id).or_default();
        if company.contains(message) {
            return;
        }
        let fullest = if company.len() >= self.limits.in_memory_per_company {
            Some(id)
        } else if self.in_memory >= self.limits.in_memory {
            self.companies.iter().max_by_key(|(_, company)| company.len()).map(|(id, _)| *id)
        } else {
            None
        };
        if let Some(fullest) = fullest {
            if !self.companies.get_mut(&fullest).is_some_and(CompanyDownloads::drop_oldest) {
                // All files of that company are being downloaded: the new file waits in the table.
                self.remove_if_empty(id);
                return;
            }
            self.in_memory -= 1;
            self.remove_if_empty(fullest);
        }
        self.insert(file);
    }

    /// Adds a file that was found in the table, if there is room; `false` when there is none.
    pub(super) fn add_found(&mut self, file: F) -> bool {
        let company = self.companies.get(&file.company());
        if company.is_some_and(|company| company.contains(file.message())) {
            return true;
        }
        let is_full = company.is_some_and(|company| company.len() >= self.limits.in_memory_per_company);
        if is_full || self.in_memory >= self.limits.in_memory {
            return false;
        }
        self.insert(file);
        true
    }

    fn insert(&mut self, file: F) {
        let id = file.company();
        let company = self.companies.entry(id).or_default();
        if company.ready.is_empty() {
            self.turns.push_back(id);
        }
        company.ready.insert(file.message(), file);
        self.in_memory += 1;
    }

    /// The next file to download, if a slot is free: the newest of the company whose turn it is, because an agent is
    /// probably waiting for it.
    pub(super) fn start_next(&mut self) -> Option<F> {
        if self.slots.in_use() >= self.limits.concurrent {
            return None;
        }
        for _ in 0..self.turns.len() {
            let id = self.turns.pop_front()?;
            let Some(company) = self.companies.get_mut(&id) else { continue };
            if company.ready.is_empty() {
                // The company returns to the turns with its next file.
                continue;
            }
            let of_channel = |file: &F| self.channel_slots.try_acquire((id, file.channel()));
            let file = self.slots.try_acquire(id).and_then(|of_company| {
                let mut ready = company.ready.iter().rev();
                let (message, of_channel) = ready.find_map(|(message, file)| Some((*message, of_channel(file)?)))?;
                company.running.insert(message, DownloadSlot { of_company, of_channel });
                company.ready.remove(&message)
            });
            if !company.ready.is_empty() {
                self.turns.push_back(id);
            }
            if file.is_some() {
                return file;
            }
        }
        None
    }

    /// The file is not available yet: frees its slot until [`DownloadQueue::wake`].
    pub(super) fn pause(&mut self, file: F) {
        let (id, message) = (file.company(), file.message());
        if self.is_withdrawn(id, message) {
            return self.remove(&file);
        }
        if self.release_slot(&file)
            && let Some(company) = self.companies.get_mut(&id)
        {
            company.paused.insert(message, file);
        }
    }

    /// The pause of a file is over, unless the file was dropped meanwhile.
    pub(super) fn wake(&mut self, id: CompanyId, message: MessageId) {
        let Some(file) = self.companies.get_mut(&id).and_then(|company| company.paused.remove(&message)) else {
            return;
        };
        self.in_memory -= 1;
        self.insert(file);
    }

    /// The download has ended, but its message is not changed yet: frees the slot.
    pub(super) fn finish(&mut self, file: &F) {
        let message = file.message();
        if self.release_slot(file)
            && let Some(company) = self.companies.get_mut(&file.company())
        {
            company.finishing.insert(message);
        }
    }

    /// The message of a file was deleted: the file is removed from the queue, or discarded after its download.
    pub(super) fn withdraw(&mut self, id: CompanyId, message: MessageId) {
        let Some(company) = self.companies.get_mut(&id) else { return };
        if company.ready.remove(&message).or_else(|| company.paused.remove(&message)).is_some() {
            self.in_memory -= 1;
            self.remove_if_empty(id);
        } else if company.contains(message) {
            company.withdrawn.insert(message);
        }
    }

    /// Whether the message of a running or finishing file was deleted.
    pub(super) fn is_withdrawn(&self, id: CompanyId, message: MessageId) -> bool {
        self.companies.get(&id).is_some_and(|company| company.withdrawn.contains(&message))
    }

    /// The message is changed, or the download was abandoned: removes the file, and frees its slot if it has one.
    pub(super) fn remove(&mut self, file: &F) {
        if let Some(company) = self.companies.get_mut(&file.company()) {
            company.withdrawn.remove(&file.message());
        }
        let company = self.companies.get_mut(&file.company());
        let was_finishing = company.is_some_and(|company| company.finishing.remove(&file.message()));
        if was_finishing || self.release_slot(file) {
            self.in_memory -= 1;
            self.remove_if_empty(file.company());
        }
    }

    fn release_slot(&mut self, file: &F) -> bool {
        let company = self.companies.get_mut(&file.company());
        company.is_some_and(|company| company.running.remove(&file.message()).is_some())
    }

    /// Drops a company's waiting files; the table still has them. Running downloads count until they are removed.
    pub(super) fn forget(&mut self, id: CompanyId) {
        let Some(company) = self.companies.get_mut(&id) else { return };
        let CompanyDownloads { ready, paused, running: _, finishing: _, withdrawn: _ } = company;
        self.in_memory -= ready.len() + paused.len();
        ready.clear();
        paused.clear();
        self.turns.retain(|turn| *turn != id);
        self.remove_if_empty(id);
    }

    /// Removes a company without files.
    fn remove_if_empty(&mut self, id: CompanyId) {
        if self.companies.get(&id).is_some_and(|company| company.len() == 0) {
            self.companies.remove(&id);
            self.turns.retain(|turn| *turn != id);
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    /// Company, channel, message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct TestFile(i64, i64, i64);

    impl PendingFile for TestFile {
        fn company(&self) -> CompanyId {
            CompanyId::new(self.0)
        }

        fn channel(&self) -> ChannelId {
            ChannelId::new(self.1)
        }

        fn message(&self) -> MessageId {
            MessageId::new(self.2)
        }
    }

    fn start_all(queue: &mut DownloadQueue<TestFile>) -> Vec<TestFile> {
        std::iter::from_fn(|| queue.start_next()).collect()
    }

    #[test]
    fn a_withdrawn_file_is_neither_started_nor_retried() {
        let mut queue = DownloadQueue::new(DownloadLimits { concurrent: 1, ..DownloadLimits::default() });
        let files = [1, 2, 3].map(|message| TestFile(1, message, message));
        for file in files {
            queue.add_new(file);
        }
        assert_eq!(start_all(&mut queue), [files[2]], "the newest, as there is one slot");
        queue.withdraw(CompanyId::new(1), MessageId::new(2));
        queue.withdraw(CompanyId::new(1), MessageId::new(3));
        assert!(queue.is_withdrawn(CompanyId::new(1), MessageId::new(3)));
        queue.pause(files[2]);
        assert_eq!(start_all(&mut queue), [files[0]], "the second was withdrawn");
        queue.remove(&files[0]);
        assert_eq!((queue.in_memory, queue.companies.len()), (0, 0));
    }

    #[test]
    fn a_company_cannot_use_up_the_downloads_of_others() {
        let mut queue = DownloadQueue::new(DownloadLimits::default());
        for message in 0..25_000 {
            queue.add_new(TestFile(1, message % 40, message));
        }
        assert_eq!(start_all(&mut queue).len(), 8, "its share");
        assert_eq!(queue.in_memory, 1000, "its share of the memory");
        queue.add_new(TestFile(2, 7, 25_000));
        assert_eq!(queue.start_next(), Some(TestFile(2, 7, 25_000)));
        // A hundred more companies share the remaining slots.
        for company in 10..110 {
            for message in 0..100 {
                queue.add_new(TestFile(company, message % 3, 30_000 + company * 1000 + message));
            }
        }
        assert_eq!(start_all(&mut queue).len(), 64 - 9);
        for company in 10..110 {
            let running = queue.companies.get(&CompanyId::new(company)).map_or(0, |company| company.running.len());
            assert!(running <= 8);
        }
    }

    #[test]
    fn a_company_gets_no_second_download_while_few_slots_are_free() {
        let mut queue = DownloadQueue::new(DownloadLimits {
            concurrent: 8,
            concurrent_per_company: 8,
            ..DownloadLimits::default()
        });
        for message in 0..100 {
            queue.add_new(TestFile(1, message % 40, message));
        }
        assert_eq!(start_all(&mut queue).len(), 6, "a quarter is for companies without a download");
        queue.add_new(TestFile(2, 1, 200));
        queue.add_new(TestFile(2, 1, 201));
        queue.add_new(TestFile(3, 1, 300));
        assert_eq!(start_all(&mut queue), [TestFile(2, 1, 201), TestFile(3, 1, 300)]);
    }

    #[test]
    fn companies_take_turns_and_the_newest_file_comes_first() {
        let mut queue = DownloadQueue::new(DownloadLimits { concurrent: 1, ..DownloadLimits::default() });
        for file in [TestFile(1, 1, 1), TestFile(1, 1, 2), TestFile(1, 1, 3), TestFile(2, 2, 4), TestFile(2, 2, 5)] {
            queue.add_new(file);
        }
        let mut order = Vec::new();
        while let Some(file) = queue.start_next() {
            assert_eq!(queue.start_next(), None, "one slot");
            order.push(file.2);
            queue.remove(&file);
        }
        assert_eq!(order, [3, 5, 2, 4, 1]);
        assert!(queue.companies.is_empty() && queue.turns.is_empty() && queue.channel_slots.key_count() == 0);
        assert_eq!((queue.in_memory, queue.slots.in_use()), (0, 0));
    }

    #[test]
    fn a_provider_that_does_not_respond_delays_only_its_channel() {
        let mut queue = DownloadQueue::new(DownloadLimits::default());
        for message in 0..100 {
            queue.add_new(TestFile(1, 1, 1000 + message));
        }
        queue.add_new(TestFile(1, 2, 1));
        assert_eq!(start_all(&mut queue).iter().filter(|file| file.1 == 1).count(), 4);
        assert!(queue.companies[&CompanyId::new(1)].running.contains_key(&MessageId::new(1)));
    }

    #[test]
    fn a_paused_file_frees_its_slot_and_is_dropped_for_new_ones() {
        let limits = DownloadLimits { concurrent: 1, in_memory_per_company: 3, ..DownloadLimits::default() };
        let mut queue = DownloadQueue::new(limits);
        for message in 1..=3 {
            queue.add_new(TestFile(1, 1, message));
        }
        let first = queue.start_next().expect("a file");
        queue.pause(first);
        let second = queue.start_next().expect("its slot is free");
        assert_eq!((first.2, second.2), (3, 2));
        // Full: the paused file is dropped.
        queue.add_new(TestFile(1, 1, 4));
        queue.wake(CompanyId::new(1), MessageId::new(3));
        assert!(!queue.companies[&CompanyId::new(1)].contains(MessageId::new(3)), "the table has it");
        assert!(!queue.add_found(TestFile(1, 1, 3)), "there is no room");
        queue.remove(&second);
        assert!(queue.add_found(TestFile(1, 1, 3)));
        assert!(queue.add_found(TestFile(1, 1, 3)), "already in the queue");
        assert_eq!((queue.in_memory, start_all(&mut queue)), (3, vec![TestFile(1, 1, 4)]));
    }

    #[test]
    fn running_downloads_of_a_dropped_company_count_until_removed() {
        let mut queue = DownloadQueue::new(DownloadLimits { concurrent: 1, ..DownloadLimits::default() });
        queue.add_new(TestFile(1, 1, 3));
        let running = queue.start_next().expect("a slot");
        queue.add_new(TestFile(1, 1, 1));
        queue.add_new(TestFile(1, 1, 2));
        queue.add_new(TestFile(2, 1, 9));
        queue.forget(CompanyId::new(1));
        assert_eq!(queue.in_memory, 2, "the running one, and another company's");
        queue.add_new(running);
        queue.remove(&running);
        assert_eq!(start_all(&mut queue), [TestFile(2, 1, 9)], "it is downloaded once, and no turn remains");
        queue.remove(&TestFile(2, 1, 9));
        assert_eq!((queue.in_memory, queue.companies.len(), queue.turns.len()), (0, 0, 0));
        queue.forget(CompanyId::new(1));
    }

    #[test]
    fn when_memory_is_full_the_largest_company_loses_a_file() {
        let limits = DownloadLimits { concurrent: 1, in_memory: 10, ..DownloadLimits::default() };
        let mut queue = DownloadQueue::new(limits);
        for message in 0..9 {
            queue.add_new(TestFile(1, 1, message));
        }
        queue.add_new(TestFile(2, 1, 100));
        queue.add_new(TestFile(3, 1, 101));
        assert_eq!(queue.in_memory, 10);
        assert_eq!(queue.companies[&CompanyId::new(1)].len(), 8);
        assert!(queue.companies.contains_key(&CompanyId::new(3)));
    }
}
