//! The queries for a backup, a restore and a check. They change nothing; a backup and a check read the tables as of one
//! moment.
//!
//! A backup is consistent because of its order: the journal is copied first, then the tables are read as of one later
//! moment. The journal had released every entry before the first of the copy, so the tables contain it. Every plain row
//! that an entry of the copy refers to was committed before the entry was acknowledged, so the tables contain it too. A
//! journal that is newer than its tables has no such guarantee, and a start refuses it
//! ([`crate::recovery::refuse_older_database`]).

mod check;
mod server;
mod snapshot;

pub use check::{
    Count, Orphans, TargetDatabase, count_rejected, counts, files_after, is_empty, orphans, referenced_files,
};
pub use server::{DatabaseServer, server};
pub use snapshot::{JournalPosition, Snapshot, State};
