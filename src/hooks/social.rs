//! The calls of the social channels, Messenger and Instagram. Both send `messaging` events:
//! <https://developers.facebook.com/documentation/business-messaging/messenger-platform/webhooks/webhook-events/messages>,
//! and the pages beside it: `message-deliveries`, `message-reads`, `message-reactions`, `messaging_postbacks` and
//! `messaging_referrals`; for Instagram <https://developers.facebook.com/docs/instagram-messaging/webhooks> and
//! <https://developers.facebook.com/documentation/instagram-platform/webhooks/examples>.
//!
//! A text stays a text; each file becomes a message, the first one with the text as its caption; a chosen button
//! (`postback`) or quick reply becomes its title. Other attachments (a shared post) become a text that names and links
//! them. The picture of a story is a file as well, because the provider shows it for a day only:
//! <https://developers.facebook.com/docs/messenger-platform/instagram/features/story-mention>. The message's `content`
//! has the same in structured form, for programs (`content.rs`). Neither channel sends the contact's name.
//!
//! Messages that the account has sent come back (`is_echo`,
//! <https://developers.facebook.com/documentation/business-messaging/messenger-platform/webhooks/webhook-events/message-echoes>):
//! those of other apps become messages of the company; our own are recognized, and confirm a campaign's message
//! whose response was lost. While another app handles a conversation, its events come as `standby`
//! (<https://developers.facebook.com/documentation/business-messaging/messenger-platform/webhooks/webhook-events/standby>):
//! they have the same form, but the contact is not waiting for the company. A change of the app that handles a
//! conversation (`pass_thread_control`, `take_thread_control`, …/webhook-events/messaging_handovers) is a notice.
//!
//! News is not a message: a reaction, an edit (`message_edit`,
//! <https://developers.facebook.com/docs/messenger-platform/reference/webhook-events/message-edits>) or a deletion
//! (`is_deleted`, <https://developers.facebook.com/docs/instagram-platform/webhooks>) changes its message. Any other
//! event becomes a notice in the open ticket, if there is one.

use std::iter;

use hotline_actors::services::{EchoMessage, InboundMessage, MessageRevision, Notice, Sender};
use hotline_persistence::MessageId;
use hotline_persistence::tables::contacts::Referral;
use hotline_persistence::tables::messages::{
    ChosenOption, DeliveryStatus, Direction, MessageApp, MessageContent, MessageOrigin, Reaction, Reactor, Revision,
    Via,
};
use hotline_persistence::tables::tickets::HandledBy;
use serde_json::{Value, json};

use super::call::{
    Call, CallEvent, EventKind, FileReference, body, id, id_at, last_four, lines, list, location_text, name_at,
    new_reaction, placeholder, text, text_at, time,
};
use super::content;

/// The kinds of attachment that are files.
const FILE_KINDS: [&str; 5] = ["image", "audio", "video", "file", "sticker"];

/// The kinds of attachment that are stories, which have a picture.
const STORY_KINDS: [&str; 3] = ["story_mention", "ig_story", "story"];

/// Maximum number of attachments that are processed: more than an app sends at once.
const ATTACHMENTS_MAX: usize = 32;

/// The fields of `changes` in which Instagram reports events that it does not list in `messaging`.
const EVENT_FIELDS: [&str; 8] = [
    "messages",
    "message_echoes",
    "message_edit",
    "messaging_postbacks",
    "messaging_seen",
    "message_reactions",
    "messaging_referral",
    "messaging_referrals",
];

/// Messenger or Instagram.
#[derive(Clone, Copy)]
pub(super) struct Network {
    /// The origin of new contacts.
    pub origin: &'static str,
    /// The network's name; also that of its own app, and the beginning of a contact's fallback name.
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
        for event in list(entry, "standby") {
            let first = call.events.len();
            network.add_event(account.as_deref(), event, &mut call);
            call.events[first..].iter_mut().for_each(|event| event.kind.set_standby());
        }
    }
    call
}

impl Network {
    fn add_event(self, account: Option<&str>, event: &Value, call: &mut Call) {
        // News of the account's apps has no contact.
        if event.get("app_roles").is_some() {
            call.ignored += 1;
            return;
        }
        match Parties::of(account, event).and_then(|parties| self.parse_event(&parties, event)) {
            None => call.unreadable += 1,
            Some(kinds) if kinds.is_empty() => call.ignored += 1,
            Some(kinds) => {
                let events = kinds.into_iter().map(|kind| CallEvent { account: account.map(str::to_owned), kind });
                call.events.extend(events);
            }
        }
    }

