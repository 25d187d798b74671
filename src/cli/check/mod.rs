//! `hotline check`: whether the parts of an installation agree. It only reads, whether the service runs or is stopped.
//!
//! IMPORTANT: the journal is read before the tables. A running service removes segments that the tables have: if
//! the journal were read later, it could begin after the watermark, as if entries were missing.

mod files;

use std::fs;

use chrono::{DateTime, Utc};
use clap::Args;
use hotline_persistence::backup::{Count, Snapshot, State, count_rejected, counts, orphans};
use hotline_persistence::journal::{self, Contents, JournalError};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::secret_keys;
use hotline_persistence::{PgConnection, PgPool, clock, schema};

use super::backup::{CompletedBackup, JOURNAL, RECORD};
use super::database::with_any_schema;
use super::findings::{Finding, print_findings};
use super::{Failure, GlobalArgs};
use crate::config::{DatabaseArgs, MediaPlaceArgs};

/// Check that journal, tables, files and keys agree
#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    place: MediaPlaceArgs,
}

pub async fn run(args: CheckArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let findings = with_any_schema(&global.database, async |db| check_all(&args, &global.database, db).await).await?;
    print_findings(findings, global.output)
}

async fn check_all(args: &CheckArgs, database: &DatabaseArgs, db: &PgPool) -> Result<Vec<Finding>, Failure> {
    let dir = database.data_dir.join(JOURNAL);
    let journal = tokio::task::spawn_blocking(move || journal::examine(&dir)).await?;
    let mut snapshot = Snapshot::take(db).await?;
    let mut findings = vec![check_schema(&snapshot.state)];
    findings.extend(check_journal(journal, &snapshot.state));
    findings.push(check_keys(database, db).await?);
    findings.push(check_rejected_rows(snapshot.connection()).await?);
    findings.push(check_references(snapshot.connection()).await?);
    match &args.place.media_store {
        Some(_) => findings.push(Finding::ok("files", "in a bucket, which is not checked")),
        None => findings.extend(files::check(&args.place.folder(database)?, db, snapshot.connection()).await?),
    }
    findings.push(check_backup(database));
    let counts = counts(snapshot.connection()).await?;
    findings.push(Finding::ok("rows", counts_text(&counts)));
    snapshot.end().await?;
    Ok(findings)
}

