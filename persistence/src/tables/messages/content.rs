//! The parts of a contact's message that programs need besides its text, as the provider sent them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::MessageRow;
use crate::tables::text_enum;

text_enum! {
    /// The kind of a message's additional content.
    ContentKind { Reply = "reply" }
}

/// Additional content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageContent {
    /// The kind of content.
    pub kind: ContentKind,
    /// The chosen option, with `kind: reply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reply: Option<ChosenOption>,
}

/// The option that the contact chose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChosenOption {
    /// The option's id as it was sent, or the payload if the provider only has payloads.
    #[schema(example = "size-m")]
    pub id: Option<String>,
    /// The payload, if the provider has one: for quick replies and postbacks of social channels, and for template
    /// buttons.
    #[schema(example = json!(null))]
    pub payload: Option<String>,
    /// The displayed text; also the message's `body`.
    #[schema(example = "Medium")]
    pub title: Option<String>,
    /// The second line of a list row.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Fits most people")]
    pub description: Option<String>,
}

impl ChosenOption {
    /// An option that the provider names by its payload alone.
    pub fn of_payload(payload: Option<String>, title: Option<String>) -> Self {
        Self { id: payload.clone(), payload, title, description: None }
    }

    /// The column `content` of the message by which it was chosen.
    pub fn into_content(self) -> Value {
        json!(MessageContent { kind: ContentKind::Reply, reply: Some(self) })
    }
}

/// Who of a group wrote a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageAuthor {
    /// Their name, as they gave it to the provider.
    #[schema(example = "Maria Lima")]
    pub name: Option<String>,
    #[schema(example = "5511987654321")]
    pub number: Option<String>,
    /// The provider's own id of them.
    #[schema(example = "US.13491208655302741918")]
    pub address: Option<String>,
}

impl MessageAuthor {
    /// The column `content` with the author of the message.
    pub fn add_to_content(author: Option<Self>, content: Option<Value>) -> Option<Value> {
        let Some(author) = author else { return content };
        let mut content = content.unwrap_or_else(|| json!({}));
        content["author"] = json!(author);
        Some(content)
    }
}

impl MessageRow {
    /// Who of a group wrote it.
    pub fn author(&self) -> Option<MessageAuthor> {
        MessageAuthor::deserialize(self.content.as_ref()?.get("author")?).ok()
    }

    /// Its content besides the text; `None` also if only a newer release can read it.
    pub fn content(&self) -> Option<MessageContent> {
        MessageContent::deserialize(self.content.as_ref()?).ok()
    }
}
