//! The database as operators have it: behind a network that forgets connections, with TLS, in a schema of its own, behind a
//! pooler, with settings of others.

mod link;
mod refused;
mod requirements;
mod tls;
mod writer;
