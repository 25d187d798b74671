//! One of each kind of change, with every field filled in.

use chrono::{DateTime, Utc};
use hotline_persistence::tables::campaigns::{RecipientRow, RecipientStatus};
use hotline_persistence::tables::contacts::{ContactChannel, OptOut, Referral, ReferralRow};
use hotline_persistence::tables::events::By;
use hotline_persistence::tables::idempotency_keys::{AnswerRow, Digest};
use hotline_persistence::tables::messages::{
    AttemptRow, Attempts, DeliveryReceipt, DeliveryStatus, DeliveryStatusRow, Direction, MediaRow, MessageError,
    MessageRow, MessageStatus, MessageType, Revision, RevisionRow,
};
use hotline_persistence::tables::schedules::{DeletedContact, ScheduleRow, ScheduleStatus};
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::ticket_events::{EventRow, EventType};
use hotline_persistence::tables::tickets::{HandledBy, TicketRow, TicketStatus};
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use hotline_persistence::{
    CampaignId, Change, ContactId, EventId, MessageId, ScheduleId, SessionId, TicketId, TokenId,
};
use serde_json::json;

use super::cases::Owner;

/// One of each kind of change, with every field filled in; `id` is that of its row.
pub fn samples(owner: &Owner, id: i64) -> Vec<Vec<Change>> {
    let Owner { company, contact } = owner;
    let at: DateTime<Utc> = "2026-01-02T03:04:05.678Z".parse().expect("time");
    let (company_id, channel_id, contact_id) = (company.id, company.phone, *contact);
    let (ticket_id, message_id) = (TicketId::new(id), MessageId::new(id));
    let by = || Some(By::user(Some(company.ana), Some("Ana".to_owned())));
    let ticket = TicketRow {
        company_id,
        id: ticket_id,
        channel_id,
        contact_id,
        queue_id: Some(company.support),
        user_id: Some(company.ana),
        status: TicketStatus::Closed,
        creation_source: Source::Api,
        unread_count: 1,
        last_message_id: Some(message_id),
        wrapup_type_id: Some(company.solved),
        wrapup_note: Some("note".into()),
        reopen_count: 1,
        opened_at: at,
        first_response_at: Some(at),
        closed_at: Some(at),
        waiting_since: Some(at),
        answer_id: Some(message_id),
        handled_by: HandledBy::app(Some("7")),
        created_at: at,
        updated_at: at,
    };
    let event = EventRow {
        company_id,
        id: EventId::new(id),
        ticket_id,
        kind: EventType::Transferred,
        from: Some(json!({"queue": "a"})),
        to: Some(json!({"queue": "b"})),
        user_id: Some(company.ana),
        user_name: Some("Ana".to_owned()),
        integration_id: Some(TokenId::new(id)),
        source: Source::User,
        created_at: at,
        was: Some(json!({"queue": null})),
    };
    let message = MessageRow {
        company_id,
        id: message_id,
        job_id: Some(message_id),
        ticket_id,
        contact_id,
        channel_id,
        direction: Direction::Outbound,
        kind: MessageType::Media,
        body: Some("body".to_owned()),
        media: Some(json!({"wanted": {}})),
        template: Some(json!({"name": "t"})),
        interactive: Some(json!({"type": "button"})),
        content: Some(json!({"kind": "reply", "reply": {"id": "a"}})),
        revisions: Some(json!({})),
        attempts: Some(json!({})),
        quoted_message_id: Some(message_id),
        status: MessageStatus::Sent,
        error: Some(json!({"code": "c", "message": "m"})),
        user_id: Some(company.ana),
        user_name: Some("Ana".to_owned()),
        integration_id: Some(TokenId::new(id)),
        source: Source::User,
        session_id: Some(SessionId(format!("session {id}"))),
        client_id: Some(format!("client {id}")),
        after_send: Some(json!({"close": true})),
        provider_message_id: Some(format!("wamid {id}")),
        created_at: at,
        sent_at: Some(at),
        delivered_at: Some(at),
        read_at: Some(at),
        updated_at: Some(at),
    };
    // A report changes a message that exists, so the message is written before it.
    let with_message = |change: Change| {
        let bare = MessageRow {
            status: MessageStatus::Queued,
            provider_message_id: None,
            delivered_at: None,
            read_at: None,
            updated_at: None,
            ..message.clone()
        };
        vec![Change::Message(Box::new(bare)), change]
    };
    let progress = |delivery_status| {
        let provider_message_id = Some(format!("wamid {id}"));
        Change::Progress(Box::new(DeliveryStatusRow {
            company_id,
            ticket_id,
            message_id,
            delivery_status,
            at,
            provider_message_id,
            noted_at: Some(at),
        }))
    };
    let attempts = Attempts {
        count: 2,
        begun_at: Some(at),
        unknown_at: Some(at),
        reason: Some("lost".to_owned()),
        is_file_only: true,
        file: Some("wamid.file".to_owned()),
    };
    let attempt = AttemptRow { company_id, message_id, attempts };
    let receipt = DeliveryReceipt {
        company_id,
        ticket_id,
        conversation: Some((channel_id, contact_id)),
        up_to: message_id,
        since: Some(at),
        at,
    };
    let media = MediaRow {
        company_id,
        ticket_id,
        message_id,
        media: Some(json!({"id": format!("file {id}")})),
        error: Some(json!({"code": "c", "message": "m"})),
        is_text_error: false,
        noted_at: Some(at),
    };
    let text = || Some("text".to_owned());
    let revision = RevisionRow {
        company_id,
        ticket_id,
        contact_id,
        message_id,
        revision: Revision::Edited { of: Direction::Outbound, body: text(), id: format!("edit {id}") },
        at,
        noted_at: at,
        source: Source::User,
        user_id: Some(company.ana),
        user_name: Some("Ana".to_owned()),
        integration_id: Some(TokenId::new(id)),
    };
    let session = SessionRow {
        company_id,
        id: SessionId(format!("session {id}")),
        channel_id: company.webchat,
        contact_id,
        ticket_id: Some(ticket_id),
        status: SessionStatus::Ended,
        token_hash: id.to_be_bytes().to_vec(),
        page: Some(json!({"url": "u"})),
        utm: Some(json!({"source": "s"})),
        created_at: at,
        last_seen_at: at,
        ended_at: Some(at),
        verified: true,
        claimed: Some(json!({"name": "n"})),
        shown_from: Some(at),
        token_hashes: vec![id.to_le_bytes().to_vec()],
        by: by(),
    };
    let referral = Referral {
        ctwa_clid: text(),
        source_url: text(),
        source_id: text(),
        headline: text(),
        media_type: text(),
        media_url: text(),
    };
    let answer = AnswerRow {
        company_id,
        key: Digest::of(&[b"key", &id.to_be_bytes()]),
        fingerprint: Digest::of(&[b"request"]),
        status: 201,
        body: "{}".to_owned(),
        created_at: at,
    };
    let schedule = ScheduleRow {
        company_id,
        id: ScheduleId::new(id),
        contact_id,
        channel_id,
        body: "body".to_owned(),
        queue_id: Some(company.sales),
        send_at: at,
        status: ScheduleStatus::Failed,
        message_id: Some(message_id),
        error: Some(json!({"code": "c", "message": "m"})),
        user_id: Some(company.ana),
        integration_id: Some(TokenId::new(id)),
        created_at: at,
        updated_at: at,
        by: by(),
        contact_was: Some(DeletedContact { name: "Maria".into(), number: Some("5511900000001".into()) }),
    };
    let recipient = RecipientRow {
        company_id,
        campaign_id: CampaignId::new(id),
        contact_id: ContactId::new(id),
        status: RecipientStatus::Skipped,
        message_id: Some(message_id),
        error: Some(json!({"code": "c", "message": "m"})),
        updated_at: at,
    };
    let failed = DeliveryStatus::Failed(MessageError { code: "c".to_owned(), message: "m".to_owned() });
    vec![
        vec![Change::Ticket(ticket)],
        vec![Change::Event(event)],
        vec![Change::Message(Box::new(message.clone()))],
        with_message(progress(DeliveryStatus::Sent)),
        with_message(progress(failed)),
        with_message(Change::Media(Box::new(media))),
        with_message(Change::Revision(Box::new(revision))),
        with_message(Change::Attempt(Box::new(attempt))),
        with_message(Change::Delivered(receipt.clone())),
        with_message(Change::Seen(receipt.clone())),
        with_message(Change::Read(receipt)),
        vec![Change::Session(Box::new(session))],
        vec![Change::ContactChannel(ContactChannel { company_id, contact_id, channel_id, at })],
        // Of a contact of its own (`id`): of several referrals of one contact only the last is written.
        vec![Change::Referral(Box::new(ReferralRow { company_id, contact_id: ContactId::new(id), referral, at }))],
        vec![Change::Answer(Box::new(answer))],
        vec![Change::Schedule(Box::new(schedule))],
        vec![Change::OptOut(OptOut { company_id, contact_id: ContactId::new(id), at })],
        vec![Change::Recipient(Box::new(recipient))],
    ]
}
