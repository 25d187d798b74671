//! Identities on the phone channel: changes of numbers and of ids, and groups.
//!
//! - Changes: <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/system>
//! - Ids in place of numbers: <https://developers.facebook.com/documentation/business-messaging/whatsapp/business-scoped-user-ids>
//! - Groups: <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/group/>

use hotline_actors::clock;
use hotline_actors::services::{ChangedSender, Number, Sender};
use hotline_persistence::tables::messages::MessageAuthor;
use serde_json::Value;

use super::call::{id, id_at, last_four, text_at, time};
use super::numbers;

/// The change of a person's number or id that a `system` message reports; `None` for any other message.
pub(super) fn parse(message: &Value) -> Option<ChangedSender> {
    let part = message.get("system").filter(|_| id(message, "type").as_deref() == Some("system"))?;
    let kind = text_at(part, "/type")?;
    let at = time(message, "timestamp").unwrap_or_else(clock::now).min(clock::now());
    let first_id = |fields: &[&str]| fields.iter().find_map(|field| id(part, field));
    let new_id = first_id(&["user_id", "new_user_id"]);
    let old_id = first_id(&["previous_user_id", "old_user_id"]).or_else(|| id(message, "from_user_id"));
    let (old, new) = match kind.as_str() {
        // `customer_changed_number` and `new_wa_id` are the names in earlier versions of the API.
        "user_changed_number" | "customer_changed_number" => {
            let old = sender(id(message, "from"), old_id);
            (old, sender(first_id(&["wa_id", "new_wa_id"]), new_id))
        }
        "user_changed_user_id" => (sender(id(message, "from"), old_id), sender(first_id(&["wa_id"]), new_id)),
        _ => return None,
    };
    let is_identified = |sender: &Sender| sender.number.is_some() || sender.address.is_some();
    (is_identified(&old) && is_identified(&new)).then_some(ChangedSender { old, new, at })
}

/// The sender and the author of a message: in a group, the group is the sender.
pub(super) fn sender_and_author(message: &Value, from: Sender) -> (Sender, Option<MessageAuthor>) {
    let Some(group) = id(message, "group_id").or_else(|| id_at(message, "/group/id")) else { return (from, None) };
    let Sender { number, address, name, .. } = from;
    let author = MessageAuthor { name, number: number.map(|number| number.digits), address };
    let fallback_name = format!("WhatsApp group {}", last_four(&group));
    let group = Sender { fallback_name, is_group: true, ..sender(None, Some(group)) };
    (group, Some(author))
}

/// A sender with the number in `from`, and with the id in `user_id`. If `from` is not a number, it is the id of a
/// sender without a `user_id`.
fn sender(from: Option<String>, user_id: Option<String>) -> Sender {
    let number = from.as_deref().filter(|from| numbers::is_phone_number(from));
    let number = number.map(|digits| Number { digits: digits.to_owned(), country: numbers::country(digits) });
    let address = user_id.or_else(|| from.filter(|_| number.is_none()));
    let fallback_name = String::new();
    Sender { number, address, name: None, fallback_name, social_username: None, is_group: false, origin: "whatsapp" }
}
