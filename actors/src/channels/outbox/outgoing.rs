//! A message on its way to its provider.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::{
    AddressedMessage, AttemptRow, Attempts, Direction, MessageRow, MessageStatus, Revision,
};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{Change, ContactId, MessageId, TicketId};
use parking_lot::Mutex;

use crate::channels::{Accepted, NamedSend};
use crate::tickets::Ticket;

/// A message that waits for its provider.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// The message's place in the log: it may be sent once this is durable.
    pub(super) seq: Seq,
    pub(super) message: Arc<MessageRow>,
    /// The recipient's number when the message was accepted, if they had one.
    pub(super) number: Option<String>,
    /// Whether the recipient has changed since, so that the number must be read again.
    pub(super) is_number_stale: bool,
    /// Whether it was deleted with its contact. Shared by all clones.
    pub(super) is_removed: Arc<AtomicBool>,
    /// The acceptance of its file, while the text that is sent after the file is not accepted yet. Shared by all
    /// clones.
    pub(super) file_accepted: Arc<OnceLock<Accepted>>,
    /// The attempts to send it. Shared by all clones.
    pub(super) attempts: Arc<Mutex<Attempts>>,
    /// Approximate bytes in memory.
    pub(super) bytes: usize,
}

impl Outgoing {
    /// The messages and reactions to send among these changes; their place in the log is not known yet.
    pub(super) fn of(changes: &[Change], ticket: &Ticket) -> Vec<Self> {
        let is_queued = |row: &MessageRow| row.direction == Direction::Outbound && row.status == MessageStatus::Queued;
        let outgoing = changes.iter().filter_map(|change| match change {
            Change::Message(row) if is_queued(row) => Some(MessageRow::clone(row)),
            Change::Revision(row) => match &row.revision {
                Revision::ReactionToSend { send, .. } => {
                    let conversation = (ticket.row.channel_id, row.contact_id, row.ticket_id);
                    Some(send.clone().into_message(row.company_id, conversation, row.message_id))
                }
                _ => None,
            },
            _ => None,
        });
        let number = || ticket.contact.number.as_deref().map(str::to_owned);
        outgoing.map(|message| Self::new(0, message, number())).collect()
    }

    fn new(seq: Seq, message: MessageRow, number: Option<String>) -> Self {
        let (bytes, attempts) = (bytes(&message), message.attempts());
        // The provider may have accepted the file in an earlier run; its recorded id is empty if unknown.
        let file_accepted = attempts
            .file
            .clone()
            .map(|id| Accepted { provider_message_id: Some(id).filter(|id| !id.is_empty()), text_message_id: None });
        Self {
            seq,
            message: Arc::new(message),
            number,
            is_number_stale: false,
            is_removed: Arc::default(),
            file_accepted: Arc::new(file_accepted.map_or_else(OnceLock::new, OnceLock::from)),
            attempts: Arc::new(Mutex::new(attempts)),
            bytes,
        }
    }

    pub(super) fn id(&self) -> MessageId {
        self.message.id
    }

    /// What a status names if the answer to the current attempt is lost: once the file is accepted, only its text is
    /// sent.
    pub(super) fn current_send(&self) -> NamedSend {
        match self.file_accepted.get() {
            Some(_) => NamedSend::Text(self.id()),
            None => NamedSend::Message(self.id()),
        }
    }

    pub(super) fn contact(&self) -> ContactId {
        self.message.contact_id
    }

    pub(super) fn ticket(&self) -> TicketId {
        self.message.ticket_id
    }

    /// Whether it is one of a campaign, which is never sent twice.
    pub(super) fn is_of_campaign(&self) -> bool {
        self.message.source == Source::Campaign
    }

    /// Marks it as deleted with its contact, so that it is not sent.
    pub(super) fn mark_removed(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    /// Whether it was deleted with its contact.
    pub(super) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }

    /// The attempts to send it.
    pub(super) fn attempts(&self) -> Attempts {
        self.attempts.lock().clone()
    }

    /// Counts an attempt of a campaign's message that is about to begin. `Some`: the row must be durable before the
    /// call. `None`: not a campaign's message; its attempts are counted when they end.
    pub(super) fn begin_attempt(&self, now: DateTime<Utc>) -> Option<AttemptRow> {
        self.is_of_campaign().then(|| {
            self.change_attempts(|attempts| {
                attempts.count = attempts.count.saturating_add(1);
                attempts.begun_at = Some(now);
            })
        })
    }

