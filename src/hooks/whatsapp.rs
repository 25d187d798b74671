//! The calls of the phone channel, as the provider documents them in its "messages webhook reference":
//! <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages>, with a page
//! for each kind of message (`…/messages/reaction`, `…/messages/unsupported`, …) and one for statuses.
//!
//! The mapping of kinds to messages:
//!
//! | kind | message |
//! |---|---|
//! | `text` | the text |
//! | `image`, `audio`, `video`, `document`, `sticker` | the file, once it has been fetched, with its caption |
//! | `location`, `contacts`, `order` | a text with their content, line by line |
//! | `interactive` (`button_reply`, `list_reply`, `nfm_reply`), `button` | the option's title, quoting the message it belongs to, or the form's content |
//! | `unsupported` | a text that names what the contact has sent |
//!
//! The message's `content` has the same in structured form, for programs (`content.rs`).
//!
//! What the company's people write in the WhatsApp Business app comes as `smb_message_echoes`, in the same forms:
//! <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/smb_message_echoes>. It
//! becomes a message of the company. The API reports no other messages of an account, so these are never our own.
//!
//! All other kinds are news, which neither opens a ticket nor counts as a message:
//!
//! | kind | effect |
//! |---|---|
//! | `edit`, `revoke` (<https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/reference/messages/edit>, `…/revoke`) | its message is edited or deleted |
//! | `reaction` (<https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/reference/messages/reaction>) | a reaction to its message |
//! | `system` (…/messages/system) of a changed number or id | the contact's identities change |
//! | any other | a notice in the open ticket, if there is one |
//!
//! `user_preferences` with which a person stops marketing messages, and statuses that say so (131050), opt them out of
//! campaigns.
//!
//! News of the account and its templates is parsed in [`account`].
//!
//! A person who hides their number is identified by an id scoped to the business (`from_user_id`):
//! <https://developers.facebook.com/documentation/business-messaging/whatsapp/business-scoped-user-ids>.

use hotline_actors::services::{EchoMessage, InboundMessage, MessageRevision, Notice, Number, Sender};
use hotline_persistence::MessageId;
use hotline_persistence::phone_numbers;
use hotline_persistence::tables::messages::{
    ChosenOption, DeliveryStatus, Direction, MessageApp, MessageAuthor, MessageContent, MessageOrigin, Reaction,
    ReactionTarget, Reactor, Revision, Via,
};
use serde_json::Value;

use super::call::{
    AccountNews, Call, CallEvent, EventKind, FileReference, body, failure, id, id_at, last_four, lines, list,
    location_text, name_at, new_reaction, placeholder, text, text_at, time,
};
use super::{account, content, identity, numbers};
use crate::providers::TEXT_SUFFIX;

/// The kinds of message that are files.
const FILE_KINDS: [&str; 5] = ["image", "audio", "video", "document", "sticker"];

/// The app in which a company's people write.
const APP: &str = "WhatsApp Business";

/// Parses a call.
pub(super) fn parse_call(json: &Value) -> Call {
    let mut call = Call::default();
    let entries = list(json, "entry").iter();
    for (entry, change) in entries.flat_map(|entry| list(entry, "changes").iter().map(move |change| (entry, change))) {
        let value = change.get("value").unwrap_or(&Value::Null);
        match change.get("field").and_then(Value::as_str) {
            Some("messages") => add_messages(value, &mut call),
            // Of a conversation that another app handles.
            Some("standby") => {
                let first = call.events.len();
                add_messages(value, &mut call);
                call.events[first..].iter_mut().for_each(|event| event.kind.set_standby());
            }
            Some("smb_message_echoes") => add_echoes(value, &mut call),
            Some("user_preferences") => add_preferences(value, &mut call),
            field => match field.and_then(|field| account::parse(field, value)) {
                Some(kind) => call.news.push(AccountNews { account: id(entry, "id"), kind }),
                None => call.ignored += 1,
            },
        }
    }
    call
}

