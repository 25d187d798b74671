//! Limits the bytes of files that are being downloaded, so that they use a bounded part of the disk.

use std::time::Duration;

use hotline_persistence::CompanyId;
use hotline_persistence::limits::{BudgetLimits, KeyedBudget, ReservedBytes};

/// Bytes of a company's files that are downloaded at once: enough for two files of the default maximum size.
const BYTES_PER_COMPANY_MAX: usize = 256 << 20;

/// Bytes of all companies' files that are downloaded at once.
const BYTES_MAX: usize = 2 << 30;

/// How long a download waits for others to release their bytes. After that, it is retried later.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The bytes of running downloads.
pub(super) struct ByteBudget(KeyedBudget<CompanyId>);

impl Default for ByteBudget {
    fn default() -> Self {
        Self(KeyedBudget::new(BudgetLimits::new(BYTES_MAX), |_| BYTES_PER_COMPANY_MAX))
    }
}

impl ByteBudget {
    /// Reserves a file's bytes; `None` if other downloads do not release enough bytes in time.
    pub(super) async fn reserve(&self, company: CompanyId, bytes: u64) -> Option<ReservedBytes<CompanyId>> {
        self.0.reserve(vec![company], usize::try_from(bytes).unwrap_or(usize::MAX), WAIT_MAX).await
    }
}
