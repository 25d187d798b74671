//! The tables as of one moment: for `pg_dump`, for the manifest of the backup, and for the command `check`.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection, PgPool, Postgres, Transaction};

use crate::Result;
use crate::journal::{Contents, Seq};
use crate::tables::messages::MESSAGES_WATERMARK_SUFFIX;

/// Begins a transaction that reads everything as of one moment.
const BEGIN: &str = "begin isolation level repeatable read, read only";

/// Number of characters of a journal's id. The names of other rows of `journal_watermark` are not hexadecimal numbers
/// of this length.
const JOURNAL_ID_CHARACTERS: usize = 32;

/// The watermark of a journal: the last of its entries that is in the tables.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct JournalPosition {
    /// The journal's id.
    pub journal: String,
    /// The last entry in the tables.
    pub seq: i64,
    /// The epoch in which that entry was written.
    pub epoch: i64,
}

impl JournalPosition {
    /// The last entry in the tables, as a [`Seq`].
    pub fn seq(&self) -> Seq {
        Seq::try_from(self.seq).unwrap_or(0)
    }
}

/// The server, the schema and the watermarks of a database.
#[derive(Clone, Debug)]
pub struct State {
    /// The server's version, as `server_version_num`.
    pub server_version: i32,
    /// The schema of the tables.
    pub schema: String,
    /// Whether the database has schemas other than this one, `public`, PostgreSQL's own and those of extensions.
    pub is_shared: bool,
    /// The last migration.
    pub migration: i64,
    /// The lowest migration that a release must know to serve this database.
    pub least_migration: i64,
    /// The release that migrated the database last.
    pub release: String,
    /// The database's time at this moment.
    pub now: DateTime<Utc>,
    /// The positions of all journals.
    pub watermarks: Vec<JournalPosition>,
}

impl State {
    /// Reads the state of the database.
    ///
    /// # Errors
    /// When the database cannot answer, or has no tables of Hotline.
    pub async fn read(db: &mut PgConnection) -> Result<Self> {
        let statement = "select current_setting('server_version_num')::int4, current_schema()::text, now(), exists (
                 select from pg_namespace n
                 where n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'public', current_schema())
                   and not exists (select from pg_extension e where e.extnamespace = n.oid))";
        let (server_version, schema, now, is_shared): (i32, Option<String>, DateTime<Utc>, bool) =
            sqlx::query_as(statement).fetch_one(&mut *db).await?;
        let statement =
            "select (select coalesce(max(version), 0) from _sqlx_migrations), least, release from schema_needs";
        let (migration, least_migration, release) = sqlx::query_as(statement).fetch_one(&mut *db).await?;
        let statement = "select journal, seq, epoch from journal_watermark order by journal";
        let watermarks = sqlx::query_as(statement).fetch_all(&mut *db).await?;
        let schema = schema.unwrap_or_default();
        Ok(Self { server_version, schema, is_shared, migration, least_migration, release, now, watermarks })
    }

    /// The major version of the server.
    pub fn server_major(&self) -> u32 {
        u32::try_from(self.server_version / 10_000).unwrap_or(0)
    }

    /// The last entry of this journal that is in the tables; `None` if they have no watermark of it.
    pub fn watermark(&self, journal: &str) -> Option<Seq> {
        self.watermarks.iter().find(|row| row.journal == journal).map(JournalPosition::seq)
    }

    /// The journal of the process that last wrote to this database; some of its changes may not be in the tables.
    /// `None` if that process had no journal, or none has written.
    pub fn journal_of_last_writer(&self) -> Option<&str> {
        let is_journal = |row: &JournalPosition| {
            row.journal.len() == JOURNAL_ID_CHARACTERS && row.journal.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let positions = self.watermarks.iter().filter(|row| !row.journal.ends_with(MESSAGES_WATERMARK_SUFFIX));
        // A process without a journal first replays an earlier journal, in the same epoch; its own position wins.
        let last = positions.max_by_key(|row| (row.epoch, !is_journal(row)))?;
        is_journal(last).then_some(last.journal.as_str())
    }

    /// Why a start would refuse this journal with this database; `None`: they belong together.
    pub fn mismatch(&self, journal: Option<&Contents>) -> Option<String> {
        let last_written = self.journal_of_last_writer();
        let Some(journal) = journal else {
            return last_written.map(|id| format!("the journal {id} of this database is missing"));
        };
        if let Some(id) = last_written.filter(|id| *id != journal.id) {
            return Some(format!("the journal has the id {}, but the database was last written from {id}", journal.id));
        }
        let position = self.watermark(&journal.id);
        let watermark = position.unwrap_or(0);
        if watermark < journal.confirmed {
            let confirmed = journal.confirmed;
            return Some(format!("the database has entries up to {watermark}, but {confirmed} were confirmed"));
        }
        // A journal gets its watermark before its first entry.
        if position.is_none() && journal.last.is_some() {
            return Some(format!("the journal {} contains changes of another database", journal.id));
        }
        match journal.first {
            Some(first) if first > watermark + 1 => {
                Some(format!("the journal begins with entry {first}, but the database ends with {watermark}"))
            }
            _ => None,
        }
    }
}