fn add_messages(value: &Value, call: &mut Call) {
    let account = id_at(value, "/metadata/phone_number_id");
    let contacts = list(value, "contacts");
    for message in list(value, "messages") {
        if let Some(change) = identity::parse(message) {
            call.events
                .push(CallEvent { account: account.clone(), kind: EventKind::IdentityChanged(Box::new(change)) });
            continue;
        }
        add_parsed(parse_message(message, contacts), account.as_deref(), call);
    }
    for status in list(value, "statuses") {
        let Some(message_id) = id(status, "id") else {
            call.unreadable += 1;
            continue;
        };
        match delivery_status(status).and_then(|delivery_status| status_event(status, message_id, delivery_status)) {
            Some(kind) => call.events.push(CallEvent { account: account.clone(), kind }),
            None => call.ignored += 1,
        }
    }
    for error in list(value, "errors") {
        let code = text(error, "code");
        tracing::warn!(code, "provider reported an error without a message");
        call.ignored += 1;
    }
}

/// The event of a status. For a reaction, only a failure is an event.
fn status_event(status: &Value, message_id: String, delivery_status: DeliveryStatus) -> Option<EventKind> {
    let at = time(status, "timestamp");
    let callback_data = text(status, "biz_opaque_callback_data").unwrap_or_default();
    if let Some((id, target)) = ReactionTarget::parse_callback_data(&callback_data) {
        let DeliveryStatus::Failed(error) = delivery_status else { return None };
        return Some(EventKind::ReactionRefused { id, target, error, at });
    }
    if let Some(message) = callback_data.strip_suffix(TEXT_SUFFIX).and_then(|id| id.parse().ok()) {
        return Some(EventKind::TextStatus { message: MessageId::new(message), status: delivery_status });
    }
    // The data of any other message is its id.
    let names = callback_data.parse().ok().map(MessageId::new);
    Some(EventKind::Status { message_id, names, status: delivery_status, at })
}

fn add_parsed(parsed: ParsedMessage, account: Option<&str>, call: &mut Call) {
    match parsed {
        ParsedMessage::Event(kind) => call.events.push(CallEvent { account: account.map(str::to_owned), kind }),
        ParsedMessage::Ignored => call.ignored += 1,
        ParsedMessage::Unreadable => call.unreadable += 1,
    }
}

fn add_echoes(value: &Value, call: &mut Call) {
    let account = id_at(value, "/metadata/phone_number_id");
    for echo in list(value, "message_echoes") {
        add_parsed(parse_echo(echo, list(value, "contacts")), account.as_deref(), call);
    }
}

/// Opts out people who stop the business's marketing messages. Resuming these does not opt people in again: only the
/// company can do that.
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/user_preferences>
fn add_preferences(value: &Value, call: &mut Call) {
    let account = id_at(value, "/metadata/phone_number_id");
    for preference in list(value, "user_preferences") {
        let (category, choice) = (text(preference, "category"), text(preference, "value"));
        if category.as_deref() != Some("marketing_messages") || choice.as_deref() != Some("stop") {
            call.ignored += 1;
            continue;
        }
        match sender_of(id(preference, "wa_id"), id(preference, "user_id"), &[]) {
            Some(from) => {
                let kind = EventKind::OptOut { from: Box::new(from) };
                call.events.push(CallEvent { account: account.clone(), kind });
            }
            None => call.unreadable += 1,
        }
    }
}

fn delivery_status(status: &Value) -> Option<DeliveryStatus> {
    match status.get("status")?.as_str()? {
        "sent" => Some(DeliveryStatus::Sent),
        "delivered" => Some(DeliveryStatus::Delivered),
        // A voice message that was played counts as read.
        "read" | "played" => Some(DeliveryStatus::Read),
        "failed" => Some(DeliveryStatus::Failed(failure(list(status, "errors")))),
        _ => None,
    }
}

