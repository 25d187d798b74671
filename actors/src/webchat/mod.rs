//! Webchat: the actor of one visitor's session.

mod options;
mod session;

pub use options::chosen;
pub(crate) use session::CLIENT_IDS_MAX;
pub use session::{End, NewSession, Say, Seen, ShowSession, VisitorSession};
