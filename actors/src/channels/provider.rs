//! How a channel reaches its provider, without knowing how the provider is spoken to.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hotline_persistence::tables::channels::{ChannelRow, ChannelType, Secret};
use hotline_persistence::tables::messages::{MessageError, MessageRow};
use hotline_persistence::{ChannelId, CompanyId};

/// Whoever hands messages over to the providers.
pub trait Provider: Send + Sync + 'static {
    /// Hands one message over. It ends within a time of its own, whatever the provider does. A caller that does not
    /// wait for the end does not know whether the provider has the message.
    fn send(&self, delivery: Delivery) -> BoxFuture<'static, Result<Accepted, SendFailure>>;
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

/// The provider has the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// What the provider calls it. None when its answer could not be read: the message is taken all the same, and
    /// sending it again would double it.
    pub provider_message_id: Option<String>,
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
