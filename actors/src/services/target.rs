//! The recipient of a message, as its sender names them, and what that resolves to.

use chrono::{DateTime, Utc};
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts::{ContactByNumber, ContactRef};
use hotline_persistence::{ChannelId, CompanyId, ContactId, TicketId};

/// The recipient of a message, as its sender names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// The contact of this ticket.
    Ticket(TicketId),
    /// A contact, on a channel.
    Contact(ChannelId, ContactId),
    /// A number, on a channel. A contact is created if there is none.
    Number(ChannelId, NewContact),
}

/// A number, and the known details of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewContact {
    /// Digits.
    pub number: String,
    /// Their name; without one, the number is used.
    pub name: Option<String>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<String>,
}

impl NewContact {
    pub(super) fn as_contact_by_number(&self) -> ContactByNumber<'_> {
        ContactByNumber { number: &self.number, name: self.name.as_deref(), country: self.country.as_deref() }
    }

    /// A contact that does not exist yet.
    pub(super) fn placeholder(&self) -> ContactRef {
        let name = self.name.as_deref().unwrap_or(&self.number).into();
        ContactRef { id: ContactId::new(0), name, number: Some(self.number.as_str().into()), verified: false }
    }
}

/// The resolved target of a message. It is resolved once, before anything else.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) company: CompanyId,
    pub(super) channel: ChannelId,
    pub(super) channel_type: ChannelType,
    pub(super) to: TargetKind,
    pub(super) follows: Follows,
}

/// Whether a message goes to the contact or ticket that its target was merged into.
#[derive(Clone, Copy, Debug)]
pub(super) enum Follows {
    /// If the merge was at this time or later: the sender could not know of it.
    Since(DateTime<Utc>),
    /// Always: the sender named the target long before the send.
    Always,
    /// Never: the sender itself also sends to the remaining contact.
    Never,
}

#[derive(Clone, Debug)]
pub(super) enum TargetKind {
    Ticket(TicketId, ContactId),
    Contact(ContactId),
    Number(NewContact),
}

impl Target {
    /// The channel of the message.
    pub fn channel(&self) -> ChannelId {
        self.channel
    }

    /// The contact, if it is known.
    pub fn contact(&self) -> Option<ContactId> {
        match &self.to {
            TargetKind::Contact(contact) | TargetKind::Ticket(_, contact) => Some(*contact),
            TargetKind::Number(_) => None,
        }
    }

    /// The same target, for a sender who named it long before the send.
    #[must_use]
    pub(crate) fn always_following_merges(self) -> Self {
        Self { follows: Follows::Always, ..self }
    }

    /// The same target, for a sender that itself also sends to the remaining contact.
    #[must_use]
    pub(crate) fn never_following_merges(self) -> Self {
        Self { follows: Follows::Never, ..self }
    }

    /// The contact, if the sender named one directly.
    pub fn named_contact(&self) -> Option<ContactId> {
        match &self.to {
            TargetKind::Contact(contact) => Some(*contact),
            TargetKind::Ticket(..) | TargetKind::Number(_) => None,
        }
    }
}
