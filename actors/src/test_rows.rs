//! Rows that unit tests start from.

use chrono::DateTime;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{ChannelId, CompanyId, ContactId, MessageId, TicketId};

/// A queued message without content. All ids but its own are 1 or absent.
pub(crate) fn message(id: i64) -> MessageRow {
    MessageRow {
        company_id: CompanyId::new(1),
        id: MessageId::new(id),
        job_id: None,
        ticket_id: TicketId::new(1),
        contact_id: ContactId::new(1),
        channel_id: ChannelId::new(1),
        direction: Direction::Outbound,
        kind: MessageType::Text,
        body: None,
        media: None,
        template: None,
        interactive: None,
        content: None,
        revisions: None,
        attempts: None,
        quoted_message_id: None,
        status: MessageStatus::Queued,
        error: None,
        user_id: None,
        user_name: None,
        integration_id: None,
        source: Source::Api,
        session_id: None,
        client_id: None,
        after_send: None,
        provider_message_id: None,
        created_at: DateTime::UNIX_EPOCH,
        sent_at: None,
        delivered_at: None,
        read_at: None,
        updated_at: None,
    }
}
