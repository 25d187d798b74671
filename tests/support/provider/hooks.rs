//! What a provider reports: the bodies of its webhooks, and their signature.
//!
//! - <https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/payload-examples>
//! - <https://developers.facebook.com/docs/messenger-platform/webhooks>

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

/// The value of `X-Hub-Signature-256` for a body.
pub fn signature(app_secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(app_secret.as_bytes()).expect("any key");
    mac.update(body);
    let digest: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digest}")
}

/// A phone number whose provider calls the hook.
#[derive(Clone, Debug)]
pub struct Phone {
    /// What the channel calls `--phone-number-id`.
    pub id: String,
    /// The business's number.
    pub number: String,
}

impl Phone {
    /// A whole body with this change of messages or statuses.
    pub fn call_body(&self, value: Value) -> Value {
        self.call_body_of("messages", value)
    }

    /// A whole body in which people change what they want to receive: their numbers, and `stop` or `resume`.
    pub fn preferences(&self, preferences: &[(&str, &str)]) -> Value {
        let preference = |(number, choice): &(&str, &str)| {
            json!({
                "wa_id": number,
                "detail": format!("User requested to {choice} marketing messages"),
                "category": "marketing_messages",
                "value": choice,
                "timestamp": now(),
            })
        };
        let preferences: Vec<Value> = preferences.iter().map(preference).collect();
        self.call_body_of("user_preferences", json!({"contacts": [], "user_preferences": preferences}))
    }

    /// A whole body with a change of any field.
    pub fn call_body_of(&self, field: &str, mut value: Value) -> Value {
        value["messaging_product"] = "whatsapp".into();
        value["metadata"] = json!({"display_phone_number": self.number, "phone_number_id": self.id});
        json!({
            "object": "whatsapp_business_account",
            "entry": [{"id": "102290129340398", "changes": [{"value": value, "field": field}]}],
        })
    }

    /// A whole body with a message of a contact, as [`text`], [`image`] and others create it.
    pub fn message(&self, from: &str, name: &str, message: Message) -> Value {
        self.messages(from, name, vec![message])
    }

    /// A whole body with several messages of a contact.
    pub fn messages(&self, from: &str, name: &str, messages: Vec<Message>) -> Value {
        let messages: Vec<Value> = messages
            .into_iter()
            .map(|message| {
                let mut message = message.0;
                message["from"] = from.into();
                message
            })
            .collect();
        let contacts = json!([{"profile": {"name": name}, "wa_id": from}]);
        self.call_body(json!({"contacts": contacts, "messages": messages}))
    }

    /// A whole body with messages that the business has sent to a person with the WhatsApp Business app.
    pub fn echoes(&self, to: &str, messages: Vec<Message>) -> Value {
        let echo = |message: Message| {
            let mut echo = message.0;
            echo["from"] = self.number.as_str().into();
            echo["to"] = to.into();
            echo
        };
        let echoes: Vec<Value> = messages.into_iter().map(echo).collect();
        self.call_body_of("smb_message_echoes", json!({"message_echoes": echoes}))
    }

    /// A whole body with the status of a message of the business: `sent`, `delivered` or `read`.
    pub fn status(&self, message_id: &str, to: &str, status: &str, at_s: i64) -> Value {
        self.call_body(json!({"statuses": [self.one_status(message_id, to, status, at_s)]}))
    }

    /// Several statuses in one body, in this order.
    pub fn statuses(&self, statuses: &[(&str, &str, &str, i64)]) -> Value {
        let statuses: Vec<Value> =
            statuses.iter().map(|(id, to, status, at_s)| self.one_status(id, to, status, *at_s)).collect();
        self.call_body(json!({"statuses": statuses}))
    }

    /// A whole body with the failure of a message of the business.
    pub fn failed(&self, message_id: &str, to: &str, code: i64, title: &str, at_s: i64) -> Value {
        let mut status = self.one_status(message_id, to, "failed", at_s);
        status["errors"] = json!([{"code": code, "title": title, "message": title, "error_data": {"details": title}}]);
        self.call_body(json!({"statuses": [status]}))
    }

