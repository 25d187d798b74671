//! The message format of the send API of Messenger and Instagram.
//! <https://developers.facebook.com/docs/messenger-platform/reference/send-api>,
//! <https://developers.facebook.com/docs/messenger-platform/instagram/features/send-message>

use hotline_actors::channels::{Accepted, Delivery, SendFailure};
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::messages::{MessageRow, MessageType, ReactionTarget};
use reqwest::multipart::Form;
use serde_json::{Value, json};

use super::graph::Graph;
use super::media::{ProviderUploads, UploadedFile};
use super::{FileKind, unsupported};

/// Maximum number of quick replies in a message.
/// <https://developers.facebook.com/docs/messenger-platform/send-messages/quick-replies>
const QUICK_REPLIES_MAX: usize = 13;

pub(super) async fn send(
    graph: &Graph,
    uploads: &ProviderUploads,
    delivery: &Delivery,
) -> Result<Accepted, SendFailure> {
    let message = &delivery.message;
    if let Some(target) = message.reacts_to() {
        return send_reaction(graph, delivery, &target).await;
    }
    let content = match message.kind {
        MessageType::Text => json!({"text": text_of(message)}),
        // Boxed, so that the future of a text does not reserve the space that a file needs.
        MessageType::Media => return Box::pin(send_file(graph, uploads, delivery)).await,
        MessageType::Interactive => message
            .interactive
            .as_ref()
            .and_then(convert_interactive)
            .ok_or_else(|| unsupported("the channel does not support this kind of interactive message"))?,
        MessageType::Template | MessageType::Note | MessageType::System => {
            return Err(unsupported("the channel does not support this type of message"));
        }
    };
    send_content(graph, delivery, content).await
}

pub(super) fn text_of(message: &MessageRow) -> &str {
    message.body.as_deref().unwrap_or_default()
}

/// Sends a file. Files have no captions on these channels, so the text is sent as a second message. If only the text
/// fails, a retry sends only the text.
async fn send_file(graph: &Graph, uploads: &ProviderUploads, delivery: &Delivery) -> Result<Accepted, SendFailure> {
    let Delivery { account, message, file_accepted, .. } = delivery;
    let accepted = match file_accepted.get() {
        Some(accepted) => accepted.clone(),
        None => {
            let uploaded = find_or_upload(graph, uploads, delivery).await?;
            let (kind, payload) =
                (attachment_type(account.kind, &uploaded.mime_type), json!({"attachment_id": uploaded.id}));
            let accepted =
                send_content(graph, delivery, json!({"attachment": {"type": kind, "payload": payload}})).await?;
            uploads.forget_message(message);
            file_accepted.get_or_init(|| accepted).clone()
        }
    };
    let body = text_of(message);
    if body.is_empty() {
        return Ok(accepted);
    }
    let accepted_text = send_content(graph, delivery, json!({"text": body})).await?;
    Ok(Accepted { text_message_id: accepted_text.provider_message_id, ..accepted })
}

async fn send_content(graph: &Graph, delivery: &Delivery, content: Value) -> Result<Accepted, SendFailure> {
    let outcome = graph.post(&delivery.account, "messages", &envelope(delivery, content)).await;
    let response: Option<Value> = outcome.map_err(|error| match error {
        // Statuses of these providers contain no id of ours, so none can identify the message later.
        error if error.leaves_doubt() => {
            SendFailure::Unknown { reason: error.to_string(), is_file_only: false, may_be_named: false }
        }
        error => error.into(),
    })?;
    let id = response.and_then(|response| response["message_id"].as_str().map(str::to_owned));
    Ok(Accepted { provider_message_id: id, text_message_id: None })
}

/// Sets or removes the reaction to a message.
/// <https://developers.facebook.com/docs/messenger-platform/send-messages/sender-actions>
async fn send_reaction(graph: &Graph, delivery: &Delivery, target: &ReactionTarget) -> Result<Accepted, SendFailure> {
    let mut payload = json!({"message_id": target.to});
    let action = match &delivery.message.body {
        Some(emoji) => {
            payload["reaction"] = emoji.as_str().into();
            "react"
        }
        None => "unreact",
    };
    let action = json!({"recipient": {"id": delivery.to}, "sender_action": action, "payload": payload});
    let _: Option<Value> = graph.post(&delivery.account, "messages", &action).await?;
    Ok(Accepted { provider_message_id: None, text_message_id: None })
}

/// The parts that every message has. Messenger returns `metadata` with the echo of the message.
fn envelope(delivery: &Delivery, mut content: Value) -> Value {
    let recipient = json!({"id": delivery.to});
    if delivery.account.kind == ChannelType::Instagram {
        return json!({"recipient": recipient, "message": content});
    }
    content["metadata"] = delivery.message.id.to_string().into();
    json!({"recipient": recipient, "messaging_type": "RESPONSE", "message": content})
}

