//! The structured content of messages, which programs can use instead of the text. The providers document its parts in:
//!
//! - options and forms: <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/interactive>,
//!   `…/messages/button`, and the answers of a form in <https://developers.facebook.com/docs/whatsapp/flows/reference/responsemsgwebhook>
//! - orders, and products that a question is about: `…/messages/order`, `…/messages/text` (`context.referred_product`)
//! - places, contacts, advertisements: `…/messages/location`, `…/messages/contacts`, `…/messages/text` (`referral`)
//! - stories: <https://developers.facebook.com/docs/messenger-platform/instagram/features/story-mention> and
//!   `…/features/webhook` (`reply_to.story`)

use hotline_persistence::tables::contacts::Referral;
use hotline_persistence::tables::messages::{
    ChosenOption, MessageContent, MessageReferral, OrderItem, PlacedOrder, ProductReference, SharedLocation,
    StoryReference, SubmittedForm,
};
use serde_json::{Map, Value};

use super::call::{id, list, scalar, text, text_at, truncate};

/// Maximum items of an order, and shared contacts of a message: more than an app sends.
const ITEMS_MAX: usize = 256;

/// Maximum size of a structure that is stored as the provider sent it, the same as of a text.
const STRUCTURE_BYTES_MAX: usize = 65_536;

/// Maximum depth of such a structure: providers send three levels.
const DEPTH_MAX: usize = 8;

/// Maximum characters of a key or of a text in such a structure.
const KEY_CHARACTERS_MAX: usize = 255;
const TEXT_CHARACTERS_MAX: usize = 10_000;

/// The context of a phone channel's message: whether it was forwarded, the product it is about, and the advertisement
/// that brought the contact.
pub(super) fn from_context(message: &Value) -> MessageContent {
    let context = message.get("context").unwrap_or(&Value::Null);
    let is_set = |flag: &str| context.get(flag).and_then(Value::as_bool) == Some(true);
    let product = context.get("referred_product").filter(|product| product.is_object());
    MessageContent {
        forwarded: is_set("forwarded") || is_set("frequently_forwarded"),
        frequently_forwarded: is_set("frequently_forwarded"),
        product: product.map(|product| ProductReference {
            catalog_id: id(product, "catalog_id"),
            retailer_id: id(product, "product_retailer_id"),
        }),
        referral: message.get("referral").and_then(phone_referral),
        ..MessageContent::default()
    }
}

/// The chosen option of a phone channel's message. Its id is stored, because two options may have the same title.
pub(super) fn chosen_option(part: &Value) -> Option<ChosenOption> {
    let reply = ["button_reply", "list_reply"].into_iter().find_map(|kind| part.get(kind))?;
    let [id, title, description] = ["id", "title", "description"].map(|field| text(reply, field));
    Some(ChosenOption { id, payload: None, title, description })
}

/// The submitted form of a phone channel's message.
pub(super) fn form(part: &Value) -> Option<SubmittedForm> {
    let reply = part.get("nfm_reply")?;
    let answers = reply.get("response_json").and_then(Value::as_str);
    let answers = answers.and_then(|json| serde_json::from_str(json).ok()).filter(Value::is_object);
    Some(SubmittedForm { name: text(reply, "name"), answers: answers.as_ref().and_then(bounded_copy) })
}

/// The order of a phone channel's message.
pub(super) fn order(part: &Value) -> PlacedOrder {
    let items = list(part, "product_items").iter().take(ITEMS_MAX).map(|item| OrderItem {
        retailer_id: id(item, "product_retailer_id"),
        quantity: number(item, "quantity"),
        price: text(item, "item_price"),
        currency: text(item, "currency"),
    });
    PlacedOrder { catalog_id: id(part, "catalog_id"), text: text(part, "text"), items: items.collect() }
}

