//! This process as a member of a cluster, in two halves.
//!
//! **The member** joins, sends heartbeats, takes over from dead processes, and hands slots over to others or
//! receives theirs. The authority is PostgreSQL ([`hotline_persistence::cluster`]).
//!
//! **The edge** answers a request that may arrive at any process: it determines the request's company
//! (`request_scope`), looks up which process serves that company, and forwards the request unchanged (`forward`) to a
//! listener that trusts only members (`signer`). The edge decides nothing: a process that is not the owner responds
//! `421` before it starts the request, and the edge then rereads the placement. The edge guarantees:
//!
//! - a request that may have been started is sent only once, unless repeating it is safe: a read, or a call with an
//!   idempotency key;
//! - `503` is answered only when nothing was changed. If the outcome is unknown, the connection ends without a
//!   response, as it does when a process is killed;
//! - nothing from memory is sent without the lease.
//!
//! A standalone process has neither half; each of its requests only checks one `Option`.

mod body;
mod edge;
mod edge_service;
mod forward;
mod leased_body;
mod link;
mod member;
mod observer;
pub mod planner;
mod reach;
mod relay;
mod request_scope;
mod signer;
#[cfg(test)]
mod tests;

pub use edge::Edge;
pub use edge_service::EdgeServiceFactory;
pub use member::{DropCompany, Member, MemberDeps, QuiesceCompanies};
