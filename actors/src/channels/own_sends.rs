//! Recognizes the echoes of our own messages on social channels. A provider reports every message that an account has
//! sent, including Hotline's, and mostly without our id. Such an echo is ours if its id at the provider is that of
//! one of our messages. While the answer with that id is pending or was lost, an echo is ours if it has the same
//! content for the same contact.
//!
//! The answer and the echo may arrive in either order. Under one lock an id is assigned to a message of ours, or to the
//! echo of another app's message.

use std::time::Duration;

use hotline_persistence::tables::messages::{MessageRow, MessageType};
use hotline_persistence::{CompanyId, ContactId, MessageId};
use parking_lot::Mutex;
use serde_json::Value;

use super::ChannelKey;
use super::provider::{Accepted, SendFailure};
use crate::ttl_cache::TtlCache;

/// How long an echo is expected: a provider reports a message within seconds.
const EXPECTED_FOR: Duration = Duration::from_secs(300);

/// Maximum ids in memory, some 150 bytes each. Older ones are found in the tables.
const IDS_MAX: usize = 50_000;

/// Maximum contacts to whom something was just sent, some 500 bytes each.
const CONTACTS_MAX: usize = 20_000;

/// Maximum expected parts of one contact; the oldest are dropped.
const PARTS_MAX: usize = 16;

/// How long a merge is remembered: as long as a message is retried by default.
const MERGED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum remembered contacts that were merged into one contact; the oldest are dropped.
const MERGED_MAX: usize = 8;

/// Characters of a text that are compared, from its start.
const TEXT_CHARACTERS: usize = 256;

/// A part of a message that a provider reports as one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SentPart {
    /// A text, normalized by [`normalize_text`].
    Text(String),
    /// A file, or another attachment.
    Attachment,
}

impl SentPart {
    /// The part that is a text.
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(normalize_text(text))
    }

    /// The parts of a message, in the order in which they are sent.
    fn of(message: &MessageRow) -> Vec<Self> {
        let body = message.body.as_deref().filter(|body| !body.is_empty()).map(Self::text);
        match message.kind {
            MessageType::Text => body.into_iter().collect(),
            MessageType::Media => std::iter::once(Self::Attachment).chain(body).collect(),
            MessageType::Interactive => message.interactive.iter().map(Self::of_interactive).collect(),
            MessageType::Template | MessageType::Note | MessageType::System => Vec::new(),
        }
    }

    /// A link is sent as an attachment, everything else as a text with quick replies.
    fn of_interactive(interactive: &Value) -> Self {
        match interactive["type"].as_str() {
            Some("cta_url") => Self::Attachment,
            _ => Self::text(interactive["body"]["text"].as_str().unwrap_or_default()),
        }
    }
}

/// Removes the differences in whitespace that providers make, and shortens the text, so that two can be compared.
fn normalize_text(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TEXT_CHARACTERS).collect()
}

/// Whose message an id belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdOwner {
    /// A message that was sent through Hotline.
    Own,
    /// A message of another app.
    OtherApp,
}

/// The recent sends of all channels.
pub(crate) struct OwnSends(Mutex<RecentSends>);

struct RecentSends {
    ids: TtlCache<(ChannelKey, String), IdOwner>,
    /// The sent parts whose echoes and ids have not arrived yet.
    expected: TtlCache<(ChannelKey, ContactId), Vec<(MessageId, SentPart)>>,
    /// For a contact, the contacts that were merged into it: messages to them may still be on their way.
    merged: TtlCache<(CompanyId, ContactId), Vec<ContactId>>,
}

impl Default for OwnSends {
    fn default() -> Self {
        let (ids, expected) = (TtlCache::new(IDS_MAX, EXPECTED_FOR), TtlCache::new(CONTACTS_MAX, EXPECTED_FOR));
        let merged = TtlCache::new(CONTACTS_MAX, MERGED_FOR);
        Self(Mutex::new(RecentSends { ids, expected, merged }))
    }
}

