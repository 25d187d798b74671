//! Everything that stands before a handler, and what every answer has in common.

pub mod auth;
pub mod body;
pub mod envelope;
pub mod error;
pub mod fields;
pub mod page;
pub mod params;
pub mod request_id;
pub mod values;

pub use auth::Caller;
pub use body::Body;
pub use envelope::{data, listed};
pub use error::{Answer, ApiError};
pub use fields::{Fields, Input, Patch};
pub use page::PageQuery;
pub use params::{Params, PathId};