/// A snapshot of the database, which other sessions can read until this is dropped.
pub struct Snapshot {
    transaction: Transaction<'static, Postgres>,
    /// The name under which other sessions import it.
    pub id: String,
    /// The state of the database at this moment.
    pub state: State,
}

impl Snapshot {
    /// Takes a snapshot.
    ///
    /// # Errors
    /// When the database cannot answer, or has no tables of Hotline.
    pub async fn take(db: &PgPool) -> Result<Self> {
        let mut transaction = db.begin_with(BEGIN).await?;
        // This session is idle in its transaction while another process reads everything. The database or the role may
        // have a timeout for that.
        let disable_timeout = "select set_config('idle_in_transaction_session_timeout', '0', true)";
        sqlx::query(disable_timeout).execute(&mut *transaction).await?;
        let id = sqlx::query_scalar("select pg_export_snapshot()").fetch_one(&mut *transaction).await?;
        let state = State::read(&mut transaction).await?;
        Ok(Self { transaction, id, state })
    }

    /// The connection, for further statements as of this moment.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// Ends the snapshot. Fails if its session was lost; then the sessions that read the snapshot failed as well.
    pub async fn end(self) -> Result<()> {
        Ok(self.transaction.commit().await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOURNAL: &str = "0123456789abcdef0123456789abcdef";

    fn state(watermarks: &[(&str, i64, i64)]) -> State {
        let rows = watermarks.iter().map(|(journal, seq, epoch)| JournalPosition {
            journal: (*journal).to_owned(),
            seq: *seq,
            epoch: *epoch,
        });
        State {
            server_version: 150_004,
            schema: "public".to_owned(),
            is_shared: false,
            migration: 1,
            least_migration: 1,
            release: "0.1.0".to_owned(),
            now: crate::clock::now(),
            watermarks: rows.collect(),
        }
    }

    fn journal(id: &str, confirmed: Seq, first: Seq) -> Contents {
        Contents { id: id.to_owned(), confirmed, first: Some(first), last: None, segments: 1, bytes: 0 }
    }

    #[test]
    fn a_journal_and_tables_that_a_start_would_refuse_do_not_match() {
        let written = state(&[(JOURNAL, 10, 3), ("direct", 0, 2), ("0123456789abcdef0123456789abcdef/messages", 9, 4)]);
        assert_eq!(written.mismatch(Some(&journal(JOURNAL, 10, 11))), None);
        assert_eq!(written.mismatch(Some(&journal(JOURNAL, 7, 3))), None);
        for (other, expected) in [
            (Some(journal(JOURNAL, 11, 3)), "11 were confirmed"),
            (Some(journal(JOURNAL, 7, 12)), "begins with entry 12"),
            (Some(journal("f123456789abcdef0123456789abcdef", 0, 1)), "last written from"),
            (None, "is missing"),
        ] {
            let reason = written.mismatch(other.as_ref()).expect("a reason");
            assert!(reason.contains(expected), "{reason}");
        }
        let foreign = Contents { last: Some(1), ..journal("f123456789abcdef0123456789abcdef", 0, 1) };
        let reason = state(&[("direct", 0, 3)]).mismatch(Some(&foreign)).expect("a reason");
        assert!(reason.contains("of another database"), "{reason}");
        // Since then the service has written without a journal.
        for name in ["direct", "cluster", "life 7"] {
            let direct = state(&[(JOURNAL, 10, 3), (name, 0, 3)]);
            assert_eq!((direct.journal_of_last_writer(), direct.mismatch(None)), (None, None), "{name}");
        }
    }
}
