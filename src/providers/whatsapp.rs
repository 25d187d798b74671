//! The message format of the cloud API. <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages>

use hotline_actors::channels::{Accepted, Delivery, SendFailure};
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts::identities::IdentityKind;
use hotline_persistence::tables::messages::{MessageRow, MessageType};
use reqwest::multipart::Form;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::graph::Graph;
use super::media::{ProviderUploads, UploadedFile};
use super::{FileKind, unsupported};

const PRODUCT: &str = "whatsapp";

/// Appended to the message's id in the callback data of a text that is sent after its audio file.
pub const TEXT_SUFFIX: &str = " text";

pub(super) async fn send(
    graph: &Graph,
    uploads: &ProviderUploads,
    delivery: &Delivery,
) -> Result<Accepted, SendFailure> {
    if delivery.message.kind == MessageType::Media {
        // Boxed, so that the future of a text does not reserve the space that a file needs.
        return Box::pin(send_file(graph, uploads, delivery)).await;
    }
    let id = delivery.message.id;
    let callback_data = match delivery.message.reacts_to() {
        Some(target) => target.callback_data(id),
        None => id.to_string(),
    };
    post(graph, delivery, callback_data, Content::of(&delivery.message, None)?).await
}

/// Sends a file. Audio has no caption, so its text is sent as a second message. If only the text fails, a retry sends
/// only the text.
async fn send_file(graph: &Graph, uploads: &ProviderUploads, delivery: &Delivery) -> Result<Accepted, SendFailure> {
    let Delivery { message, file_accepted, .. } = delivery;
    let accepted = match file_accepted.get() {
        Some(accepted) => accepted.clone(),
        None => {
            let uploaded = find_or_upload(graph, uploads, delivery).await?;
            let is_single_part = !sends_text_separately(message, &uploaded.mime_type);
            let outcome = post(graph, delivery, message.id.to_string(), Content::of(message, Some(&uploaded))?).await;
            let accepted = outcome.map_err(|failure| match failure {
                SendFailure::Unknown { reason, may_be_named, .. } => {
                    SendFailure::Unknown { reason, is_file_only: !is_single_part, may_be_named }
                }
                failure => failure,
            })?;
            uploads.forget_message(message);
            if is_single_part {
                return Ok(accepted);
            }
            file_accepted.get_or_init(|| accepted).clone()
        }
    };
    let body = message.body.as_deref().unwrap_or_default();
    // The suffix distinguishes statuses of the text from those of the file.
    post(graph, delivery, format!("{}{TEXT_SUFFIX}", message.id), Content::Text { text: Text { body } }).await?;
    Ok(accepted)
}

/// Sends one message. The provider returns `callback_data` with the message's statuses.
async fn post(
    graph: &Graph,
    delivery: &Delivery,
    callback_data: String,
    content: Content<'_>,
) -> Result<Accepted, SendFailure> {
    let envelope = Envelope::of(delivery, callback_data, content);
    let outcome = graph.post(&delivery.account, "messages", &envelope).await;
    let response: Option<SendResponse> = outcome.map_err(|error| match error {
        error if error.leaves_doubt() => {
            SendFailure::Unknown { reason: error.to_string(), is_file_only: false, may_be_named: true }
        }
        error => error.into(),
    })?;
    let sent_message = response.and_then(|response| response.messages.into_iter().next());
    Ok(Accepted { provider_message_id: sent_message.map(|message| message.id), text_message_id: None })
}

/// The body of a request. The API has no idempotency keys, but returns `biz_opaque_callback_data` with each of the
/// message's statuses: it identifies the message if the answer with the provider's id was lost.
#[derive(Serialize)]
struct Envelope<'a> {
    messaging_product: &'static str,
    recipient_type: &'static str,
    /// A number, or a group's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    /// The business-scoped user id of a person who hides their number. The provider would accept the id in `to`, but
    /// not deliver the message.
    /// <https://developers.facebook.com/documentation/business-messaging/whatsapp/business-scoped-user-ids>
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient: Option<&'a str>,
    biz_opaque_callback_data: String,
    #[serde(flatten)]
    content: Content<'a>,
}

