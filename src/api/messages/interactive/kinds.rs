//! Validation of each kind of interactive message.

use std::collections::HashSet;

use super::field_value::{Errors, FieldValue};

/// Maximum characters of a message's body, of a list's body, of a text header and of a footer.
const BODY_CHARACTERS_MAX: usize = 1024;
const LIST_BODY_CHARACTERS_MAX: usize = 4096;
const HEADER_CHARACTERS_MAX: usize = 60;
const FOOTER_CHARACTERS_MAX: usize = 60;

/// Maximum number of buttons of a message or a card, and maximum characters of a button's title and of its id.
const BUTTONS_MAX: usize = 3;
const BUTTON_CHARACTERS_MAX: usize = 20;
const BUTTON_ID_CHARACTERS_MAX: usize = 256;

/// Maximum number of sections and rows of a list, and maximum characters of their texts.
const SECTIONS_MAX: usize = 10;
const ROWS_MAX: usize = 10;
const SECTION_TITLE_CHARACTERS_MAX: usize = 24;
const ROW_TITLE_CHARACTERS_MAX: usize = 24;
const ROW_DESCRIPTION_CHARACTERS_MAX: usize = 72;
const ROW_ID_CHARACTERS_MAX: usize = 200;

/// Maximum number of cards of a carousel.
const CARDS_MAX: usize = 10;

/// Maximum characters of a document's file name.
const FILE_NAME_CHARACTERS_MAX: usize = 255;

/// The kinds that a webchat supports.
const SUPPORTED_KINDS: [&str; 5] = ["button", "list", "cta_url", "location_request_message", "carousel"];

/// The kinds that exist only on other channels.
pub(super) const UNSUPPORTED_KINDS: [&str; 7] =
    ["flow", "product", "product_list", "catalog_message", "address_message", "voice_call", "call_permission_request"];

/// The kinds of headers that contain a file, and all kinds of headers.
const MEDIA_KINDS: [&str; 3] = ["image", "video", "document"];
const HEADER_KINDS: [&str; 4] = ["text", "image", "video", "document"];

pub(super) fn check(interactive: &FieldValue<'_>, errors: &mut Errors) {
    let Some(interactive) = interactive.object(errors) else { return };
    let kind = interactive.at("type");
    let Some(name) = kind.text(usize::MAX, errors) else { return };
    match name {
        "button" => check_button_message(interactive, errors),
        "list" => check_list(interactive, errors),
        "cta_url" => check_link(interactive, errors),
        "location_request_message" => check_location_request(interactive, errors),
        "carousel" => check_carousel(interactive, errors),
        name if UNSUPPORTED_KINDS.contains(&name) => errors.refuse(&kind, "does not exist on the webchat"),
        // Reported by `text`.
        name if name.trim().is_empty() => {}
        _ => errors.refuse(&kind, format!("must be one of {}", SUPPORTED_KINDS.join(", "))),
    }
}

fn check_button_message(interactive: &FieldValue<'_>, errors: &mut Errors) {
    check_header(interactive, &HEADER_KINDS, errors);
    check_body(interactive, BODY_CHARACTERS_MAX, errors);
    check_footer(interactive, errors);
    if let Some(action) = interactive.at("action").object(errors) {
        check_buttons(action, "reply", &mut HashSet::new(), errors);
    }
}

fn check_list(interactive: &FieldValue<'_>, errors: &mut Errors) {
    check_header(interactive, &["text"], errors);
    check_body(interactive, LIST_BODY_CHARACTERS_MAX, errors);
    check_footer(interactive, errors);
    let action = interactive.at("action");
    let Some(action) = action.object(errors) else { return };
    action.at("button").text(BUTTON_CHARACTERS_MAX, errors);
    let sections = action.at("sections");
    let section_objects = sections.objects_within(1..=SECTIONS_MAX, "sections", errors);
    let mut rows = Vec::new();
    for section in &section_objects {
        let title = section.at("title");
        if section_objects.len() > 1 {
            title.text(SECTION_TITLE_CHARACTERS_MAX, errors);
        } else {
            title.optional_text(SECTION_TITLE_CHARACTERS_MAX, errors);
        }
        rows.extend(section.at("rows").objects(errors));
    }
    if !section_objects.is_empty() && !(1..=ROWS_MAX).contains(&rows.len()) {
        errors.refuse(&sections, format!("must have 1 to {ROWS_MAX} rows in total"));
        return;
    }
    let mut ids = HashSet::new();
    for row in &rows {
        check_unique_id(row, ROW_ID_CHARACTERS_MAX, &mut ids, errors);
        row.at("title").text(ROW_TITLE_CHARACTERS_MAX, errors);
        row.at("description").optional_text(ROW_DESCRIPTION_CHARACTERS_MAX, errors);
    }
}

