//! Webchat: the actor of a visitor's session, and the watchers that push changes to visitors.

mod options;
mod session;
mod watch;

pub use options::option_title;
pub(crate) use session::CLIENT_IDS_MAX;
pub use session::identity::{Admit, Leave, Verify};
pub use session::pushes::{ALL_PUSH_BYTES_MAX, PUSH_BYTES_MAX, PUSHES_MAX, PushReceiver, PushSender, push_channel};
pub use session::sockets::{Attach, AttachedSocket, DisconnectReason, SOCKETS_MAX};
pub use session::{End, MarkPresent, NewSession, SendVisitorMessage, ShowSession, VisitorSession};
pub(crate) use session::{SessionMoved, SessionScope};
pub use watch::{Conversation, Push, ReceiptKind, StatusUpdate, VisitorActivity};
pub(crate) use watch::{PushToSession, Watchers};
