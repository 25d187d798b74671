//! Why a socket ends, and the close reason for its browser.

use actix_http::ws::{CloseCode, CloseReason};
use chrono::{DateTime, Utc};
use hotline_actors::webchat::DisconnectReason;
use tokio::sync::watch;

/// Why a socket ends.
pub(super) enum End {
    /// The browser has disconnected or sent a close frame.
    Gone(Option<CloseReason>),
    Stopping,
    Binary,
    TooLarge,
    /// A frame violates the WebSocket protocol.
    Broken,
    /// A frame, or its absence, violates Hotline's protocol; with the description.
    Malformed(&'static str),
    Silent,
    SessionOver,
    /// The webchat, its company or the page's origin is no longer admitted.
    NotAdmitted,
    TooSlow,
    /// The session may continue in another process, or with another contact.
    Moved,
    TooManyFrames,
    /// An internal failure, for example of the session's actor.
    Lost,
}

impl End {
    pub(super) fn close_reason(self) -> Option<CloseReason> {
        let (code, description) = match self {
            Self::Gone(reason) => return reason,
            Self::Stopping => (CloseCode::Away, "the service is stopping"),
            Self::Binary => (CloseCode::Unsupported, "frames must be text"),
            Self::TooLarge => (CloseCode::Size, "the frame is too large"),
            Self::Broken => (CloseCode::Protocol, "invalid WebSocket frame"),
            Self::Malformed(description) => (CloseCode::Other(4400), description),
            Self::Silent => (CloseCode::Other(4408), "no heartbeat received"),
            Self::SessionOver => (CloseCode::Other(4410), "the session has ended"),
            Self::NotAdmitted => (CloseCode::Other(4403), "no longer admitted"),
            Self::TooSlow => (CloseCode::Other(4413), "read too slowly"),
            Self::Moved => (CloseCode::Restart, "reconnect after a random delay"),
            Self::TooManyFrames => (CloseCode::Other(4429), "too many frames"),
            Self::Lost => (CloseCode::Error, "try again"),
        };
        Some(CloseReason { code, description: Some(description.to_owned()) })
    }
}

/// Returns the reason once the session's actor closes the socket, or has failed.
pub(super) async fn wait_for_close(close: &mut watch::Receiver<Option<DisconnectReason>>) -> End {
    match close.wait_for(Option::is_some).await.map(|reason| *reason) {
        Ok(Some(DisconnectReason::Moved)) => End::Moved,
        Ok(Some(DisconnectReason::TooSlow)) => End::TooSlow,
        Ok(None) | Err(_) => End::Lost,
    }
}

/// Returns the time once the session has ended.
pub(super) async fn wait_for_end(ended: &mut watch::Receiver<Option<DateTime<Utc>>>) -> DateTime<Utc> {
    let at = ended.wait_for(Option::is_some).await.ok().and_then(|at| *at);
    match at {
        Some(at) => at,
        // The session's actor has ended, which closes the socket.
        None => std::future::pending().await,
    }
}