impl<'a> Envelope<'a> {
    fn of(delivery: &'a Delivery, biz_opaque_callback_data: String, content: Content<'a>) -> Self {
        let (to, is_user_id) = (delivery.to.as_str(), delivery.to_kind == IdentityKind::UserId);
        Self {
            messaging_product: PRODUCT,
            recipient_type: if delivery.to_kind == IdentityKind::GroupId { "group" } else { "individual" },
            to: (!is_user_id).then_some(to),
            recipient: is_user_id.then_some(to),
            biz_opaque_callback_data,
            content,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Content<'a> {
    Text {
        text: Text<'a>,
    },
    /// <https://developers.facebook.com/docs/whatsapp/cloud-api/messages/reaction-messages>
    Reaction {
        reaction: ReactionContent<'a>,
    },
    Template {
        template: Option<&'a Value>,
    },
    Interactive {
        interactive: Option<&'a Value>,
    },
    Image {
        image: MediaContent<'a>,
    },
    Video {
        video: MediaContent<'a>,
    },
    Audio {
        audio: MediaContent<'a>,
    },
    Document {
        document: MediaContent<'a>,
    },
}

#[derive(Serialize)]
struct Text<'a> {
    body: &'a str,
}

#[derive(Serialize)]
struct ReactionContent<'a> {
    message_id: String,
    /// Empty: the reaction is withdrawn.
    emoji: &'a str,
}

#[derive(Serialize)]
struct MediaContent<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    caption: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    /// Whether it is shown as a voice message instead of an audio file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    voice: bool,
}

/// The response to an accepted message.
#[derive(Deserialize)]
struct SendResponse {
    messages: Vec<SentMessage>,
}

#[derive(Deserialize)]
struct SentMessage {
    id: String,
}

impl<'a> Content<'a> {
    fn of(message: &'a MessageRow, uploaded: Option<&'a UploadedFile>) -> Result<Self, SendFailure> {
        let body = message.body.as_deref();
        if let Some(target) = message.reacts_to() {
            let emoji = body.unwrap_or_default();
            return Ok(Self::Reaction { reaction: ReactionContent { message_id: target.to, emoji } });
        }
        match (message.kind, uploaded) {
            (MessageType::Text, _) => Ok(Self::Text { text: Text { body: body.unwrap_or_default() } }),
            (MessageType::Template, _) => Ok(Self::Template { template: message.template.as_ref() }),
            (MessageType::Interactive, _) => Ok(Self::Interactive { interactive: message.interactive.as_ref() }),
            (MessageType::Media, Some(UploadedFile { id, file_name, mime_type, is_voice })) => {
                let kind = kind_of(mime_type);
                let file =
                    MediaContent { id, caption: body.filter(|_| supports_caption(kind)), filename: None, voice: false };
                Ok(match kind {
                    FileKind::Image => Self::Image { image: file },
                    FileKind::Video => Self::Video { video: file },
                    FileKind::Audio => Self::Audio { audio: MediaContent { voice: *is_voice, ..file } },
                    FileKind::Document => {
                        Self::Document { document: MediaContent { filename: Some(file_name), ..file } }
                    }
                })
            }
            (MessageType::Media | MessageType::Note | MessageType::System, _) => {
                Err(unsupported("notes cannot be sent"))
            }
        }
    }
}

fn kind_of(mime_type: &str) -> FileKind {
    FileKind::of(ChannelType::Whatsapp, mime_type)
}

fn supports_caption(kind: FileKind) -> bool {
    kind != FileKind::Audio
}

/// Whether the text of a message follows its file, which has this type.
pub(super) fn sends_text_separately(message: &MessageRow, mime_type: &str) -> bool {
    message.body.is_some() && !supports_caption(kind_of(mime_type))
}

async fn find_or_upload(
    graph: &Graph,
    uploads: &ProviderUploads,
    delivery: &Delivery,
) -> Result<UploadedFile, SendFailure> {
    let upload_file = async |mime_type: &str, part| {
        let form = Form::new().text("messaging_product", PRODUCT).text("type", mime_type.to_owned()).part("file", part);
        let response = graph.post_form(&delivery.account, "media", form).await?;
        let id = response.and_then(|response| response["id"].as_str().map(str::to_owned));
        id.ok_or_else(|| SendFailure::Retry { reason: "the response to an upload has no id".to_owned(), after: None })
    };
    uploads.find_or_upload(&delivery.message, upload_file).await
}
