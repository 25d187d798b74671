//! Revisions of messages (edits, deletions and reactions), and notices, as providers report them. They open no ticket
//! and do not count as unread, and no contact waits for an answer because of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};
use hotline_persistence::tables::early_revisions::{self, EarlyRevision};
use hotline_persistence::tables::messages::{MessageError, MessageRow, Revision};
use hotline_persistence::tables::tickets::HandledBy;
use hotline_persistence::{ChannelId, CompanyId, MessageId};

use super::{Inbound, Sender};
use crate::Refusal;
use crate::base::retry::{no_other_conflict, on_conflict};
use crate::channels::{Inbox, parts_key};
use crate::clock::now;
use crate::conversations::Slot;
use crate::seen::Membership;
use crate::tickets::{AddNotice, Revise};

/// A provider's report that a message was edited or deleted, or that someone has reacted to it.
#[derive(Clone, Debug)]
pub struct MessageRevision {
    /// The provider's id of the message.
    pub message_id: String,
    /// What happened to it.
    pub revision: Revision,
    /// When, if the provider says so.
    pub at: Option<DateTime<Utc>>,
}

/// A provider's notice in a conversation: information for the agents, or a report of a kind that this release does not
/// know.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The provider's id of the notice.
    pub message_id: String,
    /// The contact it is about.
    pub from: Sender,
    /// The readable text.
    pub body: String,
    /// Who handles the conversation from now on, if the notice says so.
    pub handled_by: Option<HandledBy>,
}

/// The outcome of [`Inbound::revise`].
#[derive(Debug)]
pub enum Revised {
    /// The message was revised; this is its state before.
    Message(Box<MessageRow>),
    /// The revision was already known, or has no effect.
    Unchanged,
    /// The message is not known; the revision waits for it, or is dropped if too many wait.
    Early,
}

impl Inbound {
    /// Revises a message. If it is not known yet, the revision is stored until it is. A provider's message with several
    /// files is stored as several parts (`m`, `m#2`, …). The deletion of an unknown part after the first is stored for
    /// all parts after the first, which may be received later.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be recorded now: the provider should retry.
    pub async fn revise(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        MessageRevision { message_id, revision, at }: MessageRevision,
    ) -> Result<Revised, Refusal> {
        let at = at.map_or_else(now, |at| at.min(now()));
        let inbox = self.inbox(company, channel).await?;
        // A message that is being received at the moment is known once the lock is free.
        let _lock = inbox.lock(&message_id).await;
        let row = self.base.reads().message_by_provider_id(company, channel, &message_id).await?;
        let Some(row) = row else {
            let key_of_parts = parts_key(&message_id).filter(|_| matches!(revision, Revision::Deleted { .. }));
            let early = EarlyRevision {
                company_id: company,
                channel_id: channel,
                provider_message_id: key_of_parts.unwrap_or(&message_id).to_owned(),
                revision,
                at,
            };
            self.store_early_revision(&inbox, &early, message_id).await?;
            return Ok(Revised::Early);
        };
        if self.revise_row(company, &row, revision, at).await? {
            Ok(Revised::Message(Box::new(row)))
        } else {
            Ok(Revised::Unchanged)
        }
    }

