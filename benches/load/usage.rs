//! Processor time and memory of processes, as the kernel counts them.

use std::fs::read_to_string;

use serde::Serialize;

use crate::outcome::Outcome;

/// Clock ticks a second, the unit of CPU time in `/proc`: 100 on every Linux, whatever the kernel's own clock.
const TICKS_PER_S: f64 = 100.0;

/// CPU time by process, in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cpu {
    pub hotline_s: f64,
    /// The server and all its processes.
    pub postgres_s: f64,
    pub yardstick_s: f64,
    pub generator_s: f64,
}

impl Cpu {
    /// The CPU time used since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            hotline_s: self.hotline_s - before.hotline_s,
            postgres_s: self.postgres_s - before.postgres_s,
            yardstick_s: self.yardstick_s - before.yardstick_s,
            generator_s: self.generator_s - before.generator_s,
        }
    }
}

/// The processes that are watched.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    pub hotline: u32,
    pub postgres: u32,
    pub yardstick: Option<u32>,
}

impl Watched {
    /// The CPU time used so far. The generator's is that of this process's ended children, as no others end
    /// meanwhile.
    pub fn cpu(&self) -> Outcome<Cpu> {
        Ok(Cpu {
            hotline_s: processor_s(self.hotline)?,
            postgres_s: postgres_s(self.postgres)?,
            yardstick_s: self.yardstick.map(processor_s).transpose()?.unwrap_or_default(),
            generator_s: Stat::of(std::process::id())?.waited_for as f64 / TICKS_PER_S,
        })
    }

    pub fn memory(&self) -> Outcome<Memory> {
        let server = proportional_bytes(self.postgres).ok_or("PostgreSQL is gone")?;
        // A process that ends at this moment uses nothing.
        let children = children(self.postgres)?.iter().filter_map(|child| proportional_bytes(child.pid)).sum::<u64>();
        Ok(Memory { hotline_bytes: resident_bytes(self.hotline)?, postgres_bytes: server + children })
    }
}

/// Seconds of processor time that a process has used so far, all its threads.
pub fn processor_s(pid: u32) -> Outcome<f64> {
    Ok(Stat::of(pid)?.own as f64 / TICKS_PER_S)
}

/// Seconds of processor time that a PostgreSQL server has used so far, all its processes.
pub fn postgres_s(pid: u32) -> Outcome<f64> {
    let server = Stat::of(pid)?;
    let children: u64 = children(pid)?.iter().map(|child| child.own).sum();
    Ok((server.own + server.waited_for + children) as f64 / TICKS_PER_S)
}

/// Memory by process.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Memory {
    /// Resident.
    pub hotline_bytes: u64,
    /// Resident; memory that the server's processes share counts once.
    pub postgres_bytes: u64,
}

/// One process's line in `/proc`.
struct Stat {
    pid: u32,
    parent: u32,
    /// Ticks of its own threads.
    own: u64,
    /// Ticks of children that have ended and were waited for.
    waited_for: u64,
}

impl Stat {
    fn of(pid: u32) -> Outcome<Self> {
        Self::parse(&read_to_string(format!("/proc/{pid}/stat"))?).ok_or_else(|| "`/proc` cannot be read".into())
    }

    /// `pid (name) state ppid …`; the name may contain anything, even parentheses.
    fn parse(line: &str) -> Option<Self> {
        let (pid, rest) = line.split_once(' ')?;
        let fields: Vec<&str> = rest.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number)?.parse::<u64>().ok();
        Some(Self {
            pid: pid.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            own: field(11)? + field(12)?,
            waited_for: field(13)? + field(14)?,
        })
    }
}

fn children(parent: u32) -> Outcome<Vec<Stat>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // Processes start and end while the folder is read.
        found.extend(Stat::of(pid).ok().filter(|stat| stat.parent == parent));
    }
    Ok(found)
}

/// Resident bytes of a process.
pub fn resident_bytes(pid: u32) -> Outcome<u64> {
    let status = read_to_string(format!("/proc/{pid}/status"))?;
    bytes_in_line(&status, "VmRSS:").ok_or_else(|| format!("process {pid} has no memory").into())
}

/// Resident bytes of a process, with shared pages divided by the number of their users; `None` if it has ended.
fn proportional_bytes(pid: u32) -> Option<u64> {
    bytes_in_line(&read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss:")
}

/// The bytes in a line of the form `Name:   123 kB`.
fn bytes_in_line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_be_called_anything() {
        let line = "42 (a) b (c) S 7 1 1 0 -1 4194304 100 200 0 0 31 12 5 6 20 0 1 0 100 1 1";
        let stat = Stat::parse(line);
        assert!(stat.is_some_and(|stat| (stat.pid, stat.parent, stat.own, stat.waited_for) == (42, 7, 43, 11)));
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_bytes(std::process::id()).is_ok_and(|bytes| bytes > 100_000));
        assert!(proportional_bytes(std::process::id()).is_some_and(|bytes| bytes > 100_000));
    }
}
