//! Inbound traffic: messages of contacts, and statuses that channels' providers report ([`statuses`]). Each is received
//! exactly once, and is durable when it is acknowledged.

mod account;
mod doubts;
mod echoes;
mod news;
mod records;
mod statuses;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use chrono::{DateTime, Utc};
use hotline_persistence::tables::contacts::identities::{Address, IdentityChange, IdentityKind, Keys, Profile};
use hotline_persistence::tables::contacts::{self, ContactRef, Referral, ReferralRow};
use hotline_persistence::tables::events::{act_as, current_author};
use hotline_persistence::tables::messages::{
    MessageApp, MessageAuthor, MessageContent, MessageOrigin, MessageRef, MessageRow, Via,
};
use hotline_persistence::{Change, ChannelId, CompanyId, ContactId};
use serde_json::Value;

pub use self::echoes::{EchoMessage, EchoOutcome};
pub use self::news::{MessageRevision, Notice, Revised};
use super::contacts::Contacts;
use super::tickets::Tickets;
use crate::Refusal;
use crate::base::Base;
use crate::base::retry::{is_slot_conflict, on_conflict};
use crate::channels::{Inboxes, MessageLock};
use crate::clock::now;
use crate::conversations::Slot;
use crate::seen::Membership;
use crate::tickets::{AttachedChanges, Author, Command, Execute, LastInbound, Open, Receive};

/// A message of a contact, as a provider reports it.
#[derive(Clone, Debug)]
pub struct InboundMessage {
    /// The provider's id of the message.
    pub message_id: String,
    /// When it was written, if the provider says so.
    pub written_at: Option<DateTime<Utc>>,
    /// Its sender.
    pub from: Sender,
    /// The text, or the caption of the file.
    pub body: Option<String>,
    /// The attached file.
    pub media: Option<Value>,
    /// A submitted form, as the provider sends it.
    pub interactive: Option<Value>,
    /// The content besides the text, such as the option that the contact chose.
    pub content: MessageContent,
    /// The provider's id of the message that this one replies to.
    pub quotes: Option<String>,
    /// The advertisement or link that brought the contact.
    pub referral: Referral,
    /// The member of a group who wrote it.
    pub author: Option<MessageAuthor>,
    /// Whether it went to another app, which handles the conversation.
    pub standby: bool,
}

/// A sender, as a provider names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Their number; none if the provider does not give it.
    pub number: Option<Number>,
    /// The provider's own id for them.
    pub address: Option<String>,
    /// Their name, as they gave it to the provider.
    pub name: Option<String>,
    /// The contact's name if they have given none.
    pub fallback_name: String,
    /// Their name on the social channel.
    pub social_username: Option<String>,
    /// Whether the address is a group's.
    pub is_group: bool,
    /// The type of channel they come from.
    pub origin: &'static str,
}

impl Sender {
    fn keys(&self, channel: ChannelId) -> Keys<'_> {
        let kind = if self.is_group { IdentityKind::GroupId } else { IdentityKind::UserId };
        Keys {
            number: self.number.as_ref().map(|number| &*number.digits),
            address: self.address.as_deref().map(|value| Address { channel, value, kind }),
        }
    }
}

/// A sender whose keys have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSender {
    /// The sender with the earlier keys.
    pub old: Sender,
    /// The sender with the current keys.
    pub new: Sender,
    /// When they changed.
    pub at: DateTime<Utc>,
}

/// A phone number as a provider writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Digits, beginning with the country code.
    pub digits: String,
    /// ISO 3166-1 alpha-2.
    pub country: Option<String>,
}

/// Inbound traffic.
pub struct Inbound {
    base: Arc<Base>,
    contacts: Arc<Contacts>,
    tickets: Arc<Tickets>,
    inboxes: Arc<Inboxes>,
    /// Statuses and revisions of unknown messages that were dropped.
    dropped_updates: AtomicU64,
}

impl Inbound {
    pub(crate) fn new(
        base: Arc<Base>,
        contacts: Arc<Contacts>,
        tickets: Arc<Tickets>,
        inboxes: Arc<Inboxes>,
    ) -> Arc<Self> {
        let inbound = Arc::new(Self { base, contacts, tickets, inboxes, dropped_updates: AtomicU64::new(0) });
        // Weak, because the inboxes are owned by this struct.
        let weak = Arc::downgrade(&inbound);
        inbound.inboxes.set_apply_early_statuses(move |(company, channel), id| {
            if let Some(inbound) = weak.upgrade() {
                inbound.apply_early_statuses(company, channel, vec![id]);
            }
        });
        inbound
    }

