//! The types of events.

use crate::tables::text_enum;

text_enum! {
    // A type is added at the end and never removed: rows refer to types by their position here.
    /// The type of an event.
    EventKind {
        TicketOpened = "ticket.opened",
        TicketAssigned = "ticket.assigned",
        TicketTransferred = "ticket.transferred",
        TicketClosed = "ticket.closed",
        TicketReopened = "ticket.reopened",
        TicketWrapupChanged = "ticket.wrapup_changed",
        TicketRead = "ticket.read",
        MessageReceived = "message.received",
        MessageCreated = "message.created",
        MessageSent = "message.sent",
        MessageDelivered = "message.delivered",
        MessageRead = "message.read",
        MessageFailed = "message.failed",
        MessageUpdated = "message.updated",
        NoteAdded = "note.added",
        SessionStarted = "session.started",
        SessionEnded = "session.ended",
        ContactCreated = "contact.created",
        ContactUpdated = "contact.updated",
        ContactDeleted = "contact.deleted",
        ContactTagged = "contact.tagged",
        ContactUntagged = "contact.untagged",
        CardCreated = "card.created",
        CardUpdated = "card.updated",
        CardMoved = "card.moved",
        CardWon = "card.won",
        CardLost = "card.lost",
        CardReopened = "card.reopened",
        CardDeleted = "card.deleted",
        ScheduleCreated = "schedule.created",
        ScheduleUpdated = "schedule.updated",
        ScheduleSent = "schedule.sent",
        ScheduleFailed = "schedule.failed",
        ScheduleCanceled = "schedule.canceled",
        CampaignStarted = "campaign.started",
        CampaignPaused = "campaign.paused",
        CampaignResumed = "campaign.resumed",
        CampaignCompleted = "campaign.completed",
        CampaignCanceled = "campaign.canceled",
        ChannelConnected = "channel.connected",
        ChannelDisconnected = "channel.disconnected",
        ChannelError = "channel.error",
        ContactIdentified = "contact.identified",
        MessageDeleted = "message.deleted",
        MessageReaction = "message.reaction",
        ChannelTemplateChanged = "channel.template_changed",
        ContactMerged = "contact.merged",
        TicketMerged = "ticket.merged",
    }
}

impl EventKind {
    /// The names of these types, each once.
    pub fn words(kinds: impl IntoIterator<Item = Self>) -> Vec<&'static str> {
        let mut words: Vec<&'static str> = Vec::new();
        for kind in kinds {
            if !words.contains(&kind.as_str()) {
                words.push(kind.as_str());
            }
        }
        words
    }

    /// Whether it is an event of a card.
    pub const fn is_of_card(self) -> bool {
        matches!(
            self,
            Self::CardCreated
                | Self::CardUpdated
                | Self::CardMoved
                | Self::CardWon
                | Self::CardLost
                | Self::CardReopened
                | Self::CardDeleted
        )
    }

    /// Its bit in a row's type mask.
    pub(crate) const fn bit(self) -> i64 {
        1 << (self as i64)
    }
}
