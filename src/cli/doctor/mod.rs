//! `hotline doctor`: whether the machine, the database and the network meet the service's needs. It takes the
//! options of the service, changes nothing, and sends nothing to a contact.

mod machine;
mod monitoring;
mod network;
mod postgres;

use clap::Args;
use hotline_persistence::backup::State;
use hotline_persistence::migration::{self, SchemaError};
use hotline_persistence::{Error, PgPool, schema};

use super::database::with_any_schema;
use super::findings::{Finding, print_findings};
use super::{Failure, GlobalArgs, failure};
use crate::config::ServeArgs;
use crate::service::Settings;

/// Examine the machine, the database and the network of the service
#[derive(Args)]
pub struct DoctorArgs {
    /// Call nothing on the network but the database and this installation's service
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    serve: ServeArgs,
}

pub async fn run(args: DoctorArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let settings = args.serve.settings(&global.database)?;
    let mut findings = vec![Finding::ok("release", env!("CARGO_PKG_VERSION"))];
    findings.extend(machine::check(&settings).await);
    findings.extend(monitoring::check(&settings));
    let result =
        with_any_schema(&global.database, async |db| Ok(check_database(&settings, args.offline, db).await)).await;
    match result {
        Ok(database_findings) => findings.extend(database_findings),
        Err(error) => findings.push(Finding::problem(
            "database",
            failure::message_with_causes(&*error),
            "start it, or correct --data-dir or --database-url",
        )),
    }
    if !args.offline {
        findings.extend(network::check_mail_relay(&settings).await);
    }
    print_findings(findings, global.output)
}

/// Checks the database, and what is configured in it.
async fn check_database(settings: &Settings, is_offline: bool, db: &PgPool) -> Vec<Finding> {
    let mut findings = match postgres::check(db).await {
        Ok(findings) => findings,
        Err(error) => return vec![failed_check("database", &error)],
    };
    match read_state(db).await {
        Ok(Some(state)) => findings.push(check_schema(&state)),
        Ok(None) => {
            findings.push(Finding::note("schema", "there are no tables yet", "the first start creates them"));
            return findings;
        }
        Err(error) => {
            findings.push(failed_check("schema", &error));
            return findings;
        }
    }
    if !is_offline {
        findings
            .extend(network::check(settings, db).await.unwrap_or_else(|error| vec![failed_check("network", &*error)]));
    }
    findings
}

/// What the database reports about itself; `None` if it has no tables yet.
async fn read_state(db: &PgPool) -> Result<Option<State>, Error> {
    // Any other error is ignored: the state describes the schema.
    if let Err(Error::Schema(SchemaError::Empty)) = migration::ensure_readable(db).await {
        return Ok(None);
    }
    let mut connection = db.acquire().await?;
    State::read(&mut connection).await.map(Some)
}

/// Whether this release can serve the tables.
fn check_schema(state: &State) -> Finding {
    let found = format!("{}, of Hotline {}", state.migration, state.release);
    let (required, newest) = (state.least_migration, schema::newest_migration());
    if required <= newest {
        return Finding::ok("schema", found);
    }
    Finding::problem(
        "schema",
        format!("{found}: it needs a release with schema {required} or newer; this one has {newest}"),
        "install that release; an older one cannot serve these tables",
    )
}

fn failed_check(check: &'static str, error: &(dyn std::error::Error + 'static)) -> Finding {
    Finding::problem(check, failure::message_with_causes(error), "see whether the database answers, and run it again")
}
