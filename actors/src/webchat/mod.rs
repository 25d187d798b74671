//! Webchat: the actor of one visitor's session.

mod options;
mod session;
mod watch;

pub use options::chosen;
pub(crate) use session::CLIENT_IDS_MAX;
pub(crate) use session::SessionScope;
pub use session::identity::{Admit, Leave, Verify};
pub use session::sockets::{Attach, Attached, CutReason, PUSHES_MAX, SOCKETS_MAX};
pub use session::{End, NewSession, Say, Seen, ShowSession, VisitorSession};
pub use watch::{Conversation, Doing, Moved, Push, Stage};
pub(crate) use watch::{Told, Watchers};
