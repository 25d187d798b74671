//! What a backup, a restore and a check read of the database: everything of one moment, and nothing is changed.
//!
//! A backup is consistent because of its order: the journal is copied first, then the tables are read as of one later
//! moment. Every entry that is missing from the copy was released, so the tables contain it; and every plain row that
//! an entry of the copy refers to was committed before the entry was acknowledged. A journal that is newer than its
//! tables has no such guarantee, and a start refuses it ([`crate::recovery::refuse_older_database`]).

mod check;
mod server;
mod snapshot;

pub use check::{Count, Orphans, RestorePlace, counts, files_after, is_empty, orphans, rejected, still_used};
pub use server::{DatabaseServer, server};
pub use snapshot::{JournalPosition, Snapshot, State};
