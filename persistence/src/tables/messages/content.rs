//! What a contact's message holds beside its readable text: the parts a program needs, as the provider gave them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::MessageRow;
use crate::tables::words;

words! {
    /// What a message holds beside its text.
    ContentKind { Reply = "reply" }
}

/// What a message holds beside its text, as it is stored and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct MessageContent {
    /// What it is.
    pub kind: ContentKind,
    /// The option that was chosen: with `kind: reply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reply: Option<ChosenOption>,
}

/// The option of a message that its contact chose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct ChosenOption {
    /// The option's id as it was sent; where a provider only knows payloads, the payload.
    #[schema(example = "size-m")]
    pub id: Option<String>,
    /// The payload, where the provider gives one: of quick replies and postbacks of social channels, and of a template's buttons.
    #[schema(example = json!(null))]
    pub payload: Option<String>,
    /// What the contact saw, also the message's `body`.
    #[schema(example = "Medium")]
    pub title: Option<String>,
    /// The second line of a list's row.
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

impl MessageRow {
    /// What it holds beside its text; `None` also of what only a newer release knows.
    pub fn content(&self) -> Option<MessageContent> {
        MessageContent::deserialize(self.content.as_ref()?).ok()
    }
}