    /// Drops the inboxes of a company's channels.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { base: _, contacts: _, tickets: _, inboxes, dropped_updates: _ } = self;
        inboxes.forget_company(company);
    }

    /// Receives a message that a provider reports, in the contact's open ticket, else in a new one. None when it was
    /// received before.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be received now: the provider should retry.
    pub async fn receive_inbound(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        message: InboundMessage,
    ) -> Result<Option<MessageRow>, Refusal> {
        let inbox = self.inbox(company, channel).await?;
        let lock = inbox.lock(&message.message_id).await;
        let is_known = match lock.membership(message.written_at) {
            Membership::Present => true,
            Membership::Absent => false,
            Membership::Unknown => {
                self.base.reads().message_by_provider_id(company, channel, &message.message_id).await?.is_some()
            }
        };
        if is_known {
            lock.record_received(now());
            return Ok(None);
        }
        let id = message.message_id.clone();
        let row = self.receive_from_sender(company, channel, message, &lock).await?;
        lock.record_received(row.created_at);
        self.inboxes.cache_message((company, channel), &id, MessageRef { ticket_id: row.ticket_id, id: row.id });
        Ok(Some(self.with_early_revisions(company, channel, &id, row).await))
    }

    async fn receive_from_sender(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        message: InboundMessage,
        lock: &MessageLock,
    ) -> Result<MessageRow, Refusal> {
        let referral = message.referral.clone();
        let attached = (!referral.is_empty()).then(|| referral_change(referral));
        let (from, receive) = self.build_receive_command(company, channel, message).await;
        let written_at = receive.written_at;
        let command = Execute { command: receive, attached, only_if: None };
        let attempt = || async {
            let contact = self.find_or_create_contact(company, channel, &from, written_at).await?;
            self.attempt_receive(company, channel, contact.id, &command).await
        };
        let received = on_conflict(self.contacts.cache(), company, attempt, is_receive_conflict).await;
        match &received {
            Ok(row) => self.record_address(company, channel, row.contact_id, &from),
            Err(_) => lock.record_uncertain(now()),
        }
        received
    }

    /// The command that receives a message, and its sender. A message whose quote is not found is still received:
    /// without the database, a quote of an old message is left out.
    async fn build_receive_command(
        &self,
        company: CompanyId,
        channel: ChannelId,
        message: InboundMessage,
    ) -> (Sender, Receive) {
        let InboundMessage { message_id, written_at, from, body, media, interactive, content, quotes, .. } = message;
        let content = MessageAuthor::add_to_content(message.author, content.into_column());
        let origin = MessageOrigin { kind: Via::OtherApp, app: MessageApp::default(), late: false };
        let quoted = match quotes {
            Some(quotes) => self.find_message(company, channel, &quotes).await,
            None => Ok(None),
        };
        let quoted = quoted.unwrap_or_else(|refusal| {
            tracing::debug!(%refusal, "quoted message could not be looked up");
            None
        });
        let receive = Receive {
            body,
            media,
            interactive,
            content: if message.standby { origin.add_to_content(content) } else { content },
            quoted: quoted.map(|message| message.id),
            provider_message_id: Some(message_id),
            written_at,
            standby: message.standby,
            ..Receive::default()
        };
        (from, receive)
    }

    /// Receives a message of a known contact in the open ticket, else in a new one. If the contact was merged into
    /// another, that contact receives it.
    ///
    /// # Errors
    /// Why it could not be received.
    pub async fn receive(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
        command: Execute<Receive>,
    ) -> Result<MessageRow, Refusal> {
        let receive = async |contact: ContactId| {
            let attempt = || self.attempt_receive(company, channel, contact, &command);
            on_conflict(self.contacts.cache(), company, attempt, is_slot_conflict).await
        };
        match receive(contact).await {
            Err(refusal @ (Refusal::ContactNotFound | Refusal::NotFound)) => {
                match Box::pin(self.contacts.successor(company, contact)).await? {
                    Some(successor) => receive(successor).await,
                    None => Err(refusal),
                }
            }
            outcome => outcome,
        }
    }

    async fn attempt_receive(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
        command: &Execute<Receive>,
    ) -> Result<MessageRow, Refusal> {
        let has_phone = self.has_phone(company, channel)?;
        // A message in standby is answered by another app.
        let author = if command.command.standby { Author::AUTOMATION } else { Author::CONTACT };
        let message = self.attempt_in_conversation(company, channel, contact, command, author).await?;
        let (contact, last_inbound) = (message.contact_id, message.sent_at.unwrap_or(message.created_at));
        if !has_phone {
            self.contacts.cache().remember_reachable(company, channel, contact);
        }
        self.contacts.cache().remember_last_inbound(company, channel, contact, LastInbound::At(last_inbound));
        Ok(message)
    }

    /// Executes a command in the contact's open ticket, else in a new one that `author` opens.
    async fn attempt_in_conversation<C: Command>(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
        command: &Execute<C>,
        author: Author,
    ) -> Result<C::Reply, Refusal> {
        let has_phone = self.has_phone(company, channel)?;
        match self.tickets.slot(company, channel, contact).await? {
            Some(Slot::Open(ticket)) => match self.tickets.attempt(company, ticket, command).await {
                Err(Refusal::NotFound) => {
                    Err(self.tickets.explain_missing_ticket((company, channel, contact), ticket).await)
                }
                outcome => outcome,
            },
            _ => {
                let contact = self.contacts.get(company, contact).await?.ok_or(Refusal::ContactNotFound)?;
                // An answer goes to the sender's id if the channel has no phone numbers, or the contact has none.
                let reachable = author != Author::OTHER_APP && (!has_phone || contact.number.is_none());
                let open = Open { company, channel, contact, reachable, queue: None, user: None, author };
                self.tickets.attempt_opening(open, command.clone()).await
            }
        }
    }

    fn has_phone(&self, company: CompanyId, channel: ChannelId) -> Result<bool, Refusal> {
        let organization = self.base.organization(company)?;
        Ok(organization.channels.get(&channel).is_some_and(|channel| channel.kind.has_phone()))
    }

    /// The contact of a sender: found, or created as of `written_at`.
    async fn find_or_create_contact(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        from: &Sender,
        written_at: Option<DateTime<Utc>>,
    ) -> Result<Arc<ContactRef>, Refusal> {
        let number = from.number.as_ref();
        if number.is_none() && from.address.is_none() {
            return Err(Refusal::invalid("from", "must identify the sender"));
        }
        let profile = Profile {
            name: from.name.as_deref().or(number.map(|number| &*number.digits)).unwrap_or(&from.fallback_name),
            country: number.and_then(|number| number.country.as_deref()),
            social_username: from.social_username.as_deref(),
            origin: from.origin,
            since: written_at.map_or_else(now, |at| at.min(now())),
        };
        let contact = self.contacts.identify(company, &from.keys(channel), &profile).await?;
        if let Some(name) = &from.name
            && contact.number.as_ref() == Some(&contact.name)
        {
            self.rename_contact(company, contact.id, name.clone());
        }
        Ok(contact)
    }

    /// Records the address of a sender without a number: later messages to the contact are sent to the address that it
    /// last wrote from. The address is saved in the background.
    fn record_address(self: &Arc<Self>, company: CompanyId, channel: ChannelId, contact: ContactId, from: &Sender) {
        let (Some(address), None) = (&from.address, &from.number) else { return };
        if !self.inboxes.record_address((company, channel), contact, address) {
            return;
        }
        let (inbound, address) = (self.clone(), address.clone());
        let save = async move {
            if let Err(error) =
                contacts::identities::record_use(inbound.base.db(company), company, channel, &address).await
            {
                // The next message saves it again.
                inbound.inboxes.forget_address((company, channel), contact);
                tracing::debug!(%error, "could not save the address that a contact last wrote from");
            }
        };
        self.base.spawn_for(company, save);
    }

    /// Records a provider's report that a sender has another number or id from now on. It creates no message.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be stored now: the provider should retry.
    pub async fn change_identity(
        &self,
        company: CompanyId,
        channel: ChannelId,
        change: &ChangedSender,
    ) -> Result<(), Refusal> {
        let ChangedSender { old, new, at } = change;
        let country = new.number.as_ref().and_then(|number| number.country.as_deref());
        let change = IdentityChange { old: old.keys(channel), new: new.keys(channel), country, at: *at };
        self.contacts.change_identity(company, &change).await
    }

    /// Renames a contact whose name was their number. The name is saved after the provider's call is answered.
    fn rename_contact(self: &Arc<Self>, company: CompanyId, contact: ContactId, name: String) {
        let inbound = self.clone();
        let rename = async move {
            let changes = inbound.contacts.changes(company);
            changes.add([contact]);
            match contacts::replace_number_as_name(inbound.base.db(company), company, contact, &name).await {
                Ok(()) => changes.settle().await,
                Err(error) => tracing::debug!(%error, "could not save a contact's name; the next message will retry"),
            }
        };
        self.base.spawn_for(company, act_as(current_author(), rename));
    }

    /// The contact of a sender, if there is one.
    async fn find_contact(
        &self,
        company: CompanyId,
        channel: ChannelId,
        from: &Sender,
    ) -> Result<Option<ContactId>, Refusal> {
        if let Some(address) = &from.address
            && let Some(contact) = self.find_by_address(company, channel, address).await?
        {
            return Ok(Some(contact));
        }
        match &from.number {
            Some(number) => {
                let found = self.contacts.find_by_number(company, &number.digits).await?;
                Ok(found.map(|contact| contact.id))
            }
            None => Ok(None),
        }
    }

    async fn find_by_address(
        &self,
        company: CompanyId,
        channel: ChannelId,
        address: &str,
    ) -> Result<Option<ContactId>, Refusal> {
        if let Some(contact) = self.contacts.cache().find_by_address(company, channel, address) {
            return Ok(Some(contact.id));
        }
        let found = contacts::by_address(self.base.db(company), company, channel, address).await?;
        Ok(found.map(|contact| contact.id))
    }
}

/// Whether the conversation has changed, or the contact was deleted, since it was found.
fn is_receive_conflict(refusal: &Refusal) -> bool {
    is_slot_conflict(refusal) || matches!(refusal, Refusal::ContactNotFound | Refusal::NotFound)
}

/// The change that records a contact's referral, in the entry of the message that brought it.
fn referral_change(referral: Referral) -> AttachedChanges<MessageRow> {
    Arc::new(move |message: &MessageRow| {
        Ok(vec![Change::Referral(Box::new(ReferralRow {
            company_id: message.company_id,
            contact_id: message.contact_id,
            referral: referral.clone(),
            at: message.created_at,
        }))])
    })
}
