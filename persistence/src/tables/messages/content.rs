//! The parts of a message that programs need besides its text, as the provider sent them. All of them are in the column
//! `content`, and each is optional, so that a later release can add one.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::MessageRow;
use crate::tables::text_enum;

text_enum! {
    /// The kind of a message's additional content. If a message has several, the first of these.
    ContentKind {
        /// The contact chose an option.
        Reply = "reply",
        /// The contact submitted a form.
        Form = "form",
        /// The contact placed an order from a catalogue.
        Order = "order",
        /// A place.
        Location = "location",
        /// Shared contacts.
        Contacts = "contacts",
        /// A reply to a story, or a mention in one.
        Story = "story",
        /// The message is about a product.
        Product = "product",
        /// The contact came by an advertisement or link.
        Referral = "referral",
        /// The message was forwarded.
        Forwarded = "forwarded",
    }
}

/// Additional content of a message: the part that `kind` names, and any other that the message has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageContent {
    /// The kind of content.
    pub kind: ContentKind,
    /// The chosen option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reply: Option<ChosenOption>,
    /// The submitted form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub form: Option<SubmittedForm>,
    /// The order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub order: Option<PlacedOrder>,
    /// The place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub location: Option<SharedLocation>,
    /// The shared contacts, each with what its provider gave: names, numbers, addresses, organization.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub contacts: Vec<Value>,
    /// The story that the message replies to, or that mentions the company.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub story: Option<StoryReference>,
    /// The product that the message is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub product: Option<ProductReference>,
    /// The advertisement or link that brought the contact with this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub referral: Option<MessageReferral>,
    /// Whether the message was forwarded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forwarded: bool,
    /// Whether it was forwarded many times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frequently_forwarded: bool,
}

impl Default for MessageContent {
    /// Content without any part. [`MessageContent::into_column`] sets its kind.
    fn default() -> Self {
        Self {
            kind: ContentKind::Forwarded,
            reply: None,
            form: None,
            order: None,
            location: None,
            contacts: Vec::new(),
            story: None,
            product: None,
            referral: None,
            forwarded: false,
            frequently_forwarded: false,
        }
    }
}

impl MessageContent {
    /// The content of a message by which a contact chose an option.
    pub fn of_reply(reply: ChosenOption) -> Self {
        Self { reply: Some(reply), ..Self::default() }
    }

    /// The column `content`, with the kind of the first part that is set; `None` without any part.
    pub fn into_column(mut self) -> Option<Value> {
        self.kind = [
            (self.reply.is_some(), ContentKind::Reply),
            (self.form.is_some(), ContentKind::Form),
            (self.order.is_some(), ContentKind::Order),
            (self.location.is_some(), ContentKind::Location),
            (!self.contacts.is_empty(), ContentKind::Contacts),
            (self.story.is_some(), ContentKind::Story),
            (self.product.is_some(), ContentKind::Product),
            (self.referral.is_some(), ContentKind::Referral),
            (self.forwarded || self.frequently_forwarded, ContentKind::Forwarded),
        ]
        .into_iter()
        .find_map(|(is_set, kind)| is_set.then_some(kind))?;
        Some(json!(self))
    }
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
    pub fn into_content(self) -> Option<Value> {
        MessageContent::of_reply(self).into_column()
    }
}

/// A form that the contact submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmittedForm {
    /// Its name at the provider.
    #[schema(example = "flow")]
    pub name: Option<String>,
    /// What the contact entered, by the names of the form's fields.
    #[schema(value_type = Option<Object>, example = json!({"size": "XL"}))]
    pub answers: Option<Value>,
}

/// An order from a catalogue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacedOrder {
    /// The catalogue.
    #[schema(example = "194836987003835")]
    pub catalog_id: Option<String>,
    /// The contact's text.
    #[schema(example = "for Friday")]
    pub text: Option<String>,
    /// The ordered products.
    pub items: Vec<OrderItem>,
}

/// A product of an order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderItem {
    /// The product's id in the catalogue.
    #[schema(example = "SKU-1")]
    pub retailer_id: Option<String>,
    #[schema(example = 2.0)]
    pub quantity: Option<f64>,
    /// The price of one, as the provider writes it.
    #[schema(example = "9.90")]
    pub price: Option<String>,
    /// ISO 4217.
    #[schema(example = "BRL")]
    pub currency: Option<String>,
}

/// A place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SharedLocation {
    #[schema(example = -23.55)]
    pub latitude: Option<f64>,
    #[schema(example = -46.63)]
    pub longitude: Option<f64>,
    #[schema(example = "Office")]
    pub name: Option<String>,
    #[schema(example = "1 Hacker Way, Menlo Park")]
    pub address: Option<String>,
    #[schema(example = json!(null))]
    pub url: Option<String>,
}

/// A story of a social channel. Its picture is the message's `media`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoryReference {
    /// The provider's id of the story.
    #[schema(example = "17988254432456")]
    pub id: Option<String>,
    /// The provider's id of its picture or video.
    #[schema(example = json!(null))]
    pub media_id: Option<String>,
    /// Where the provider shows it, for a day at most.
    #[schema(example = "https://lookaside.fbsbx.com/ig_messaging_cdn/?asset_id=17988254432456")]
    pub url: Option<String>,
}