/// A shared location; `coordinates` is the object with its latitude and longitude.
pub(super) fn location(
    name: Option<String>,
    address: Option<String>,
    url: Option<String>,
    coordinates: &Value,
) -> SharedLocation {
    let coordinate = |short: &str, long: &str| number(coordinates, short).or_else(|| number(coordinates, long));
    let (latitude, longitude) = (coordinate("lat", "latitude"), coordinate("long", "longitude"));
    SharedLocation { latitude, longitude, name, address, url }
}

/// The shared contacts of a phone channel's message, with field names in camel case, as in the API.
pub(super) fn contacts(message: &Value) -> Vec<Value> {
    list(message, "contacts").iter().take(ITEMS_MAX).filter_map(|card| bounded_copy_with(card, camel_case)).collect()
}

/// A story, from the `story` object of a reply, or from the payload of an attachment.
pub(super) fn story(reference: &Value) -> StoryReference {
    StoryReference {
        id: id(reference, "id").or_else(|| id(reference, "story_id")),
        media_id: ["media_id", "story_media_id", "ig_story_media_id"].iter().find_map(|field| id(reference, field)),
        url: text(reference, "url").or_else(|| text(reference, "story_media_url")),
    }
}

/// The advertisement or post that brought the contact of a phone channel; `None` if it has no content.
fn phone_referral(value: &Value) -> Option<MessageReferral> {
    let media_url = ["image_url", "video_url", "thumbnail_url"].iter().find_map(|field| text(value, field));
    non_empty(MessageReferral {
        ctwa_clid: text(value, "ctwa_clid"),
        source_url: text(value, "source_url"),
        source_id: text(value, "source_id"),
        source_type: text(value, "source_type"),
        reference: None,
        headline: text(value, "headline"),
        body: text(value, "body"),
        media_type: text(value, "media_type"),
        media_url,
    })
}

/// The advertisement or link that brought the contact of a social channel; `None` if it has no content.
pub(super) fn social_referral(value: &Value) -> Option<MessageReferral> {
    let ad = value.get("ads_context_data").unwrap_or(&Value::Null);
    let (photo, video) = (text(ad, "photo_url"), text(ad, "video_url"));
    let media_type = match (&photo, &video) {
        (Some(_), _) => Some("image".to_owned()),
        (None, Some(_)) => Some("video".to_owned()),
        (None, None) => None,
    };
    non_empty(MessageReferral {
        ctwa_clid: text(value, "ctwa_clid"),
        source_url: text(value, "referer_uri").or_else(|| text(value, "source_url")),
        source_id: text(value, "ad_id"),
        source_type: text(value, "source"),
        reference: text(value, "ref"),
        headline: text(ad, "ad_title"),
        body: None,
        media_type,
        media_url: photo.or(video),
    })
}

/// The product that a message of a social channel is about.
pub(super) fn social_product(referral: &Value) -> Option<ProductReference> {
    let retailer_id = text_at(referral, "/product/id").or_else(|| text_at(referral, "/ads_context_data/product_id"))?;
    Some(ProductReference { catalog_id: None, retailer_id: Some(retailer_id) })
}

fn non_empty(referral: MessageReferral) -> Option<MessageReferral> {
    (referral != MessageReferral::default()).then_some(referral)
}

/// The part of a message's referral that is stored with its contact.
pub(super) fn contact_referral(referral: Option<&MessageReferral>) -> Referral {
    let Some(referral) = referral.cloned() else { return Referral::default() };
    let MessageReferral { ctwa_clid, source_url, source_id, reference, headline, media_type, media_url, .. } = referral;
    Referral { ctwa_clid, source_url, source_id: source_id.or(reference), headline, media_type, media_url }
}

