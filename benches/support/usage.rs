//! Processor time by process and thread, as the kernel counts it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::Postgres;

/// Processor time, in hundredths of a second: of PostgreSQL, and of each kind of thread of this process by its name.
#[derive(Clone, Debug, Default)]
pub struct Usage(BTreeMap<String, u64>);

/// The name of all processes of PostgreSQL together.
pub const POSTGRES: &str = "PostgreSQL";

impl Usage {
    /// The time used up to now.
    pub fn now(postgres: &Postgres) -> Self {
        let mut used = Self::default();
        for task in numbers("/proc/self/task") {
            let folder = format!("/proc/self/task/{task}");
            if let (Ok(name), Some((_, ticks))) =
                (fs::read_to_string(format!("{folder}/comm")), parent_and_ticks(&folder))
            {
                *used.0.entry(name.trim().to_owned()).or_default() += ticks;
            }
        }
        let server = postgres.pid();
        let of_server = numbers("/proc").into_iter().filter_map(|id| parent_and_ticks(&format!("/proc/{id}")));
        let ticks = of_server.filter(|(parent, _)| *parent == server).map(|(_, ticks)| ticks).sum();
        used.0.insert(POSTGRES.to_owned(), ticks);
        used
    }

    /// The time used since `before`, without that of threads that have ended.
    pub fn since(&self, before: &Self) -> Self {
        let used = |(name, ticks): (&String, &u64)| {
            (name.clone(), ticks.saturating_sub(before.0.get(name).copied().unwrap_or_default()))
        };
        Self(self.0.iter().map(used).collect())
    }

    pub fn add(&mut self, other: &Self) {
        for (name, ticks) in &other.0 {
            *self.0.entry(name.clone()).or_default() += ticks;
        }
    }

    /// The time of this name; 0 if there is none.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// The time of all names.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Microseconds for each of `count` things, of PostgreSQL and of each kind of thread, the largest first.
    pub fn us_each(&self, count: usize) -> Vec<(&str, f64)> {
        let us = |ticks: u64| ticks as f64 * 1e4 / count as f64;
        let mut shares: Vec<_> = self.0.iter().map(|(name, ticks)| (name.as_str(), us(*ticks))).collect();
        shares.retain(|(_, us)| *us >= 0.5);
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        shares
    }
}

fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(Path::new(folder)).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The parent of a process or thread, and its processor time in hundredths of a second; `None` if it has ended.
fn parent_and_ticks(folder: &str) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some((fields.get(1)?.parse().ok()?, number(11)? + number(12)?))
}
