//! Metrics of this process, from the operating system; `None` where it does not report them.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::writer::MetricWriter;

/// The unit of times in `/proc` (`USER_HZ`); it does not depend on the kernel's tick rate.
const TICKS_PER_S: f64 = 100.0;

/// Index of the start time among the fields of `/proc/self/stat` after the name.
const START_TIME_FIELD: usize = 19;

/// The metrics that every Prometheus client has, under their usual names.
#[derive(Debug)]
pub(super) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = MetricWriter::new(encoder);
        if let Some(time) = cpu_time() {
            writer.seconds_counter("process_cpu_seconds_total", "Processor time of all threads", time.as_secs_f64())?;
        }
        if let Some(files) = open_files() {
            writer.gauge("process_open_fds", "Open file descriptors", files)?;
        }
        if let Some(limit) = open_files_limit() {
            writer.gauge("process_max_fds", "Maximum number of open file descriptors", limit)?;
        }
        if let Some(bytes) = resident_bytes() {
            writer.gauge("process_resident_memory_bytes", "Memory in use", bytes)?;
        }
        if let Some(start_s) = start_time_s() {
            let help = "When the process was started, in seconds since 1970";
            writer.gauge("process_start_time_seconds", help, start_s)?;
        }
        Ok(())
    }
}

/// Resident memory in bytes.
pub fn resident_bytes() -> Option<u64> {
    parse_resident_bytes(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads `status`, because the shorter `statm` counts in pages of unknown size.
fn parse_resident_bytes(status: &str) -> Option<u64> {
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Open file descriptors.
pub fn open_files() -> Option<u64> {
    let entries = std::fs::read_dir("/proc/self/fd").ok()?.count();
    // One of these descriptors is open only for this listing.
    Some((entries as u64).saturating_sub(1))
}

/// Maximum number of open file descriptors.
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft)
}

/// Processor time of all threads, in user and system mode.
pub fn cpu_time() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let micros = [usage.user_time(), usage.system_time()].map(|time| {
        let seconds_as_micros = u64::try_from(time.tv_sec()).unwrap_or(0).saturating_mul(1_000_000);
        seconds_as_micros.saturating_add(u64::try_from(time.tv_usec()).unwrap_or(0))
    });
    Some(Duration::from_micros(micros[0].saturating_add(micros[1])))
}

/// When the process was started, in seconds since 1970. Computed once: the system reports it relative to the machine's
/// start, so repeated computations differ by a few milliseconds, and an alert counts changes of the value as restarts.
pub fn start_time_s() -> Option<f64> {
    static START: OnceLock<Option<f64>> = OnceLock::new();
    *START.get_or_init(read_start_time_s)
}

fn read_start_time_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    parse_start_time_s(&stat, &uptime, now)
}

fn parse_start_time_s(stat: &str, uptime: &str, now: f64) -> Option<f64> {
    // The name in parentheses may contain anything.
    let started_ticks: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(START_TIME_FIELD)?.parse().ok()?;
    let uptime_s: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Some(now - uptime_s + started_ticks / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_kib() {
        assert_eq!(parse_resident_bytes("Name:\thotline\nVmRSS:\t   12 kB\nThreads:\t4\n"), Some(12 << 10));
        assert_eq!(parse_resident_bytes("Name:\thotline\n"), None);
    }

    #[test]
    fn the_start_is_counted_from_the_start_of_the_machine() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2";
        assert_eq!(parse_start_time_s(stat, "200.00 1.00", 1000.0), Some(1000.0 - 200.0 + 123.45));
        assert_eq!(parse_start_time_s("7 (a) S 1", "200.00", 1000.0), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_reports_every_metric_of_the_process() {
        let (open, limit) = (open_files().unwrap_or(0), open_files_limit().unwrap_or(0));
        assert!(open > 2 && open <= limit, "{open} of {limit}");
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20) && cpu_time().is_some());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        assert!(start_time_s().is_some_and(|start| start > now - 86_400.0 && start <= now + 1.0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_start_is_the_same_in_every_sample() {
        let first = start_time_s().map(f64::to_bits);
        for _ in 0..20 {
            // The times in `/proc` are rounded to 10 ms, so a new computation would differ.
            std::thread::sleep(Duration::from_millis(3));
            assert_eq!(start_time_s().map(f64::to_bits), first);
        }
    }
}
