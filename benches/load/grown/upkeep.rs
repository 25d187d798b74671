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

/// How long sends are measured at a time.
const SENDING_TIME: Duration = Duration::from_secs(10);

/// Number of such measurements alone, and during the deletion.
const SENDINGS: usize = 3;

/// How long the service may take to begin the deletion, and how often this is checked.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(60);
const BEGIN_INTERVAL: Duration = Duration::from_millis(100);

/// Closed conversations older than this are deleted.
const RETENTION: &str = "180d";

/// Number of starts, of which the median counts.
const STARTS: usize = 3;

/// Maximum 99th percentile of a send beside a deletion or a backup, and maximum time of a start.
const SEND_P99_MS_MAX: f64 = 20.0;
const START_S_MAX: f64 = 10.0;

/// The latency of sends at a steady rate: medians of measurements of [`SENDING_TIME`].
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
    /// Deleted conversations a second, and the sends meanwhile; `None` if none is old.
    pub deletion: Option<(f64, SendLatency)>,
    /// Seconds until the backup was complete on disk, and its bytes.
    pub backup_s: f64,
    pub backup_bytes: u64,
    pub sends_beside_backup: SendLatency,
    /// Seconds from the start of the process until it was ready, with its private PostgreSQL.
    pub start_s: f64,
    /// Milliseconds of the first list of 100 open tickets after a start.
    pub first_list_ms: f64,
}

impl Upkeep {
    pub fn verdicts(&self) -> Vec<Verdict> {
        let verdict = |what: &str, measured: f64, most: f64, unit: &str| Verdict {
            what: what.to_owned(),
            aim: format!("at most {most} {unit}"),
            measured: format!("{measured:.2}"),
            is_met: measured <= most,
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

/// Measures all of it, and ends the stage.
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
    let sends_alone = SendLatency::of(&send_repeatedly(&sends).await?);
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

/// Sends once; all must succeed.
async fn send(sends: &Load<'_>) -> Outcome<LoadCounts> {
    let counts = sends.run().await?;
    if counts.errors.total() > 0 || counts.requests == 0 {
        return Err(format!("sends failed: {counts:?}").into());
    }
    Ok(counts)
}

async fn send_repeatedly(sends: &Load<'_>) -> Outcome<Vec<LoadCounts>> {
    let mut measured = Vec::new();
    for _ in 0..SENDINGS {
        measured.push(send(sends).await?);
    }
    Ok(measured)
}

/// Sends while old conversations are deleted. Returns how many are deleted a second; `None` if none is old.
async fn delete(stage: &Stage, sends: &Load<'_>) -> Outcome<Option<(f64, SendLatency)>> {
    let company = stage.company.id.to_string();
    let before = tickets(stage).await?;
    let set = stage.service.run_command(&["retention", "set", "--company", &company, "--after", RETENTION])?;
    if set["pending"] == 0 {
        return Ok(None);
    }
    // The service begins within seconds.
    let end = Instant::now() + BEGIN_TIME_MAX;
    let mut first = tickets(stage).await?;
    while first == before {
        if Instant::now() > end {
            return Err("no conversation is deleted".into());
        }
        tokio::time::sleep(BEGIN_INTERVAL).await;
        first = tickets(stage).await?;
    }
    let began = Instant::now();
    let measured = send_repeatedly(sends).await?;
    let seconds = began.elapsed().as_secs_f64();
    let deleted = first - tickets(stage).await?;
    let left = stage.service.run_command(&["retention", "show", "--company", &company])?;
    stage.service.run_command(&["retention", "delete", "--company", &company])?;
    if left["pending"] == 0 {
        return Err("the deletion ended before the sends".into());
    }
    Ok(Some((deleted as f64 / seconds, SendLatency::of(&measured))))
}

async fn tickets(stage: &Stage) -> Outcome<i64> {
    let count = sqlx::query_scalar("select count(*) from tickets where company_id = $1").bind(stage.company.id);
    Ok(count.fetch_one(&stage.db).await?)
}

/// Sends while a backup is made. Returns its seconds and bytes.
async fn back_up(binary: &Binary, stage: &Stage, sends: &Load<'_>) -> Outcome<(f64, u64, SendLatency)> {
    let target = stage::folder()?;
    let began = Instant::now();
    let backup = {
        let (binary, folder, target) = (binary.clone(), stage.folder().to_owned(), target.path().to_owned());
        tokio::task::spawn_blocking(move || {
            let path = target.to_str().ok_or("the folder of backups has no name in UTF-8")?;
            let made = binary.run_command(&folder, &["backup", path]).map(drop);
            made.map_err(|failure| failure.to_string()).map(|()| began.elapsed())
        })
    };
    let mut measured = Vec::new();
    let mut sent = Ok(());
    while sent.is_ok() && (measured.is_empty() || !backup.is_finished()) {
        sent = send(sends).await.map(|counts| measured.push(counts));
    }
    // Awaited also after a failure: the backup writes to a folder that is removed here.
    let seconds = backup.await??.as_secs_f64();
    sent?;
    let bytes = size(target.path())?;
    target.close()?;
    Ok((seconds, bytes, SendLatency::of(&measured)))
}

/// The bytes of the files in a folder.
fn size(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
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
