//! Maps a provider's refusal to its consequence for the message, its recipient and its channel.
//!
//! A provider's code that is listed here decides before the HTTP status, since most refusals have status `400`.
//! Exceptions: `401`, and `429` for the codes of outages. <https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes>,
//! <https://developers.facebook.com/docs/messenger-platform/error-codes>

use hotline_actors::channels::SendFailure;
use hotline_persistence::tables::messages::MessageError;

use super::GraphError;

/// The access token has expired, was revoked or is invalid.
const INVALID_TOKEN: i64 = 190;

/// Rate limits: of the app (4), of the page (32, 613), of the business use case of a page (80001), an Instagram account
/// (80002), Messenger (80006) or a business account (80007), or the number's message throughput (130429).
/// <https://developers.facebook.com/docs/graph-api/overview/rate-limiting>
const CHANNEL_RATE_LIMITS: &[i64] = &[4, 32, 613, 80_001, 80_002, 80_006, 80_007, 130_429];

/// Too many messages from this number to this recipient.
const RECIPIENT_RATE_LIMIT: i64 = 131_056;

/// Outages of the provider: unknown (1), overloaded (2), temporary send failure of Messenger and Instagram (1200),
/// something went wrong (131000), service unavailable (131016), account in maintenance (131057), server unavailable
/// (133004).
const OUTAGES: &[i64] = &[1, 2, 1200, 131_000, 131_016, 131_057, 133_004];

impl From<GraphError> for SendFailure {
    fn from(error: GraphError) -> Self {
        let reason = error.to_string();
        let (status, code, is_transient, message, after) = match error {
            GraphError::Unreachable(_) | GraphError::Unanswered(_) => return Self::Retry { reason, after: None },
            // The URL stays forbidden until an administrator changes something, so the message fails at once.
            GraphError::Forbidden(_) => {
                let code = "ERR_PROVIDER_ADDRESS_FORBIDDEN".to_owned();
                return Self::Failed(MessageError { code, message: reason });
            }
            GraphError::Refused { status, code, is_transient, message, retry_after } => {
                (status, code, is_transient, message, retry_after)
            }
        };
        match (status, code) {
            (_, Some(INVALID_TOKEN)) | (401, _) => Self::TokenRefused { reason: message },
            (_, Some(RECIPIENT_RATE_LIMIT)) => Self::RecipientRateLimited { after },
            (_, Some(code)) if CHANNEL_RATE_LIMITS.contains(&code) => Self::ChannelRateLimited { after },
            (429, _) => Self::ChannelRateLimited { after },
            (_, Some(code)) if OUTAGES.contains(&code) => Self::Retry { reason, after },
            (408 | 500.., _) => Self::Retry { reason, after },
            _ if is_transient => Self::Retry { reason, after },
            (status, code) => {
                let code = code.map_or_else(|| status.to_string(), |code| code.to_string());
                Self::Failed(MessageError { code, message })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn failure(status: u16, code: Option<i64>) -> SendFailure {
        let (message, retry_after) = ("the reason".to_owned(), Some(Duration::from_secs(7)));
        GraphError::Refused { status, code, is_transient: false, message, retry_after }.into()
    }

    #[test]
    fn the_code_decides_before_the_status() {
        let after = Some(Duration::from_secs(7));
        for (status, code) in [(400, Some(130_429)), (400, Some(4)), (429, None), (429, Some(613))] {
            assert_eq!(failure(status, code), SendFailure::ChannelRateLimited { after }, "{status} {code:?}");
        }
        for code in [80_001, 80_002, 80_006, 80_007] {
            assert_eq!(failure(400, Some(code)), SendFailure::ChannelRateLimited { after }, "{code}");
        }
        for status in [400, 429] {
            assert_eq!(failure(status, Some(131_056)), SendFailure::RecipientRateLimited { after }, "{status}");
        }
        for (status, code) in [(401, None), (400, Some(190)), (401, Some(0))] {
            let failure = failure(status, code);
            assert_eq!(failure, SendFailure::TokenRefused { reason: "the reason".to_owned() }, "{status} {code:?}");
        }
        for (status, code) in
            [(500, None), (503, Some(131_016)), (400, Some(131_000)), (400, Some(1200)), (408, None), (502, Some(7))]
        {
            assert!(matches!(failure(status, code), SendFailure::Retry { .. }), "{status} {code:?}");
        }
        for (status, code, stored_code) in [(400, Some(131_026), "131026"), (404, None, "404"), (403, Some(10), "10")] {
            let error = MessageError { code: stored_code.to_owned(), message: "the reason".to_owned() };
            assert_eq!(failure(status, code), SendFailure::Failed(error), "{status} {code:?}");
        }
    }

    #[test]
    fn an_unreachable_provider_and_transient_errors_are_retried() {
        let unreachable = SendFailure::from(GraphError::Unreachable("no answer in time".to_owned()));
        assert!(matches!(unreachable, SendFailure::Retry { after: None, .. }), "{unreachable:?}");
        let message = "try later".to_owned();
        let transient =
            GraphError::Refused { status: 400, code: Some(9), is_transient: true, message, retry_after: None };
        assert!(matches!(transient.into(), SendFailure::Retry { .. }));
    }
}