impl OwnSends {
    /// Expects the echoes of a message that is about to be sent; `is_file_accepted`: the provider has its file already.
    pub(crate) fn begin(&self, channel: ChannelKey, message: &MessageRow, is_file_accepted: bool) {
        let sends = self.0.lock();
        let key = (channel, message.contact_id);
        let mut expected = sends.expected.get(&key).unwrap_or_default();
        expected.extend(unsent_parts(message, is_file_accepted).map(|part| (message.id, part)));
        if expected.is_empty() {
            return;
        }
        let excess = expected.len().saturating_sub(PARTS_MAX);
        expected.drain(..excess);
        sends.expected.insert(key, expected);
    }

    /// Records the provider's answer. An id that already belongs to a stored echo is left out of the answer, because an
    /// id belongs to one message only.
    pub(crate) fn end(
        &self,
        channel: ChannelKey,
        message: &MessageRow,
        outcome: Result<Accepted, SendFailure>,
        file_accepted: Option<&Accepted>,
    ) -> Result<Accepted, SendFailure> {
        let sends = self.0.lock();
        let first_part = SentPart::of(message).into_iter().next();
        match outcome {
            Ok(Accepted { provider_message_id, text_message_id }) => {
                let text = message.body.as_deref().map(SentPart::text);
                sends.assign_id(channel, message, text.as_ref(), text_message_id);
                let id = sends.assign_id(channel, message, first_part.as_ref(), provider_message_id);
                Ok(Accepted { provider_message_id: id, text_message_id: None })
            }
            Err(failure) => {
                let file_id = file_accepted.and_then(|accepted| accepted.provider_message_id.clone());
                let is_file_accepted = file_id.is_some();
                sends.assign_id(channel, message, first_part.as_ref(), file_id);
                // Without an answer the provider may have the message, so its echo is still expected.
                if !matches!(failure, SendFailure::Unknown { .. }) {
                    unsent_parts(message, is_file_accepted)
                        .for_each(|part| sends.stop_expecting(channel, message, &part));
                }
                Err(failure)
            }
        }
    }

    /// Whether an id belongs to a message of ours.
    pub(crate) fn is_own(&self, channel: ChannelKey, id: &str) -> bool {
        self.0.lock().owner(channel, id) == Some(IdOwner::Own)
    }

    /// Whether the echo with this id shows a message that was just sent to this contact; `named_message` is our id of
    /// the message, if the echo has one. Assigns the id to a message of ours or, if the echo shows none, to another
    /// app's.
    pub(crate) fn claim(
        &self,
        channel: ChannelKey,
        contact: Option<ContactId>,
        id: &str,
        part: &SentPart,
        named_message: Option<MessageId>,
    ) -> bool {
        let sends = self.0.lock();
        if let Some(owner) = sends.owner(channel, id) {
            return owner == IdOwner::Own;
        }
        let is_own = contact.is_some_and(|contact| sends.remove_shown(channel, contact, part, named_message));
        let owner = if is_own { IdOwner::Own } else { IdOwner::OtherApp };
        sends.ids.insert((channel, id.to_owned()), owner);
        is_own
    }

    /// Records that an id belongs to a message of ours.
    pub(crate) fn record_own(&self, channel: ChannelKey, id: &str) {
        self.0.lock().ids.insert((channel, id.to_owned()), IdOwner::Own);
    }

    /// Records that a contact was merged into another.
    pub(crate) fn record_merge(&self, company: CompanyId, from: ContactId, into: ContactId) {
        let sends = self.0.lock();
        let merged_into = |contact: ContactId| sends.merged.get(&(company, contact)).unwrap_or_default();
        let mut merged = merged_into(into);
        let mut added = merged_into(from);
        added.push(from);
        added.retain(|contact| !merged.contains(contact));
        merged.extend(added);
        let excess = merged.len().saturating_sub(MERGED_MAX);
        merged.drain(..excess);
        sends.merged.insert((company, into), merged);
    }

    /// Drops a company's sends.
    pub(super) fn forget_company(&self, company: CompanyId) {
        let sends = self.0.lock();
        let RecentSends { ids, expected, merged } = &*sends;
        merged.remove_where(|(owner, _)| *owner == company);
        ids.remove_where(|((owner, _), _)| *owner == company);
        expected.remove_where(|((owner, _), _)| *owner == company);
    }
}

