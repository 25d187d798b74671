//! Tests each validation rule at its limit and beyond it.

#![allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.

use hotline_actors::webchat::option_title;
use serde_json::{Value, json};

use super::check;

fn x(count: usize) -> String {
    "x".repeat(count)
}

/// The paths of the invalid fields, without the prefix `interactive`.
fn invalid_paths(interactive: &Value) -> Vec<String> {
    let errors = check(interactive);
    for error in &errors {
        assert!(!error.reason.is_empty(), "{error:?}");
    }
    let path =
        |field: String| field.strip_prefix("interactive").expect("the prefix").trim_start_matches('.').to_owned();
    errors.into_iter().map(|error| path(error.field)).collect()
}

/// The object with one value changed; `null` removes it.
fn with_value(object: &Value, pointer: &str, value: Value) -> Value {
    let mut object = object.clone();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    match object.pointer_mut(parent).expect("a parent") {
        Value::Object(parent) if value.is_null() => drop(parent.remove(name)),
        Value::Object(parent) => drop(parent.insert(name.to_owned(), value)),
        parent => parent[name.parse::<usize>().expect("an index")] = value,
    }
    object
}

fn reply(id: &str) -> Value {
    json!({"type": "reply", "reply": {"id": id, "title": "Yes"}})
}

fn quick_reply(id: &str) -> Value {
    json!({"type": "quick_reply", "quick_reply": {"id": id, "title": "Yes"}})
}

fn link(text: &str, url: &str) -> Value {
    json!({"name": "cta_url", "parameters": {"display_text": text, "url": url}})
}

fn row(id: &str) -> Value {
    json!({"id": id, "title": "Apples", "description": "red ones"})
}

fn rows(prefix: &str, count: usize) -> Value {
    (0..count).map(|index| row(&format!("{prefix}{index}"))).collect()
}

fn card(action: Value) -> Value {
    let image = json!({"type": "image", "image": {"link": "https://shop.example/a.png"}});
    json!({"header": image, "body": {"text": "A card"}, "action": action})
}

fn button() -> Value {
    json!({"type": "button", "header": {"type": "text", "text": "Delivery"}, "body": {"text": "Shall we?"},
        "footer": {"text": "Acme"}, "action": {"buttons": [reply("y"), reply("n")]}})
}

fn list() -> Value {
    json!({"type": "list", "header": {"type": "text", "text": "Fruit"}, "body": {"text": "Which?"},
        "footer": {"text": "Acme"}, "action": {"button": "Choose", "sections": [
            {"title": "Red", "rows": [row("a")]}, {"title": "Green", "rows": [row("b")]}]}})
}

fn cta_url() -> Value {
    json!({"type": "cta_url", "header": {"type": "text", "text": "Shop"}, "body": {"text": "Have a look"},
        "footer": {"text": "Acme"}, "action": link("Open", "https://shop.example")})
}

fn location_request() -> Value {
    json!({"type": "location_request_message", "body": {"text": "Where are you?"}, "action": {"name": "send_location"}})
}

fn carousel() -> Value {
    json!({"type": "carousel", "body": {"text": "Our best"}, "action": {"cards": [
        card(json!({"buttons": [quick_reply("a"), quick_reply("b")]})),
        card(link("Open", "https://shop.example/b"))]}})
}

fn every_kind() -> [Value; 5] {
    [button(), list(), cta_url(), location_request(), carousel()]
}

/// Checks that the object is valid, and that each change of one value makes exactly the expected fields invalid.
#[track_caller]
fn check_changes<const N: usize>(object: &Value, changes: [(&str, Value, &[&str]); N]) {
    assert_eq!(invalid_paths(object), [""; 0], "{object}");
    for (pointer, value, expected) in changes {
        assert_eq!(invalid_paths(&with_value(object, pointer, value.clone())), expected, "{pointer} is {value:.200}");
    }
}

#[test]
fn every_supported_kind_is_valid() {
    for object in every_kind() {
        assert_eq!(invalid_paths(&object), [""; 0], "{object}");
    }
}

#[test]
fn an_unsupported_or_unknown_type_is_refused() {
    for kind in super::kinds::UNSUPPORTED_KINDS {
        let errors = check(&with_value(&button(), "/type", json!(kind)));
        assert_eq!(errors.len(), 1, "{kind}");
        assert_eq!(
            (errors[0].field.as_str(), errors[0].reason.as_str()),
            ("interactive.type", "does not exist on the webchat")
        );
    }
    check_changes(
        &button(),
        [
            ("/type", json!("buttons"), &["type"]),
            ("/type", json!(""), &["type"]),
            ("/type", json!(7), &["type"]),
            ("/type", json!(null), &["type"]),
        ],
    );
    for not_an_object in [json!(null), json!([]), json!("button"), json!(7)] {
        assert_eq!(invalid_paths(&not_an_object), [""], "{not_an_object}");
    }
}

