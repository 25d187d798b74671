//! The calls of the social channels. Both send `messaging` events:
//! <https://developers.facebook.com/documentation/business-messaging/messenger-platform/webhooks/webhook-events/messages>,
//! beside it `message-deliveries`, `message-reads`, `message-reactions`, `messaging_postbacks` and
//! `messaging_referrals`; for instagram <https://developers.facebook.com/docs/instagram-messaging/webhooks> and
//! <https://developers.facebook.com/documentation/instagram-platform/webhooks/examples>.
//!
//! A text becomes a text; each file becomes a message, the first one with the text as its caption; a chosen button
//! (`postback`) or quick reply becomes its title, and its payload the message's `content.reply`. Other attachments (a story, a shared post) become a text that names and links them.
//! Neither channel sends the contact's name. Echoes of our own messages, and events for other applications (`standby`), are
//! ignored.
//!
//! News are no messages: a reaction, an edit (`message_edit`,
//! <https://developers.facebook.com/docs/messenger-platform/reference/webhook-events/message-edits>) and a withdrawal
//! (`is_deleted`, <https://developers.facebook.com/docs/instagram-platform/webhooks>) change their message. Any other
//! event becomes a notice in the open ticket, if there is one.

use std::iter;

use hotline_actors::services::{InboundMessage, MessageRevision, Notice, Sender};
use hotline_persistence::tables::contacts::Referral;
use hotline_persistence::tables::messages::{ChosenOption, DeliveryStatus, Direction, Reaction, Revision};
use serde_json::{Value, json};

use super::call::{
    Call, CallEvent, EventKind, FileReference, body, emoji, id, id_at, last_four, lines, list, name_at, place,
    placeholder, text, text_at, time,
};

/// The kinds of attachment that are files.
const FILE_KINDS: [&str; 5] = ["image", "audio", "video", "file", "sticker"];

/// Maximum number of attachments that are processed: more than an app sends at once.
const ATTACHMENTS_MAX: usize = 32;

/// The fields in which Instagram reports events that are not listed as `messaging`.
const EVENT_FIELDS: [&str; 7] = [
    "messages",
    "message_edit",
    "messaging_postbacks",
    "messaging_seen",
    "message_reactions",
    "messaging_referral",
    "messaging_referrals",
];

/// One of the two networks.
#[derive(Clone, Copy)]
pub(super) struct Network {
    /// The origin of new contacts.
    pub origin: &'static str,
    /// The name of contacts without one.
    pub name: &'static str,
}

pub(super) const MESSENGER: Network = Network { origin: "messenger", name: "Messenger" };
pub(super) const INSTAGRAM: Network = Network { origin: "instagram", name: "Instagram" };

/// Parses a call.
pub(super) fn parse_call(json: &Value, network: Network) -> Call {
    let mut call = Call::default();
    for entry in list(json, "entry") {
        let account = id(entry, "id");
        for event in list(entry, "messaging") {
            network.add_event(account.as_deref(), event, &mut call);
        }
        for change in list(entry, "changes") {
            let field = change.get("field").and_then(Value::as_str);
            match change.get("value") {
                Some(event) if field.is_some_and(|field| EVENT_FIELDS.contains(&field)) => {
                    network.add_event(account.as_deref(), event, &mut call);
                }
                _ => call.ignored += 1,
            }
        }
        call.ignored += list(entry, "standby").len();
    }
    call
}

impl Network {
    fn add_event(self, account: Option<&str>, event: &Value, call: &mut Call) {
        match self.parse_event(event) {
            None => call.unreadable += 1,
            Some(kinds) if kinds.is_empty() => call.ignored += 1,
            Some(kinds) => {
                let events = kinds.into_iter().map(|kind| CallEvent { account: account.map(str::to_owned), kind });
                call.events.extend(events);
            }
        }
    }