    /// The events of an element: an empty list if it is ignored, `None` if it is unreadable.
    fn parse_event(self, parties: &Parties, event: &Value) -> Option<Vec<EventKind>> {
        let Parties { contact, direction } = parties;
        if let Some(message) = event.get("message") {
            return self.parse_message_event(parties, event, message);
        }
        if let Some(reaction) = event.get("reaction") {
            return revision(reaction, event, parse_reaction(*direction, event, reaction)?).map(|kind| vec![kind]);
        }
        if let Some(edit) = event.get("message_edit") {
            return revision(edit, event, parse_edit(*direction, event, edit)?).map(|kind| vec![kind]);
        }
        if *direction == Direction::Outbound {
            return Some(Vec::new());
        }
        if let Some(postback) = event.get("postback") {
            return Some(vec![EventKind::Message(Box::new(self.parse_postback(contact, event, postback)))]);
        }
        if let Some(delivery) = event.get("delivery") {
            return Some(parse_statuses(contact, event, delivery, &DeliveryStatus::Delivered));
        }
        if let Some(read_receipt) = event.get("read") {
            return Some(parse_statuses(contact, event, read_receipt, &DeliveryStatus::Read));
        }
        if let Some(value) = event.get("referral") {
            return Some(vec![EventKind::Referral { address: contact.clone(), referral: referral(value) }]);
        }
        Some(self.parse_notice(contact, event).into_iter().collect())
    }

    /// The messages of an element, or the deletion of one.
    fn parse_message_event(
        self,
        Parties { contact, direction }: &Parties,
        event: &Value,
        message: &Value,
    ) -> Option<Vec<EventKind>> {
        if is_set(message, "is_deleted") {
            return revision(message, event, Revision::Deleted { of: *direction }).map(|kind| vec![kind]);
        }
        if is_set(message, "is_self") {
            return Some(Vec::new());
        }
        let messages = self.parse_message(contact, event, message)?.into_iter();
        if *direction == Direction::Inbound {
            return Some(messages.map(|message| EventKind::Message(Box::new(message))).collect());
        }
        let (whole_id, origin) = (id(message, "mid")?, self.origin_of(message));
        // `metadata` is the id of our message, if we have sent it.
        let names = text(message, "metadata").and_then(|id| id.parse().ok()).map(MessageId::new);
        let has_attachment = !list(message, "attachments").is_empty();
        let echo = |message| {
            let (whole_id, origin) = (whole_id.clone(), origin.clone());
            EventKind::Echo(Box::new(EchoMessage { message, origin, whole_id, names, has_attachment }))
        };
        Some(messages.map(echo).collect())
    }

    /// The app in which the company has written a message.
    fn origin_of(self, message: &Value) -> MessageOrigin {
        let app = MessageApp::of_id(id(message, "app_id").as_deref());
        // A message without an app's id was written in the app of the channel.
        let (kind, name) = match (&app.id, app.name) {
            (None, _) => (Via::NativeApp, Some(self.name.to_owned())),
            (Some(_), Some(name)) => (Via::NativeApp, Some(name)),
            (Some(_), None) => (Via::OtherApp, name_at(message, "/app_name")),
        };
        MessageOrigin { kind, app: MessageApp { id: app.id, name }, late: false }
    }

    /// A message without content.
    fn new_message(self, contact: &str, event: &Value, message_id: String) -> InboundMessage {
        // A message of the company has the contact as its recipient.
        let side = if id_at(event, "/recipient/id").as_deref() == Some(contact) { "recipient" } else { "sender" };
        InboundMessage {
            message_id,
            written_at: time(event, "timestamp"),
            from: Sender {
                number: None,
                address: Some(contact.to_owned()),
                name: name_at(event, &format!("/{side}/name")),
                fallback_name: format!("{} {}", self.name, last_four(contact)),
                social_username: name_at(event, &format!("/{side}/username")),
                is_group: false,
                origin: self.origin,
            },
            body: None,
            media: None,
            interactive: None,
            content: MessageContent::default(),
            quotes: None,
            referral: Referral::default(),
            author: None,
            standby: false,
        }
    }

    /// One message for each file, or one for the text; empty if the event is ignored, `None` if it is unreadable.
    fn parse_message(self, contact: &str, event: &Value, message: &Value) -> Option<Vec<InboundMessage>> {
        let mid = id(message, "mid")?;
        let written_text = message.get("text").and_then(Value::as_str).map(str::to_owned);
        let story = message.pointer("/reply_to/story");
        let story_line =
            story.and_then(|story| text(story, "url")).map(|url| format!("{} {url}", placeholder("story")));
        let (mut text_body, attached_files) = parse_attachments(message, lines([story_line, written_text]));
        let files: Vec<FileReference> = story.and_then(story_file).into_iter().chain(attached_files).collect();
        if text_body.is_none() && files.is_empty() {
            text_body = body(placeholder(if is_set(message, "is_unsupported") { "unsupported" } else { "message" }));
        }
        let mut media = files.into_iter().map(FileReference::into_media);
        let content = content_of(message);
        let first = InboundMessage {
            body: text_body,
            media: media.next(),
            quotes: id_at(message, "/reply_to/mid"),
            referral: content::contact_referral(content.referral.as_ref()),
            content,
            ..self.new_message(contact, event, mid.clone())
        };
        // The provider has one message where we have several: each needs its own id for deduplication.
        let further_messages = media.zip(2..).map(|(media, number)| InboundMessage {
            media: Some(media),
            ..self.new_message(contact, event, format!("{mid}#{number}"))
        });
        Some(iter::once(first).chain(further_messages).collect())
    }

