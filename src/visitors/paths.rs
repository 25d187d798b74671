//! The paths of the door.

/// The path of the door.
pub const DOOR: &str = "/webchat/{publicKey}";

/// The prefix of the desk's paths behind the door.
pub const DESK: &str = "/tickets";

/// Path of the widget's script behind the door.
pub const SCRIPT: &str = "/widget.js";

/// Path of the socket behind the door.
pub const SOCKET: &str = "/socket";
