//! Encodes rows for `COPY … FROM STDIN (FORMAT binary)`, the cheapest way to insert rows into PostgreSQL.
//!
//! The format: <https://www.postgresql.org/docs/15/sql-copy.html>, "Binary Format". A signature, then for each row the
//! number of its fields, and each field as its length and the bytes its type's `recv` function reads.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use crate::{Id, SessionId};

/// Signature, flags, and a header extension of length zero.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The end marker: a row with -1 fields.
const TRAILER: &[u8] = &(-1_i16).to_be_bytes();

/// Microseconds from 1970-01-01, the Unix epoch, to 2000-01-01, PostgreSQL's.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// Version byte before every `jsonb` value.
const JSONB_VERSION: u8 = 1;

/// Bytes per sent chunk: large enough to amortize the packet, small enough for the CPU cache.
const CHUNK_BYTES: usize = 256 * 1024;

/// A field that can be copied.
pub(crate) trait Field {
    /// Appends the value's bytes; returns false for null.
    fn write(&self, to: &mut Vec<u8>) -> bool;
}

/// One row being written.
pub(crate) struct Row<'a>(&'a mut Vec<u8>);

impl Row<'_> {
    /// Appends the next field.
    pub(crate) fn field(&mut self, value: &(impl Field + ?Sized)) -> &mut Self {
        let offset = self.0.len();
        self.0.extend_from_slice(&(-1_i32).to_be_bytes());
        if value.write(self.0) {
            let length = i32::try_from(self.0.len() - offset - size_of::<i32>()).unwrap_or(i32::MAX);
            self.0[offset..offset + size_of::<i32>()].copy_from_slice(&length.to_be_bytes());
        }
        self
    }
}

/// Copies rows into the table and columns that `statement` names; `write_row` writes the `field_count` fields of a row.
///
/// # Errors
/// When PostgreSQL refuses a row: then none is inserted.
pub(crate) async fn copy<T: Sync>(
    db: &mut PgConnection,
    statement: &str,
    field_count: i16,
    rows: &[&T],
    write_row: impl Fn(&T, &mut Row<'_>) + Sync,
) -> Result<(), sqlx::Error> {
    let mut copy = db.copy_in_raw(statement).await?;
    let mut bytes = Vec::with_capacity(CHUNK_BYTES * 2);
    bytes.extend_from_slice(HEADER);
    for row in rows {
        bytes.extend_from_slice(&field_count.to_be_bytes());
        write_row(row, &mut Row(&mut bytes));
        if bytes.len() >= CHUNK_BYTES {
            copy.send(bytes.as_slice()).await?;
            bytes.clear();
        }
    }
    bytes.extend_from_slice(TRAILER);
    copy.send(bytes.as_slice()).await?;
    copy.finish().await?;
    Ok(())
}

impl Field for i64 {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        to.extend_from_slice(&self.to_be_bytes());
        true
    }
}

impl Field for i32 {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        to.extend_from_slice(&self.to_be_bytes());
        true
    }
}

impl Field for i16 {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        to.extend_from_slice(&self.to_be_bytes());
        true
    }
}

impl Field for str {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        to.extend_from_slice(self.as_bytes());
        true
    }
}

impl Field for String {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        self.as_str().write(to)
    }
}

impl<T: Field + ?Sized> Field for &T {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        (**self).write(to)
    }
}

impl Field for DateTime<Utc> {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        (self.timestamp_micros() - POSTGRES_EPOCH_US).write(to)
    }
}

impl Field for Value {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        to.push(JSONB_VERSION);
        // A value can always be serialized, and writing to memory cannot fail.
        serde_json::to_writer(to, self).is_ok()
    }
}

impl<T: Field> Field for Option<T> {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        self.as_ref().is_some_and(|value| value.write(to))
    }
}

impl<N> Field for Id<N> {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        self.0.write(to)
    }
}

impl Field for SessionId {
    fn write(&self, to: &mut Vec<u8>) -> bool {
        self.0.write(to)
    }
}