enum ParsedMessage {
    Event(EventKind),
    Ignored,
    Unreadable,
}

fn parse_message(message: &Value, contacts: &[Value]) -> ParsedMessage {
    let (Some(message_id), Some(from)) = (id(message, "id"), sender(message, contacts)) else {
        return ParsedMessage::Unreadable;
    };
    let (from, author) = identity::sender_and_author(message, from);
    let kind = text(message, "type").unwrap_or_else(|| "unknown".to_owned());
    if !is_message(&kind, message) {
        return parse_news(&kind, message, message_id, (from, author), Direction::Inbound);
    }
    ParsedMessage::Event(EventKind::Message(Box::new(inbound_message(&kind, message, message_id, (from, author)))))
}

/// What the company's people have written in the app, to a person or a group.
fn parse_echo(echo: &Value, contacts: &[Value]) -> ParsedMessage {
    let to_id = id(echo, "to_user_id").or_else(|| id(echo, "recipient_user_id"));
    let (Some(message_id), Some(to)) = (id(echo, "id"), sender_of(id(echo, "to"), to_id, contacts)) else {
        return ParsedMessage::Unreadable;
    };
    let (to, _) = identity::sender_and_author(echo, to);
    let kind = text(echo, "type").unwrap_or_else(|| "unknown".to_owned());
    if !is_message(&kind, echo) {
        return parse_news(&kind, echo, message_id, (to, None), Direction::Outbound);
    }
    let app = MessageApp { id: None, name: Some(APP.to_owned()) };
    ParsedMessage::Event(EventKind::Echo(Box::new(EchoMessage {
        whole_id: message_id.clone(),
        message: inbound_message(&kind, echo, message_id, (to, None)),
        origin: MessageOrigin { kind: Via::NativeApp, app, late: false },
        names: None,
        has_attachment: false,
    })))
}

/// The message of an element for which [`is_message`] is true.
fn inbound_message(
    kind: &str,
    message: &Value,
    message_id: String,
    (from, author): (Sender, Option<MessageAuthor>),
) -> InboundMessage {
    let part = message.get(kind).unwrap_or(&Value::Null);
    let mut content = content::from_context(message);
    let body = message_body(kind, message, &mut content);
    let file = if FILE_KINDS.contains(&kind) { file_reference(part) } else { None };
    let media = file.map(FileReference::into_media);
    InboundMessage {
        body: body.or_else(|| media.is_none().then(|| placeholder_body(kind, message))),
        message_id,
        written_at: time(message, "timestamp"),
        from,
        media,
        interactive: content.form.as_ref().and_then(|_| content::bounded_copy(part)),
        quotes: id_at(message, "/context/id"),
        referral: content::contact_referral(content.referral.as_ref()),
        content,
        author,
        standby: false,
    }
}

/// The readable text of a message; its structure is added to `content`.
fn message_body(kind: &str, message: &Value, content: &mut MessageContent) -> Option<String> {
    let part = message.get(kind).unwrap_or(&Value::Null);
    match kind {
        "text" => text_body(part),
        file if FILE_KINDS.contains(&file) => text(part, "caption").and_then(body),
        "button" => {
            let title = text(part, "text");
            content.reply = Some(ChosenOption::of_payload(text(part, "payload"), title.clone()));
            title.and_then(body)
        }
        "interactive" => {
            content.reply = content::chosen_option(part);
            content.form = content::form(part);
            interactive_body(part)
        }
        "location" => {
            let (name, address) = (text(part, "name"), text(part, "address"));
            content.location = Some(content::location(name.clone(), address.clone(), text(part, "url"), part));
            location_text(name, address, part)
        }
        "contacts" => {
            content.contacts = content::contacts(message);
            lines(list(message, "contacts").iter().map(contact_line))
        }
        "order" => {
            content.order = Some(content::order(part));
            order_text(part)
        }
        _ => None,
    }
}

