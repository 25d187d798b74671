//! Metrics of this process, from the operating system.

/// Resident memory in bytes; `None` where `/proc` is missing.
pub(super) fn resident_bytes() -> Option<u64> {
    resident_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads `status`, because the shorter `statm` counts in pages of unknown size.
fn resident_in(status: &str) -> Option<u64> {
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_kib() {
        assert_eq!(resident_in("Name:\thotline\nVmRSS:\t   12 kB\nThreads:\t4\n"), Some(12 << 10));
        assert_eq!(resident_in("Name:\thotline\n"), None);
    }
}
