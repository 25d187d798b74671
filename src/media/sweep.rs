//! Removes files without a message. There are two kinds:
//!
//! - Files to which no message ever referred, because the process ended or the request was canceled before the message
//!   was journaled. Each hour's files are examined once, at least an hour after it ended; so the work depends on the
//!   number of files per hour, not on the total.
//! - Files whose message was deleted. A table lists them.
//!
//! Every step may be repeated, after a crash or by another process that sweeps at the same time.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::TryStreamExt;
use hotline_actors::{Engine, clock};
use hotline_persistence::tables::media::{self, FileKey, MediaId, hour_digits, hour_of};
use tokio::time::MissedTickBehavior;

use super::Media;

/// How long after its hour a file without a message is left alone. Storing a file and journaling its message are
/// seconds apart; storing itself may take minutes. What waits for longer, such as for the end of an outage, asks
/// [`Media::may_be_attached`] first.
const GRACE: TimeDelta = TimeDelta::hours(1);

/// How long after a file's hour a change that adds it to a message may begin. The rest of [`GRACE`] is for the change
/// itself, and for clocks of processes that differ.
const ATTACH_MAX: TimeDelta = TimeDelta::minutes(30);

/// Files per step.
const STEP_FILES: usize = 500;

/// Hours per sweep: enough to catch up after a day without the service.
const HOURS_MAX: i64 = 24;

/// Steps per sweep for files of deleted messages.
const DELETED_STEPS_MAX: usize = 20;

/// Maximum time that a step waits for the tables or the store; after that, the next sweep continues.
const STEP_TIME_MAX: Duration = Duration::from_secs(60);

impl Media {
    /// Sweeps periodically and on request, for as long as the process lives.
    pub async fn run_sweep(&self, engine: &Engine) {
        let mut ticks = tokio::time::interval(self.0.sweep_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.0.sweep_request.notified() => {}
            }
            if let Err(error) = self.sweep(engine, clock::now()).await {
                tracing::debug!(error, "sweep of unused files will be retried");
            }
        }
    }

    /// Requests a sweep, because messages were deleted.
    pub fn sweep_soon(&self) {
        self.0.sweep_request.notify_one();
    }

    /// Whether a change that adds this file to a message may begin at `now`: the sweep will find the message.
    pub fn may_be_attached(file: &MediaId, now: DateTime<Utc>) -> bool {
        // Digits of hours have one length, so they are ordered as the hours are.
        file.hour() >= hour_digits(hour_of(now - ATTACH_MAX)).as_str()
    }

    /// Removes the files that have no message as of `now`; returns how many.
    ///
    /// # Errors
    /// When the database or the store cannot answer; files removed until then stay removed.
    pub async fn sweep(&self, engine: &Engine, now: DateTime<Utc>) -> Result<usize, String> {
        Ok(self.sweep_deleted(engine).await? + self.sweep_hours(engine, now).await?)
    }

    /// Removes the files of deleted messages; returns how many.
    async fn sweep_deleted(&self, engine: &Engine) -> Result<usize, String> {
        let db = engine.store().housekeeper();
        let mut removed = 0;
        for _ in 0..DELETED_STEPS_MAX {
            let files = media::find_orphans(&engine.store().housekeeping, STEP_FILES as i64)
                .await
                .map_err(|error| error.to_string())?;
            if files.is_empty() {
                break;
            }
            with_timeout(self.0.storage.remove(&files)).await?;
            media::delete_rows(db, &files).await.map_err(|error| error.to_string())?;
            removed += files.len();
        }
        Ok(removed)
    }

    /// Removes the files of past hours to which no message ever referred; returns how many.
    async fn sweep_hours(&self, engine: &Engine, now: DateTime<Utc>) -> Result<usize, String> {
        let db = &engine.store().housekeeping;
        // The last hour that ended before the grace period.
        let last_hour = hour_of(now - GRACE) - 1;
        let last_swept = media::swept_hour(db).await.map_err(|error| error.to_string())?;
        let mut removed = 0;
        for hour in (last_swept + 1)..=last_hour.min(last_swept + HOURS_MAX) {
            let mut files_of_hour = self.0.storage.of_hour(hour).try_chunks(STEP_FILES);
            while let Some(files) =
                with_timeout(async { files_of_hour.try_next().await.map_err(|error| error.to_string()) }).await?
            {
                removed += self.remove_without_message(engine, &files).await?;
            }
            media::set_swept_hour(engine.store().housekeeper(), hour).await.map_err(|error| error.to_string())?;
        }
        Ok(removed)
    }

    async fn remove_without_message(&self, engine: &Engine, files: &[FileKey]) -> Result<usize, String> {
        let log = &engine.store().log;
        // A message may be acknowledged and not be in the tables yet.
        let flushed = async { log.wait_until_flushed(log.appended()).await.map_err(|error| error.to_string()) };
        with_timeout(flushed).await?;
        let unused =
            media::without_message(&engine.store().housekeeping, files).await.map_err(|error| error.to_string())?;
        if !unused.is_empty() {
            with_timeout(self.0.storage.remove(&unused)).await?;
            tracing::info!(files = unused.len(), "removed files that no message uses");
        }
        Ok(unused.len())
    }
}

async fn with_timeout<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match tokio::time::timeout(STEP_TIME_MAX, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no response within {} s", STEP_TIME_MAX.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_be_attached_until_half_an_hour_before_its_hour_is_swept() {
        let hour = 490_000;
        let at = |minutes: i64| DateTime::UNIX_EPOCH + TimeDelta::hours(hour) + TimeDelta::minutes(minutes);
        let swept_hour = |minutes: i64| hour_of(at(minutes) - GRACE) - 1;
        for stored in [0, 59] {
            let file = MediaId::new(at(stored));
            assert!(Media::may_be_attached(&file, at(stored)) && Media::may_be_attached(&file, at(89)));
            assert!(!Media::may_be_attached(&file, at(90)) && !Media::may_be_attached(&file, at(600)));
        }
        assert_eq!((swept_hour(119), swept_hour(120)), (hour - 1, hour));
    }
}