/// Whether an element is a message; any other is news.
fn is_message(kind: &str, message: &Value) -> bool {
    const KINDS: [&str; 7] = ["text", "button", "interactive", "location", "contacts", "order", "unsupported"];
    // Earlier versions of the API name what they cannot show `unknown`, with an error.
    let is_unshown = kind == "unknown" && !list(message, "errors").is_empty();
    KINDS.contains(&kind) || FILE_KINDS.contains(&kind) || is_unshown
}

/// Parses news: a change of an earlier message, or a notice. `direction` is outbound if it comes from the company's
/// app.
fn parse_news(
    kind: &str,
    message: &Value,
    message_id: String,
    (from, author): (Sender, Option<MessageAuthor>),
    direction: Direction,
) -> ParsedMessage {
    let part = message.get(kind).unwrap_or(&Value::Null);
    let revision_of = |field: &str, revision: Revision| match id(part, field) {
        Some(revised_id) => {
            let revision = MessageRevision { message_id: revised_id, revision, at: time(message, "timestamp") };
            ParsedMessage::Event(EventKind::Revision(Box::new(revision)))
        }
        None => ParsedMessage::Unreadable,
    };
    match kind {
        "edit" => match edited_body(part) {
            Some(body) => {
                let edit = Revision::Edited { of: direction, body: Some(body), id: message_id };
                revision_of("original_message_id", edit)
            }
            None => ParsedMessage::Unreadable,
        },
        "revoke" => revision_of("original_message_id", Revision::Deleted { of: direction }),
        "reaction" => revision_of("message_id", parse_reaction(message, direction, author, from.name)),
        _ if direction == Direction::Outbound => ParsedMessage::Ignored,
        _ => {
            let reported_text = text(part, "body").filter(|_| kind == "system").and_then(body);
            let body = reported_text.unwrap_or_else(|| placeholder_body(kind, message));
            tracing::info!(kind, "provider sent news of a kind without an effect");
            ParsedMessage::Event(EventKind::Notice(Box::new(Notice { message_id, from, body, handled_by: None })))
        }
    }
}

/// Parses a reaction, or its withdrawal.
fn parse_reaction(
    message: &Value,
    direction: Direction,
    author: Option<MessageAuthor>,
    contact_name: Option<String>,
) -> Revision {
    let (by, key, name) = match (direction, author) {
        (Direction::Outbound, _) => (Reactor::User, Some(Reaction::OF_COMPANY.to_owned()), None),
        // In a group each member has a reaction.
        (_, Some(author)) => (Reactor::Contact, author.number.or(author.address), author.name),
        (_, None) => (Reactor::Contact, None, contact_name),
    };
    let key = key.unwrap_or_else(|| Reaction::OF_CONTACT.to_owned());
    new_reaction(by, key, text_at(message, "/reaction/emoji"), name, time(message, "timestamp"))
}

/// The new text of an edited message, or the new caption of its file.
fn edited_body(part: &Value) -> Option<String> {
    let edited = part.get("message")?;
    let content = edited.get(text(edited, "type")?)?;
    content.get("body").or_else(|| content.get("caption")).and_then(Value::as_str).and_then(body)
}

/// The text of a message. Not read by [`text`], which truncates to fewer characters than a body may have.
fn text_body(part: &Value) -> Option<String> {
    part.get("body").and_then(Value::as_str).and_then(body)
}

fn sender(message: &Value, contacts: &[Value]) -> Option<Sender> {
    sender_of(id(message, "from"), id(message, "from_user_id"), contacts)
}

