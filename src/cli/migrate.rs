//! `hotline migrate`: migrates the schema of a database to that of this release, also while the service is running.

use clap::Args;
use hotline_persistence::migration::{self, MigrationProgress};
use hotline_persistence::schema;

use super::database::with_any_schema;
use super::{Failure, GlobalArgs};
use crate::config::MigrationArgs;

/// The options of the command.
#[derive(Args)]
pub struct MigrateArgs {
    /// Print the missing migrations and what they lock, and change nothing
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    migration: MigrationArgs,
}

pub async fn run(args: MigrateArgs, global: &GlobalArgs) -> Result<(), Failure> {
    if args.plan {
        let plan = with_any_schema(&global.database, async |db| Ok(migration::plan(db).await?)).await?;
        return global.output.many("migrations", &["number", "name", "locks"], plan);
    }
    // Progress is printed to standard error: standard output has only the result.
    let mut print_progress = |progress: &MigrationProgress<'_>| eprintln!("hotline: {progress}");
    let applied = with_any_schema(&global.database, async |db| {
        Ok(migration::run(
            db,
            &schema::supported_migrations().await?,
            args.migration.migration_wait,
            &mut print_progress,
        )
        .await?)
    });
    global.output.many("migrations", &["number", "name", "durationMs"], applied.await?)
}