    fn one_status(&self, message_id: &str, to: &str, status: &str, at_s: i64) -> Value {
        json!({
            "id": message_id,
            "status": status,
            "timestamp": at_s.to_string(),
            "recipient_id": to,
            "conversation": {"id": "c0ffee", "origin": {"type": "service"}},
            "pricing": {"billable": true, "pricing_model": "CBP", "category": "service"},
        })
    }
}

/// What a contact sends over a phone number.
#[derive(Clone, Debug)]
pub struct Message(pub Value);

impl Message {
    fn of(id: &str, kind: &str, content: Value) -> Self {
        Self(json!({"id": id, "timestamp": now(), "type": kind, kind: content}))
    }

    /// Sets when it was written, in seconds since 1970.
    pub fn at(mut self, at_s: i64) -> Self {
        self.0["timestamp"] = at_s.to_string().into();
        self
    }

    /// Makes it an answer to a message of the business.
    pub fn replying_to(mut self, from: &str, message_id: &str) -> Self {
        self.0["context"] = json!({"from": from, "id": message_id});
        self
    }

    /// Adds the advertisement through which the contact came.
    pub fn referred(mut self, source_id: &str, source_url: &str, headline: &str, ctwa_clid: &str) -> Self {
        self.0["referral"] = json!({
            "source_url": source_url,
            "source_type": "ad",
            "source_id": source_id,
            "headline": headline,
            "body": "Ask us anything",
            "media_type": "image",
            "image_url": "https://ads.example/picture.jpg",
            "ctwa_clid": ctwa_clid,
        });
        self
    }
}

pub fn text(id: &str, body: &str) -> Message {
    Message::of(id, "text", json!({"body": body}))
}

/// A file: `image`, `video`, `audio`, `document` or `sticker`.
pub fn file(id: &str, kind: &str, media_id: &str, mime_type: &str, caption: Option<&str>) -> Message {
    let mut content = json!({"id": media_id, "mime_type": mime_type, "sha256": "c29tZXRoaW5n"});
    if let Some(caption) = caption {
        content["caption"] = caption.into();
    }
    if kind == "document" {
        content["filename"] = "invoice.pdf".into();
    }
    Message::of(id, kind, content)
}

/// A voice message.
pub fn voice(id: &str, media_id: &str) -> Message {
    let content =
        json!({"id": media_id, "mime_type": "audio/ogg; codecs=opus", "sha256": "c29tZXRoaW5n", "voice": true});
    Message::of(id, "audio", content)
}

pub fn image(id: &str, media_id: &str, caption: Option<&str>) -> Message {
    file(id, "image", media_id, "image/jpeg", caption)
}

pub fn location(id: &str, latitude: f64, longitude: f64, name: Option<&str>) -> Message {
    let mut content = json!({"latitude": latitude, "longitude": longitude});
    if let Some(name) = name {
        content["name"] = name.into();
        content["address"] = "1 Hacker Way, Menlo Park".into();
    }
    Message::of(id, "location", content)
}

pub fn contacts(id: &str, name: &str, phone: &str) -> Message {
    let contact = json!({
        "name": {"formatted_name": name, "first_name": name},
        "phones": [{"phone": phone, "wa_id": phone.trim_start_matches('+'), "type": "CELL"}],
        "emails": [{"email": "someone@example.com", "type": "WORK"}],
    });
    Message::of(id, "contacts", json!([contact]))
}

pub fn button_reply(id: &str, reply_id: &str, title: &str) -> Message {
    Message::of(id, "interactive", json!({"type": "button_reply", "button_reply": {"id": reply_id, "title": title}}))
}

pub fn list_reply(id: &str, reply_id: &str, title: &str) -> Message {
    let reply = json!({"id": reply_id, "title": title, "description": "the second"});
    Message::of(id, "interactive", json!({"type": "list_reply", "list_reply": reply}))
}

/// A quick-reply button of a template.
pub fn template_button(id: &str, payload: &str, text: &str) -> Message {
    Message::of(id, "button", json!({"payload": payload, "text": text}))
}

/// An emoji on a message; `None` removes it.
pub fn reaction(id: &str, message_id: &str, emoji: Option<&str>) -> Message {
    let mut content = json!({"message_id": message_id});
    if let Some(emoji) = emoji {
        content["emoji"] = emoji.into();
    }
    Message::of(id, "reaction", content)
}

