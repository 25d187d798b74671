//! Middleware, extractors and response types that all handlers share.

pub mod addresses;
pub mod amounts;
pub mod auth;
pub mod body;
pub mod body_scheduler;
pub mod bounds;
pub mod calendar;
pub mod channel_values;
pub mod compression;
pub mod cursor;
pub mod embedded_file;
pub mod error;
pub mod fields;
pub mod form;
pub mod hardening;
pub mod head;
pub mod idempotency;
pub mod if_match;
pub mod keyed_limit;
pub mod methods;
pub mod modules;
pub mod origin;
pub mod origins;
pub mod params;
mod part_heads;
pub mod passwords;
pub mod permissions;
pub mod rate;
pub mod reply;
pub mod request_id;
pub mod response_memory;
pub mod schema;
pub mod state;
pub mod values;
pub mod wire;
pub mod wrong_tokens;

pub use auth::Caller;
pub use body::Body;
pub use error::{ApiError, ApiResult, OutcomeUnknown};
pub use fields::{Fields, Input, Patch};
pub use form::BodyWithFiles;
pub use idempotency::Idempotency;
pub use if_match::IfMatch;
pub use params::{Filter, Params, PathId, Query, QueryParams};
pub use reply::{
    Accepted, CachedJson, Confidential, Created, HasSecrets, Json, NoContent, Page, Reply, Tagged, Versioned,
};
pub use state::WebState;
