//! The calls of the social channels. Both send `messaging` events:
//! <https://developers.facebook.com/documentation/business-messaging/messenger-platform/webhooks/webhook-events/messages>,
//! beside it `message-deliveries`, `message-reads`, `message-reactions`, `messaging_postbacks` and
//! `messaging_referrals`; for instagram <https://developers.facebook.com/docs/instagram-messaging/webhooks> and
//! <https://developers.facebook.com/documentation/instagram-platform/webhooks/examples>.
//!
//! A text becomes a text; each file becomes a message, the first one with the text as its caption; a chosen button
//! (`postback`) or quick reply becomes its title, with what was chosen beside it; a reaction becomes its emoji, quoting its message. Other attachments (a story, a
//! shared post) become a text that names and links them. Neither channel sends the contact's name. Echoes of our own
//! messages, withdrawn messages, and events for other applications (`standby`) are ignored.

use hotline_actors::services::{InboundMessage, Sender};
use hotline_persistence::tables::contacts::Referral;
use hotline_persistence::tables::messages::{ChosenOption, DeliveryStatus};
use serde_json::{Value, json};

use super::call::{
    Call, CallEvent, EventKind, FileReference, body, id, id_at, lines, list, name_at, place, placeholder, text,
    text_at, time,
};

/// The kinds of attachment that are files.
const FILES: [&str; 5] = ["image", "audio", "video", "file", "sticker"];

/// Maximum number of attachments that are processed: more than anyone sends at once.
const ATTACHMENTS_MAX: usize = 32;

