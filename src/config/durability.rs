//! The options of the journal and of actors in memory.

use std::time::Duration;

use clap::Args;
use hotline_persistence::{Durability, journal};

use super::units::{self, ANY, GIB, KIB, MIB, SECOND, Size};

/// Upper bound of the journal: 16 TiB. A larger value is probably a mistake.
const JOURNAL_SIZE_MAX: Size = Size(16 << 40);

/// Bounds of the private PostgreSQL's memory and WAL.
const POSTGRES_MEMORY_MIN: Size = Size(64 * MIB.0);
const POSTGRES_MEMORY_MAX: Size = Size(1 << 40);
const POSTGRES_DISK_MIN: Size = Size(64 * MIB.0);
const POSTGRES_DISK_MAX: Size = Size(1 << 40);

/// Upper bound of a segment. A larger value is probably a mistake.
const SEGMENT_SIZE_MAX: Size = Size(4 * GIB.0);

/// The journal, and actors in memory.
#[derive(Args, Clone, Debug)]
pub struct DurabilityArgs {
    /// When a change is acknowledged: after the local journal is synced (`journal`), or after PostgreSQL commits it
    /// (`database`)
    #[arg(long, env = "HOTLINE_DURABILITY", default_value = "journal", value_name = "journal|database")]
    pub durability: Durability,
    /// Maximum size of the journal; it grows while the database is unavailable
    #[arg(long, alias = "journal-max-mib", env = "HOTLINE_JOURNAL_MAX_SIZE", default_value = "4GiB",
        value_name = "SIZE", value_parser = units::sizes(MIB, MIB..=JOURNAL_SIZE_MAX))]
    pub journal_max_size: Size,
    /// Size of one segment of the journal
    #[arg(long, alias = "journal-segment-kib", env = "HOTLINE_JOURNAL_SEGMENT_SIZE", default_value = "64MiB",
        value_name = "SIZE", value_parser = units::sizes(KIB, KIB..=SEGMENT_SIZE_MAX))]
    pub journal_segment_size: Size,
    /// Time after which an idle actor is unloaded from memory, unless the database is down
    #[arg(long, alias = "idle-after-s", env = "HOTLINE_IDLE_AFTER", default_value = "5m", value_name = "DURATION",
        value_parser = units::durations(SECOND, ANY))]
    pub idle_after: Duration,
    /// Memory of the private PostgreSQL; by default a quarter of the memory that this process may use
    #[arg(long, env = "HOTLINE_POSTGRES_MEMORY", value_name = "SIZE",
        value_parser = units::sizes(MIB, POSTGRES_MEMORY_MIN..=POSTGRES_MEMORY_MAX))]
    pub postgres_memory: Option<Size>,
    /// Disk space for the write-ahead log of the private PostgreSQL; by default 4GiB
    #[arg(long, env = "HOTLINE_POSTGRES_DISK", value_name = "SIZE",
        value_parser = units::sizes(MIB, POSTGRES_DISK_MIN..=POSTGRES_DISK_MAX))]
    pub postgres_disk: Option<Size>,
}

impl DurabilityArgs {
    /// Refuses limits of the private PostgreSQL when another database is used: they would have no effect.
    ///
    /// # Errors
    /// When such a limit is given.
    pub(super) fn check_postgres(&self, is_private: bool) -> Result<(), String> {
        let limits = [("--postgres-memory", self.postgres_memory), ("--postgres-disk", self.postgres_disk)];
        match limits.iter().find(|(_, size)| size.is_some()) {
            Some((option, _)) if !is_private => {
                Err(format!("{option} limits the private PostgreSQL, and cannot be used with --database-url"))
            }
            _ => Ok(()),
        }
    }

    /// The settings of the journal.
    ///
    /// # Errors
    /// When the journal is smaller than two segments.
    pub(super) fn journal(&self) -> Result<journal::Options, String> {
        let (max_size, segment_size) = (self.journal_max_size, self.journal_segment_size);
        let min_size = Size(2 * segment_size.0);
        if max_size < min_size {
            return Err(format!(
                "--journal-max-size {max_size} is less than two segments of {segment_size} (--journal-segment-size); \
                 use at least {min_size}, or smaller segments"
            ));
        }
        Ok(journal::Options { max_bytes: max_size.0, segment_bytes: segment_size.0, ..journal::Options::default() })
    }
}