    /// The events that an element stands for: none if it is ignored. `None` when it is unreadable.
    fn parse_event(self, event: &Value) -> Option<Vec<EventKind>> {
        let sender = id_at(event, "/sender/id")?;
        let messages = if let Some(withdrawn) = event.get("message").filter(|message| is_set(message, "is_deleted")) {
            return revision(withdrawn, event, Revision::Deleted { of: Direction::Inbound }).map(|kind| vec![kind]);
        } else if let Some(message) = event.get("message") {
            self.parse_message(&sender, event, message)?
        } else if let Some(postback) = event.get("postback") {
            vec![self.parse_postback(&sender, event, postback)]
        } else if let Some(reaction) = event.get("reaction") {
            return revision(reaction, event, parse_reaction(event, reaction)?).map(|kind| vec![kind]);
        } else if let Some(edit) = event.get("message_edit") {
            return revision(edit, event, parse_edit(event, edit)?).map(|kind| vec![kind]);
        } else if let Some(delivery) = event.get("delivery") {
            return Some(parse_statuses(&sender, event, delivery, &DeliveryStatus::Delivered));
        } else if let Some(read_receipt) = event.get("read") {
            return Some(parse_statuses(&sender, event, read_receipt, &DeliveryStatus::Read));
        } else if let Some(value) = event.get("referral") {
            return Some(vec![EventKind::Referral { address: sender, referral: referral(value) }]);
        } else {
            return Some(self.parse_notice(&sender, event).into_iter().collect());
        };
        Some(messages.into_iter().map(|message| EventKind::Message(Box::new(message))).collect())
    }

    /// A message without content.
    fn new_message(self, sender: &str, event: &Value, message_id: String) -> InboundMessage {
        InboundMessage {
            message_id,
            written_at: time(event, "timestamp"),
            from: Sender {
                number: None,
                address: Some(sender.to_owned()),
                name: name_at(event, "/sender/name"),
                fallback_name: format!("{} {}", self.name, last_four(sender)),
                social_username: name_at(event, "/sender/username"),
                is_group: false,
                origin: self.origin,
            },
            body: None,
            media: None,
            reply: None,
            quotes: None,
            referral: Referral::default(),
            author: None,
        }
    }

    /// One message for each file, or one for the text: none if it is ignored. `None` when it is unreadable.
    fn parse_message(self, sender: &str, event: &Value, message: &Value) -> Option<Vec<InboundMessage>> {
        if is_set(message, "is_echo") || is_set(message, "is_self") {
            return Some(Vec::new());
        }
        let mid = id(message, "mid")?;
        let quick_reply = message.get("quick_reply");
        let story = text_at(message, "/reply_to/story/url").map(|url| format!("{} {url}", placeholder("story")));
        let text_body = message.get("text").and_then(Value::as_str).map(str::to_owned);
        let (mut text_body, files) = parse_attachments(message, lines([story, text_body]));
        if text_body.is_none() && files.is_empty() {
            text_body = body(placeholder(if is_set(message, "is_unsupported") { "unsupported" } else { "message" }));
        }
        let mut media = files.into_iter().map(FileReference::into_media);
        let first = InboundMessage {
            body: text_body,
            media: media.next(),
            reply: quick_reply.map(|reply| ChosenOption::of_payload(text(reply, "payload"), text(message, "text"))),
            quotes: id_at(message, "/reply_to/mid"),
            referral: referral(message.get("referral").unwrap_or(&Value::Null)),
            ..self.new_message(sender, event, mid.clone())
        };
        // The provider has one message where we have several: each needs its own id for deduplication.
        let others = media.zip(2..).map(|(media, number)| InboundMessage {
            media: Some(media),
            ..self.new_message(sender, event, format!("{mid}#{number}"))
        });
        Some(iter::once(first).chain(others).collect())
    }

    fn parse_postback(self, sender: &str, event: &Value, postback: &Value) -> InboundMessage {
        // Older events have no id; no contact presses two buttons in a millisecond.
        let message_id = id(postback, "mid").unwrap_or_else(|| synthetic_id("postback", sender, event));
        let (title, payload) = (text(postback, "title"), text(postback, "payload"));
        let label = title.clone().or_else(|| payload.clone());
        InboundMessage {
            body: body(label.unwrap_or_else(|| placeholder("postback"))),
            reply: Some(ChosenOption::of_payload(payload, title)),
            referral: referral(postback.get("referral").unwrap_or(&Value::Null)),
            ..self.new_message(sender, event, message_id)
        }
    }

    /// A notice of an event that this release does not know; `None` if it has no content.
    fn parse_notice(self, sender: &str, event: &Value) -> Option<EventKind> {
        let mut parts = event.as_object()?.iter();
        let (kind, _) = parts.find(|(_, part)| part.is_object() && part.get("id").is_none())?;
        tracing::info!(kind, "provider sent news of a kind without an effect");
        let message_id = synthetic_id("notice", sender, event);
        let from = self.new_message(sender, event, message_id.clone()).from;
        Some(EventKind::Notice(Box::new(Notice { message_id, from, body: placeholder(kind) })))
    }
}

fn is_set(message: &Value, flag: &str) -> bool {
    message.get(flag).and_then(Value::as_bool) == Some(true)
}