/// A product of a catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductReference {
    /// The catalogue.
    #[schema(example = "194836987003835")]
    pub catalog_id: Option<String>,
    /// The product's id in the catalogue.
    #[schema(example = "SKU-1")]
    pub retailer_id: Option<String>,
}

/// The advertisement, post or link that brought a contact with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageReferral {
    /// The provider's id of the click.
    #[schema(example = "ARAkLkA8rmlFeiCktEJQ")]
    pub ctwa_clid: Option<String>,
    #[schema(example = "https://fb.me/3cr4Wqqkv")]
    pub source_url: Option<String>,
    #[schema(example = "120226305854810726")]
    pub source_id: Option<String>,
    /// As the provider writes it: `ad`, `post`, `ADS`, `SHORTLINK`.
    #[schema(example = "ad")]
    pub source_type: Option<String>,
    /// The reference that the link contains.
    #[schema(example = json!(null))]
    pub reference: Option<String>,
    #[schema(example = "Half price")]
    pub headline: Option<String>,
    #[schema(example = "Until Friday")]
    pub body: Option<String>,
    #[schema(example = "image")]
    pub media_type: Option<String>,
    #[schema(example = "https://scontent.example/picture.jpg")]
    pub media_url: Option<String>,
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
        add_to_content("author", author.map(|author| json!(author)), content)
    }
}

text_enum! {
    /// By which app a message was sent or handled instead of Hotline.
    Via {
        /// The provider's own app or inbox.
        NativeApp = "nativeApp",
        /// Another app that is connected to the account.
        OtherApp = "otherApp",
    }
}

/// An app of a provider's account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageApp {
    /// The provider's id of it.
    #[schema(example = "263902037430900")]
    pub id: Option<String>,
    /// Its name, if it is known.
    #[schema(example = "Meta Business Suite")]
    pub name: Option<String>,
}

/// The provider's own inboxes, by their ids.
/// <https://developers.facebook.com/docs/messenger-platform/handover-protocol/pass-thread-control>
const NATIVE_APPS: [(&str, &str); 2] = [("263902037430900", "Page Inbox"), ("1217981644879628", "Instagram Inbox")];

impl MessageApp {
    /// An app by its id, with its name if it is one of the provider's own.
    pub fn of_id(id: Option<&str>) -> Self {
        let native = NATIVE_APPS.iter().find(|(native_id, _)| id == Some(*native_id));
        Self { id: id.map(str::to_owned), name: native.map(|(_, name)| (*name).to_owned()) }
    }
}

/// The app in which the company wrote a message, or which received a contact's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageOrigin {
    /// Which kind of app.
    pub kind: Via,
    /// The app.
    pub app: MessageApp,
    /// Whether the message was written before the ticket was opened, so that it does not count as an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

impl MessageOrigin {
    /// The column `content` with the origin of the message.
    pub fn add_to_content(&self, content: Option<Value>) -> Option<Value> {
        add_to_content("via", Some(json!(self)), content)
    }
}

fn add_to_content(part: &str, value: Option<Value>, content: Option<Value>) -> Option<Value> {
    let Some(value) = value else { return content };
    let mut content = content.unwrap_or_else(|| json!({}));
    content[part] = value;
    Some(content)
}

impl MessageRow {
    /// The member of a group who wrote the message; `None` outside groups.
    pub fn author(&self) -> Option<MessageAuthor> {
        MessageAuthor::deserialize(self.content.as_ref()?.get("author")?).ok()
    }

    /// The app that sent or received the message; `None` if that was Hotline.
    pub fn origin(&self) -> Option<MessageOrigin> {
        MessageOrigin::deserialize(self.content.as_ref()?.get("via")?).ok()
    }

    /// The additional content; `None` also if only a newer release can read it.
    pub fn content(&self) -> Option<MessageContent> {
        MessageContent::deserialize(self.content.as_ref()?).ok()
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn content_has_the_kind_of_its_first_part_and_is_absent_without_parts() {
        assert_eq!(MessageContent::default().into_column(), None);
        let forwarded = MessageContent { forwarded: true, ..MessageContent::default() };
        assert_eq!(forwarded.clone().into_column(), Some(json!({"kind": "forwarded", "forwarded": true})));
        let referral = MessageReferral { ctwa_clid: Some("click".to_owned()), ..MessageReferral::default() };
        let column = MessageContent { referral: Some(referral.clone()), ..forwarded }.into_column();
        let read = MessageContent::deserialize(column.as_ref().expect("a column")).expect("it is read");
        assert_eq!((read.kind, read.referral, read.forwarded), (ContentKind::Referral, Some(referral), true));
    }

    #[test]
    fn an_origin_is_stored_beside_the_content() {
        let app = MessageApp { id: Some("1".to_owned()), name: None };
        let origin = MessageOrigin { kind: Via::OtherApp, app, late: false };
        let content = origin.add_to_content(None).expect("content");
        assert_eq!(content, json!({"via": {"kind": "otherApp", "app": {"id": "1", "name": null}}}));
        assert!(MessageContent::deserialize(&content).is_err(), "without a kind there is no content");
    }

    #[test]
    fn content_of_earlier_releases_is_read() {
        let stored = json!({"kind": "reply", "reply": {"id": "a", "payload": null, "title": "A"}, "author": {}});
        let read = MessageContent::deserialize(&stored).expect("it is read");
        assert_eq!(read.reply.and_then(|reply| reply.id).as_deref(), Some("a"));
    }
}
