//! The database as operators run it: behind a network that forgets connections, with TLS, in a schema of its own,
//! behind a pooler, with settings that others have made.

mod link;
mod refused;
mod requirements;
mod tls;
mod writer;
