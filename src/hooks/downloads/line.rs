//! The order of downloads: each company has a queue, and companies take turns. A file that waits for a retry occupies
//! only memory. When memory is short, waiting files are dropped first, because the table still has them.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use hotline_persistence::{ChannelId, CompanyId, MessageId};

/// Limits of concurrent downloads, and of files in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// Concurrent downloads.
    pub at_once: usize,
    /// Per company. A company gets a second download only while a quarter of all is free, so that others find one.
    pub of_company_at_once: usize,
    /// Per channel: a provider that hangs delays only its own channel.
    pub of_channel_at_once: usize,
    /// Files in memory, some 500 bytes each, to be downloaded now or later. Further ones wait in the table.
    pub held: usize,
    /// Per company.
    pub of_company_held: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Self { at_once: 64, of_company_at_once: 8, of_channel_at_once: 4, held: 20_000, of_company_held: 1000 }
    }
}

/// A file to download.
pub(super) trait Wait {
    fn company(&self) -> CompanyId;
    fn channel(&self) -> ChannelId;
    fn message(&self) -> MessageId;
}

/// The queues of all companies.
pub(super) struct Lines<W> {
    shares: Shares,
    companies: HashMap<CompanyId, Company<W>>,
    /// Companies with files to download now, in turn.
    turns: VecDeque<CompanyId>,
    channels: HashMap<(CompanyId, ChannelId), usize>,
    running: usize,
    held: usize,
}

struct Company<W> {
    /// To be downloaded now.
    ready: BTreeMap<MessageId, W>,
    /// To be retried later.
    paused: BTreeMap<MessageId, W>,
    running: HashSet<MessageId>,
    /// Downloaded, but not yet stored in their messages.
    leaving: HashSet<MessageId>,
}

impl<W> Default for Company<W> {
    fn default() -> Self {
        Self { ready: BTreeMap::new(), paused: BTreeMap::new(), running: HashSet::new(), leaving: HashSet::new() }
    }
}

impl<W> Company<W> {
    fn held(&self) -> usize {
        self.ready.len() + self.paused.len() + self.running.len() + self.leaving.len()
    }

    fn knows(&self, message: MessageId) -> bool {
        self.ready.contains_key(&message)
            || self.paused.contains_key(&message)
            || self.running.contains(&message)
            || self.leaving.contains(&message)
    }

    /// Drops the oldest file that is not being downloaded; files that have failed before go first.
    fn forget_one(&mut self) -> bool {
        self.paused.pop_first().or_else(|| self.ready.pop_first()).is_some()
    }
}

impl<W: Wait> Lines<W> {
    pub(super) fn new(shares: Shares) -> Self {
        Self {
            shares,
            companies: HashMap::new(),
            turns: VecDeque::new(),
            channels: HashMap::new(),
            running: 0,
            held: 0,
        }
    }

    /// Adds a new file. When memory is full, the company with the most files loses its oldest one.
    pub(super) fn add_news(&mut self, wait: W) {
        let (id, message) = (wait.company(), wait.message());
        let company = self.companies.entry(id).or_default();
        if company.knows(message) {
            return;
        }
        let crowded = if company.held() >= self.shares.of_company_held {
            Some(id)
        } else if self.held >= self.shares.held {
            self.companies.iter().max_by_key(|(_, company)| company.held()).map(|(id, _)| *id)
        } else {
            None
        };
        if let Some(crowded) = crowded {
            if !self.companies.get_mut(&crowded).is_some_and(Company::forget_one) {
                // All files in memory are being downloaded: the new one waits in the table.
                self.tidy(id);
                return;
            }
            self.held -= 1;
            self.tidy(crowded);
        }
        self.insert(wait);
    }

    /// Adds a file that was found in the table, if there is room; `false` when there is none.
    pub(super) fn add_found(&mut self, wait: W) -> bool {
        let company = self.companies.get(&wait.company());
        if company.is_some_and(|company| company.knows(wait.message())) {
            return true;
        }
        let is_full = company.is_some_and(|company| company.held() >= self.shares.of_company_held);
        if is_full || self.held >= self.shares.held {
            return false;
        }
        self.insert(wait);
        true
    }

    fn insert(&mut self, wait: W) {
        let id = wait.company();
        let company = self.companies.entry(id).or_default();
        if company.ready.is_empty() {
            self.turns.push_back(id);
        }
        company.ready.insert(wait.message(), wait);
        self.held += 1;
    }

