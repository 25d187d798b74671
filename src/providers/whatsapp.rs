//! The cloud API: what a message is called there.
//! <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages>

use hotline_actors::channels::{Accepted, Delivery, SendFailure};
use hotline_persistence::tables::messages::{MessageRow, MessageType};
use reqwest::multipart::Form;
use serde_json::{Value, json};

use super::graph::Graph;
use super::media::{Uploaded, Uploads};
use super::unsupported;

const PRODUCT: &str = "whatsapp";

pub(super) async fn send(graph: &Graph, uploads: &Uploads, delivery: &Delivery) -> Result<Accepted, SendFailure> {
    let Delivery { account, to, message } = delivery;
    let uploaded = match message.kind {
        MessageType::Media => Some(upload(graph, uploads, delivery).await?),
        _ => None,
    };
    let content = content(message, uploaded.as_ref())?;
    let answer = graph.post(account, "messages", &envelope(to, message, content)).await?;
    if let Some(uploaded) = uploaded {
        // A sound has no caption: what was written with it follows, and is not tried again for itself.
        if let Some(body) = message.body.as_deref().filter(|_| !has_caption(kind_of(&uploaded.mime_type))) {
            let _ = graph.post(account, "messages", &envelope(to, message, text(body))).await;
        }
        uploads.forget(message);
    }
    let id = answer.and_then(|answer| answer["messages"][0]["id"].as_str().map(str::to_owned));
    Ok(Accepted { provider_message_id: id })
}

/// What every message has. The API knows no idempotency key; what it is given under `biz_opaque_callback_data` comes
/// back with each of the message's statuses, which finds the message should its id have been lost.
fn envelope(to: &str, message: &MessageRow, content: Value) -> Value {
    let mut body = json!({
        "messaging_product": PRODUCT,
        "recipient_type": "individual",
        "to": to,
        "biz_opaque_callback_data": message.id.to_string(),
    });
    if let (Value::Object(body), Value::Object(content)) = (&mut body, content) {
        body.extend(content);
    }
    body
}

fn content(message: &MessageRow, uploaded: Option<&Uploaded>) -> Result<Value, SendFailure> {
    match (message.kind, uploaded) {
        (MessageType::Text, _) => Ok(text(message.body.as_deref().unwrap_or_default())),
        (MessageType::Template, _) => Ok(json!({"type": "template", "template": message.template})),
        (MessageType::Interactive, _) => Ok(json!({"type": "interactive", "interactive": message.interactive})),
        (MessageType::Media, Some(uploaded)) => {
            let kind = kind_of(&uploaded.mime_type);
            let mut media = json!({"id": uploaded.id});
            if let Some(caption) = message.body.as_deref().filter(|_| has_caption(kind)) {
                media["caption"] = caption.into();
            }
            if kind == "document" {
                media["filename"] = (*uploaded.file_name).into();
            }
            Ok(json!({"type": kind, kind: media}))
        }
        (MessageType::Media | MessageType::Note, _) => Err(unsupported("a note is never sent")),
    }
}

fn text(body: &str) -> Value {
    json!({"type": "text", "text": {"body": body}})
}

/// As what a file is sent. What is no picture, film or sound the API takes goes as a document.
/// <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media#supported-media-types>
fn kind_of(mime_type: &str) -> &'static str {
    match mime_type {
        "image/jpeg" | "image/png" => "image",
        "video/mp4" | "video/3gpp" => "video",
        "audio/aac" | "audio/amr" | "audio/mpeg" | "audio/mp4" | "audio/ogg" => "audio",
        _ => "document",
    }
}

fn has_caption(kind: &str) -> bool {
    kind != "audio"
}

async fn upload(graph: &Graph, uploads: &Uploads, delivery: &Delivery) -> Result<Uploaded, SendFailure> {
    let upload = async |mime_type: &str, part| {
        let form = Form::new().text("messaging_product", PRODUCT).text("type", mime_type.to_owned()).part("file", part);
        let answer = graph.post_form(&delivery.account, "media", form).await?;
        let id = answer.and_then(|answer| answer["id"].as_str().map(str::to_owned));
        id.ok_or_else(|| SendFailure::Retry { reason: "the upload was answered without an id".to_owned(), after: None })
    };
    uploads.of_message(&delivery.message, upload).await
}
