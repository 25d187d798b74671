//! `hotline contact`: erases contacts.

use std::time::Duration;

use clap::{Args, Subcommand};
use hotline_persistence::tables::companies;
use hotline_persistence::tables::erasures::{self, Erasure};
use hotline_persistence::writer_lock::is_served;
use hotline_persistence::{CompanyId, ContactId, Error, PgPool};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::audit::{AuditedAction, Target};
use super::database::with_database;
use super::{Cli, Failure, GlobalArgs, Refusal, data_folder};
use crate::config::{DAY, DatabaseArgs, durations};
use crate::exit_code::Exit;
use crate::service::OfflineService;

/// The minimum of `--timeout`, and the unit of a number that has none.
const SECOND: Duration = Duration::from_secs(1);

/// How often the command checks whether a running service has finished.
const POLL_EVERY: Duration = Duration::from_millis(200);

#[derive(Subcommand)]
pub enum Command {
    /// Erase a contact with everything that is stored about the person, and report what was removed
    #[command(override_usage = "hotline contact erase <ID> --company <ID> [OPTIONS]", after_help = ERASE_HELP)]
    Erase(Erase),
}

const ERASE_HELP: &str = "\
Sessions are ended and tickets closed, then the contact is deleted with its tickets, messages, files, sessions, scheduled \
messages and places on cards, lists and campaigns; then its data is removed from events, deliveries and recorded \
responses. This cannot be undone. The output lists what was removed, and what remains where.

A running service does it. If none runs, the command does it, with the options of `serve` from the environment and the \
configuration file. A contact that was deleted before can be erased as well. Repeating an interrupted command is safe.";

#[derive(Args)]
pub struct Erase {
    /// Contact ID
    id: ContactId,
    /// Company ID
    #[arg(long, value_name = "ID")]
    company: CompanyId,
    /// Maximum time to wait for a running service; it continues afterwards
    #[arg(long, value_name = "DURATION", default_value = "5m",
        value_parser = durations(SECOND, SECOND..=DAY))]
    timeout: Duration,
}

/// The outcome of waiting for a service.
enum ErasureOutcome {
    Done(Box<Erasure>),
    NoService,
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    let Command::Erase(erase) = command;
    let (company, id) = (erase.company, erase.id);
    let outcome = with_database(&global.database, async |db| {
        companies::find(db, company).await?.ok_or(Error::NotFound("company"))?;
        // Before the request is recorded: a service that starts later would carry it out.
        has_service(&global.database, db).await?;
        let audited = AuditedAction::of_company(Some(company), "eraseContact").on(id);
        audited.run(db, async || Ok(erasures::request(db, company, id).await?), |()| Target::of(id)).await?;
        wait_for_erasure(&global.database, db, &erase).await
    });
    let erasure = match outcome.await? {
        ErasureOutcome::Done(erasure) => *erasure,
        ErasureOutcome::NoService => {
            erase_offline().await?;
            let search = with_database(&global.database, async |db| Ok(erasures::find(db, company, id).await?));
            search.await?.ok_or(Error::NotFound("erasure"))?
        }
    };
    match (erasure.done_at, &erasure.failure) {
        (Some(_), _) => global.output.one(report(&erasure)),
        (None, failure) => {
            let reason = failure.as_deref().unwrap_or("some records are still being removed");
            let message = format!("not everything is erased yet: {reason}; run the command again");
            Err(Refusal::new(Exit::Retry, message).into())
        }
    }
}

/// Waits until a service has erased the contact, or finds that none runs.
async fn wait_for_erasure(database: &DatabaseArgs, db: &PgPool, erase: &Erase) -> Result<ErasureOutcome, Failure> {
    let deadline = Instant::now() + erase.timeout;
    loop {
        let erasure = erasures::find(db, erase.company, erase.id).await?.ok_or(Error::NotFound("erasure"))?;
        if erasure.done_at.is_some() {
            return Ok(ErasureOutcome::Done(Box::new(erasure)));
        }
        if !has_service(database, db).await? {
            return Ok(ErasureOutcome::NoService);
        }
        if Instant::now() >= deadline {
            let reason = erasure.failure.map(|reason| format!(" (last failure: {reason})")).unwrap_or_default();
            let message = format!("the service continues with the erasure{reason}; run the command again to wait");
            return Err(Refusal::new(Exit::Retry, message).into());
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// Whether a service runs, which erases. If none runs, this command does it, and needs the service's data folder: from
/// another one, it would exclude the journal's changes from the tables, and would not find the files of messages.
async fn has_service(database: &DatabaseArgs, db: &PgPool) -> Result<bool, Failure> {
    let is_served = is_served(db).await?;
    if !is_served {
        data_folder::check(database, db).await?;
    }
    Ok(is_served)
}

/// Erases as the service would, with its options.
async fn erase_offline() -> Result<(), Failure> {
    let options = Cli::read_service()?;
    let service = OfflineService::open(&options.args.settings(&options.database)?).await?;
    let result = service.erase().await;
    service.close().await?;
    result.map_err(|reason| Refusal::new(Exit::Unavailable, reason).into())
}

/// What was removed, and what remains.
fn report(erasure: &Erasure) -> Value {
    json!({
        "contactId": erasure.contact_id,
        "companyId": erasure.company_id,
        "existed": erasure.removed.get("contacts").is_some_and(|count| *count > 0),
        "removed": erasure.removed,
        "kept": {
            "auditLog": "that the contact was erased, by its ID only",
            "reports": "the figures in which the conversations are counted",
            "cards": erasure.traces.cards,
            "groups": "what the person wrote in groups, and how they reacted there, with their name and number",
            "journal": "entries of the past, until their segment is overwritten: at the latest after as many bytes of new \
                changes as --journal-max-size",
            "backups": "backups, standbys and PostgreSQL's own log, until they expire or are recycled",
            "receivers": "what webhooks, streams and providers received before",
        },
        "doneAt": erasure.done_at.map(hotline_persistence::Timestamp),
    })
}
