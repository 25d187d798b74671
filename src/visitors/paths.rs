//! The paths of a webchat.

/// The path of a webchat.
pub const PATH: &str = "/webchat/{publicKey}";

/// The prefix of agents' paths, below the path of the webchat.
pub const AGENT_PATHS: &str = "/tickets";

/// Path of the widget's script, below the path of the webchat.
pub const SCRIPT: &str = "/widget.js";

/// Path of the socket, below the path of the webchat.
pub const SOCKET: &str = "/socket";