    /// The next file to download, if a slot is free: the newest of the company whose turn it is, because somebody is
    /// probably waiting for it.
    pub(super) fn next(&mut self) -> Option<W> {
        if self.running >= self.shares.at_once {
            return None;
        }
        let is_roomy = self.running < self.shares.at_once - self.shares.at_once / 4;
        for _ in 0..self.turns.len() {
            let id = self.turns.pop_front()?;
            let Some(company) = self.companies.get_mut(&id) else { continue };
            if company.ready.is_empty() {
                // The company returns to the turns with its next file.
                continue;
            }
            let running = company.running.len();
            let may = running == 0 || (is_roomy && running < self.shares.of_company_at_once);
            let channels = &self.channels;
            let has_place =
                |channel| channels.get(&(id, channel)).is_none_or(|at| *at < self.shares.of_channel_at_once);
            let found = company.ready.iter().rev().find(|(_, wait)| may && has_place(wait.channel()));
            let found = found.map(|(message, _)| *message);
            let wait = found.and_then(|message| company.ready.remove(&message));
            if let Some(wait) = &wait {
                company.running.insert(wait.message());
                *self.channels.entry((id, wait.channel())).or_default() += 1;
                self.running += 1;
            }
            if !company.ready.is_empty() {
                self.turns.push_back(id);
            }
            if wait.is_some() {
                return wait;
            }
        }
        None
    }

    /// The file is not available yet: frees its slot until [`Lines::wake`].
    pub(super) fn pause(&mut self, wait: W) {
        let (id, message) = (wait.company(), wait.message());
        if self.leave_place(&wait)
            && let Some(company) = self.companies.get_mut(&id)
        {
            company.paused.insert(message, wait);
        }
    }

    /// The pause of a file is over, unless the file was dropped meanwhile.
    pub(super) fn wake(&mut self, id: CompanyId, message: MessageId) {
        let Some(wait) = self.companies.get_mut(&id).and_then(|company| company.paused.remove(&message)) else {
            return;
        };
        self.held -= 1;
        self.insert(wait);
    }

    /// The file is downloaded but not completed: frees its slot.
    pub(super) fn leave(&mut self, wait: &W) {
        let message = wait.message();
        if self.leave_place(wait)
            && let Some(company) = self.companies.get_mut(&wait.company())
        {
            company.leaving.insert(message);
        }
    }

    /// The file is completed.
    pub(super) fn done(&mut self, wait: &W) {
        let left = self.companies.get_mut(&wait.company());
        let has_left = left.is_some_and(|company| company.leaving.remove(&wait.message()));
        if has_left || self.leave_place(wait) {
            self.held -= 1;
            self.tidy(wait.company());
        }
    }

    fn leave_place(&mut self, wait: &W) -> bool {
        let (id, key) = (wait.company(), (wait.company(), wait.channel()));
        let was_running = self.companies.get_mut(&id).is_some_and(|company| company.running.remove(&wait.message()));
        if was_running {
            self.running -= 1;
            if let Some(at_once) = self.channels.get_mut(&key) {
                *at_once -= 1;
                if *at_once == 0 {
                    self.channels.remove(&key);
                }
            }
        }
        was_running
    }

    /// Drops a company's waiting files; the table still has them. Running downloads count until they are completed.
    pub(super) fn forget(&mut self, id: CompanyId) {
        let Some(company) = self.companies.get_mut(&id) else { return };
        let Company { ready, paused, running: _, leaving: _ } = company;
        self.held -= ready.len() + paused.len();
        ready.clear();
        paused.clear();
        self.turns.retain(|turn| *turn != id);
        self.tidy(id);
    }