    /// Stores the revision of an unknown message until the message is known; drops it if too many are stored.
    async fn store_early_revision(
        self: &Arc<Self>,
        inbox: &Inbox,
        early: &EarlyRevision,
        message_id: String,
    ) -> Result<(), Refusal> {
        let (company, channel) = (early.company_id, early.channel_id);
        let has_room = early_revisions::store(self.base.db(company), early).await?;
        let is_first_dropped = inbox.early_revisions_room.record(has_room);
        if is_first_dropped {
            tracing::warn!(
                channel.id = %channel,
                company.id = %company,
                "dropping changes of messages that Hotline has not received: the channel has {} of them, most likely because another program uses the same account",
                early_revisions::EARLY_REVISIONS_MAX,
            );
        }
        if !has_room {
            self.dropped_updates.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        // This index covers revisions too.
        inbox.early_statuses.add(&early.provider_message_id, now());
        // Since the look-up, the outbox may have recorded this id for a message that it sent.
        self.apply_early_statuses(company, channel, vec![message_id]);
        Ok(())
    }

    /// Revises a message that is in the tables; `false` if that changes nothing.
    async fn revise_row(
        &self,
        company: CompanyId,
        row: &MessageRow,
        revision: Revision,
        at: DateTime<Utc>,
    ) -> Result<bool, Refusal> {
        let revise = Revise::reported(row.id, revision, at);
        if !revise.has_effect_on(row) {
            return Ok(false);
        }
        match self.tickets.ask_following(company, row.ticket_id, revise).await {
            // The message was deleted with its contact.
            Err(Refusal::NotFound) => Ok(false),
            outcome => outcome.map(|()| true),
        }
    }

    /// Records that a provider has refused a company's reaction, which it had accepted at first.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be recorded now: the provider should retry.
    pub async fn refuse_reaction(
        &self,
        company: CompanyId,
        channel: ChannelId,
        message: MessageId,
        reaction: MessageId,
        error: MessageError,
        at: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let row = self.base.reads().message(company, message).await?;
        let Some(row) = row.filter(|row| row.channel_id == channel) else { return Ok(()) };
        let revision = Revision::ReactionSent { id: reaction, error: Some(error) };
        self.revise_row(company, &row, revision, at).await.map(drop)
    }

    /// Applies the stored revisions of a message that has become known; `false` if there are none. They stay stored
    /// until they expire, for further parts of the provider's message.
    pub(super) async fn apply_early_revisions(
        &self,
        company: CompanyId,
        channel: ChannelId,
        id: &str,
    ) -> Result<bool, Refusal> {
        let db = self.base.db(company);
        let mut early = early_revisions::of_message(db, company, channel, id).await?;
        if let Some(key_of_parts) = parts_key(id) {
            early.extend(early_revisions::of_message(db, company, channel, key_of_parts).await?);
        }
        if early.is_empty() {
            return Ok(false);
        }
        for EarlyRevision { revision, at, .. } in early {
            let row = self.base.reads().message_by_provider_id(company, channel, id).await?;
            let Some(row) = row else { break };
            self.revise_row(company, &row, revision, at).await?;
        }
        Ok(true)
    }

    /// A message that was just received, after the revisions that its provider reported earlier are applied. If that
    /// fails now, they are applied in the background.
    pub(super) async fn with_early_revisions(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        id: &str,
        row: MessageRow,
    ) -> MessageRow {
        let Ok(inbox) = self.inbox(company, channel).await else { return row };
        if !inbox.early_statuses.may_contain(id) {
            return row;
        }
        let apply = async {
            self.apply_early_revisions(company, channel, id).await?;
            self.base.reads().message_by_provider_id(company, channel, id).await
        };
        match apply.await {
            Ok(Some(revised)) => revised,
            Ok(None) => row,
            Err(_) => {
                self.apply_early_statuses(company, channel, vec![id.to_owned()]);
                row
            }
        }
    }

    /// Adds a notice to the open ticket of its contact; `None` if no ticket is open, or the notice is already known.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be recorded now: the provider should retry.
    pub async fn add_notice(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        notice: Notice,
    ) -> Result<Option<MessageRow>, Refusal> {
        let attempt = || self.attempt_notice(company, channel, &notice);
        on_conflict(self.contacts.cache(), company, attempt, no_other_conflict).await
    }

    async fn attempt_notice(
        self: &Arc<Self>,
        company: CompanyId,
        channel: ChannelId,
        Notice { message_id, from, body, handled_by }: &Notice,
    ) -> Result<Option<MessageRow>, Refusal> {
        let Some(contact) = self.find_contact(company, channel, from).await? else { return Ok(None) };
        let Some(Slot::Open(ticket)) = self.tickets.slot(company, channel, contact).await? else {
            if self.contacts.get(company, contact).await?.is_some() {
                return Ok(None);
            }
            // The contact was deleted or merged since it was found: the next look-up finds the remaining one, if any.
            self.contacts.cache().forget(company, contact);
            return Err(Refusal::Retired);
        };
        let inbox = self.inbox(company, channel).await?;
        let lock = inbox.lock(message_id).await;
        let is_known = lock.membership(None) == Membership::Present
            || self.base.reads().message_by_provider_id(company, channel, message_id).await?.is_some();
        if is_known {
            return Ok(None);
        }
        let add = AddNotice {
            body: body.clone(),
            provider_message_id: Some(message_id.clone()),
            handled_by: handled_by.clone(),
        };
        match self.tickets.ask_following(company, ticket, add).await {
            Ok(row) => {
                lock.record_received(row.created_at);
                Ok(Some(row))
            }
            // The ticket was closed or deleted meanwhile.
            Err(Refusal::TicketClosed(_) | Refusal::NotFound) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }
}
