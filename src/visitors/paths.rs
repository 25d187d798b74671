//! The paths of the door.

/// Where the door is.
pub const DOOR: &str = "/webchat/{publicKey}";

/// What is behind it, for the figures.
pub const PATHS: [&str; 9] = [
    "/webchat/{publicKey}/widget.js",
    "/webchat/{publicKey}/config",
    "/webchat/{publicKey}/sessions",
    "/webchat/{publicKey}/session",
    "/webchat/{publicKey}/identify",
    "/webchat/{publicKey}/messages",
    "/webchat/{publicKey}/end",
    "/webchat/{publicKey}/socket",
    "/webchat/{publicKey}/tickets/{ticketId}/typing",
];

/// Where the desk's paths begin behind the door.
pub const DESK: &str = "/tickets";

/// Path of the widget's script behind the door.
pub const SCRIPT: &str = "/widget.js";

/// Path of the socket behind the door.
pub const SOCKET: &str = "/socket";
