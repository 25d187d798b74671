//! Refuses a data folder that is not the database's: acknowledged changes that the tables lack, and the files of
//! messages, are then in another folder or on another machine.

use hotline_persistence::PgPool;
use hotline_persistence::backup::State;
use hotline_persistence::journal::{self, Contents};

use super::backup::JOURNAL;
use super::{Failure, Refusal};
use crate::config::DatabaseArgs;
use crate::exit_code::Exit;

/// Refuses a data folder whose journal a start would refuse with this database, and returns what the journal contains;
/// `None` if there is none, and the process that last wrote to the database had none.
pub async fn check(database: &DatabaseArgs, db: &PgPool) -> Result<Option<Contents>, Failure> {
    let dir = database.data_dir.join(JOURNAL);
    // IMPORTANT: read the journal first. If a service still writes to the database from it, the watermark only grows.
    let journal = tokio::task::spawn_blocking(move || journal::examine(&dir)).await??;
    let mut connection = db.acquire().await?;
    let state = State::read(&mut connection).await?;
    check_mismatch(database, &state, journal.as_ref())?;
    Ok(journal)
}

/// The same, of a journal and a database that were read before, the journal first.
pub fn check_mismatch(database: &DatabaseArgs, state: &State, journal: Option<&Contents>) -> Result<(), Refusal> {
    let Some(reason) = state.mismatch(journal) else { return Ok(()) };
    let message = format!(
        "`{}` is not the data folder of this database: {reason}. Run the command where the service runs, as its user, \
         with the same --data-dir and --database-url",
        database.data_dir.display()
    );
    Err(Refusal::new(Exit::Data, message))
}