/// The person with the number in `from` and the id in `address`, and with the name from `contacts`.
fn sender_of(from: Option<String>, address: Option<String>, contacts: &[Value]) -> Option<Sender> {
    let number = from.as_deref().filter(|from| numbers::is_phone_number(from));
    // If `from` is not a number, it is the id of a sender without another one.
    let address = address.or_else(|| from.clone().filter(|_| number.is_none()));
    let number = number.map(|digits| Number { digits: digits.to_owned(), country: numbers::country(digits) });
    let fallback_name = format!("WhatsApp {}", last_four(address.as_deref().or(from.as_deref())?));
    let is_sender = |contact: &&Value| {
        let (wa_id, user_id) = (id(contact, "wa_id"), id(contact, "user_id"));
        let has_number = wa_id.zip(from.as_deref()).is_some_and(|(wa_id, from)| phone_numbers::is_same(&wa_id, from));
        has_number || (user_id.is_some() && user_id == address)
    };
    // Neither of its ids can be compared with one of the sender's.
    let may_be_sender = |contact: &Value| {
        (from.is_none() || id(contact, "wa_id").is_none()) && (address.is_none() || id(contact, "user_id").is_none())
    };
    let contact = contacts.iter().find(is_sender).or(match contacts {
        // The only entry is the sender's, unless one of its ids is another person's.
        [only] if may_be_sender(only) => Some(only),
        _ => None,
    });
    let name = contact.and_then(|contact| name_at(contact, "/profile/name"));
    let social_username = contact.and_then(|contact| name_at(contact, "/profile/username"));
    Some(Sender { number, address, name, fallback_name, social_username, is_group: false, origin: "whatsapp" })
}

fn file_reference(part: &Value) -> Option<FileReference> {
    Some(FileReference {
        id: Some(id(part, "id")?),
        url: None,
        mime_type: text(part, "mime_type"),
        file_name: name_at(part, "/filename"),
        voice: part.get("voice").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// The title of the chosen option, or the content of a submitted form.
fn interactive_body(part: &Value) -> Option<String> {
    let kind = text(part, "type")?;
    let reply = part.get(&kind)?;
    let title = text(reply, "title").or_else(|| text(reply, "body")).or_else(|| text(reply, "name"));
    lines([title, text(reply, "response_json")])
}

/// A shared contact, on one line.
fn contact_line(contact: &Value) -> Option<String> {
    let list_values =
        |field: &str, value: &str| list(contact, field).iter().filter_map(|entry| text(entry, value)).collect();
    let mut parts: Vec<String> = Vec::new();
    parts.extend(name_at(contact, "/name/formatted_name").or_else(|| name_at(contact, "/name/first_name")));
    parts.extend(text_at(contact, "/org/company"));
    parts.extend::<Vec<String>>(list_values("phones", "phone"));
    parts.extend::<Vec<String>>(list_values("emails", "email"));
    parts.extend::<Vec<String>>(list_values("urls", "url"));
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn order_text(part: &Value) -> Option<String> {
    let items = list(part, "product_items").iter().map(|item| {
        let product = text(item, "product_retailer_id")?;
        let quantity = text(item, "quantity").unwrap_or_else(|| "1".to_owned());
        let price = text(item, "item_price").map(|price| {
            let currency = text(item, "currency").unwrap_or_default();
            format!(" ({price} {currency})")
        });
        Some(format!("{quantity} × {product}{}", price.unwrap_or_default()))
    });
    lines(std::iter::once(text(part, "text")).chain(items))
}

/// The text of a message without readable content: its kind, and the provider's reason for not showing it.
fn placeholder_body(kind: &str, message: &Value) -> String {
    let name = text_at(message, &format!("/{kind}/type")).filter(|_| kind == "unsupported");
    let error = list(message, "errors").first();
    let reason = error.and_then(|error| {
        text_at(error, "/error_data/details").or_else(|| text(error, "title")).or_else(|| text(error, "message"))
    });
    let kind = name.map_or_else(|| kind.to_owned(), |name| format!("{kind}: {name}"));
    let placeholder = placeholder(&kind);
    match reason {
        Some(reason) => format!("{placeholder} {reason}"),
        None => placeholder,
    }
}
