//! The frames of the socket: each is a JSON object with a `type`.

use chrono::{DateTime, Utc};
use hotline_actors::webchat::{ReceiptKind, StatusUpdate};
use hotline_persistence::tables::messages::{Direction, MessageStatus};
use hotline_persistence::{MessageId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::visitors::view::{AgentView, MessageView, SessionView};

/// Frames from the server.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum ServerFrame {
    Hello { session: SessionView, available: bool, heartbeat_s: u64 },
    Message { message: Box<MessageView> },
    CaughtUp { last_id: Option<MessageId> },
    Status { direction: Direction, status: MessageStatus, up_to: MessageId, at: Timestamp },
    Typing { typing: bool, agent: Option<AgentView> },
    Presence { available: bool },
    Ended { ended_at: Timestamp },
    Ping,
}

impl From<StatusUpdate> for ServerFrame {
    fn from(StatusUpdate { kind, up_to, at }: StatusUpdate) -> Self {
        let (direction, status) = match kind {
            ReceiptKind::Delivered => (Direction::Outbound, MessageStatus::Delivered),
            ReceiptKind::ReadByContact => (Direction::Outbound, MessageStatus::Read),
            ReceiptKind::ReadByCompany => (Direction::Inbound, MessageStatus::Read),
        };
        Self::Status { direction, status, up_to, at: at.into() }
    }
}

impl ServerFrame {
    pub(super) fn ended(at: DateTime<Utc>) -> Self {
        Self::Ended { ended_at: at.into() }
    }
}

/// Frames from the browser.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum ClientFrame {
    /// The newest message the browser has.
    After {
        #[serde(default)]
        id: Option<MessageId>,
    },
    /// The visitor is typing, or has stopped.
    Typing { typing: bool },
    /// The visitor has seen the messages up to this one.
    Seen { up_to: MessageId },
    /// The answer to a ping.
    Pong,
    /// A type that a later release may define.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_frame_is_parsed_or_refused() {
        let parsed = |text: &str| serde_json::from_str::<ClientFrame>(text).ok();
        assert_eq!(parsed(r#"{"type":"after","id":7}"#), Some(ClientFrame::After { id: Some(MessageId::new(7)) }));
        assert_eq!(parsed(r#"{"type":"after","id":null}"#), Some(ClientFrame::After { id: None }));
        assert_eq!(parsed(r#"{"type":"after"}"#), Some(ClientFrame::After { id: None }));
        assert_eq!(
            parsed(r#"{"type":"seen","upTo":7,"more":[1]}"#),
            Some(ClientFrame::Seen { up_to: MessageId::new(7) })
        );
        assert_eq!(parsed(r#"{"type":"pong","at":1}"#), Some(ClientFrame::Pong));
        assert_eq!(parsed(r#"{"type":"wave","hand":"left"}"#), Some(ClientFrame::Unknown));
        for refused in ["", "[]", "7", "{}", r#"{"type":7}"#, r#"{"type":"seen"}"#, r#"{"type":"after","id":"7"}"#] {
            assert_eq!(parsed(refused), None, "{refused}");
        }
    }

    #[test]
    fn frames_have_the_names_of_the_protocol() {
        let text = |frame: &ServerFrame| serde_json::to_string(frame).expect("json");
        assert_eq!(text(&ServerFrame::Ping), r#"{"type":"ping"}"#);
        assert_eq!(
            text(&ServerFrame::CaughtUp { last_id: Some(MessageId::new(3)) }),
            r#"{"type":"caughtUp","lastId":3}"#
        );
        let at = DateTime::from_timestamp_millis(1_700_000_000_000).expect("time");
        let read = ServerFrame::from(StatusUpdate { kind: ReceiptKind::ReadByCompany, up_to: MessageId::new(3), at });
        assert_eq!(
            text(&read),
            r#"{"type":"status","direction":"inbound","status":"read","upTo":3,"at":"2023-11-14T22:13:20.000Z"}"#
        );
    }
}
