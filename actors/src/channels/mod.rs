//! Channels: the actor through which every conversation of a channel begins.

mod sender;

pub use sender::{ChannelSender, OpenAnd};
