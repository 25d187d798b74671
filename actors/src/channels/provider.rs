//! The interface to a channel's provider, independent of the provider's protocol.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hotline_persistence::controls;
use hotline_persistence::tables::channels::{ChannelRow, ChannelType, Secret};
use hotline_persistence::tables::contacts::identities::IdentityKind;
use hotline_persistence::tables::messages::{MessageError, MessageRow};
use hotline_persistence::{ChannelId, CompanyId};

/// Sends messages to providers.
pub trait Provider: Send + Sync + 'static {
    /// Sends one message. The future has its own timeout. If a caller drops the future, it is unknown whether the
    /// provider has the message.
    fn send(&self, delivery: Delivery) -> BoxFuture<'static, Result<Accepted, SendFailure>>;

    /// Whether the text of a message is sent separately after its file, because the provider takes no caption with it.
    fn sends_text_separately(&self, kind: ChannelType, message: &MessageRow) -> bool;

    /// Drops cached data of a company for which nothing is being sent.
    fn forget_company(&self, company: CompanyId);
}

/// A message and its recipient.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The sending account.
    pub account: Arc<Account>,
    /// The recipient: a phone number, or the provider's id of a person or group.
    pub to: String,
    /// Whether `to` is a phone number or an id.
    pub to_kind: IdentityKind,
    /// The message.
    pub message: Arc<MessageRow>,
    /// Set once the provider has accepted the message's file, in an earlier attempt or in this one, if its text is sent
    /// separately. A later attempt sends only the text.
    pub file_accepted: Arc<OnceLock<Accepted>>,
}

/// A channel's account with its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The company.
    pub company: CompanyId,
    /// The channel.
    pub channel: ChannelId,
    /// The type of the channel, which determines the protocol.
    pub kind: ChannelType,
    /// The provider's id of the phone number or of the page.
    pub id: String,
    /// The credential of the account.
    pub access_token: Secret,
    /// The provider's base URL, if it differs from the installation's default.
    pub provider_url: Option<String>,
    /// Whether `provider_url` is the operator's, set on the command line: it may then be in a private network.
    pub is_url_from_operator: bool,
}

impl Account {
    /// The account of a channel; `None` if the channel has no provider or its settings are incomplete.
    pub fn of(channel: &ChannelRow) -> Option<Self> {
        let settings = channel.settings().ok()?;
        let id = match channel.kind {
            ChannelType::Whatsapp => settings.phone_number_id?,
            ChannelType::Messenger | ChannelType::Instagram => settings.page_id?,
            ChannelType::Webchat => return None,
        };
        Some(Self {
            company: channel.company_id,
            channel: channel.id,
            kind: channel.kind,
            id,
            access_token: settings.access_token?,
            provider_url: settings.provider_url,
            is_url_from_operator: settings.is_provider_url_from_operator,
        })
    }
}

/// Maximum bytes of an id that a provider assigns to a message, a file or a person: real ones have up to two hundred.
/// Two ids must fit into one entry of an index, some 2,700 bytes.
pub const PROVIDER_ID_BYTES_MAX: usize = 512;

/// Maximum characters of a provider's text that are stored.
const PROVIDER_TEXT_CHARACTERS_MAX: usize = 2000;

/// The provider has the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The provider's id of the message. `None` if the answer could not be read: the message is accepted even so, and
    /// sending it again would duplicate it.
    pub provider_message_id: Option<String>,
    /// The provider's id of the text that was sent after the file as a message of its own.
    pub text_message_id: Option<String>,
}

impl Accepted {
    /// Drops ids that cannot be stored. The message is accepted even so: it must neither fail nor be sent again.
    pub(crate) fn storable(self) -> Self {
        let is_storable =
            |id: &String| !id.is_empty() && id.len() <= PROVIDER_ID_BYTES_MAX && !controls::contains_refused(id);
        let id = self.provider_message_id;
        if let Some(bytes) = id.as_ref().filter(|id| !is_storable(id)).map(String::len) {
            tracing::warn!(
                bytes,
                "provider returned an invalid message id; the message will receive no status updates"
            );
        }
        Self { provider_message_id: id.filter(is_storable), text_message_id: self.text_message_id.filter(is_storable) }
    }
}

/// Why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendFailure {
    /// The provider could not be reached, or could not accept the message now: a retry may succeed.
    Retry {
        /// What happened, for the log and for the message's error if it is given up.
        reason: String,
        /// Retry no earlier than after this time.
        after: Option<Duration>,
    },
    /// It is unknown whether the provider has the message: the request was sent, but no answer was received.
    Unknown {
        /// What happened.
        reason: String,
        /// Whether only the message's file is in doubt, because its text is sent separately.
        is_file_only: bool,
        /// Whether a later status of the provider may carry our id of the message, and so end the doubt.
        may_be_named: bool,
    },
    /// The whole channel sends too fast, and is rate limited for a while.
    ChannelRateLimited {
        /// Retry no earlier than after this time.
        after: Option<Duration>,
    },
    /// This recipient receives too many messages; other recipients are not affected.
    RecipientRateLimited {
        /// Retry no earlier than after this time.
        after: Option<Duration>,
    },
    /// The provider rejects this message permanently.
    Failed(MessageError),
    /// The channel's token is rejected: nothing can be sent before it is renewed.
    TokenRefused {
        /// The provider's message.
        reason: String,
    },
}

impl SendFailure {
    /// Truncates the texts, and removes characters that cannot be stored.
    pub(crate) fn storable(self) -> Self {
        match self {
            Self::Retry { reason, after } => Self::Retry { reason: storable_text(&reason), after },
            Self::Unknown { reason, is_file_only, may_be_named } => {
                Self::Unknown { reason: storable_text(&reason), is_file_only, may_be_named }
            }
            Self::Failed(MessageError { code, message }) => {
                Self::Failed(MessageError { code: storable_text(&code), message: storable_text(&message) })
            }
            Self::TokenRefused { reason } => Self::TokenRefused { reason: storable_text(&reason) },
            without_text @ (Self::ChannelRateLimited { .. } | Self::RecipientRateLimited { .. }) => without_text,
        }
    }
}

fn storable_text(text: &str) -> String {
    text.chars().filter(|character| !controls::is_refused(*character)).take(PROVIDER_TEXT_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_texts_of_a_provider_are_made_storable() {
        let stored_id = |id: &str| {
            let accepted = Accepted { provider_message_id: Some(id.to_owned()), text_message_id: None };
            accepted.storable().provider_message_id
        };
        let longest = "x".repeat(PROVIDER_ID_BYTES_MAX);
        assert_eq!(stored_id(&longest), Some(longest.clone()));
        for invalid_id in ["", "a\0b", &format!("{longest}x"), &"é".repeat(PROVIDER_ID_BYTES_MAX / 2 + 1)] {
            assert_eq!(stored_id(invalid_id), None, "{invalid_id:?}");
        }
        let long = format!("a\0{}", "é".repeat(3000));
        let stored = format!("a{}", "é".repeat(PROVIDER_TEXT_CHARACTERS_MAX - 1));
        let failed = SendFailure::Failed(MessageError { code: "1\0".to_owned(), message: long.clone() });
        let error = MessageError { code: "1".to_owned(), message: stored.clone() };
        assert_eq!(failed.storable(), SendFailure::Failed(error));
        let refused = SendFailure::TokenRefused { reason: long.clone() };
        assert_eq!(refused.storable(), SendFailure::TokenRefused { reason: stored.clone() });
        let retry = SendFailure::Retry { reason: long, after: None };
        assert_eq!(retry.storable(), SendFailure::Retry { reason: stored, after: None });
    }
}
