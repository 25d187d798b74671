//! Splits rows into parts that are small enough for one statement.

use std::io::{self, Write};

use serde::Serialize;

/// Splits rows into parts of at most `rows_max` rows and `bytes_max` bytes, unless a single row is larger.
pub(super) fn parts_of<'r, 'a, R: Serialize>(rows: &'r [&'a R], rows_max: usize, bytes_max: usize) -> Vec<&'r [&'a R]> {
    let mut parts = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (index, row) in rows.iter().enumerate() {
        let row_bytes = bytes_of(row);
        if index > from && (bytes + row_bytes > bytes_max || index - from >= rows_max) {
            parts.push(&rows[from..index]);
            (from, bytes) = (index, 0);
        }
        bytes += row_bytes;
    }
    if from < rows.len() {
        parts.push(&rows[from..]);
    }
    parts
}

/// The approximate size of a row: its JSON is no shorter than what is sent.
fn bytes_of(row: &impl Serialize) -> usize {
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail; a row that cannot be serialized counts up to the error.
    let _ = serde_json::to_writer(&mut counter, row);
    counter.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_contain_all_rows_in_order_within_both_limits() {
        let bytes_max = 1 << 10;
        let large = "x".repeat(bytes_max / 2);
        let rows = ["a", &large, "b", &large, &large, "c", "d"];
        let rows: Vec<&&str> = rows.iter().collect();
        let lengths = |rows_max| parts_of(&rows, rows_max, bytes_max).iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(lengths(usize::MAX), [3, 1, 3]);
        assert_eq!(lengths(2), [2, 2, 2, 1]);
        assert_eq!(parts_of::<&str>(&[], 2, bytes_max).len(), 0);
        let joined: Vec<&str> = parts_of(&rows, 2, bytes_max).concat().into_iter().copied().collect();
        assert_eq!(joined, rows.iter().map(|row| **row).collect::<Vec<_>>());
    }
}
