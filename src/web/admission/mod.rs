//! Which requests are admitted, by token, rate, permission and idempotency key; and the middleware around every
//! handler.

pub mod auth;
pub mod caller;
pub mod hardening;
pub mod idempotency;
pub mod modules;
pub mod passwords;
pub mod permissions;
pub mod rate;
pub mod request_id;
pub mod response_memory;
pub mod wrong_tokens;