#[test]
fn every_kind_requires_a_body_of_limited_length() {
    for object in every_kind() {
        let max = if object["type"] == "list" { 4096 } else { 1024 };
        check_changes(
            &object,
            [
                ("/body/text", json!(x(max)), &[]),
                ("/body/text", json!("😀".repeat(max)), &[]),
                ("/body/text", json!(x(max + 1)), &["body.text"]),
                ("/body/text", json!(" "), &["body.text"]),
                ("/body/text", json!(7), &["body.text"]),
                ("/body/text", json!(null), &["body.text"]),
                ("/body", json!(null), &["body"]),
                ("/body", json!("text"), &["body"]),
            ],
        );
    }
}

#[test]
fn a_footer_is_short() {
    for object in every_kind() {
        check_changes(
            &object,
            [
                ("/footer", json!({"text": x(60)}), &[]),
                ("/footer", json!({"text": x(61)}), &["footer.text"]),
                ("/footer", json!({"text": ""}), &["footer.text"]),
                ("/footer", json!({}), &["footer.text"]),
                ("/footer", json!("text"), &["footer"]),
                ("/footer", json!(null), &[]),
            ],
        );
    }
}

#[test]
fn a_header_is_a_short_text_or_the_url_of_a_file() {
    let media = |kind: &str, media: Value| json!({"type": kind, kind: media});
    for object in [button(), cta_url()] {
        check_changes(
            &object,
            [
                ("/header", json!(null), &[]),
                ("/header/text", json!(x(60)), &[]),
                ("/header/text", json!(x(61)), &["header.text"]),
                ("/header/text", json!(null), &["header.text"]),
                ("/header", json!("text"), &["header"]),
                ("/header", json!({}), &["header.type"]),
                ("/header", json!({"type": "sticker"}), &["header.type"]),
                ("/header", media("image", json!({"link": "https://shop.example/a.png"})), &[]),
                ("/header", media("video", json!({"link": "http://shop.example/a.mp4"})), &[]),
                ("/header", media("document", json!({"link": "https://shop.example/a.pdf", "filename": "a.pdf"})), &[]),
                (
                    "/header",
                    media("document", json!({"link": "https://shop.example/a", "filename": x(256)})),
                    &["header.document.filename"],
                ),
                ("/header", media("image", json!({"link": "ftp://shop.example/a.png"})), &["header.image.link"]),
                ("/header", media("image", json!({"link": "javascript:alert(1)"})), &["header.image.link"]),
                ("/header", media("image", json!({"link": "a.png"})), &["header.image.link"]),
                ("/header", media("image", json!({"link": 7})), &["header.image.link"]),
                (
                    "/header",
                    media("image", json!({"link": format!("https://a.example/{}", x(1983))})),
                    &["header.image.link"],
                ),
                ("/header", media("image", json!({"link": format!("https://a.example/{}", x(1982))})), &[]),
                ("/header", media("image", json!({"id": "123"})), &["header.image"]),
                ("/header", media("image", json!({})), &["header.image.link"]),
                ("/header", json!({"type": "image"}), &["header.image"]),
            ],
        );
    }
}

#[test]
fn a_list_accepts_only_a_text_header_and_a_location_request_none() {
    let image = json!({"type": "image", "image": {"link": "https://shop.example/a.png"}});
    check_changes(&list(), [("/header", image, &["header.type"]), ("/header/text", json!(x(61)), &["header.text"])]);
    check_changes(&location_request(), [("/header", json!({"type": "text", "text": "Hi"}), &["header"])]);
}

#[test]
fn there_are_one_to_three_buttons_with_short_titles_and_unique_ids() {
    let buttons = |count: usize| (0..count).map(|index| reply(&index.to_string())).collect::<Value>();
    check_changes(
        &button(),
        [
            ("/action", json!(null), &["action"]),
            ("/action", json!([]), &["action"]),
            ("/action/buttons", json!(null), &["action.buttons"]),
            ("/action/buttons", json!({}), &["action.buttons"]),
            ("/action/buttons", buttons(0), &["action.buttons"]),
            ("/action/buttons", buttons(1), &[]),
            ("/action/buttons", buttons(3), &[]),
            ("/action/buttons", buttons(4), &["action.buttons"]),
            ("/action/buttons/0", json!("Yes"), &["action.buttons[0]"]),
            ("/action/buttons/0/type", json!("url"), &["action.buttons[0].type"]),
            ("/action/buttons/0/type", json!(null), &["action.buttons[0].type"]),
            ("/action/buttons/0/reply", json!(null), &["action.buttons[0].reply"]),
            ("/action/buttons/0/reply/title", json!(x(20)), &[]),
            ("/action/buttons/0/reply/title", json!(x(21)), &["action.buttons[0].reply.title"]),
            ("/action/buttons/1/reply/title", json!(" "), &["action.buttons[1].reply.title"]),
            ("/action/buttons/0/reply/id", json!(x(256)), &[]),
            ("/action/buttons/0/reply/id", json!(x(257)), &["action.buttons[0].reply.id"]),
            ("/action/buttons/0/reply/id", json!(7), &["action.buttons[0].reply.id"]),
            ("/action/buttons/0/reply/id", json!(null), &["action.buttons[0].reply.id"]),
            ("/action/buttons/1/reply/id", json!("y"), &["action.buttons[1].reply.id"]),
        ],
    );
}

