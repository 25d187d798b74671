//! Everything that stands before a handler, and what every answer has in common.

pub mod amounts;
pub mod aside;
pub mod auth;
pub mod body;
pub mod bounds;
pub mod calendar;
pub mod compression;
pub mod error;
pub mod fields;
pub mod form;
pub mod front;
pub mod head;
pub mod idempotency;
pub mod methods;
pub mod modules;
pub mod origin;
pub mod params;
pub mod passwords;
pub mod permissions;
pub mod rate;
pub mod reply;
pub mod request_id;
pub mod schema;
pub mod seats;
pub mod values;
pub mod wire;
pub mod wrong_tokens;

pub use auth::Caller;
pub use body::Body;
pub use error::{ApiError, ApiResult};
pub use fields::{Fields, Input, Patch};
pub use form::BodyWithFiles;
pub use front::Front;
pub use idempotency::Idempotency;
pub use params::{Filter, Params, PathId, Query, QueryParams};
pub use reply::{Accepted, CachedJson, Confidential, Created, Json, NoContent, Page, Reply};
