//! The provider's ids of messages that early statuses have named. A status names a message if it returns our id, which
//! was sent with the message. If the answer to a send was lost, such a status shows that the provider has the message.

use std::time::Duration;

use hotline_persistence::{CompanyId, MessageId};
use tokio::sync::watch;

use super::ChannelKey;
use crate::ttl_cache::TtlCache;

/// Maximum messages in memory, some 150 bytes each: those whose first status came before the answer to their send.
const NAMED_MAX: usize = 50_000;

/// How long a message is remembered: longer than the longest pause before a retry that a provider may demand, an hour,
/// because the status may name the message during that pause.
const NAMED_FOR: Duration = Duration::from_secs(2 * 3600);

/// What statuses name: one send of a message of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NamedSend {
    /// The message, or only its file if its text is sent separately.
    Message(MessageId),
    /// The text that follows the file. Instead of a provider's id it has a key of ours ([`super::text_key`]).
    Text(MessageId),
}

/// The messages that early statuses have named.
pub(crate) struct NamedMessages {
    provider_ids: TtlCache<(ChannelKey, NamedSend), String>,
    /// Notified when a message was named.
    changes: watch::Sender<()>,
}

impl Default for NamedMessages {
    fn default() -> Self {
        Self { provider_ids: TtlCache::new(NAMED_MAX, NAMED_FOR), changes: watch::Sender::new(()) }
    }
}

impl NamedMessages {
    /// Records that a status of the channel has named a send, with the provider's id of it.
    pub(crate) fn record(&self, channel: ChannelKey, send: NamedSend, provider_message_id: &str) {
        self.provider_ids.insert((channel, send), provider_message_id.to_owned());
        self.changes.send_replace(());
    }

    /// The provider's id of a send, if a status has named it.
    pub(crate) fn provider_id(&self, channel: ChannelKey, send: NamedSend) -> Option<String> {
        self.provider_ids.get(&(channel, send))
    }

    /// The provider's id of a send as soon as a status has named it; `None` if none does within `time_max`.
    pub(crate) async fn wait_for_provider_id(
        &self,
        channel: ChannelKey,
        send: NamedSend,
        time_max: Duration,
    ) -> Option<String> {
        let mut changes = self.changes.subscribe();
        let wait = async {
            loop {
                let id = self.provider_id(channel, send);
                if id.is_some() || changes.changed().await.is_err() {
                    return id;
                }
            }
        };
        tokio::time::timeout(time_max, wait).await.ok().flatten()
    }

    /// Drops a company's messages.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let Self { provider_ids, changes: _ } = self;
        provider_ids.remove_where(|((owner, _), _)| *owner == company);
    }
}

#[cfg(test)]
mod tests {
    use hotline_persistence::ChannelId;

    use super::*;

    const PHONE: ChannelKey = (CompanyId::new(1), ChannelId::new(1));
    const OTHER: ChannelKey = (CompanyId::new(2), ChannelId::new(1));
    const MESSAGE: NamedSend = NamedSend::Message(MessageId::new(7));
    const TEXT: NamedSend = NamedSend::Text(MessageId::new(7));

    #[tokio::test]
    async fn a_wait_finds_the_status_that_came_before_or_during_it_on_its_own_channel_only() {
        let named = NamedMessages::default();
        assert_eq!(named.wait_for_provider_id(PHONE, MESSAGE, Duration::ZERO).await, None);
        let wait = named.wait_for_provider_id(PHONE, MESSAGE, Duration::from_secs(600));
        let record = async {
            named.record(OTHER, MESSAGE, "wamid.other");
            named.record(PHONE, NamedSend::Message(MessageId::new(8)), "wamid.8");
            named.record(PHONE, TEXT, "7 text");
            tokio::task::yield_now().await;
            named.record(PHONE, MESSAGE, "wamid.7");
        };
        assert_eq!(tokio::join!(wait, record).0.as_deref(), Some("wamid.7"));
        assert_eq!(named.wait_for_provider_id(PHONE, MESSAGE, Duration::ZERO).await.as_deref(), Some("wamid.7"));
        named.forget_company(PHONE.0);
        assert_eq!(named.wait_for_provider_id(PHONE, MESSAGE, Duration::ZERO).await, None);
        assert_eq!(named.wait_for_provider_id(OTHER, MESSAGE, Duration::ZERO).await.as_deref(), Some("wamid.other"));
    }
}