    fn parse_postback(self, contact: &str, event: &Value, postback: &Value) -> InboundMessage {
        // Older events have no id. The contact and the time in milliseconds identify them.
        let message_id = id(postback, "mid").unwrap_or_else(|| synthetic_id("postback", contact, event));
        let (title, payload) = (text(postback, "title"), text(postback, "payload"));
        let label = title.clone().or_else(|| payload.clone());
        let content = MessageContent {
            reply: Some(ChosenOption::of_payload(payload, title)),
            ..referral_content(postback.get("referral").unwrap_or(&Value::Null))
        };
        InboundMessage {
            body: body(label.unwrap_or_else(|| placeholder("postback"))),
            referral: content::contact_referral(content.referral.as_ref()),
            content,
            ..self.new_message(contact, event, message_id)
        }
    }

    /// A notice of an event of any other kind; `None` if it has no content.
    fn parse_notice(self, contact: &str, event: &Value) -> Option<EventKind> {
        let mut parts = event.as_object()?.iter();
        // Objects with an id are the sender and the recipient.
        let (kind, part) = parts.find(|(_, part)| part.is_object() && part.get("id").is_none())?;
        tracing::info!(kind, "provider sent news of a kind without an effect");
        let message_id = synthetic_id("notice", contact, event);
        let from = self.new_message(contact, event, message_id.clone()).from;
        let handled_by = match kind.as_str() {
            // The first is sent to the app that gets control, the second to the app that loses it.
            "pass_thread_control" => Some(HandledBy::default()),
            "take_thread_control" => Some(HandledBy::app(id(part, "new_owner_app_id").as_deref())),
            _ => None,
        };
        Some(EventKind::Notice(Box::new(Notice { message_id, from, body: placeholder(kind), handled_by })))
    }
}

/// The contact of an event, and the side that caused it.
struct Parties {
    /// The provider's id of the contact.
    contact: String,
    /// Inbound if the contact has caused the event, outbound if the account has.
    direction: Direction,
}

impl Parties {
    /// The parties of an event of this account; `None` if it has no sender. Echoes name the account as
    /// their sender, but earlier versions of the API did not.
    fn of(account: Option<&str>, event: &Value) -> Option<Self> {
        let (sender, recipient) = (id_at(event, "/sender/id")?, id_at(event, "/recipient/id"));
        let is_account = |id: &String| Some(id.as_str()) == account;
        let is_echo = event.get("message").is_some_and(|message| is_set(message, "is_echo"));
        let recipient = recipient.filter(|recipient| *recipient != sender && !is_account(recipient));
        match recipient {
            Some(contact) if is_echo || is_account(&sender) => Some(Self { contact, direction: Direction::Outbound }),
            _ => {
                let direction = if is_echo { Direction::Outbound } else { Direction::Inbound };
                Some(Self { contact: sender, direction })
            }
        }
    }
}

/// The structured content of a message.
fn content_of(message: &Value) -> MessageContent {
    let quick_reply = message.get("quick_reply");
    let attachments = list(message, "attachments");
    let is_story = |kind: String| STORY_KINDS.contains(&kind.as_str());
    let story_attachment = attachments.iter().find(|attachment| text(attachment, "type").is_some_and(is_story));
    let story = message.pointer("/reply_to/story").or_else(|| story_attachment?.get("payload"));
    let location_attachment =
        attachments.iter().find(|attachment| attachment.pointer("/payload/coordinates").is_some());
    let location = location_attachment.map(|attachment| {
        let payload = attachment.get("payload").unwrap_or(&Value::Null);
        let name = text(attachment, "title").or_else(|| text(payload, "title"));
        let coordinates = payload.get("coordinates").unwrap_or(&Value::Null);
        content::location(name, None, text(attachment, "url"), coordinates)
    });
    MessageContent {
        reply: quick_reply.map(|reply| ChosenOption::of_payload(text(reply, "payload"), text(message, "text"))),
        story: story.map(content::story),
        location,
        ..referral_content(message.get("referral").unwrap_or(&Value::Null))
    }
}