/// The author has changed a message to this text.
pub fn edit(id: &str, message_id: &str, body: &str) -> Message {
    let edited = json!({"type": "text", "text": {"body": body}});
    Message::of(id, "edit", json!({"original_message_id": message_id, "message": edited}))
}

/// The author has deleted a message.
pub fn revoke(id: &str, message_id: &str) -> Message {
    Message::of(id, "revoke", json!({"original_message_id": message_id}))
}

/// Something the API does not pass on.
pub fn unsupported(id: &str) -> Message {
    let error = json!({"code": 131_051, "title": "Message type unknown", "message": "Message type unknown"});
    Message(json!({"id": id, "timestamp": now(), "type": "unsupported", "errors": [error]}))
}

/// A page (`page`) or account (`instagram`) whose provider calls the hook.
#[derive(Clone, Debug)]
pub struct Page {
    /// `page` or `instagram`.
    pub object: &'static str,
    /// What the channel calls `--page-id`.
    pub id: String,
}

impl Page {
    /// A whole body with events, each with its sender.
    pub fn call_body(&self, from: &str, at_ms: i64, events: Vec<Value>) -> Value {
        let events: Vec<Value> = events
            .into_iter()
            .map(|mut event| {
                event["sender"] = json!({"id": from});
                event["recipient"] = json!({"id": self.id});
                event["timestamp"] = at_ms.into();
                event
            })
            .collect();
        json!({"object": self.object, "entry": [{"id": self.id, "time": at_ms, "messaging": events}]})
    }
}

impl Page {
    /// A whole body with messages that the account itself has sent to somebody.
    pub fn echoes(&self, to: &str, at_ms: i64, messages: Vec<Value>) -> Value {
        let mut body =
            self.call_body(&self.id, at_ms, messages.into_iter().map(|message| json!({"message": message})).collect());
        for event in body["entry"][0]["messaging"].as_array_mut().into_iter().flatten() {
            event["recipient"] = json!({"id": to});
            event["message"]["is_echo"] = true.into();
        }
        body
    }
}

/// Events of [`Page::call_body`].
pub mod events {
    use serde_json::{Value, json};

    pub fn text(mid: &str, text: &str) -> Value {
        json!({"message": {"mid": mid, "text": text}})
    }

    /// A choice among quick replies.
    pub fn quick_reply(mid: &str, payload: &str, title: &str) -> Value {
        json!({"message": {"mid": mid, "text": title, "quick_reply": {"payload": payload}}})
    }

    /// `image`, `video`, `audio` or `file`.
    pub fn attachment(mid: &str, kind: &str, url: &str) -> Value {
        json!({"message": {"mid": mid, "attachments": [{"type": kind, "payload": {"url": url}}]}})
    }

    pub fn reply(mid: &str, to: &str, text: &str) -> Value {
        json!({"message": {"mid": mid, "text": text, "reply_to": {"mid": to}}})
    }

    pub fn reaction(mid: &str, emoji: &str) -> Value {
        json!({"reaction": {"mid": mid, "action": "react", "emoji": emoji, "reaction": "love"}})
    }

    pub fn postback(mid: &str, payload: &str, title: &str) -> Value {
        json!({"postback": {"mid": mid, "payload": payload, "title": title}})
    }

    /// A message that the business itself has sent, reported back.
    pub fn echo(mid: &str, text: &str) -> Value {
        json!({"message": {"mid": mid, "text": text, "is_echo": true, "app_id": 1}})
    }

    pub fn delivered(mids: &[&str], watermark_ms: i64) -> Value {
        json!({"delivery": {"mids": mids, "watermark": watermark_ms}})
    }

    pub fn read(watermark_ms: i64) -> Value {
        json!({"read": {"watermark": watermark_ms}})
    }

    /// The contact came through a link of the page.
    pub fn referral(reference: &str, ad_id: &str) -> Value {
        json!({"referral": {"ref": reference, "source": "ADS", "type": "OPEN_THREAD", "ad_id": ad_id}})
    }
}

/// Seconds since 1970, as the provider writes them.
fn now() -> String {
    chrono::Utc::now().timestamp().to_string()
}
