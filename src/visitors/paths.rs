//! The paths of the door.

/// Where the door is.
pub const DOOR: &str = "/webchat/{publicKey}";

/// Where the desk's paths begin behind the door.
pub const DESK: &str = "/tickets";

/// Path of the widget's script behind the door.
pub const SCRIPT: &str = "/widget.js";

/// Path of the socket behind the door.
pub const SOCKET: &str = "/socket";
