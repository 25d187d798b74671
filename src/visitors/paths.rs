//! The paths of the visitor API.

/// The prefix of every path.
pub const PATH: &str = "/webchat/{publicKey}";

/// The prefix, below [`PATH`], of the paths for agents, who have a company's token.
pub const AGENT_PATHS: &str = "/tickets";

/// The widget's script, below [`PATH`].
pub const SCRIPT: &str = "/widget.js";

/// The visitor's socket, below [`PATH`].
pub const SOCKET: &str = "/socket";