/// The advertisement, link or product that led to a message.
fn referral_content(referral: &Value) -> MessageContent {
    MessageContent {
        referral: content::social_referral(referral),
        product: content::social_product(referral),
        ..MessageContent::default()
    }
}

/// The picture of a story, for as long as the provider shows it.
fn story_file(story: &Value) -> Option<FileReference> {
    let url = text(story, "url").or_else(|| text(story, "story_media_url"))?;
    Some(FileReference { url: Some(url), ..FileReference::default() })
}

fn is_set(message: &Value, flag: &str) -> bool {
    message.get(flag).and_then(Value::as_bool) == Some(true)
}

/// The event of a revision; `None` if `part` does not contain the id of the revised message.
fn revision(part: &Value, event: &Value, revision: Revision) -> Option<EventKind> {
    let revision = MessageRevision { message_id: id(part, "mid")?, revision, at: time(event, "timestamp") };
    Some(EventKind::Revision(Box::new(revision)))
}

/// A reaction, without an emoji if it was withdrawn; `None` when it is unreadable.
fn parse_reaction(direction: Direction, event: &Value, reaction: &Value) -> Option<Revision> {
    let is_withdrawn = text(reaction, "action").as_deref() == Some("unreact");
    let emoji = text(reaction, "emoji").or_else(|| text(reaction, "reaction").map(|name| placeholder(&name)));
    let emoji = if is_withdrawn { None } else { Some(emoji?) };
    let (by, key) = match direction {
        Direction::Outbound => (Reactor::User, Reaction::OF_COMPANY),
        Direction::Inbound | Direction::Internal => (Reactor::Contact, Reaction::OF_CONTACT),
    };
    Some(new_reaction(by, key.to_owned(), emoji, None, time(event, "timestamp")))
}

/// An edit, identified by its number; `None` when it is unreadable.
fn parse_edit(direction: Direction, event: &Value, edit: &Value) -> Option<Revision> {
    let new_body = edit.get("text").and_then(Value::as_str).and_then(body)?;
    let number = text(edit, "num_edit").or_else(|| text(event, "timestamp"))?;
    Some(Revision::Edited { of: direction, body: Some(new_body), id: format!("edit {number}") })
}

/// An id for events to which the provider gives none.
fn synthetic_id(kind: &str, contact: &str, event: &Value) -> String {
    format!("{kind}:{contact}:{}", time(event, "timestamp").map_or(0, |at| at.timestamp_millis()))
}

/// The status of our messages: of each named message, or, if none is named, of all up to a time.
fn parse_statuses(contact: &str, event: &Value, receipt: &Value, status: &DeliveryStatus) -> Vec<EventKind> {
    let at = time(receipt, "watermark").or_else(|| time(event, "timestamp"));
    let mut message_ids: Vec<String> =
        list(receipt, "mids").iter().filter_map(|mid| id(&json!({"mid": mid}), "mid")).collect();
    message_ids.extend(id(receipt, "mid"));
    if message_ids.is_empty() {
        let until = time(receipt, "watermark");
        let status_until =
            |until| EventKind::StatusesUntil { address: contact.to_owned(), status: status.clone(), until };
        return until.map(status_until).into_iter().collect();
    }
    let status_of = |message_id| EventKind::Status { message_id, names: None, status: status.clone(), at };
    message_ids.into_iter().map(status_of).collect()
}

/// The body of a message (`text_body`, and a line for each story and each attachment that is not a file), and its
/// files.
fn parse_attachments(message: &Value, text_body: Option<String>) -> (Option<String>, Vec<FileReference>) {
    let (mut text_body, mut files) = (text_body, Vec::new());
    for attachment in list(message, "attachments").iter().take(ATTACHMENTS_MAX) {
        let kind = text(attachment, "type").unwrap_or_else(|| "attachment".to_owned());
        if STORY_KINDS.contains(&kind.as_str())
            && let Some(file) = attachment.get("payload").and_then(story_file)
        {
            text_body = lines([text_body.take(), Some(attachment_text(&kind, attachment, file.url.clone()))]);
            files.push(file);
            continue;
        }
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

/// The text for a story, or for an attachment that is not a file.
fn attachment_text(kind: &str, attachment: &Value, url: Option<String>) -> String {
    let payload = attachment.get("payload").unwrap_or(&Value::Null);
    let title = text(attachment, "title").or_else(|| text(payload, "title"));
    if let Some(coordinates) = payload.get("coordinates")
        && let Some(location) = location_text(title.clone(), None, coordinates)
    {
        return location;
    }
    let link = url.or_else(|| text(attachment, "url")).or_else(|| text(payload, "link"));
    [Some(placeholder(kind)), title, link].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The advertisement or link that brought a contact, as it is stored with the contact.
fn referral(value: &Value) -> Referral {
    content::contact_referral(content::social_referral(value).as_ref())
}