fn counts_text(counts: &[Count]) -> String {
    counts.iter().map(|Count { kind, count }| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

fn check_schema(state: &State) -> Finding {
    let (current, newest) = (state.migration, schema::newest_migration());
    let text = format!("{current}, of Hotline {}", state.release);
    if state.least_migration > newest {
        Finding::problem("schema", text, format!("use Hotline {} or newer", state.release))
    } else if current < newest {
        Finding::note("schema", text, format!("the next start of this release migrates it to {newest}"))
    } else {
        Finding::ok("schema", text)
    }
}

/// Whether the journal can be read to its end, and belongs to the tables.
fn check_journal(journal: Result<Option<Contents>, JournalError>, state: &State) -> Vec<Finding> {
    const JOURNAL: &str = "journal";
    const WATERMARK: &str = "watermark";
    let restore_hint = "restore the journal and the database of one backup, with `hotline restore`";
    let journal = match journal {
        Ok(journal) => journal,
        Err(error @ JournalError::Damaged { .. }) => {
            let next = "if the last line of the service's log is `stopped; all changes are written`, move the folder `journal` \
                away: the tables have everything. Otherwise see `A damaged journal` in docs/operate/runbook.md";
            return vec![Finding::problem(JOURNAL, error.to_string(), next)];
        }
        Err(error) => {
            let reason = std::error::Error::source(&error).map_or_else(String::new, |source| format!(": {source}"));
            return vec![Finding::problem(JOURNAL, format!("{error}{reason}"), "run the check as the service's user")];
        }
    };
    let journal_finding = match &journal {
        None => Finding::ok(JOURNAL, "there is none"),
        Some(Contents { first: Some(first), last: Some(last), segments, .. }) => {
            Finding::ok(JOURNAL, format!("entries {first} to {last} in {segments} segments, readable to the end"))
        }
        Some(_) => Finding::ok(JOURNAL, "empty"),
    };
    let watermark_finding = match (state.mismatch(journal.as_ref()), &journal) {
        (Some(reason), _) => Finding::problem(WATERMARK, reason, restore_hint),
        (None, None) => Finding::ok(WATERMARK, "no journal writes to this database"),
        (None, Some(journal)) => {
            let watermark = state.watermark(&journal.id).unwrap_or(0);
            match journal.last.map_or(0, |last| last.saturating_sub(watermark)) {
                0 => Finding::ok(WATERMARK, format!("{watermark}: the tables have every entry")),
                missing => Finding::note(
                    WATERMARK,
                    format!("{watermark}: the tables do not have the last {missing} entries yet"),
                    "a running service writes them; otherwise the next start does",
                ),
            }
        }
    };
    vec![journal_finding, watermark_finding]
}

/// Whether every secret can be decrypted.
async fn check_keys(database: &DatabaseArgs, db: &PgPool) -> Result<Finding, Failure> {
    const KEYS: &str = "keys";
    let path = database.key_file();
    let keys = Keyring::at(&path);
    if let Err(error) = keys.load() {
        return Ok(Finding::problem(
            KEYS,
            error.to_string(),
            "correct the file, or run the check as the service's user",
        ));
    }
    let available = keys.ids();
    let used: Vec<_> = secret_keys::all(db).await?.into_iter().filter(|key| key.sealed > 0).collect();
    let missing: Vec<_> = used.iter().filter(|key| !available.contains(&key.id)).collect();
    if missing.is_empty() {
        let values: i64 = used.iter().map(|key| key.sealed).sum();
        return Ok(Finding::ok(KEYS, format!("present for all {values} encrypted values")));
    }
    let text = missing.iter().map(|key| format!("{} ({} values)", key.id, key.sealed)).collect::<Vec<_>>().join(", ");
    let next = format!("restore the key file `{}` from a backup", path.display());
    Ok(Finding::problem(KEYS, format!("missing: {text}"), next))
}

/// Whether PostgreSQL has accepted every change.
async fn check_rejected_rows(db: &mut PgConnection) -> Result<Finding, Failure> {
    const ROWS: &str = "rejected rows";
    let rejected = count_rejected(db).await?;
    if rejected.is_empty() {
        return Ok(Finding::ok(ROWS, "none"));
    }
    let next = "examine the table rejected_changes, add what is missing, and delete its rows";
    Ok(Finding::problem(ROWS, counts_text(&rejected), next))
}

/// Whether rows refer to existing rows, where the schema does not ensure it.
async fn check_references(db: &mut PgConnection) -> Result<Finding, Failure> {
    const REFERENCES: &str = "references";
    let orphans = orphans(db).await?;
    if orphans.is_empty() {
        return Ok(Finding::ok(REFERENCES, "every message, event and file belongs to an existing record"));
    }
    let found = orphans.iter().map(|orphans| {
        let company = orphans.company_id.map_or_else(String::new, |id| format!(", for example in company {id}"));
        format!("{} of {} rows refers to a missing row{company}", orphans.reference, orphans.count)
    });
    let next = "rows were deleted or restored without the others; restore a backup, or delete these rows";
    Ok(Finding::problem(REFERENCES, found.collect::<Vec<_>>().join("; "), next))
}

/// Whether `hotline backup` has recorded a backup in the data folder.
fn check_backup(database: &DatabaseArgs) -> Finding {
    const BACKUP: &str = "backup";
    let text = fs::read(database.data_dir.join(RECORD)).ok();
    match text.and_then(|text| serde_json::from_slice::<CompletedBackup>(&text).ok()) {
        Some(CompletedBackup { completed_at, backup, .. }) => {
            Finding::ok(BACKUP, format!("{} ago, in `{}`", age_text(completed_at), backup.display()))
        }
        None => Finding::note(BACKUP, "none by `hotline backup`", "back it up, for example every night"),
    }
}

fn age_text(at: DateTime<Utc>) -> String {
    let age = clock::now() - at;
    match (age.num_days(), age.num_hours()) {
        (0, 0) => format!("{} minutes", age.num_minutes().max(0)),
        (0, hours) => format!("{hours} hours"),
        (days, _) => format!("{days} days"),
    }
}