    /// Takes back an attempt that has sent nothing, or only its file. `Some`: the row must be recorded, because the
    /// attempt's beginning was recorded, or because the file is not recorded yet.
    pub(super) fn take_back_attempt(&self) -> Option<AttemptRow> {
        let (was_begun, has_file) = {
            let attempts = self.attempts.lock();
            (attempts.begun_at.is_some(), attempts.file.is_some())
        };
        let is_file_new = !has_file && self.file_accepted.get().is_some();
        (was_begun || is_file_new).then(|| {
            self.change_attempts(|attempts| {
                if attempts.begun_at.take().is_some() {
                    attempts.count = attempts.count.saturating_sub(1);
                }
            })
        })
    }

    /// Counts an attempt of unknown outcome. `None`: the doubt is recorded already.
    pub(super) fn begin_doubt(&self, reason: &str, is_file_only: bool, now: DateTime<Utc>) -> Option<AttemptRow> {
        let was_in_doubt = self.attempts.lock().unknown_at.is_some();
        (!was_in_doubt).then(|| {
            self.change_attempts(|attempts| {
                if attempts.begun_at.is_none() {
                    attempts.count = attempts.count.saturating_add(1);
                }
                attempts.unknown_at = Some(attempts.begun_at.take().unwrap_or(now));
                attempts.reason = Some(reason.to_owned());
                attempts.is_file_only = is_file_only;
            })
        })
    }

    /// Ends the doubt before the message is sent again.
    pub(super) fn end_doubt(&self) {
        self.attempts.lock().unknown_at = None;
    }

    /// Ends the doubt about a message's file, which the provider has, before the text is sent. The two count as one
    /// attempt.
    pub(super) fn end_file_doubt(&self) {
        let mut attempts = self.attempts.lock();
        attempts.unknown_at = None;
        attempts.count = attempts.count.saturating_sub(1);
    }

    /// Settles the attempts of a message with a final status; `is_counted`: the attempt that has sent it is counted
    /// already. `Some`: the row must be recorded, because the status does not imply these attempts.
    pub(super) fn settle_attempts(&self, is_sent: bool, is_counted: bool) -> Option<AttemptRow> {
        let (was_begun, had_file) = {
            let attempts = self.attempts.lock();
            (attempts.begun_at.is_some(), attempts.file.is_some())
        };
        let row = self.change_attempts(|attempts| {
            // An attempt in doubt was counted when the doubt began; a refused one does not count.
            match (is_sent, was_begun) {
                (true, false) if !is_counted => attempts.count = attempts.count.saturating_add(1),
                (false, true) => attempts.count = attempts.count.saturating_sub(1),
                _ => {}
            }
            attempts.begun_at = None;
            attempts.unknown_at = None;
            attempts.file = None;
        });
        // Of a campaign's message that a status has named after an attempt that was taken back, a row says that there
        // was none.
        let was_taken_back = self.is_of_campaign() && is_sent && !was_begun && !is_counted;
        // A sent message implies one attempt, a failed one none. A row that records a file, or the beginning of an
        // attempt that has failed, must be replaced.
        let is_implied =
            row.attempts.count == u32::from(is_sent) && (is_sent || !was_begun) && !had_file && !was_taken_back;
        (!is_implied).then_some(row)
    }

    fn change_attempts(&self, change: impl FnOnce(&mut Attempts)) -> AttemptRow {
        let mut attempts = self.attempts.lock();
        if let Some(accepted) = self.file_accepted.get() {
            attempts.file = Some(accepted.clone().storable().provider_message_id.unwrap_or_default());
        }
        change(&mut attempts);
        let (company_id, message_id) = (self.message.company_id, self.message.id);
        AttemptRow { company_id, message_id, attempts: attempts.clone() }
    }
}

/// Approximate bytes of a message in memory.
fn bytes(message: &MessageRow) -> usize {
    const ROW: usize = 512;
    // The length of the JSON text. The parsed value takes a multiple of it, but most messages have none.
    let json_bytes = |value: &Option<serde_json::Value>| value.as_ref().map_or(0, |value| value.to_string().len());
    let body_bytes = message.body.as_ref().map_or(0, String::len);
    ROW + body_bytes + json_bytes(&message.template) + json_bytes(&message.interactive)
}

