//! What an operator does with a database, grown or empty: a deletion of old conversations, a backup and a start. Sends
//! continue during the first two.

use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde::Serialize;

use super::WRITERS;
use crate::figures::{Verdict, median};
use crate::generator::{Load, LoadCounts};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Server};
use crate::seed::Api;
use crate::service::{Binary, NEVER_S, Service};
use crate::stage::{self, Stage};

/// Duration of one measurement of sends.
const SENDING_TIME: Duration = Duration::from_secs(10);

/// Number of measurements of sends without other work, and as many during the deletion.
const MEASUREMENTS: usize = 3;

/// How long the service may take to begin the deletion, and the interval of checks.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(60);
const BEGIN_INTERVAL: Duration = Duration::from_millis(100);

/// Closed conversations older than this are deleted.
const RETENTION: &str = "180d";

/// Number of starts, of which the median counts.
const STARTS: usize = 3;

/// Maximum 99th percentile of a send beside a deletion or a backup, and maximum time of a start.
const SEND_P99_MS_MAX: f64 = 20.0;
const START_S_MAX: f64 = 10.0;

/// The latency of sends at a steady rate: medians of measurements, each of [`SENDING_TIME`].
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SendLatency {
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl SendLatency {
    fn of(measured: &[LoadCounts]) -> Self {
        let ms = |us: fn(&LoadCounts) -> u64| median(measured.iter().map(|counts| us(counts) as f64 / 1e3).collect());
        Self { p50_ms: ms(|counts| counts.p50_us), p99_ms: ms(|counts| counts.p99_us) }
    }
}

/// The measurements on one database.
#[derive(Clone, Debug, Serialize)]
pub struct Upkeep {
    pub sends_alone: SendLatency,
    /// Deleted conversations a second, and the latency of sends meanwhile; `None` if no conversation is old enough.
    pub deletion: Option<(f64, SendLatency)>,
    /// Seconds until the backup was complete on disk, and its bytes.
    pub backup_s: f64,
    pub backup_bytes: u64,
    pub sends_beside_backup: SendLatency,
    /// Seconds from the start of the process until it was ready, with its private PostgreSQL.
    pub start_s: f64,
    /// Milliseconds until the first list of 100 open tickets after a start was received.
    pub first_list_ms: f64,
}

impl Upkeep {
    pub fn verdicts(&self) -> Vec<Verdict> {
        let verdict = |what: &str, measured: f64, limit: f64, unit: &str| Verdict {
            what: what.to_owned(),
            aim: format!("at most {limit} {unit}"),
            measured: format!("{measured:.2}"),
            is_met: measured <= limit,
        };
        let deletion = self.deletion.iter();
        deletion
            .map(|(_, sends)| verdict("p99 of sends beside a deletion", sends.p99_ms, SEND_P99_MS_MAX, "ms"))
            .chain([
                verdict("p99 of sends beside a backup", self.sends_beside_backup.p99_ms, SEND_P99_MS_MAX, "ms"),
                verdict("start until ready", self.start_s, START_S_MAX, "s"),
            ])
            .collect()
    }
}

/// Makes all measurements, and ends the stage.
pub async fn measure(binary: &Binary, stage: Stage, sends_per_second: f64) -> Outcome<Upkeep> {
    let subjects = stage.subjects(&[], &[])?;
    let sends = Load {
        scenario: Scenario::Send,
        server: Server::Hotline,
        address: stage.address(Server::Hotline),
        subjects: &subjects,
        connections: WRITERS,
        time: SENDING_TIME,
        rate: Some(sends_per_second),
    };
    let sends_alone = SendLatency::of(&measure_sends_repeatedly(&sends).await?);
    let deletion = delete(&stage, &sends).await?;
    stage.settle().await?;
    sqlx::query("vacuum").execute(&stage.db).await?;
    let (backup_s, backup_bytes, sends_beside_backup) = back_up(binary, &stage, &sends).await?;
    stage.settle().await?;
    let key = stage.company.key.clone();
    let folder = stage.stop().await?;
    let (start_s, first_list_ms) = start(binary, folder.path(), &key).await?;
    folder.close()?;
    Ok(Upkeep { sends_alone, deletion, backup_s, backup_bytes, sends_beside_backup, start_s, first_list_ms })
}

/// One measurement of sends, all of which must succeed.
async fn measure_sends(sends: &Load<'_>) -> Outcome<LoadCounts> {
    let counts = sends.run().await?;
    if counts.errors.total() > 0 || counts.requests == 0 {
        return Err(format!("sends failed: {counts:?}").into());
    }
    Ok(counts)
}

async fn measure_sends_repeatedly(sends: &Load<'_>) -> Outcome<Vec<LoadCounts>> {
    let mut measured = Vec::new();
    for _ in 0..MEASUREMENTS {
        measured.push(measure_sends(sends).await?);
    }
    Ok(measured)
}

/// Measures sends while old conversations are deleted. Returns how many are deleted a second, and the latency of the
/// sends; `None` if no conversation is old enough.
async fn delete(stage: &Stage, sends: &Load<'_>) -> Outcome<Option<(f64, SendLatency)>> {
    let company = stage.company.id.to_string();
    let initial_count = count_tickets(stage).await?;
    let retention = stage.service.run_command(&["retention", "set", "--company", &company, "--after", RETENTION])?;
    if retention["pending"] == 0 {
        return Ok(None);
    }
    // The service begins within seconds.
    let deadline = Instant::now() + BEGIN_TIME_MAX;
    let mut count = count_tickets(stage).await?;
    while count == initial_count {
        if Instant::now() > deadline {
            return Err("no conversation is deleted".into());
        }
        tokio::time::sleep(BEGIN_INTERVAL).await;
        count = count_tickets(stage).await?;
    }
    let began = Instant::now();
    let measured = measure_sends_repeatedly(sends).await?;
    let seconds = began.elapsed().as_secs_f64();
    let deleted = count - count_tickets(stage).await?;
    let retention = stage.service.run_command(&["retention", "show", "--company", &company])?;
    stage.service.run_command(&["retention", "delete", "--company", &company])?;
    if retention["pending"] == 0 {
        return Err("the deletion ended before the sends".into());
    }
    Ok(Some((deleted as f64 / seconds, SendLatency::of(&measured))))
}

async fn count_tickets(stage: &Stage) -> Outcome<i64> {
    let count = sqlx::query_scalar("select count(*) from tickets where company_id = $1").bind(stage.company.id);
    Ok(count.fetch_one(&stage.db).await?)
}

/// Measures sends while a backup is created. Returns the seconds and the bytes of the backup, and the latency of the
/// sends.
async fn back_up(binary: &Binary, stage: &Stage, sends: &Load<'_>) -> Outcome<(f64, u64, SendLatency)> {
    let target = stage::create_folder()?;
    let began = Instant::now();
    let backup = {
        let (binary, folder, target) = (binary.clone(), stage.folder().to_owned(), target.path().to_owned());
        tokio::task::spawn_blocking(move || {
            let path = target.to_str().ok_or("the folder of backups has no name in UTF-8")?;
            let result = binary.run_command(&folder, &["backup", path]).map(drop);
            result.map_err(|failure| failure.to_string()).map(|()| began.elapsed())
        })
    };
    let mut measured = Vec::new();
    let mut result = Ok(());
    while result.is_ok() && (measured.is_empty() || !backup.is_finished()) {
        result = measure_sends(sends).await.map(|counts| measured.push(counts));
    }
    // Awaited even if the sends failed: the backup writes to a folder that is removed when this function returns.
    let seconds = backup.await??.as_secs_f64();
    result?;
    let bytes = folder_bytes(target.path())?;
    target.close()?;
    Ok((seconds, bytes, SendLatency::of(&measured)))
}

/// The bytes of the files in a folder.
fn folder_bytes(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { folder_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// Starts the service on a folder several times. Returns the seconds until it is ready, and the milliseconds of its first
/// list.
async fn start(binary: &Binary, folder: &Path, key: &str) -> Outcome<(f64, f64)> {
    let (mut starts, mut lists) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let began = Instant::now();
        let service = Service::start(binary, folder, NEVER_S)?;
        starts.push(began.elapsed().as_secs_f64());
        let api = Api::new(&service, key)?;
        let began = Instant::now();
        let listed = api.send(Method::GET, "/tickets?status=open&perPage=100", None).await?.error_for_status()?;
        listed.bytes().await?;
        lists.push(began.elapsed().as_secs_f64() * 1e3);
        service.stop()?;
    }
    Ok((median(starts), median(lists)))
}
