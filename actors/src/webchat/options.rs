//! The options a visitor can choose in an interactive message, as `POST /messages` accepts it.

use serde_json::Value;

/// The title of the option with this id, if the message offers it.
///
/// Buttons: `action.buttons[].reply`; lists: `action.sections[].rows[]`; carousels: the buttons of
/// `action.cards[]`, under `quick_reply` or `reply`.
pub fn option_title(interactive: &Value, id: &str) -> Option<String> {
    let action = interactive.get("action")?;
    let cards = items(action, "cards").flat_map(|card| buttons(card.get("action").unwrap_or(card)));
    let rows = items(action, "sections").flat_map(|section| items(section, "rows"));
    let mut options = buttons(action).chain(cards).chain(rows);
    let option = options.find(|option| option.get("id").and_then(Value::as_str) == Some(id))?;
    option.get("title").and_then(Value::as_str).map(str::to_owned)
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn buttons(action: &Value) -> impl Iterator<Item = &Value> {
    items(action, "buttons").filter_map(|button| button.get("reply").or_else(|| button.get("quick_reply")))
}

#[cfg(test)]
mod tests {
    use super::option_title;
    use serde_json::json;

    #[test]
    fn a_button_a_row_and_a_card_are_found_by_their_id() {
        let buttons = json!({"action": {"buttons": [{"type": "reply", "reply": {"id": "y", "title": "Yes"}}]}});
        let list = json!({"action": {"sections": [{"rows": [{"id": "a", "title": "Apples"}]}]}});
        let card = json!({"type": "quick_reply", "quick_reply": {"id": "c", "title": "Card"}});
        let carousel = json!({"action": {"cards": [{"action": {"buttons": [card]}}]}});
        assert_eq!(option_title(&buttons, "y").as_deref(), Some("Yes"));
        assert_eq!(option_title(&list, "a").as_deref(), Some("Apples"));
        assert_eq!(option_title(&carousel, "c").as_deref(), Some("Card"));
        assert_eq!(option_title(&buttons, "n"), None);
    }
}
