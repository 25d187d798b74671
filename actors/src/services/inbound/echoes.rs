//! Echoes: a provider's reports of messages that the company has sent. Messages from another app are stored; our own,
//! sent through Hotline, are known already, even if the echo comes before the provider's answer.

use std::sync::Arc;

use hotline_persistence::tables::messages::{self, DeliveryStatus, Direction, MessageOrigin, MessageRow};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{ChannelId, CompanyId, ContactId, MessageId};

use super::{Inbound, InboundMessage, is_receive_conflict};
use crate::Refusal;
use crate::base::retry::on_conflict;
use crate::channels::{Inbox, MessageLock, SentPart};
use crate::clock::now;
use crate::seen::Membership;
use crate::tickets::{Author, Execute, ReceiveEcho};

/// A message that an account has sent to a contact.
#[derive(Clone, Debug)]
pub struct EchoMessage {
    /// The message. Here `from` is its recipient, the contact.
    pub message: InboundMessage,
    /// The app in which it was written.
    pub origin: MessageOrigin,
    /// The provider's id of the whole message; this may be only one of its files.
    pub whole_id: String,
    /// Our own id of the message, if the provider returns it: the echo then names the message.
    pub names: Option<MessageId>,
    /// Whether it has a file or another attachment.
    pub has_attachment: bool,
}

/// What became of an echo.
#[derive(Debug)]
pub enum EchoOutcome {
    /// The company has written it in another app; it was stored as this message.
    Message(Box<MessageRow>),
    /// It was stored before.
    Repeated,
    /// It is a message that was sent through Hotline.
    Own,
}

impl Inbound {
    /// Receives a message that the company has written in another app, in the contact's open ticket or a new one.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be received now: the provider should retry.
    pub async fn receive_echo(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        echo: EchoMessage,
    ) -> Result<EchoOutcome, Refusal> {
        if self.inboxes.own_sends.is_own((company, channel), &echo.whole_id) {
            return Ok(EchoOutcome::Own);
        }
        let inbox = self.inbox(company, channel).await?;
        let id = echo.message.message_id.clone();
        let lock = inbox.lock(&id).await;
        let is_known =
            lock.membership(None) == Membership::Present || self.find_message(company, channel, &id).await?.is_some();
        if is_known {
            lock.record_received(now());
            return Ok(EchoOutcome::Repeated);
        }
        if self.is_own_echo(company, channel, &inbox, &echo).await? {
            self.settle_lost_answer(company, channel, &echo).await?;
            return Ok(EchoOutcome::Own);
        }
        let row = self.receive_from_app(company, channel, echo, &lock).await?;
        lock.record_received(row.created_at);
        self.inboxes.record_provider_ids((company, channel), vec![(id, (&row).into())]);
        Ok(EchoOutcome::Message(Box::new(row)))
    }

    /// Settles a campaign's message if the provider's answer to it was lost: the echo shows that it was sent.
    async fn settle_lost_answer(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        echo: &EchoMessage,
    ) -> Result<(), Refusal> {
        let Some(id) = echo.names else { return Ok(()) };
        if self.find_message(company, channel, &echo.whole_id).await?.is_some() {
            return Ok(());
        }
        let row = self.base.reads().message(company, id).await?;
        if !row.is_some_and(|row| row.channel_id == channel && row.source == Source::Campaign) {
            return Ok(());
        }
        let at = echo.message.written_at.unwrap_or_else(now);
        self.record_status(company, channel, &echo.whole_id, Some(id), DeliveryStatus::Sent, at).await
    }

    async fn receive_from_app(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        echo: EchoMessage,
        lock: &MessageLock,
    ) -> Result<MessageRow, Refusal> {
        let (recipient, message) = self.build_receive_command(company, channel, echo.message).await;
        let written_at = message.written_at;
        let command = Execute::from(ReceiveEcho { message, origin: echo.origin });
        let attempt = || async {
            let contact = self.find_or_create_contact(company, channel, &recipient, written_at).await?;
            self.attempt_in_conversation(company, channel, contact.id, &command, Author::OTHER_APP).await
        };
        let received = on_conflict(self.contacts.cache(), company, attempt, is_receive_conflict).await;
        if received.is_err() {
            lock.record_uncertain(now());
        }
        received
    }

    /// Whether an echo with an unknown id is of a message that was sent through Hotline. On a phone channel none is:
    /// its provider reports only messages that were written in its own app.
    async fn is_own_echo(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        inbox: &Inbox,
        echo: &EchoMessage,
    ) -> Result<bool, Refusal> {
        if self.has_phone(company, channel)? {
            return Ok(false);
        }
        let key = (company, channel);
        let contact = self.find_contact(company, channel, &echo.message.from).await?;
        let text = (!echo.has_attachment).then(|| echo.message.body.as_deref().unwrap_or_default());
        let part = text.map_or(SentPart::Attachment, SentPart::text);
        if self.inboxes.own_sends.claim(key, contact, &echo.whole_id, &part, echo.names) {
            return Ok(true);
        }
        let Some(contact) = contact else { return Ok(false) };
        let is_own = match echo.names {
            Some(id) => self.is_own_id(company, (channel, contact), id).await?,
            None => self.was_sent_before(company, (channel, contact), inbox, echo, &part).await?,
        };
        if is_own {
            self.inboxes.own_sends.record_own(key, &echo.whole_id);
        }
        Ok(is_own)
    }

    /// Whether this id is that of a message sent to this contact through Hotline. It may also be an id of another app.
    async fn is_own_id(
        &self,
        company: CompanyId,
        (channel, contact): (ChannelId, ContactId),
        id: MessageId,
    ) -> Result<bool, Refusal> {
        let row = messages::find(self.base.reads().tables(company).await?, company, id).await?;
        let is_ours = |row: &MessageRow| {
            (row.channel_id, row.contact_id, row.direction) == (channel, contact, Direction::Outbound)
                && row.origin().is_none()
        };
        Ok(row.as_ref().is_some_and(is_ours))
    }

    /// Whether an earlier process may have sent a message with the same content: the provider's id of the message may
    /// have been lost with that process.
    async fn was_sent_before(
        &self,
        company: CompanyId,
        conversation: (ChannelId, ContactId),
        inbox: &Inbox,
        echo: &EchoMessage,
        part: &SentPart,
    ) -> Result<bool, Refusal> {
        let Some(at) = echo.message.written_at.filter(|at| *at <= inbox.loaded_at) else { return Ok(false) };
        let text = match part {
            SentPart::Text(text) => Some(text.as_str()),
            SentPart::Attachment => None,
        };
        let db = self.base.reads().tables(company).await?;
        Ok(messages::may_have_sent(db, company, conversation, text, at).await?)
    }
}