/// The parts of a message that the provider does not have yet; `is_file_accepted`: it has the message's file.
fn unsent_parts(message: &MessageRow, is_file_accepted: bool) -> impl Iterator<Item = SentPart> {
    let is_sent_file = move |part: &SentPart| is_file_accepted && *part == SentPart::Attachment;
    SentPart::of(message).into_iter().filter(move |part| !is_sent_file(part))
}

impl RecentSends {
    fn owner(&self, channel: ChannelKey, id: &str) -> Option<IdOwner> {
        self.ids.get(&(channel, id.to_owned()))
    }

    /// Assigns an id to a part; `None` if the id belongs to another app's message.
    fn assign_id(
        &self,
        channel: ChannelKey,
        message: &MessageRow,
        part: Option<&SentPart>,
        id: Option<String>,
    ) -> Option<String> {
        let id = id?;
        let owner = self.owner(channel, &id);
        if owner == Some(IdOwner::Own) {
            // The echo came first.
            return Some(id);
        }
        if let Some(part) = part {
            self.stop_expecting(channel, message, part);
        }
        if owner == Some(IdOwner::OtherApp) {
            tracing::warn!(message.id = %message.id, company.id = %channel.0, "the echo of a message differs from it and is shown as a message of another app");
            return None;
        }
        self.ids.insert((channel, id.clone()), IdOwner::Own);
        Some(id)
    }

    /// Stops expecting one echo of a part of a message.
    fn stop_expecting(&self, channel: ChannelKey, message: &MessageRow, part: &SentPart) {
        self.remove_first(channel, message.contact_id, |(id, expected)| *id == message.id && expected == part);
    }

    /// Removes the expected part that an echo shows; `false` if there is none.
    fn remove_shown(
        &self,
        channel: ChannelKey,
        contact: ContactId,
        part: &SentPart,
        named_message: Option<MessageId>,
    ) -> bool {
        match named_message {
            // The provider may have changed the content, but the id is certain.
            Some(message) => {
                self.remove_first(channel, contact, |(id, expected)| *id == message && expected == part)
                    || self.remove_first(channel, contact, |(id, _)| *id == message)
            }
            None => self.remove_first(channel, contact, |(_, expected)| expected == part),
        }
    }