fn check_link(interactive: &FieldValue<'_>, errors: &mut Errors) {
    check_header(interactive, &HEADER_KINDS, errors);
    check_body(interactive, BODY_CHARACTERS_MAX, errors);
    check_footer(interactive, errors);
    if let Some(action) = interactive.at("action").object(errors) {
        check_link_button(action, errors);
    }
}

fn check_location_request(interactive: &FieldValue<'_>, errors: &mut Errors) {
    let header = interactive.at("header");
    if header.is_present() {
        errors.refuse(&header, "does not exist on a location request");
    }
    check_body(interactive, BODY_CHARACTERS_MAX, errors);
    check_footer(interactive, errors);
    if let Some(action) = interactive.at("action").object(errors) {
        action.at("name").constant("send_location", errors);
    }
}

fn check_carousel(interactive: &FieldValue<'_>, errors: &mut Errors) {
    check_header(interactive, &HEADER_KINDS, errors);
    check_body(interactive, BODY_CHARACTERS_MAX, errors);
    check_footer(interactive, errors);
    let action = interactive.at("action");
    let Some(action) = action.object(errors) else { return };
    // A choice is identified by the message and the option's id, so ids must be unique across all cards.
    let mut ids = HashSet::new();
    for card in action.at("cards").objects_within(1..=CARDS_MAX, "cards", errors) {
        if let Some(header) = card.at("header").object(errors) {
            check_header_content(header, &["image", "video"], errors);
        }
        check_body(&card, BODY_CHARACTERS_MAX, errors);
        let action = card.at("action");
        let Some(action) = action.object(errors) else { continue };
        if action.at("buttons").is_present() {
            check_buttons(action, "quick_reply", &mut ids, errors);
        } else if action.at("name").is_present() {
            check_link_button(action, errors);
        } else {
            errors.refuse(action, "must have a link (name: cta_url) or buttons");
        }
    }
}

/// Checks reply buttons; `kind` is the key of their content and also their type.
fn check_buttons(action: &FieldValue<'_>, kind: &str, ids: &mut HashSet<String>, errors: &mut Errors) {
    for button in action.at("buttons").objects_within(1..=BUTTONS_MAX, "buttons", errors) {
        button.at("type").constant(kind, errors);
        let reply = button.at(kind);
        if let Some(reply) = reply.object(errors) {
            check_unique_id(reply, BUTTON_ID_CHARACTERS_MAX, ids, errors);
            reply.at("title").text(BUTTON_CHARACTERS_MAX, errors);
        }
    }
}

fn check_unique_id(option: &FieldValue<'_>, characters_max: usize, ids: &mut HashSet<String>, errors: &mut Errors) {
    let id = option.at("id");
    if let Some(text) = id.text(characters_max, errors)
        && !ids.insert(text.to_owned())
    {
        errors.refuse(&id, "must be unique");
    }
}

/// Checks the button of a link.
fn check_link_button(action: &FieldValue<'_>, errors: &mut Errors) {
    action.at("name").constant("cta_url", errors);
    if let Some(parameters) = action.at("parameters").object(errors) {
        parameters.at("display_text").text(BUTTON_CHARACTERS_MAX, errors);
        parameters.at("url").url(errors);
    }
}

fn check_body(part: &FieldValue<'_>, characters_max: usize, errors: &mut Errors) {
    if let Some(body) = part.at("body").object(errors) {
        body.at("text").text(characters_max, errors);
    }
}

fn check_footer(part: &FieldValue<'_>, errors: &mut Errors) {
    let footer = part.at("footer");
    if footer.is_present()
        && let Some(footer) = footer.object(errors)
    {
        footer.at("text").text(FOOTER_CHARACTERS_MAX, errors);
    }
}

fn check_header(part: &FieldValue<'_>, kinds: &[&str], errors: &mut Errors) {
    let header = part.at("header");
    if header.is_present()
        && let Some(header) = header.object(errors)
    {
        check_header_content(header, kinds, errors);
    }
}

fn check_header_content(header: &FieldValue<'_>, kinds: &[&str], errors: &mut Errors) {
    let kind = header.at("type");
    let Some(name) = kind.text(usize::MAX, errors) else { return };
    if !kinds.contains(&name) {
        errors.refuse(&kind, format!("must be one of {}", kinds.join(", ")));
        return;
    }
    if !MEDIA_KINDS.contains(&name) {
        header.at("text").text(HEADER_CHARACTERS_MAX, errors);
        return;
    }
    let media = header.at(name);
    let Some(media) = media.object(errors) else { return };
    if media.at("id").is_present() && !media.at("link").is_present() {
        errors.refuse(media, "must be given by link: a webchat has no access to files stored at the provider");
        return;
    }
    media.at("link").url(errors);
    media.at("filename").optional_text(FILE_NAME_CHARACTERS_MAX, errors);
}
