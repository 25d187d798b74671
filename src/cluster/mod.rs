//! This process as one of many, in two halves.
//!
//! **The member** joins, shows that it is there, takes over from those that are not, and gives and takes slots. What decides
//! is in PostgreSQL ([`hotline_persistence::cluster`]).
//!
//! **The edge** answers a request that may come to any process: it finds whose the request is (`whose`), looks up who serves
//! that company, and hands the request on as it came (`forward`), over a listener that only members are believed at
//! (`signed`). It decides nothing: an owner that is none says so before it has begun, and then the edge looks again. What the
//! edge promises:
//!
//! - a request that may have begun is sent once, unless its repetition is safe: a read, or a call with an idempotency key;
//! - `503` is answered only when nothing was changed. Where nobody knows, the connection ends without an answer, as it does
//!   when a process is killed;
//! - nothing that memory holds is shown without the lease.
//!
//! A process alone has neither: each request asks one `Option`, and goes on.

mod around;
mod body;
mod edge;
mod forward;
mod leased;
mod link;
mod member;
mod observer;
pub mod planner;
mod relay;
mod signed;
#[cfg(test)]
mod tests;
mod whose;

pub use around::Around;
pub use edge::Edge;
pub use member::{Leave, Member, Parts};
