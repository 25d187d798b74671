//! Webchat: the actor of one visitor's session.

mod identity;
mod options;
mod session;
mod sockets;
mod watch;

pub use identity::{Admit, Leave, Verify};
pub use options::chosen;
pub(crate) use session::CLIENT_IDS_MAX;
pub(crate) use session::VisitorTokens;
pub use session::{End, NewSession, Say, Seen, ShowSession, VisitorSession};
pub use sockets::{Attach, Attached, PUSHES_MAX, SOCKETS_MAX};
pub use watch::{Conversation, Doing, Moved, Push, Stage};
pub(crate) use watch::{Told, Watchers};
