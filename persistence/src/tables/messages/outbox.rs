//! The outbox: messages waiting for a channel's provider.

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, FromRow, Row};

use super::{MessageError, MessageRow, MessageType, read_row};
use crate::cluster::SlotFilter;
use crate::document;
use crate::error::with_timeout;
use crate::{ChannelId, CompanyId, ContactId, Database, MessageId, Result, TicketId};

/// A message with its contact's number. Where the provider's id of the contact is needed instead, the sender reads it.
#[derive(Clone, Debug, FromRow)]
pub struct AddressedMessage {
    #[sqlx(flatten)]
    pub message: MessageRow,
    pub number: Option<String>,
}

/// A queued message that cannot or must not be sent.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct UnsendableMessage {
    pub company_id: CompanyId,
    pub ticket_id: TicketId,
    pub contact_id: ContactId,
    pub id: MessageId,
}

impl AddressedMessage {
    /// The company's reaction to this message, if one waits to be sent.
    fn into_reaction(self) -> Option<Self> {
        let Self { message, number } = self;
        let conversation = (message.channel_id, message.contact_id, message.ticket_id);
        let sending = message.revisions().sending?;
        Some(Self { message: sending.into_message(message.company_id, conversation, message.id), number })
    }
}

/// An entry of an outbox.
#[derive(Clone, Debug)]
pub enum OutboxEntry {
    /// A message or a reaction to send.
    Message(Box<AddressedMessage>),
    /// A message that can never be sent: this release cannot read its stored content.
    Unreadable(UnsendableMessage),
    /// A campaign's message that is not sent, and why: the campaign was canceled, or the contact has opted out.
    Withdrawn(UnsendableMessage, MessageError),
}

impl OutboxEntry {
    /// The entry of a row; `None` for a reaction that this release cannot read: the message it belongs to must not fail
    /// because of it.
    fn of(row: &PgRow) -> sqlx::Result<Option<Self>> {
        if row.try_get("is_reaction")? {
            let reaction = document::read::<AddressedMessage>(row).ok().and_then(AddressedMessage::into_reaction);
            return Ok(reaction.map(|reaction| Self::Message(Box::new(reaction))));
        }
        Self::of_message(row).map(Some)
    }

    fn of_message(row: &PgRow) -> sqlx::Result<Self> {
        if row.try_get("is_withdrawn")? {
            return UnsendableMessage::from_row(row)
                .map(|message| Self::Withdrawn(message, MessageError::campaign_canceled()));
        }
        if row.try_get("is_opted_out")? {
            return UnsendableMessage::from_row(row).map(|message| Self::Withdrawn(message, MessageError::opted_out()));
        }
        let unreadable = || UnsendableMessage::from_row(row).map(Self::Unreadable);
        let Ok(addressed) = document::read::<AddressedMessage>(row) else { return unreadable() };
        let message = &addressed.message;
        let is_complete = match message.kind {
            MessageType::Template => message.template.is_some(),
            MessageType::Interactive => message.interactive.is_some(),
            MessageType::Media => message.media.is_some(),
            MessageType::Text | MessageType::Note | MessageType::System => true,
        };
        // The steps after the send are part of the request: if they are unreadable, the message differs from what was
        // accepted.
        let has_after_send = row.try_get_raw("after_send").is_ok_and(|stored| !sqlx::ValueRef::is_null(&stored));
        if is_complete && has_after_send == message.after_send.is_some() {
            Ok(Self::Message(Box::new(addressed)))
        } else {
            unreadable()
        }
    }
}

/// The channels with queued messages or reactions. Read at startup and when slots are taken over: the tables then
/// contain everything that was accepted.
pub async fn outboxes(db: impl Database<'_>, slots: &SlotFilter) -> Result<Vec<(CompanyId, ChannelId)>> {
    let in_slots = SlotFilter::condition("c.company_id", 1);
    let outboxes = format!(
        "select c.company_id, c.id from channels c where {in_slots} and (exists (select from messages m
             where m.company_id = c.company_id and m.channel_id = c.id and m.status = 'queued')
           or exists (select from messages m
             where m.company_id = c.company_id and m.channel_id = c.id and m.revisions ? 'sending'))
         order by c.company_id, c.id"
    );
    Ok(sqlx::query_as(AssertSqlSafe(outboxes)).bind(slots.numbers()).fetch_all(db).await?)
}