/// Converts an interactive object of the cloud API; `None` if it has no equivalent on these channels.
fn convert_interactive(message: &Value) -> Option<Value> {
    let text = message["body"]["text"].as_str()?;
    let action = &message["action"];
    match message["type"].as_str()? {
        "button" => quick_replies(text, action["buttons"].as_array()?.iter().map(|button| &button["reply"])),
        "list" => {
            let sections = action["sections"].as_array()?;
            quick_replies(text, sections.iter().filter_map(|section| section["rows"].as_array()).flatten())
        }
        "cta_url" => {
            let parameters = &action["parameters"];
            let button = json!({"type": "web_url", "url": parameters["url"], "title": parameters["display_text"]});
            let payload = json!({"template_type": "button", "text": text, "buttons": [button]});
            Some(json!({"attachment": {"type": "template", "payload": payload}}))
        }
        _ => None,
    }
}

fn quick_replies<'a>(text: &str, options: impl Iterator<Item = &'a Value>) -> Option<Value> {
    let reply = |option: &Value| json!({"content_type": "text", "title": option["title"], "payload": option["id"]});
    let replies: Vec<Value> = options.map(reply).collect();
    (!replies.is_empty() && replies.len() <= QUICK_REPLIES_MAX).then(|| json!({"text": text, "quick_replies": replies}))
}

/// The type of an attachment, as the API names it.
fn attachment_type(channel: ChannelType, mime_type: &str) -> &'static str {
    match FileKind::of(channel, mime_type) {
        FileKind::Document => "file",
        kind => kind.as_str(),
    }
}

/// The message's file at the provider, uploaded if no earlier attempt has done so.
/// <https://developers.facebook.com/docs/messenger-platform/reference/attachment-upload-api>
async fn find_or_upload(
    graph: &Graph,
    uploads: &ProviderUploads,
    delivery: &Delivery,
) -> Result<UploadedFile, SendFailure> {
    let upload_file = async |mime_type: &str, part| {
        let attachment = json!({"attachment": {"type": attachment_type(delivery.account.kind, mime_type), "payload": {"is_reusable": false}}});
        let mut form = Form::new().text("message", attachment.to_string());
        if delivery.account.kind == ChannelType::Instagram {
            form = form.text("platform", "instagram");
        }
        let response = graph.post_form(&delivery.account, "message_attachments", form.part("filedata", part)).await?;
        let id = response.and_then(|response| response["attachment_id"].as_str().map(str::to_owned));
        id.ok_or_else(|| SendFailure::Retry { reason: "the response to an upload has no id".to_owned(), after: None })
    };
    uploads.find_or_upload(&delivery.message, upload_file).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interactive_messages_become_quick_replies_and_buttons() {
        let buttons = json!({"type": "button", "body": {"text": "Shall we?"}, "action": {"buttons": [
            {"type": "reply", "reply": {"id": "y", "title": "Yes"}},
            {"type": "reply", "reply": {"id": "n", "title": "No"}},
        ]}});
        let expected = json!({"text": "Shall we?", "quick_replies": [
            {"content_type": "text", "title": "Yes", "payload": "y"},
            {"content_type": "text", "title": "No", "payload": "n"},
        ]});
        assert_eq!(convert_interactive(&buttons), Some(expected));
        let list = json!({"type": "list", "body": {"text": "Which?"}, "action": {"button": "Choose", "sections": [
            {"rows": [{"id": "a", "title": "A"}]}, {"rows": [{"id": "b", "title": "B", "description": "better"}]},
        ]}});
        let replies = convert_interactive(&list).map(|message| message["quick_replies"].clone());
        let expected = json!([{"content_type": "text", "title": "A", "payload": "a"},
            {"content_type": "text", "title": "B", "payload": "b"}]);
        assert_eq!(replies, Some(expected));
        let link = json!({"type": "cta_url", "body": {"text": "Look"}, "action": {"name": "cta_url",
            "parameters": {"display_text": "Shop", "url": "https://shop.example"}}});
        let payload = json!({"template_type": "button", "text": "Look",
            "buttons": [{"type": "web_url", "url": "https://shop.example", "title": "Shop"}]});
        assert_eq!(convert_interactive(&link), Some(json!({"attachment": {"type": "template", "payload": payload}})));
    }

    #[test]
    fn unsupported_kinds_are_not_converted() {
        for message in [
            json!({"type": "flow", "body": {"text": "x"}, "action": {}}),
            json!({"type": "button", "body": {"text": "x"}, "action": {"buttons": []}}),
            json!({"type": "list", "action": {"sections": []}}),
            json!("text"),
        ] {
            assert_eq!(convert_interactive(&message), None, "{message}");
        }
    }
}
