//! Webchat: the actor of one visitor's session.

mod options;
mod session;
mod watch;

pub use options::chosen;
pub(crate) use session::CLIENT_IDS_MAX;
pub(crate) use session::SessionScope;
pub use session::identity::{Admit, Leave, Verify};
pub use session::pushes::{ALL_PUSH_BYTES_MAX, PUSH_BYTES_MAX, PUSHES_MAX, Pushed, Pushes, pushes};
pub use session::sockets::{Attach, Attached, DisconnectReason, SOCKETS_MAX};
pub use session::{End, NewSession, Seen, SendVisitorMessage, ShowSession, VisitorSession};
pub use watch::{Conversation, Moved, Push, Stage, VisitorActivity};
pub(crate) use watch::{PushToSession, Watchers};