impl From<AddressedMessage> for Outgoing {
    fn from(stored: AddressedMessage) -> Self {
        // Rows in the tables are durable already.
        Self::new(0, stored.message, stored.number)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
pub(super) mod tests {
    use hotline_persistence::tables::messages::MessageType;
    use hotline_persistence::{ChannelId, CompanyId};

    use super::*;

    const WHOLE_MESSAGE: bool = false;
    const SENT: bool = true;
    const FAILED: bool = false;
    const COUNTED: bool = true;
    const NOT_COUNTED: bool = false;

    #[test]
    fn an_attempt_counts_once_unless_it_was_refused() {
        let now = DateTime::UNIX_EPOCH;
        let text = outgoing(1, 1);
        assert_eq!(text.begin_attempt(now), None, "only a campaign's attempt is recorded before its call");
        assert_eq!(text.settle_attempts(SENT, NOT_COUNTED), None, "its status implies one attempt");
        // An answer was lost, and the message sent again.
        let again = outgoing(2, 1);
        let doubt = again.begin_doubt("lost", WHOLE_MESSAGE, now).expect("a row");
        assert_eq!((doubt.attempts.count, doubt.attempts.unknown_at), (1, Some(now)));
        assert_eq!(again.begin_doubt("lost", WHOLE_MESSAGE, now), None, "the doubt is recorded");
        again.end_doubt();
        let settled = again.settle_attempts(SENT, NOT_COUNTED).expect("a row");
        assert_eq!((settled.attempts.count, settled.attempts.unknown_at), (2, None));
        // A status has named the message.
        let named = outgoing(3, 1);
        assert!(named.begin_doubt("lost", WHOLE_MESSAGE, now).is_some());
        assert_eq!(named.settle_attempts(SENT, COUNTED), None, "it was sent once");
    }

    #[test]
    fn a_file_that_was_accepted_is_recorded_until_its_text_is_sent() {
        let accepted = || Accepted { provider_message_id: Some("wamid.file".to_owned()), text_message_id: None };
        let refused = outgoing(1, 1);
        assert_eq!(refused.take_back_attempt(), None, "nothing was sent");
        assert!(refused.file_accepted.set(accepted()).is_ok());
        let recorded = refused.take_back_attempt().expect("a row").attempts;
        assert_eq!((recorded.count, recorded.file.as_deref()), (0, Some("wamid.file")));
        assert_eq!(refused.take_back_attempt(), None, "the file is recorded");
        // The next run reads it from the tables.
        let message =
            MessageRow { attempts: serde_json::to_value(&recorded).ok(), ..MessageRow::clone(&refused.message) };
        assert_eq!(Outgoing::new(0, message, None).file_accepted.get(), Some(&accepted()));
        let settled = refused.settle_attempts(SENT, NOT_COUNTED).expect("a row").attempts;
        assert_eq!((settled.count, settled.file), (1, None));
        let at_once = outgoing(2, 1);
        assert!(at_once.file_accepted.set(accepted()).is_ok());
        assert_eq!(at_once.settle_attempts(SENT, NOT_COUNTED), None, "its status implies one attempt");
    }

    #[test]
    fn a_campaigns_attempt_is_recorded_before_it_begins() {
        let now = DateTime::UNIX_EPOCH;
        let of_campaign = || outgoing(1, 1).of_campaign();
        let sent = of_campaign();
        let begun = sent.begin_attempt(now).expect("a row").attempts;
        assert!(begun.count == 1 && begun.is_in_doubt());
        assert_eq!(sent.settle_attempts(SENT, NOT_COUNTED), None, "its status implies one attempt");
        let refused = of_campaign();
        assert!(refused.begin_attempt(now).is_some());
        let taken_back = refused.take_back_attempt().expect("a row").attempts;
        assert!(taken_back.count == 0 && !taken_back.is_in_doubt());
        assert_eq!(refused.take_back_attempt(), None);
        assert!(refused.begin_attempt(now).is_some());
        assert_eq!(refused.settle_attempts(FAILED, NOT_COUNTED).map(|row| row.attempts.count), Some(0));
        // A status has named a message whose attempt was taken back.
        let named = of_campaign();
        assert!(named.begin_attempt(now).is_some() && named.take_back_attempt().is_some());
        assert_eq!(named.settle_attempts(SENT, NOT_COUNTED).map(|row| row.attempts.count), Some(1));
        let lost = of_campaign();
        assert!(lost.begin_attempt(now).is_some());
        let doubt = lost.begin_doubt("lost", WHOLE_MESSAGE, now).expect("a row").attempts;
        assert_eq!((doubt.count, doubt.begun_at, doubt.unknown_at), (1, None, Some(now)));
    }

    impl Outgoing {
        /// This message as one of a campaign.
        pub(in crate::channels::outbox) fn of_campaign(self) -> Self {
            let message = MessageRow { source: Source::Campaign, ..MessageRow::clone(&self.message) };
            Self { message: Arc::new(message), ..self }
        }
    }

    /// A text to a contact, who has one ticket.
    pub(in crate::channels::outbox) fn outgoing(id: i64, contact: i64) -> Outgoing {
        let message = MessageRow {
            company_id: CompanyId::new(1),
            id: MessageId::new(id),
            job_id: Some(MessageId::new(id)),
            ticket_id: TicketId::new(contact),
            contact_id: ContactId::new(contact),
            channel_id: ChannelId::new(1),
            direction: Direction::Outbound,
            kind: MessageType::Text,
            body: Some(format!("message {id}")),
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
        };
        Outgoing::new(0, message, Some(format!("551199999{contact:04}")))
    }
}