    /// Removes a company without files.
    fn tidy(&mut self, id: CompanyId) {
        if self.companies.get(&id).is_some_and(|company| company.held() == 0) {
            self.companies.remove(&id);
            self.turns.retain(|turn| *turn != id);
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct File(i64, i64, i64);

    impl Wait for File {
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

    fn begin_all(lines: &mut Lines<File>) -> Vec<File> {
        std::iter::from_fn(|| lines.next()).collect()
    }

    #[test]
    fn whatever_one_company_has_another_finds_a_place_at_once() {
        let mut lines = Lines::new(Shares::default());
        for message in 0..25_000 {
            lines.add_news(File(1, message % 40, message));
        }
        assert_eq!(begin_all(&mut lines).len(), 8, "its share");
        assert_eq!(lines.held, 1000, "its share of the memory");
        lines.add_news(File(2, 7, 25_000));
        assert_eq!(lines.next(), Some(File(2, 7, 25_000)));
        // A hundred such companies leave a slot for a company that has none.
        for company in 10..110 {
            for message in 0..100 {
                lines.add_news(File(company, message % 3, 30_000 + company * 1000 + message));
            }
        }
        assert_eq!(begin_all(&mut lines).len(), 64 - 9);
        for company in 3..10 {
            let mut of_company =
                lines.companies.get(&CompanyId::new(company)).map_or(0, |company| company.running.len());
            of_company += lines.companies.get(&CompanyId::new(company + 10)).map_or(0, |company| company.running.len());
            assert!(of_company <= 8);
        }
    }

    #[test]
    fn a_company_takes_no_second_place_while_few_are_left() {
        let mut lines = Lines::new(Shares { at_once: 8, of_company_at_once: 8, ..Shares::default() });
        for message in 0..100 {
            lines.add_news(File(1, message % 40, message));
        }
        assert_eq!(begin_all(&mut lines).len(), 6, "a quarter is for those who have none");
        lines.add_news(File(2, 1, 200));
        lines.add_news(File(2, 1, 201));
        lines.add_news(File(3, 1, 300));
        assert_eq!(begin_all(&mut lines), [File(2, 1, 201), File(3, 1, 300)]);
    }

    #[test]
    fn companies_take_turns_and_the_newest_file_comes_first() {
        let mut lines = Lines::new(Shares { at_once: 1, ..Shares::default() });
        for file in [File(1, 1, 1), File(1, 1, 2), File(1, 1, 3), File(2, 2, 4), File(2, 2, 5)] {
            lines.add_news(file);
        }
        let mut order = Vec::new();
        while let Some(file) = lines.next() {
            assert_eq!(lines.next(), None, "one place");
            order.push(file.2);
            lines.done(&file);
        }
        assert_eq!(order, [3, 5, 2, 4, 1]);
        assert!(lines.companies.is_empty() && lines.turns.is_empty() && lines.channels.is_empty());
        assert_eq!((lines.held, lines.running), (0, 0));
    }

    #[test]
    fn a_channel_that_hangs_leaves_room_for_its_company_s_others() {
        let mut lines = Lines::new(Shares::default());
        for message in 0..100 {
            lines.add_news(File(1, 1, 1000 + message));
        }
        lines.add_news(File(1, 2, 1));
        assert_eq!(begin_all(&mut lines).iter().filter(|file| file.1 == 1).count(), 4);
        assert!(lines.companies[&CompanyId::new(1)].running.contains(&MessageId::new(1)));
    }

    #[test]
    fn a_pause_gives_the_place_back_and_what_is_paused_gives_way_to_news() {
        let shares = Shares { at_once: 1, of_company_held: 3, ..Shares::default() };
        let mut lines = Lines::new(shares);
        for message in 1..=3 {
            lines.add_news(File(1, 1, message));
        }
        let first = lines.next().expect("one");
        lines.pause(first);
        let second = lines.next().expect("its place is another's");
        assert_eq!((first.2, second.2), (3, 2));
        // Full: the paused file is dropped.
        lines.add_news(File(1, 1, 4));
        lines.wake(CompanyId::new(1), MessageId::new(3));
        assert!(!lines.companies[&CompanyId::new(1)].knows(MessageId::new(3)), "the table has it");
        assert!(!lines.add_found(File(1, 1, 3)), "there is no room for what was found");
        lines.done(&second);
        assert!(lines.add_found(File(1, 1, 3)));
        assert!(lines.add_found(File(1, 1, 3)), "known already");
        assert_eq!((lines.held, begin_all(&mut lines)), (3, vec![File(1, 1, 4)]));
    }

    #[test]
    fn a_company_that_is_dropped_waits_for_nothing_and_what_is_fetched_counts_until_it_is_done() {
        let mut lines = Lines::new(Shares { at_once: 1, ..Shares::default() });
        lines.add_news(File(1, 1, 3));
        let running = lines.next().expect("a place");
        lines.add_news(File(1, 1, 1));
        lines.add_news(File(1, 1, 2));
        lines.add_news(File(2, 1, 9));
        lines.forget(CompanyId::new(1));
        assert_eq!(lines.held, 2, "the one that is fetched, and another company's");
        lines.add_news(running);
        lines.done(&running);
        assert_eq!(begin_all(&mut lines), [File(2, 1, 9)], "it is fetched once, and no turn is left behind");
        lines.done(&File(2, 1, 9));
        assert_eq!((lines.held, lines.companies.len(), lines.turns.len()), (0, 0, 0));
        lines.forget(CompanyId::new(1));
    }

    #[test]
    fn of_all_the_memory_who_has_most_gives_way() {
        let shares = Shares { at_once: 1, held: 10, ..Shares::default() };
        let mut lines = Lines::new(shares);
        for message in 0..9 {
            lines.add_news(File(1, 1, message));
        }
        lines.add_news(File(2, 1, 100));
        lines.add_news(File(3, 1, 101));
        assert_eq!(lines.held, 10);
        assert_eq!(lines.companies[&CompanyId::new(1)].held(), 8);
        assert!(lines.companies.contains_key(&CompanyId::new(3)));
    }
}