/// What happened to the message that `part` names; `None` when it is unreadable.
fn revision(part: &Value, event: &Value, revision: Revision) -> Option<EventKind> {
    let revision = MessageRevision { message_id: id(part, "mid")?, revision, at: time(event, "timestamp") };
    Some(EventKind::Revision(Box::new(revision)))
}

/// A reaction, or none if it was withdrawn. `None` when it is unreadable.
fn parse_reaction(event: &Value, reaction: &Value) -> Option<Revision> {
    let is_withdrawn = text(reaction, "action").as_deref() == Some("unreact");
    let shown = text(reaction, "emoji").or_else(|| text(reaction, "reaction").map(|name| placeholder(&name)));
    let shown = if is_withdrawn { None } else { Some(shown?) };
    Some(emoji(Reaction::OF_CONTACT.to_owned(), shown, None, time(event, "timestamp")))
}

/// An edit, named by its number; `None` when it is unreadable.
fn parse_edit(event: &Value, edit: &Value) -> Option<Revision> {
    let new_body = edit.get("text").and_then(Value::as_str).and_then(body)?;
    let number = text(edit, "num_edit").or_else(|| text(event, "timestamp"))?;
    Some(Revision::Edited { of: Direction::Inbound, body: Some(new_body), id: format!("edit {number}") })
}

/// An id for events to which the provider gives none.
fn synthetic_id(kind: &str, sender: &str, event: &Value) -> String {
    format!("{kind}:{sender}:{}", time(event, "timestamp").map_or(0, |at| at.timestamp_millis()))
}

/// The status of our messages: of each named message, or, if none is named, of all up to a time.
fn parse_statuses(sender: &str, event: &Value, receipt: &Value, status: &DeliveryStatus) -> Vec<EventKind> {
    let at = time(receipt, "watermark").or_else(|| time(event, "timestamp"));
    let mut message_ids: Vec<String> =
        list(receipt, "mids").iter().filter_map(|mid| id(&json!({"mid": mid}), "mid")).collect();
    message_ids.extend(id(receipt, "mid"));
    if message_ids.is_empty() {
        let until = time(receipt, "watermark");
        let of_all = |until| EventKind::StatusesUntil { address: sender.to_owned(), status: status.clone(), until };
        return until.map(of_all).into_iter().collect();
    }
    let of_one = |message_id| EventKind::Status { message_id, names: None, status: status.clone(), at };
    message_ids.into_iter().map(of_one).collect()
}

/// The body of a message, `text_body` and a line for each attachment that is not a file, and its files.
fn parse_attachments(message: &Value, text_body: Option<String>) -> (Option<String>, Vec<FileReference>) {
    let (mut text_body, mut files) = (text_body, Vec::new());
    for attachment in list(message, "attachments").iter().take(ATTACHMENTS_MAX) {
        let kind = text(attachment, "type").unwrap_or_else(|| "attachment".to_owned());
        match text_at(attachment, "/payload/url") {
            Some(url) if FILE_KINDS.contains(&kind.as_str()) => {
                let file_name = name_at(attachment, "/payload/title").or_else(|| name_at(attachment, "/name"));
                files.push(FileReference { url: Some(url), file_name, ..FileReference::default() });
            }
            url => text_body = lines([text_body.take(), Some(attachment_text(&kind, attachment, url))]),
        }
    }
    (text_body, files)
}

/// The text for an attachment that is not a file.
fn attachment_text(kind: &str, attachment: &Value, url: Option<String>) -> String {
    let payload = attachment.get("payload").unwrap_or(&Value::Null);
    let title = text(attachment, "title").or_else(|| text(payload, "title"));
    if let Some(coordinates) = payload.get("coordinates")
        && let Some(location) = place(title.clone(), None, coordinates)
    {
        return location;
    }
    let link = url.or_else(|| text(attachment, "url")).or_else(|| text(payload, "link"));
    [Some(placeholder(kind)), title, link].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The advertisement or link that brought the contact.
fn referral(value: &Value) -> Referral {
    let ad = value.get("ads_context_data").unwrap_or(&Value::Null);
    let (photo, video) = (text(ad, "photo_url"), text(ad, "video_url"));
    let media_type = match (&photo, &video) {
        (Some(_), _) => Some("image".to_owned()),
        (None, Some(_)) => Some("video".to_owned()),
        (None, None) => None,
    };
    Referral {
        ctwa_clid: text(value, "ctwa_clid"),
        source_url: text(value, "referer_uri").or_else(|| text(value, "source_url")),
        source_id: text(value, "ad_id").or_else(|| text(value, "ref")),
        headline: text(ad, "ad_title"),
        media_type,
        media_url: photo.or(video),
    }
}
