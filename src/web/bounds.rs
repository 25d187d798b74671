//! Limits of every body.

/// Bytes of a JSON body.
pub const JSON_BYTES_MAX: usize = 1024 * 1024;

/// The part that files come in, once for each.
pub const FILES_PART: &str = "medias";
