//! The body of `POST /messages`.

use std::borrow::Cow;

use hotline_actors::tickets::AfterSend;
use hotline_persistence::{ChannelId, ContactId, QueueId, TicketId, UserId, WrapupTypeId};
use serde_json::{Map, Value, json};

use crate::templates::TemplateRequest;
use crate::web::request::values::{ContactName, FromField, MessageBody, Number, Object, Text};
use crate::web::{Fields, Input};

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct NewMessage {
    pub(super) channel_id: Option<ChannelId>,
    pub(super) recipient: Option<RecipientInput>,
    pub(super) contact_name: Option<ContactName>,
    pub(super) content: ContentInput,
    pub(super) reopen_ticket: bool,
    pub(super) after: AfterSend,
    /// The user in whose name the message is sent.
    pub(super) user_id: Option<UserId>,
    /// Set even if the ticket is not closed, because an id that does not exist is refused in any case.
    pub(super) wrapup_type_id: Option<WrapupTypeId>,
}

/// The recipient; the variants are in order of precedence.
#[derive(Clone, Debug)]
pub(super) enum RecipientInput {
    Ticket(TicketId),
    Contact(ContactId),
    Number(Number),
}

impl RecipientInput {
    /// Reads the fields of every variant: an invalid one is refused even if another takes precedence.
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let ticket = fields.optional("ticketId").map(Self::Ticket);
        let contact = fields.optional("contactId").map(Self::Contact);
        let number = fields.optional("number").map(Self::Number);
        ticket.or(contact).or(number)
    }
}

/// The content of the message.
#[derive(Clone, Debug)]
pub(super) enum ContentInput {
    Text(MessageBody),
    /// The files are not fields, but parts of the form.
    Media {
        caption: Option<MessageBody>,
        is_voice: bool,
    },
    Template(TemplateRequest),
    Interactive(Map<String, Value>),
}

/// The types that can be sent; notes cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Media,
    Template,
    Interactive,
}

const KINDS: [(&str, Kind); 4] =
    [("text", Kind::Text), ("media", Kind::Media), ("template", Kind::Template), ("interactive", Kind::Interactive)];

impl Kind {
    /// The field with the content; `None` for files, which are not a field.
    fn required_field(self) -> Option<&'static str> {
        match self {
            Self::Text => Some("body"),
            Self::Template => Some("template"),
            Self::Interactive => Some("interactive"),
            Self::Media => None,
        }
    }
}

impl FromField for Kind {
    fn from_json(value: &Value) -> Result<Self, String> {
        let word = value.as_str().map(str::trim);
        let kind = KINDS.iter().find(|(name, _)| Some(*name) == word).map(|(_, kind)| *kind);
        kind.ok_or_else(|| format!("must be one of {}", KINDS.map(|(name, _)| name).join(", ")))
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "enum": KINDS.map(|(name, _)| name),
            "description": "`text` requires `body`; `media` requires a form with files in `medias`; `template` and \
                            `interactive` require the field of the same name",
        })
    }
}

/// Buttons, a list or a link, in the format of the official cloud API.
struct Interactive(Map<String, Value>);

impl FromField for Interactive {
    fn from_json(value: &Value) -> Result<Self, String> {
        Object::from_json(value).map(|object| Self(object.0))
    }

    fn from_text(text: &str) -> Result<Self, String> {
        Object::from_text(text).map(|object| Self(object.0))
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "description": "An interactive object in the format of the official cloud API, at most 65,536 bytes. A \
                            webchat supports button, list, cta_url, location_request_message and carousel",
            "example": example_question(),
        })
    }
}

impl Input for NewMessage {
    fn name() -> Cow<'static, str> {
        "MessageSend".into()
    }
    const MAY_BE_REFUSED: bool = true;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let kind = fields.required::<Kind>("type");
        let is_voice = fields.optional("voice").unwrap_or(false);
        if is_voice && kind.is_some_and(|kind| kind != Kind::Media) {
            fields.refuse("voice", "is accepted only for the type media");
        }
        let channel_id = fields.optional("channelId");
        let recipient = RecipientInput::read(fields);
        if channel_id.is_none() && !fields.has("channelId") && !fields.has("ticketId") {
            fields.refuse("channelId", "is required without ticketId");
        }
        let contact_name = fields.optional("contactName");
        let body: Option<MessageBody> = fields.optional("body");
        let template = fields.object("template", TemplateRequest::read);
        let interactive = fields.optional::<Interactive>("interactive");
        if let Some(field) = kind.and_then(Kind::required_field).filter(|field| !fields.has_text(field)) {
            fields.refuse(field, "is required");
        }
        let reopen_ticket = fields.optional("reopenTicket").unwrap_or(false);
        let queue_id: Option<QueueId> = fields.optional("queueId");
        let close_ticket = fields.optional("closeTicket").unwrap_or(false);
        let wrapup_type_id: Option<WrapupTypeId> = fields.optional("wrapupTypeId");
        let wrapup_note: Option<Text> = fields.optional("wrapupNote");
        let user_id = fields.optional("userId");
        // Values for a closing that does not happen are ignored, like any field that does not apply.
        let after = AfterSend {
            queue_id,
            close_ticket,
            wrapup_type_id: wrapup_type_id.filter(|_| close_ticket),
            wrapup_note: wrapup_note.filter(|_| close_ticket).map(|note| note.0),
            ..AfterSend::default()
        };
        let content = match kind? {
            Kind::Text => ContentInput::Text(body?),
            Kind::Media => ContentInput::Media { caption: body, is_voice },
            Kind::Template => ContentInput::Template(template?),
            Kind::Interactive => ContentInput::Interactive(interactive?.0),
        };
        Some(Self { channel_id, recipient, contact_name, content, reopen_ticket, after, user_id, wrapup_type_id })
    }

    fn examples() -> Vec<(&'static str, Value)> {
        vec![
            (
                "text",
                json!({
                    "channelId": 7, "number": "5511987654321", "contactName": "Maria Lima", "type": "text",
                    "body": "{{greeting}}, {{firstName}}! Your order is on its way.",
                }),
            ),
            (
                "template",
                json!({
                    "channelId": 7, "number": "5511987654321", "type": "template",
                    "template": {
                        "name": "order_shipped", "language": "en_US",
                        "parameters": {"body": ["{{firstName}}", "4711"]},
                    },
                }),
            ),
            (
                "interactive",
                json!({"channelId": 7, "contactId": 7, "type": "interactive", "interactive": example_question()}),
            ),
        ]
    }

    fn form_examples() -> Vec<(&'static str, Value)> {
        let invoice = json!({"ticketId": 7, "type": "media", "body": "Your invoice, {{firstName}}.", "medias": ["…"]});
        vec![("media", invoice)]
    }
}

fn example_question() -> Value {
    json!({
        "type": "button",
        "body": {"text": "Shall we deliver it tomorrow?"},
        "action": {"buttons": [
            {"type": "reply", "reply": {"id": "yes", "title": "Yes, please"}},
            {"type": "reply", "reply": {"id": "no", "title": "No"}},
        ]},
    })
}