fn number(value: &Value, field: &str) -> Option<f64> {
    scalar(value.get(field)?)?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A copy of a provider's structure, with long texts truncated, and without characters that cannot be stored; `None` if
/// it is too large or too deep.
pub(super) fn bounded_copy(value: &Value) -> Option<Value> {
    bounded_copy_with(value, as_is)
}

/// Like [`bounded_copy`], with converted keys.
fn bounded_copy_with(value: &Value, convert_key: fn(&str) -> String) -> Option<Value> {
    let mut bytes_left = STRUCTURE_BYTES_MAX;
    let copy = copy_value(value, convert_key, DEPTH_MAX, &mut bytes_left);
    if copy.is_none() {
        tracing::info!("the structure of a provider's message is too large and is left out");
    }
    copy
}

fn copy_value(value: &Value, convert_key: fn(&str) -> String, depth: usize, bytes_left: &mut usize) -> Option<Value> {
    /// Bytes that are counted for each value, besides those of keys and texts.
    const VALUE_BYTES: usize = 8;
    *bytes_left = bytes_left.checked_sub(VALUE_BYTES)?;
    let depth = depth.checked_sub(1)?;
    match value {
        Value::Array(values) => {
            let copies: Option<Vec<Value>> =
                values.iter().map(|value| copy_value(value, convert_key, depth, bytes_left)).collect();
            Some(Value::Array(copies?))
        }
        Value::Object(fields) => {
            let mut copies = Map::with_capacity(fields.len().min(ITEMS_MAX));
            for (name, value) in fields {
                let name = truncate(convert_key(&scalar(&Value::String(name.clone()))?), KEY_CHARACTERS_MAX);
                *bytes_left = bytes_left.checked_sub(name.len())?;
                copies.insert(name, copy_value(value, convert_key, depth, bytes_left)?);
            }
            Some(Value::Object(copies))
        }
        Value::String(_) => {
            let text = truncate(scalar(value)?, TEXT_CHARACTERS_MAX);
            *bytes_left = bytes_left.checked_sub(text.len())?;
            Some(Value::String(text))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.clone()),
    }
}

fn as_is(key: &str) -> String {
    key.to_owned()
}

/// `first_name` becomes `firstName`.
fn camel_case(key: &str) -> String {
    let mut parts = key.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut name, part| {
        let mut characters = part.chars();
        name.extend(characters.next().map(|character| character.to_ascii_uppercase()));
        name.push_str(characters.as_str());
        name
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_structure_is_kept_with_storable_texts_or_left_out_as_a_whole() {
        let card = json!({"name": {"formatted_name": "Ana\0", "first_name": "Ana"}, "phones": [{"wa_id": "55", "type": "CELL"}]});
        let expected =
            json!({"name": {"formattedName": "Ana", "firstName": "Ana"}, "phones": [{"waId": "55", "type": "CELL"}]});
        assert_eq!(bounded_copy_with(&card, camel_case), Some(expected));
        let unchanged = json!({"a_b": [1, 2.5, true, null]});
        assert_eq!(bounded_copy(&unchanged), Some(unchanged));
        let deep = (0..20).fold(json!(1), |value, _| json!([value]));
        let long = json!(vec!["x".repeat(9000); 9]);
        for too_large in [deep, long, json!(vec![0; STRUCTURE_BYTES_MAX])] {
            assert_eq!(bounded_copy(&too_large), None);
        }
    }

    #[test]
    fn answers_of_a_form_are_kept_only_if_they_are_an_object() {
        let answers = |json: &str| {
            form(&json!({"nfm_reply": {"name": "flow", "response_json": json}})).and_then(|form| form.answers)
        };
        assert_eq!(answers("{\"size\": \"XL\"}"), Some(json!({"size": "XL"})));
        for other in ["", "7", "[1]", "{\"size\""] {
            assert_eq!(answers(other), None, "{other}");
        }
    }

    #[test]
    fn numbers_are_also_read_from_strings() {
        let item = json!({"a": 2, "b": "2.5", "c": "many", "d": "inf", "e": null});
        let read = ["a", "b", "c", "d", "e", "f"].map(|field| number(&item, field));
        assert_eq!(read, [Some(2.0), Some(2.5), None, None, None, None]);
    }
}