    /// Removes the first matching expected part of a contact, or of those merged into it; `false` if there is none.
    fn remove_first(
        &self,
        channel: ChannelKey,
        contact: ContactId,
        is_match: impl Fn(&(MessageId, SentPart)) -> bool,
    ) -> bool {
        let merged = self.merged.get(&(channel.0, contact)).unwrap_or_default();
        std::iter::once(contact).chain(merged).any(|contact| {
            let key = (channel, contact);
            let Some(mut expected) = self.expected.get(&key) else { return false };
            let Some(position) = expected.iter().position(&is_match) else { return false };
            expected.remove(position);
            if expected.is_empty() {
                self.expected.remove(&key);
            } else {
                self.expected.insert(key, expected);
            }
            true
        })
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use hotline_persistence::ChannelId;
    use hotline_persistence::tables::messages::MessageError;

    use super::*;
    use crate::test_rows;

    const PAGE: ChannelKey = (CompanyId::new(1), ChannelId::new(1));
    const MARIA: ContactId = ContactId::new(7);

    const FILE_NOT_ACCEPTED: bool = false;
    const FILE_ACCEPTED: bool = true;

    fn message(id: i64, kind: MessageType, body: &str) -> MessageRow {
        MessageRow { contact_id: MARIA, kind, body: Some(body.to_owned()), ..test_rows::message(id) }
    }

    fn accepted(id: &str) -> Accepted {
        Accepted { provider_message_id: Some(id.to_owned()), text_message_id: None }
    }

    fn claim(sends: &OwnSends, id: &str, text: &str) -> bool {
        sends.claim(PAGE, Some(MARIA), id, &SentPart::text(text), None)
    }

    #[test]
    fn an_echo_before_or_after_the_answer_is_ours_once_and_the_next_of_the_same_text_is_not() {
        let (sends, hello) = (OwnSends::default(), message(1, MessageType::Text, "hello  you"));
        sends.begin(PAGE, &hello, FILE_NOT_ACCEPTED);
        assert!(!claim(&sends, "m_other", "other words"));
        assert!(!sends.claim(PAGE, Some(ContactId::new(8)), "m_8", &SentPart::text("hello you"), None));
        assert!(claim(&sends, "m_1", "hello you"));
        assert_eq!(sends.end(PAGE, &hello, Ok(accepted("m_1")), None), Ok(accepted("m_1")));
        assert!(claim(&sends, "m_1", "hello you") && sends.is_own(PAGE, "m_1"));
        sends.begin(PAGE, &hello, FILE_NOT_ACCEPTED);
        assert!(sends.end(PAGE, &hello, Ok(accepted("m_2")), None).is_ok());
        assert!(claim(&sends, "m_2", "hello you"));
        assert!(!claim(&sends, "m_3", "hello you"), "typed in another app");
        assert!(!claim(&sends, "m_3", "hello you"), "not even when it is repeated");
    }

    #[test]
    fn a_lost_answer_leaves_its_echo_expected_and_a_refusal_does_not() {
        let (sends, hello) = (OwnSends::default(), message(1, MessageType::Text, "hello"));
        sends.begin(PAGE, &hello, FILE_NOT_ACCEPTED);
        let lost = SendFailure::Unknown { reason: "lost".to_owned(), is_file_only: false, may_be_named: false };
        assert!(sends.end(PAGE, &hello, Err(lost), None).is_err());
        sends.begin(PAGE, &hello, FILE_NOT_ACCEPTED);
        assert!(claim(&sends, "m_1", "hello"));
        assert!(sends.end(PAGE, &hello, Ok(accepted("m_2")), None).is_ok());
        assert!(claim(&sends, "m_2", "hello") && !claim(&sends, "m_3", "hello"));
        sends.begin(PAGE, &hello, FILE_NOT_ACCEPTED);
        let refused = MessageError { code: "10".to_owned(), message: "outside the window".to_owned() };
        assert!(sends.end(PAGE, &hello, Err(SendFailure::Failed(refused)), None).is_err());
        assert!(!claim(&sends, "m_4", "hello"));
    }

    #[test]
    fn a_file_and_its_text_have_an_echo_each() {
        let (sends, file) = (OwnSends::default(), message(1, MessageType::Media, "the text"));
        sends.begin(PAGE, &file, FILE_NOT_ACCEPTED);
        assert!(sends.claim(PAGE, Some(MARIA), "m_file", &SentPart::Attachment, Some(MessageId::new(1))));
        let lost = SendFailure::Unknown { reason: "lost".to_owned(), is_file_only: false, may_be_named: false };
        assert!(sends.end(PAGE, &file, Err(lost), Some(&accepted("m_file"))).is_err());
        sends.begin(PAGE, &file, FILE_ACCEPTED);
        let both = Accepted { text_message_id: Some("m_text".to_owned()), ..accepted("m_file") };
        assert_eq!(sends.end(PAGE, &file, Ok(both), Some(&accepted("m_file"))), Ok(accepted("m_file")));
        assert!(claim(&sends, "m_text", "the text"));
        assert!(claim(&sends, "m_lost", "the text"), "the echo of the call whose answer was lost");
        assert!(!claim(&sends, "m_typed", "the text"));
        sends.forget_company(PAGE.0);
        assert!(!sends.is_own(PAGE, "m_text"));
    }

    #[test]
    fn an_id_of_a_stored_echo_is_not_given_to_a_message() {
        let (sends, hello) = (OwnSends::default(), message(1, MessageType::Text, "hello"));
        sends.begin(PAGE, &hello, FILE_NOT_ACCEPTED);
        assert!(!claim(&sends, "m_1", "what the provider made of it"));
        let end = sends.end(PAGE, &hello, Ok(accepted("m_1")), None);
        assert_eq!(end, Ok(Accepted { provider_message_id: None, text_message_id: None }));
    }
}
