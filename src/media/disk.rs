//! The disk, shared by company: a company that sends many files at once waits for its own, and no other company waits.
//!
//! What is written to a disk keeps a processor busy as well, and a file that is synced stands before the journal in the
//! disk's queue. So a company writes one piece at a time, and all of them together no more than leaves the threads that
//! serve their turn on a processor.

use std::io;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use hotline_persistence::CompanyId;
use hotline_persistence::scheduler::{Permit, Scheduler, Shares, Weight};
use tokio::task::spawn_blocking;

/// Pieces that are written at a time, if there are as many processors; and of one company.
const AT_ONCE_MAX: usize = 4;
const COMPANY_AT_ONCE: usize = 1;

/// Pieces of a company that wait: as many as it can have uploads under way.
const COMPANY_WAITING_MAX: usize = 4096;

/// How long a piece waits for its turn. A disk that is slower is as good as away.
const TURN_TIME_MAX: Duration = Duration::from_secs(15);

/// Leave to write, by company. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Disk(Arc<Scheduler>);

impl Default for Disk {
    fn default() -> Self {
        let at_once = available_parallelism().map_or(1, usize::from).min(AT_ONCE_MAX);
        Self(Scheduler::new(Shares::of_one_kind(at_once, COMPANY_AT_ONCE, COMPANY_WAITING_MAX, TURN_TIME_MAX)))
    }
}

impl Disk {
    /// A company's leave to write, for as long as it is held.
    ///
    /// # Errors
    /// In words, when it was not its turn in time.
    pub(super) async fn permit(&self, company: CompanyId) -> Result<Permit, String> {
        self.0.permit(company, Weight::Light).await.map_err(|denied| denied.to_string())
    }

    /// Does a piece of a company's work on a thread that may wait for the disk.
    ///
    /// # Errors
    /// In words, when it was not its turn in time, or the disk refuses.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        company: CompanyId,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let permit = self.permit(company).await?;
        let working = spawn_blocking(move || {
            let done = work();
            // The permit lasts as long as the work, even when its caller has gone.
            drop(permit);
            done
        });
        working.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_company_writes_one_piece_after_the_other_and_another_one_beside_it() {
        let disk = Disk(Scheduler::new(Shares::of_one_kind(2, COMPANY_AT_ONCE, 2, TURN_TIME_MAX)));
        let (release, held) = mpsc::channel();
        let writes = tokio::spawn({
            let disk = disk.clone();
            async move { disk.run(CompanyId::new(1), move || held.recv().map_err(io::Error::other)).await }
        });
        while disk.0.companies() == 0 {
            tokio::task::yield_now().await;
        }
        let waits = tokio::spawn({
            let disk = disk.clone();
            async move { disk.run(CompanyId::new(1), || Ok(2)).await }
        });
        assert_eq!(disk.run(CompanyId::new(2), || Ok(3)).await, Ok(3), "another company is served");
        assert!(!waits.is_finished(), "its own next piece waits");
        release.send(1).expect("it writes");
        assert_eq!(writes.await.expect("written"), Ok(1));
        assert_eq!(waits.await.expect("written"), Ok(2));
    }

    #[tokio::test]
    async fn what_the_disk_refuses_is_said() {
        let refused = Disk::default().run(CompanyId::new(1), || Err::<(), _>(io::Error::other("no space"))).await;
        assert_eq!(refused, Err("no space".to_owned()));
    }
}