#[test]
fn a_list_has_ten_rows_at_most_in_all_its_sections() {
    let one_section = |rows: Value| json!([{"rows": rows}]);
    let two_sections = |a: Value, b: Value| json!([{"title": "A", "rows": a}, {"title": "B", "rows": b}]);
    let sections = |count: usize| {
        (0..count).map(|index| json!({"title": "A", "rows": [row(&index.to_string())]})).collect::<Value>()
    };
    check_changes(
        &list(),
        [
            ("/action/sections", json!(null), &["action.sections"]),
            ("/action/sections", json!([]), &["action.sections"]),
            ("/action/sections", sections(10), &[]),
            ("/action/sections", sections(11), &["action.sections"]),
            ("/action/sections", one_section(rows("a", 0)), &["action.sections"]),
            ("/action/sections", one_section(rows("a", 1)), &[]),
            ("/action/sections", one_section(rows("a", 10)), &[]),
            ("/action/sections", one_section(rows("a", 11)), &["action.sections"]),
            ("/action/sections", two_sections(rows("a", 5), rows("b", 5)), &[]),
            ("/action/sections", two_sections(rows("a", 5), rows("b", 6)), &["action.sections"]),
            ("/action/sections/0/rows", json!(null), &["action.sections[0].rows"]),
            ("/action/sections/0", json!("Red"), &["action.sections[0]"]),
        ],
    );
}

#[test]
fn texts_and_ids_in_a_list_are_short() {
    check_changes(
        &list(),
        [
            ("/action/button", json!(x(20)), &[]),
            ("/action/button", json!(x(21)), &["action.button"]),
            ("/action/button", json!(null), &["action.button"]),
            ("/action/sections/0/title", json!(x(24)), &[]),
            ("/action/sections/0/title", json!(x(25)), &["action.sections[0].title"]),
            ("/action/sections/1/title", json!(null), &["action.sections[1].title"]),
            ("/action/sections/0/rows/0/title", json!(x(24)), &[]),
            ("/action/sections/0/rows/0/title", json!(x(25)), &["action.sections[0].rows[0].title"]),
            ("/action/sections/0/rows/0/title", json!(null), &["action.sections[0].rows[0].title"]),
            ("/action/sections/0/rows/0/description", json!(x(72)), &[]),
            ("/action/sections/0/rows/0/description", json!(x(73)), &["action.sections[0].rows[0].description"]),
            ("/action/sections/0/rows/0/description", json!(null), &[]),
            ("/action/sections/0/rows/0/id", json!(x(200)), &[]),
            ("/action/sections/0/rows/0/id", json!(x(201)), &["action.sections[0].rows[0].id"]),
            ("/action/sections/1/rows/0/id", json!("a"), &["action.sections[1].rows[0].id"]),
        ],
    );
    // A single section needs no title; if it has one, the limit applies.
    let single_section = with_value(&list(), "/action/sections", json!([{"rows": [row("a")]}]));
    check_changes(&single_section, [("/action/sections/0/title", json!(x(25)), &["action.sections[0].title"])]);
}

#[test]
fn a_link_has_a_short_text_and_an_http_url() {
    check_changes(
        &cta_url(),
        [
            ("/action/name", json!("open_url"), &["action.name"]),
            ("/action/name", json!(null), &["action.name"]),
            ("/action/parameters", json!(null), &["action.parameters"]),
            ("/action/parameters/display_text", json!(x(20)), &[]),
            ("/action/parameters/display_text", json!(x(21)), &["action.parameters.display_text"]),
            ("/action/parameters/display_text", json!(null), &["action.parameters.display_text"]),
            ("/action/parameters/url", json!("http://shop.example"), &[]),
            ("/action/parameters/url", json!("HTTPS://SHOP.EXAMPLE/ü?q=1#a"), &[]),
            ("/action/parameters/url", json!("shop.example"), &["action.parameters.url"]),
            ("/action/parameters/url", json!("mailto:a@shop.example"), &["action.parameters.url"]),
            ("/action/parameters/url", json!("javascript:alert(1)"), &["action.parameters.url"]),
            ("/action/parameters/url", json!("https://"), &["action.parameters.url"]),
            ("/action/parameters/url", json!("https:shop.example"), &["action.parameters.url"]),
            ("/action/parameters/url", json!("https://shop..example/"), &["action.parameters.url"]),
            ("/action/parameters/url", json!(null), &["action.parameters.url"]),
        ],
    );
}

