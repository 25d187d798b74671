//! How a channel reaches its provider, without knowing how the provider is spoken to.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hotline_persistence::tables::channels::{ChannelRow, ChannelType, Secret};
use hotline_persistence::tables::messages::{MessageError, MessageRow};
use hotline_persistence::{ChannelId, CompanyId};

/// The way of messages to the providers.
pub trait Provider: Send + Sync + 'static {
    /// Hands one message over. It ends within a time of its own, whatever the provider does. A caller that does not
    /// wait for the end does not know whether the provider has the message.
    fn send(&self, delivery: Delivery) -> BoxFuture<'static, Result<Accepted, SendFailure>>;

    /// Drops what is remembered of a company, for which nothing is being sent.
    fn forget_company(&self, company: CompanyId);
}

/// A message and where it goes.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// As whom it is sent.
    pub account: Arc<Account>,
    /// The recipient, as the provider addresses them: a number, or an id of the provider.
    pub to: String,
    /// What is sent.
    pub message: Arc<MessageRow>,
}

/// A channel as its provider knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The tenant.
    pub company: CompanyId,
    /// The channel.
    pub channel: ChannelId,
    /// What the provider speaks.
    pub kind: ChannelType,
    /// The phone number's id, or the page's.
    pub id: String,
    /// What proves that the company may speak for it.
    pub access_token: Secret,
    /// Where the provider is called, when it is not the installation's usual address.
    pub provider_url: Option<String>,
}

impl Account {
    /// The account of a channel; none when it has no provider, or cannot be spoken for with what it has.
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
        })
    }
}

/// Bytes of an id that a provider gives to a message, to a file or to somebody: theirs have up to two hundred. Two longer
/// ones would not fit an index together.
pub const PROVIDER_ID_BYTES_MAX: usize = 512;

/// Characters of a provider's words that are kept.
const PROVIDER_WORDS_CHARACTERS_MAX: usize = 2000;

/// The provider has the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// What the provider calls it. None when its answer could not be read: the message is taken all the same, and
    /// sending it again would double it.
    pub provider_message_id: Option<String>,
}

impl Accepted {
    /// With an id that can be stored, or none. The message is taken all the same: to fail it, or to send it again, would
    /// be wrong.
    pub(crate) fn storable(self) -> Self {
        let is_id = |id: &String| !id.is_empty() && id.len() <= PROVIDER_ID_BYTES_MAX && !id.contains('\0');
        let given = self.provider_message_id;
        if let Some(bytes) = given.as_ref().filter(|id| !is_id(id)).map(String::len) {
            tracing::warn!(bytes, "a provider calls a message what is no id; its statuses will not be known");
        }
        Self { provider_message_id: given.filter(is_id) }
    }
}

impl SendFailure {
    /// In words that can be stored.
    pub(crate) fn storable(self) -> Self {
        match self {
            Self::Retry { reason, after } => Self::Retry { reason: words(&reason), after },
            Self::Failed(MessageError { code, message }) => {
                Self::Failed(MessageError { code: words(&code), message: words(&message) })
            }
            Self::TokenRefused { reason } => Self::TokenRefused { reason: words(&reason) },
            paced @ (Self::ChannelPaced { .. } | Self::RecipientPaced { .. }) => paced,
        }
    }
}

fn words(told: &str) -> String {
    told.chars().filter(|character| *character != '\0').take(PROVIDER_WORDS_CHARACTERS_MAX).collect()
}

/// Why a message was not handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendFailure {
    /// The provider was not there, or not able: worth another try.
    Retry {
        /// What happened, for the log and for the message's error if it is given up.
        reason: String,
        /// Not before this time has passed.
        after: Option<Duration>,
    },
    /// The whole channel sends too fast: nothing of it is taken for a while.
    ChannelPaced {
        /// Not before this time has passed.
        after: Option<Duration>,
    },
    /// This recipient receives too fast; the others are not concerned.
    RecipientPaced {
        /// Not before this time has passed.
        after: Option<Duration>,
    },
    /// The provider does not take this message, now or later.
    Failed(MessageError),
    /// The channel's token is not accepted: nothing can be sent before it is renewed.
    TokenRefused {
        /// What the provider said.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_says_is_stored_whatever_it_is() {
        let named = |id: &str| Accepted { provider_message_id: Some(id.to_owned()) }.storable().provider_message_id;
        let longest = "x".repeat(PROVIDER_ID_BYTES_MAX);
        assert_eq!(named(&longest), Some(longest.clone()));
        for no_id in ["", "a\0b", &format!("{longest}x"), &"é".repeat(PROVIDER_ID_BYTES_MAX / 2 + 1)] {
            assert_eq!(named(no_id), None, "{no_id:?}");
        }
        let long = format!("a\0{}", "é".repeat(3000));
        let kept = format!("a{}", "é".repeat(PROVIDER_WORDS_CHARACTERS_MAX - 1));
        let failed = SendFailure::Failed(MessageError { code: "1\0".to_owned(), message: long.clone() });
        let error = MessageError { code: "1".to_owned(), message: kept.clone() };
        assert_eq!(failed.storable(), SendFailure::Failed(error));
        let refused = SendFailure::TokenRefused { reason: long.clone() };
        assert_eq!(refused.storable(), SendFailure::TokenRefused { reason: kept.clone() });
        let retry = SendFailure::Retry { reason: long, after: None };
        assert_eq!(retry.storable(), SendFailure::Retry { reason: kept, after: None });
    }
}
