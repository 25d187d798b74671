//! The size limit of request bodies, and the name of the parts with files.

/// Maximum size of a JSON body in bytes, unless its `Input` sets another.
pub const JSON_BYTES_MAX: usize = 1024 * 1024;

/// The name of the form part that holds a file; it is repeated for each file.
pub const FILES_PART: &str = "medias";
