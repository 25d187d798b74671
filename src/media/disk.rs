//! Shares the disk between companies: a company that sends many files at once waits for its own writes, and delays no
//! other company.
//!
//! Writing to a disk also occupies a processor, and the journal's sync waits behind a file's sync in the disk's queue.
//! So each company writes one chunk at a time, and all companies together only a few.

use std::io;
use std::thread::available_parallelism;
use std::time::Duration;

use hotline_persistence::CompanyId;
use hotline_persistence::limits::{KeyedPermit, KeyedPermits, PermitLimits};
use tokio::task::spawn_blocking;

/// Maximum chunks that are written at a time, in total (but no more than there are processors) and per company.
const WRITES_MAX: usize = 4;
const COMPANY_WRITES_MAX: usize = 1;

/// Maximum number of a company's chunks that wait. Each of its files has at most one.
const COMPANY_WAITING_MAX: usize = 4096;

/// How long a chunk waits for its permit. A slower disk counts as unavailable.
const WAIT_TIME_MAX: Duration = Duration::from_secs(15);

/// Permits to write, by company. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Disk(KeyedPermits<CompanyId>);

impl Default for Disk {
    fn default() -> Self {
        let writes_max = available_parallelism().map_or(1, usize::from).min(WRITES_MAX);
        let limits = PermitLimits::new(writes_max, COMPANY_WRITES_MAX);
        Self(KeyedPermits::new(limits.wait(COMPANY_WAITING_MAX, WAIT_TIME_MAX)))
    }
}

impl Disk {
    /// A company's permit to write, released when dropped.
    ///
    /// # Errors
    /// A message, when the permit was not available in time.
    pub(super) async fn permit(&self, company: CompanyId) -> Result<KeyedPermit<CompanyId>, String> {
        self.0.acquire(company).await.map_err(|denied| denied.to_string())
    }

    /// Runs a company's disk operation on a blocking thread.
    ///
    /// # Errors
    /// A message, when the permit was not available in time, or the disk reports an error.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        company: CompanyId,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let permit = self.permit(company).await?;
        let operation = spawn_blocking(move || {
            let result = work();
            // The permit is held until the operation ends, even if its caller was dropped.
            drop(permit);
            result
        });
        operation.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// No write of a test waits this long.
    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_company_writes_one_chunk_at_a_time_and_does_not_delay_another_company() {
        let disk = Disk(KeyedPermits::new(PermitLimits::new(2, COMPANY_WRITES_MAX).wait(2, HOUR)));
        let (release, released) = mpsc::channel();
        let running = tokio::spawn({
            let disk = disk.clone();
            async move { disk.run(CompanyId::new(1), move || released.recv().map_err(io::Error::other)).await }
        });
        while disk.0.key_count() == 0 {
            tokio::task::yield_now().await;
        }
        let waiting = tokio::spawn({
            let disk = disk.clone();
            async move { disk.run(CompanyId::new(1), || Ok(2)).await }
        });
        assert_eq!(disk.run(CompanyId::new(2), || Ok(3)).await, Ok(3), "another company is served");
        assert!(!waiting.is_finished(), "the next write of the first company waits");
        release.send(1).expect("the write is running");
        assert_eq!(running.await.expect("written"), Ok(1));
        assert_eq!(waiting.await.expect("written"), Ok(2));
    }

    #[tokio::test]
    async fn errors_of_the_disk_are_reported() {
        let result = Disk::default().run(CompanyId::new(1), || Err::<(), _>(io::Error::other("no space"))).await;
        assert_eq!(result, Err("no space".to_owned()));
    }
}