#[test]
fn a_location_request_requires_its_action_name() {
    check_changes(
        &location_request(),
        [
            ("/action/name", json!("send"), &["action.name"]),
            ("/action/name", json!(null), &["action.name"]),
            ("/action", json!(null), &["action"]),
        ],
    );
}

#[test]
fn a_carousel_has_one_to_ten_cards() {
    let cards = |count: usize| {
        let numbered_card = |index: usize| card(json!({"buttons": [quick_reply(&index.to_string())]}));
        (0..count).map(numbered_card).collect::<Value>()
    };
    check_changes(
        &carousel(),
        [
            ("/action/cards", cards(0), &["action.cards"]),
            ("/action/cards", cards(1), &[]),
            ("/action/cards", cards(10), &[]),
            ("/action/cards", cards(11), &["action.cards"]),
            ("/action/cards", json!(null), &["action.cards"]),
            ("/action/cards/0", json!("card"), &["action.cards[0]"]),
        ],
    );
}

#[test]
fn a_card_has_a_picture_a_text_and_a_link_or_buttons() {
    let video = json!({"type": "video", "video": {"link": "https://shop.example/a.mp4"}});
    let document = json!({"type": "document", "document": {"link": "https://shop.example/a.pdf"}});
    let four_buttons: Value = ["a", "b", "c", "d"].map(quick_reply).into_iter().collect();
    check_changes(
        &carousel(),
        [
            ("/action/cards/0/header", video, &[]),
            ("/action/cards/0/header", document, &["action.cards[0].header.type"]),
            ("/action/cards/0/header", json!({"type": "text", "text": "Hi"}), &["action.cards[0].header.type"]),
            ("/action/cards/0/header", json!(null), &["action.cards[0].header"]),
            ("/action/cards/0/header/image/link", json!("a.png"), &["action.cards[0].header.image.link"]),
            ("/action/cards/0/body/text", json!(x(1024)), &[]),
            ("/action/cards/0/body/text", json!(x(1025)), &["action.cards[0].body.text"]),
            ("/action/cards/0/body", json!(null), &["action.cards[0].body"]),
            ("/action/cards/0/action", json!(null), &["action.cards[0].action"]),
            ("/action/cards/0/action", json!({}), &["action.cards[0].action"]),
            ("/action/cards/0/action/buttons", json!([]), &["action.cards[0].action.buttons"]),
            ("/action/cards/0/action/buttons", four_buttons, &["action.cards[0].action.buttons"]),
            ("/action/cards/0/action/buttons/0/type", json!("reply"), &["action.cards[0].action.buttons[0].type"]),
            (
                "/action/cards/0/action/buttons/0/quick_reply/title",
                json!(x(21)),
                &["action.cards[0].action.buttons[0].quick_reply.title"],
            ),
            (
                "/action/cards/0/action/buttons/1/quick_reply/id",
                json!("a"),
                &["action.cards[0].action.buttons[1].quick_reply.id"],
            ),
            ("/action/cards/1/action/name", json!("open"), &["action.cards[1].action.name"]),
            ("/action/cards/1/action/parameters/url", json!("x"), &["action.cards[1].action.parameters.url"]),
            // Ids must be unique across all cards.
            (
                "/action/cards/1",
                card(json!({"buttons": [quick_reply("a")]})),
                &["action.cards[1].action.buttons[0].quick_reply.id"],
            ),
        ],
    );
}

#[test]
fn all_invalid_fields_are_reported_at_once() {
    let object = json!({"type": "button", "header": {"type": "text"}, "footer": {"text": x(61)}, "action": {"buttons": [
        {"type": "url", "reply": {"title": x(21)}}]}});
    let expected = [
        "header.text",
        "body",
        "footer.text",
        "action.buttons[0].type",
        "action.buttons[0].reply.id",
        "action.buttons[0].reply.title",
    ];
    assert_eq!(invalid_paths(&object), expected);
}

#[test]
fn a_valid_option_is_found_by_its_id() {
    for (object, id) in [(button(), "y"), (button(), "n"), (list(), "a"), (list(), "b"), (carousel(), "b")] {
        assert!(option_title(&object, id).is_some(), "{id} of {object}");
    }
    assert_eq!(option_title(&button(), "a"), None);
}