/// The fields in which Instagram reports events that are not listed as `messaging`.
const FIELDS: [&str; 6] = [
    "messages",
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
pub(super) fn read(call: &Value, network: Network) -> Call {
    let mut read = Call::default();
    for entry in list(call, "entry") {
        let account = id(entry, "id");
        for event in list(entry, "messaging") {
            network.read_event(account.as_deref(), event, &mut read);
        }
        for change in list(entry, "changes") {
            let field = change.get("field").and_then(Value::as_str);
            match change.get("value") {
                Some(event) if field.is_some_and(|field| FIELDS.contains(&field)) => {
                    network.read_event(account.as_deref(), event, &mut read);
                }
                _ => read.ignored += 1,
            }
        }
        read.ignored += list(entry, "standby").len();
    }
    read
}

impl Network {
    fn read_event(self, account: Option<&str>, event: &Value, read: &mut Call) {
        let Some(sender) = id_at(event, "/sender/id") else {
            read.unreadable += 1;
            return;
        };
        let before = read.events.len();
        let mut add = |kind| read.events.push(CallEvent { account: account.map(str::to_owned), kind });
        let mut is_readable = true;
        if let Some(message) = event.get("message") {
            is_readable = self.read_message(&sender, event, message, &mut add);
        } else if let Some(postback) = event.get("postback") {
            add(EventKind::Message(Box::new(self.postback(&sender, event, postback))));
        } else if let Some(reaction) = event.get("reaction") {
            match self.reaction(&sender, event, reaction) {
                Some(Some(inbound)) => add(EventKind::Message(Box::new(inbound))),
                Some(None) => {}
                None => is_readable = false,
            }
        } else if let Some(delivery) = event.get("delivery") {
            add_statuses(&sender, event, delivery, &DeliveryStatus::Delivered, &mut add);
        } else if let Some(read_receipt) = event.get("read") {
            add_statuses(&sender, event, read_receipt, &DeliveryStatus::Read, &mut add);
        } else if let Some(value) = event.get("referral") {
            add(EventKind::Referral { address: sender, referral: referral(value) });
        }
        match (read.events.len() == before, is_readable) {
            (_, false) => read.unreadable += 1,
            (true, true) => read.ignored += 1,
            (false, true) => {}
        }
    }

    fn inbound(self, sender: &str, event: &Value, message_id: String) -> InboundMessage {
        let last = sender.char_indices().rev().nth(3).map_or(0, |(start, _)| start);
        InboundMessage {
            message_id,
            written_at: time(event, "timestamp"),
            from: Sender {
                number: None,
                address: Some(sender.to_owned()),
                name: name_at(event, "/sender/name"),
                fallback_name: format!("{} {}", self.name, &sender[last..]),
                social_username: name_at(event, "/sender/username"),
                origin: self.origin,
            },
            body: None,
            media: None,
            reply: None,
            quotes: None,
            referral: Referral::default(),
        }
    }

    /// `false` when the message is unreadable.
    fn read_message(self, sender: &str, event: &Value, message: &Value, add: &mut impl FnMut(EventKind)) -> bool {
        let is = |flag: &str| message.get(flag).and_then(Value::as_bool) == Some(true);
        if is("is_echo") || is("is_self") || is("is_deleted") {
            return true;
        }
        let Some(mid) = id(message, "mid") else { return false };
        let mut first = self.inbound(sender, event, mid.clone());
        first.quotes = id_at(message, "/reply_to/mid");
        let chosen = message.get("quick_reply");
        first.reply = chosen.map(|chosen| ChosenOption::of_payload(text(chosen, "payload"), text(message, "text")));
        first.referral = referral(message.get("referral").unwrap_or(&Value::Null));
        let story = text_at(message, "/reply_to/story/url").map(|url| format!("{} {url}", placeholder("story")));
        let text_body = message.get("text").and_then(Value::as_str).map(str::to_owned);
        first.body = lines([story, text_body]);

        let mut files = Vec::new();
        for attachment in list(message, "attachments").iter().take(ATTACHMENTS_MAX) {
            let kind = text(attachment, "type").unwrap_or_else(|| "attachment".to_owned());
            match text_at(attachment, "/payload/url") {
                Some(url) if FILES.contains(&kind.as_str()) => {
                    let file_name = name_at(attachment, "/payload/title").or_else(|| name_at(attachment, "/name"));
                    files.push(FileReference { url: Some(url), file_name, ..FileReference::default() });
                }
                url => first.body = lines([first.body.take(), Some(attachment_text(&kind, attachment, url))]),
            }
        }
        if first.body.is_none() && files.is_empty() {
            first.body = body(placeholder(if is("is_unsupported") { "unsupported" } else { "message" }));
        }
        let mut files = files.into_iter().map(FileReference::into_media);
        first.media = files.next();
        add(EventKind::Message(Box::new(first)));
        for (media, number) in files.zip(2..) {
            // The provider has one message where we have several: each needs its own id for deduplication.
            let more = self.inbound(sender, event, format!("{mid}#{number}"));
            add(EventKind::Message(Box::new(InboundMessage { media: Some(media), ..more })));
        }
        true
    }

    fn postback(self, sender: &str, event: &Value, postback: &Value) -> InboundMessage {
        // Older events have no id; nobody presses two buttons in a millisecond.
        let message_id = id(postback, "mid").unwrap_or_else(|| synthetic_id("postback", sender, event));
        let (title, payload) = (text(postback, "title"), text(postback, "payload"));
        let label = title.clone().or_else(|| payload.clone());
        InboundMessage {
            body: body(label.unwrap_or_else(|| placeholder("postback"))),
            reply: Some(ChosenOption::of_payload(payload, title)),
            referral: referral(postback.get("referral").unwrap_or(&Value::Null)),
            ..self.inbound(sender, event, message_id)
        }
    }

    /// `None` when it is unreadable; `Some(None)` when it was withdrawn.
    fn reaction(self, sender: &str, event: &Value, reaction: &Value) -> Option<Option<InboundMessage>> {
        let mid = id(reaction, "mid")?;
        if text(reaction, "action").as_deref() == Some("unreact") {
            return Some(None);
        }
        let emoji = text(reaction, "emoji").or_else(|| text(reaction, "reaction").map(|name| placeholder(&name)))?;
        let message_id = format!("{}:{mid}", synthetic_id("reaction", sender, event));
        Some(Some(InboundMessage { body: body(emoji), quotes: Some(mid), ..self.inbound(sender, event, message_id) }))
    }
}

/// An id for events to which the provider gives none.
fn synthetic_id(kind: &str, sender: &str, event: &Value) -> String {
    format!("{kind}:{sender}:{}", time(event, "timestamp").map_or(0, |at| at.timestamp_millis()))
}

/// The status of our messages: of each named message, or, if none is named, of all up to a time.
fn add_statuses(sender: &str, event: &Value, value: &Value, status: &DeliveryStatus, add: &mut impl FnMut(EventKind)) {
    let at = time(value, "watermark").or_else(|| time(event, "timestamp"));
    let mut message_ids: Vec<String> =
        list(value, "mids").iter().filter_map(|mid| id(&json!({"mid": mid}), "mid")).collect();
    message_ids.extend(id(value, "mid"));
    if message_ids.is_empty()
        && let Some(until) = time(value, "watermark")
    {
        add(EventKind::StatusesUntil { address: sender.to_owned(), status: status.clone(), until });
    }
    for message_id in message_ids {
        add(EventKind::Status { message_id, status: status.clone(), at });
    }
}

/// The text for an attachment that is not a file.
fn attachment_text(kind: &str, attachment: &Value, url: Option<String>) -> String {
    let payload = attachment.get("payload").unwrap_or(&Value::Null);
    let title = text(attachment, "title").or_else(|| text(payload, "title"));
    if let Some(at) = payload.get("coordinates")
        && let Some(place) = place(title.clone(), None, at)
    {
        return place;
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