/// The first queued messages and reactions of a channel, ordered by id: those of a ticket are in the order of
/// acceptance. Without the `excluded` ones, and without campaigns' messages whose outcome is in doubt.
pub async fn outbox(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    excluded: &[MessageId],
    limit: i64,
) -> Result<Vec<OutboxEntry>> {
    let rows = with_timeout(
        sqlx::query(include_str!("outbox.sql")).bind(company).bind(channel).bind(excluded).bind(limit).fetch_all(db),
    )
    .await?;
    let entries: Vec<Option<OutboxEntry>> = rows.iter().map(OutboxEntry::of).collect::<sqlx::Result<_>>()?;
    Ok(entries.into_iter().flatten().collect())
}

/// Why a queued message of a campaign must not be sent: the campaign was canceled, the contact has opted out, or the
/// message was deleted. `None`: it may be sent. To be called once the message is in the table.
pub async fn withdrawal_reason(
    db: impl Database<'_>,
    company: CompanyId,
    message: MessageId,
) -> Result<Option<MessageError>> {
    let found: Option<(bool, bool)> = with_timeout(
        sqlx::query_as(
            "select exists (select from campaign_recipients r
                     join campaigns k on k.company_id = r.company_id and k.id = r.campaign_id
                     where r.company_id = m.company_id and r.message_id = m.id and k.status = 'canceled'),
                 coalesce(c.marketing_opt_out, false)
             from messages m
             left join lateral (select marketing_opt_out from contacts
                 where company_id = m.company_id and id = m.contact_id offset 0) c on true
             where m.company_id = $1 and m.id = $2",
        )
        .bind(company)
        .bind(message)
        .fetch_optional(db),
    )
    .await?;
    Ok(match found {
        Some((true, _)) => Some(MessageError::campaign_canceled()),
        Some((false, true)) => Some(MessageError::opted_out()),
        Some((false, false)) => None,
        None => Some(MessageError::deleted()),
    })
}

/// The first `limit` queued messages of campaigns on a channel that are withdrawn, and why. A message that may have
/// been sent is no longer withdrawn.
pub async fn withdrawn_of_channel(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    limit: i64,
) -> Result<Vec<(UnsendableMessage, MessageError)>> {
    #[derive(FromRow)]
    struct Withdrawn {
        #[sqlx(flatten)]
        message: UnsendableMessage,
        is_canceled: bool,
    }
    let found: Vec<Withdrawn> = with_timeout(
        sqlx::query_as(
            "select m.company_id, m.ticket_id, m.contact_id, m.id, w.is_canceled
             from messages m
             cross join lateral (select exists (select from campaign_recipients r
                     join campaigns k on k.company_id = r.company_id and k.id = r.campaign_id
                     where r.company_id = m.company_id and r.message_id = m.id and k.status = 'canceled') as is_canceled
                 offset 0) w
             cross join lateral (select marketing_opt_out from contacts
                 where company_id = m.company_id and id = m.contact_id offset 0) c
             where m.company_id = $1 and m.channel_id = $2 and m.status = 'queued' and m.source = 'campaign'
                 and not coalesce(m.attempts ?| array['begunAt', 'unknownAt'], false)
                 and (w.is_canceled or c.marketing_opt_out)
             order by m.id limit $3",
        )
        .bind(company)
        .bind(channel)
        .bind(limit)
        .fetch_all(db),
    )
    .await?;
    let reason = |is_canceled| if is_canceled { MessageError::campaign_canceled() } else { MessageError::opted_out() };
    Ok(found.into_iter().map(|Withdrawn { message, is_canceled }| (message, reason(is_canceled))).collect())
}

/// The message with this provider id on a channel, or `None`.
pub async fn by_provider_id(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    provider_message_id: &str,
) -> Result<Option<MessageRow>> {
    let found =
        sqlx::query("select * from messages where company_id = $1 and channel_id = $2 and provider_message_id = $3")
            .bind(company)
            .bind(channel)
            .bind(provider_message_id);
    read_row(with_timeout(found.fetch_optional(db)).await?)
}
