//! What every request passes through, from the socket to the handler and back. Imports go one way: [`admission`] uses
//! [`request`], which uses [`connections`], which uses [`response`].

pub mod admission;
pub mod connections;
pub mod request;
pub mod response;
pub mod state;
pub mod tenant;

pub use admission::caller::Caller;
pub use admission::idempotency::Idempotency;
pub use request::body::Body;
pub use request::fields::{Fields, Input, Patch};
pub use request::params::{Filter, Params, PathId, Query};
pub use response::error::{ApiError, ApiResult};
pub use response::reply::{Created, Json, NoContent, Page};
