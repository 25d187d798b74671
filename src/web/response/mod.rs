//! What a response contains: errors, envelopes, pages, and their schemas in the API document.

pub mod compression;
pub mod cursor;
pub mod embedded_file;
pub mod error;
pub mod head;
pub mod methods;
pub mod reply;
pub mod schema;
