//! The content of a send: files, templates, interactive objects, and variables in each of them.

use std::collections::HashMap;

use chrono::{TimeDelta, TimeZone, Utc};
use hotline_persistence::Change;
use hotline_persistence::tables::media::{MediaId, StoredMedia};
use hotline_persistence::tables::messages::{MessageRow, MessageStatus, MessageType};
use serde_json::{Value, json};

use super::fixture::*;
use crate::tickets::{AfterSend, ContactFacts, Content, LastInbound, Receive, Send, Transfer};
use crate::variables::ContactValues;
use crate::{FieldError, Refusal};

fn send(content: Content) -> Send {
    Send::new(content, ana())
}

fn text(body: &str) -> Send {
    Send::text(body, ana())
}

fn file(name: &str) -> StoredMedia {
    let (mime_type, file_name) = ("image/png".to_owned(), name.to_owned());
    StoredMedia { id: MediaId::new(Utc::now()), mime_type, file_name, size: 7, voice: false }
}

fn media(files: &[StoredMedia], caption: Option<&str>) -> Send {
    send(Content::Media { files: files.to_vec(), caption: caption.map(str::to_owned) })
}

fn template(parameters: Value, text: Option<&str>) -> Send {
    let template = json!({"name": "hi", "language": {"code": "en"}, "components": [
        {"type": "body", "parameters": parameters},
    ]});
    send(Content::Template { template, text: text.map(str::to_owned) })
}

fn question(body: &str) -> Value {
    json!({"type": "button", "body": {"text": body}, "action": {"buttons": [
        {"type": "reply", "reply": {"id": "{{name}}", "title": "{{name}}"}}]}})
}

fn messages<R>(result: &CommandResult<R>) -> Vec<MessageRow> {
    let message = |change: &Change| match change {
        Change::Message(row) => Some((**row).clone()),
        _ => None,
    };
    result.changes.iter().filter_map(message).collect()
}

#[track_caller]
fn sent_body(desk: &mut Desk, send: Send) -> String {
    desk.run(send).reply.body.expect("a body")
}

#[track_caller]
fn refused_fields(desk: &mut Desk, send: Send) -> Vec<String> {
    match desk.expect_refusal(send) {
        Refusal::Invalid(fields) => fields.into_iter().map(|error| error.field).collect(),
        other => panic!("{other:?}"),
    }
}

// Variables.

#[test]
fn every_variable_has_its_value() {
    let mut desk = Desk::on(PHONE);
    desk.organization.company.time_zone = "America/Sao_Paulo".to_owned();
    desk.run(Transfer { queue: Some(SALES), user: Some(Some(CARL)), author: ana() });
    let custom = HashMap::from([("shoeSize".to_owned(), "42".to_owned())]);
    let values = ContactValues { email: Some("zoe@example.com".to_owned()), custom };
    for (name, expected) in [
        ("name", "Zoe"),
        ("firstName", "Zoe"),
        ("number", "5511999990000"),
        ("email", "zoe@example.com"),
        ("ticketId", "77"),
        ("queue", "Sales"),
        ("agent", "Carl"),
        ("channel", "whatsapp"),
        ("company", "Acme"),
        // Three hours behind UTC, where it is still the day before.
        ("date", "2026-01-30"),
        ("time", "23:59"),
        ("greeting", "Good evening"),
        ("shoeSize", "42"),
        ("nobody", ""),
    ] {
        // `run` moves the clock by a second before it sends.
        desk.now = Utc.with_ymd_and_hms(2026, 1, 31, 2, 59, 58).single().expect("a time");
        let message = Send {
            facts: ContactFacts { values: values.clone(), ..ContactFacts::default() },
            ..text(&format!("<{{{{{name}}}}}>"))
        };
        assert_eq!(sent_body(&mut desk, message), format!("<{expected}>"), "{name}");
    }
}

#[test]
fn empty_and_unknown_variables_become_nothing() {
    let mut desk = Desk::on(WEBCHAT);
    let empty = text("[{{queue}}{{agent}}{{email}}{{shoeSize}}]");
    assert_eq!(sent_body(&mut desk, empty), "[]");
    desk.organization.company.time_zone = "Nowhere/Nothing".to_owned();
    assert_eq!(sent_body(&mut desk, text("{{date}} {{time}}")), "2023-11-14 22:13", "an unknown time zone means UTC");
}

#[test]
fn built_in_names_win_over_custom_fields_and_those_over_global_variables() {
    let mut desk = Desk::on(PHONE);
    let global = [("name", "global"), ("size", "global"), ("hours", "9 to 18"), ("empty", "global")];
    desk.organization.global_variables = global.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let own = [("name", "own"), ("size", "own"), ("empty", "")];
    let custom = own.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let values = ContactValues { email: None, custom };
    let message = Send {
        facts: ContactFacts { values, ..ContactFacts::default() },
        ..text("{{name}} {{size}} {{hours}} {{empty}}")
    };
    assert_eq!(sent_body(&mut desk, message), "Zoe own 9 to 18 global");
}

#[test]
fn a_value_that_looks_like_a_variable_is_text() {
    let mut desk = Desk::on(PHONE);
    desk.organization.global_variables = HashMap::from([("sly".to_owned(), "{{company}}".to_owned())]);
    assert_eq!(sent_body(&mut desk, text("{{sly}} {{sly}}")), "{{company}} {{company}}");
}

#[test]
fn a_text_stays_within_its_limit_with_its_variables_filled_in() {
    let mut desk = Desk::on(PHONE);
    desk.organization.global_variables = HashMap::from([("long".to_owned(), "x".repeat(10_000))]);
    let rest = "y".repeat(65_536 - 60_000);
    assert_eq!(sent_body(&mut desk, text(&format!("{}{rest}", "{{long}}".repeat(6)))).len(), 65_536);
    assert_eq!(refused_fields(&mut desk, text(&format!("{}{rest}y", "{{long}}".repeat(6)))), ["body"]);
    assert_eq!(refused_fields(&mut desk, text("{{nobody}} ")), ["body"], "a blank text");
    assert_eq!(refused_fields(&mut desk, media(&[file("a.png")], Some(&"{{long}}".repeat(7)))), ["body"]);
}

// Files.

#[test]
fn files_are_messages_of_one_job_with_the_caption_on_the_first() {
    let mut desk = Desk::on(WEBCHAT);
    let files = [file("a.png"), file("b.png"), file("c.png")];
    let result = desk.run(media(&files, Some("For {{name}}")));
    let sent = messages(&result);
    assert_eq!(result.reply, sent[0]);
    assert_eq!(sent.len(), 3);
    for (index, message) in sent.iter().enumerate() {
        assert_eq!((message.kind, message.job_id), (MessageType::Media, Some(sent[0].id)));
        assert_eq!((message.status, message.sent_at), (MessageStatus::Sent, Some(desk.now)));
        assert_eq!(message.media.as_ref().and_then(StoredMedia::of).as_ref(), Some(&files[index]));
        assert_eq!(message.body.as_deref(), (index == 0).then_some("For Zoe"));
    }
    assert!(sent[0].id < sent[1].id && sent[1].id < sent[2].id);
    assert_eq!(desk.ticket.row.last_message_id, Some(sent[2].id));
    assert_eq!(desk.ticket.last_message.as_ref().and_then(|last| last.body.clone()), None);
}

#[test]
fn a_blank_caption_is_none() {
    let mut desk = Desk::on(WEBCHAT);
    assert_eq!(desk.run(media(&[file("a.png")], Some("{{nobody}}"))).reply.body, None);
    assert_eq!(desk.run(media(&[file("a.png")], None)).reply.body, None);
}

#[test]
fn the_follow_up_of_several_messages_follows_the_last() {
    let mut desk = Desk::on(PHONE);
    let after = AfterSend { queue_id: Some(SALES), ..AfterSend::default() };
    let result = desk.run(Send { after: after.clone(), ..media(&[file("a.png"), file("b.png")], None) });
    let sent = messages(&result);
    assert_eq!(sent[0].after_send, Some(json!({"answers": true, "closeTicket": false})));
    assert_eq!(sent[1].after_send, Some(json!({"answers": true, "queueId": 2, "closeTicket": false})));
    let ids = desk.ticket.follow_ups.iter().flat_map(|follow_ups| follow_ups.messages());
    assert_eq!(ids.collect::<Vec<_>>(), [sent[0].id, sent[1].id]);
}

// Templates.

#[test]
fn variables_in_template_parameters_are_filled_in_and_the_body_is_rendered() {
    let mut desk = Desk::on(PHONE);
    let parameters = json!([
        {"type": "text", "text": "{{firstName}}"},
        {"type": "currency", "text": "{{name}}"},
        {"type": "text", "text": "{{2}} {{ticketId}}"},
    ]);
    let sent = desk.run(template(parameters, Some("Hi {{1}}, your ticket is {{3}}."))).reply;
    assert_eq!(sent.kind, MessageType::Template);
    let parameters = &sent.template.as_ref().expect("a template")["components"][0]["parameters"];
    assert_eq!(
        parameters,
        &json!([{"type": "text", "text": "Zoe"}, {"type": "currency", "text": "{{name}}"}, {"type": "text", "text": " 77"}])
    );
    assert_eq!(sent.body.as_deref(), Some("Hi Zoe, your ticket is  77."));
    assert_eq!(desk.run(template(json!([]), None)).reply.body, None);
}

#[test]
fn named_parameters_are_read_by_their_names() {
    let mut desk = Desk::on(PHONE);
    let parameters = json!([{"type": "text", "parameter_name": "who", "text": "{{name}}"}]);
    assert_eq!(desk.run(template(parameters, Some("Hi {{who}}{{else}}!"))).reply.body.as_deref(), Some("Hi Zoe!"));
}

#[test]
fn a_parameter_that_the_provider_refuses_is_refused() {
    let mut desk = Desk::on(PHONE);
    let parameters = json!([{"type": "text", "text": "{{nobody}}"}]);
    assert_eq!(refused_fields(&mut desk, template(parameters, None)), ["template.parameters.body[0]"]);
    for text in ["a\nb", "{{name}}     {{name}}"] {
        let parameters = json!([{"type": "text", "text": "ok"}, {"type": "text", "text": text}]);
        assert_eq!(refused_fields(&mut desk, template(parameters, None)), ["template.parameters.body[1]"], "{text:?}");
    }
}

// Interactive objects.

#[test]
fn variables_are_filled_in_within_texts_but_not_in_choices() {
    let mut desk = Desk::on(PHONE);
    let mut object = question("Shall we, {{name}}?");
    object["header"] = json!({"type": "text", "text": "{{company}}"});
    object["footer"] = json!({"text": "{{channel}}"});
    let sent = desk.run(send(Content::Interactive { interactive: object.clone(), check: None })).reply;
    object["body"]["text"] = json!("Shall we, Zoe?");
    object["header"]["text"] = json!("Acme");
    object["footer"]["text"] = json!("whatsapp");
    assert_eq!((sent.kind, sent.interactive), (MessageType::Interactive, Some(object)));
    assert_eq!(sent.body.as_deref(), Some("Shall we, Zoe?"));

    let card = |text: &str| json!({"body": {"text": text}, "action": {"name": "cta_url"}});
    let cards =
        |text: &str| json!({"type": "carousel", "body": {"text": "x"}, "action": {"cards": [card("a"), card(text)]}});
    let sent = desk.run(send(Content::Interactive { interactive: cards("{{name}}"), check: None })).reply;
    assert_eq!(sent.interactive, Some(cards("Zoe")));
}

#[test]
fn an_object_that_grew_too_long_is_refused() {
    fn check(interactive: &Value) -> Vec<FieldError> {
        let is_long = interactive["body"]["text"].as_str().is_some_and(|text| text.len() > 3);
        let error = FieldError { field: "interactive.body.text".to_owned(), reason: "is long".to_owned() };
        if is_long { vec![error] } else { Vec::new() }
    }
    let mut desk = Desk::on(WEBCHAT);
    let interactive = |text: &str| send(Content::Interactive { interactive: question(text), check: Some(check) });
    desk.run(interactive("{{name}}"));
    let Refusal::InteractiveInvalid(errors) = desk.expect_refusal(interactive("{{name}}!")) else { panic!("accepted") };
    assert_eq!(errors[0].field, "interactive.body.text");
    // Without variables the object is unchanged since the sender validated it.
    desk.run(interactive("hello"));
    desk.organization.global_variables = HashMap::from([("long".to_owned(), "x".repeat(10_000))]);
    let long = send(Content::Interactive { interactive: question(&"{{long}}".repeat(6)), check: None });
    desk.run(long);
    let mut object = question(&"{{long}}".repeat(6));
    object["header"] = json!({"type": "text", "text": "{{long}}"});
    assert_eq!(
        refused_fields(&mut desk, send(Content::Interactive { interactive: object, check: None })),
        ["interactive"]
    );
}

#[test]
fn the_texts_of_an_object_are_filled_in_only_up_to_its_limit() {
    let mut desk = Desk::on(PHONE);
    desk.organization.global_variables = HashMap::from([("long".to_owned(), "x".repeat(10_000))]);
    // If all texts were filled in, the refusal would name the last one.
    let card = |text: &str| json!({"body": {"text": text}});
    let mut cards = vec![card("{{long}}"); 2_000];
    cards.push(card(&"{{long}}".repeat(7)));
    let carousel = json!({"type": "carousel", "body": {"text": "x"}, "action": {"cards": cards}});
    let carousel = send(Content::Interactive { interactive: carousel, check: None });
    assert_eq!(refused_fields(&mut desk, carousel), ["interactive"]);

    let parameter = |text: &str| json!({"type": "text", "text": text});
    let mut parameters = vec![parameter("{{long}}"); 2_000];
    parameters.push(parameter("{{nobody}}"));
    let components = json!([{"type": "button", "sub_type": "url", "index": "0", "parameters": parameters}]);
    let template = json!({"name": "hi", "language": {"code": "en"}, "components": components});
    assert_eq!(refused_fields(&mut desk, send(Content::Template { template, text: None })), ["template"]);
}

// The window.

fn limit_window(desk: &mut Desk) {
    desk.window = Some(TimeDelta::hours(24));
}

#[test]
fn a_phone_channel_accepts_only_templates_outside_the_conversation_window() {
    let mut desk = Desk::on(PHONE);
    limit_window(&mut desk);
    // The last inbound message was not looked up.
    assert_eq!(desk.expect_refusal(text("hello")), Refusal::WindowClosed(None));
    assert_eq!(desk.expect_refusal(media(&[file("a.png")], None)), Refusal::WindowClosed(None));
    let interactive = send(Content::Interactive { interactive: question("x"), check: None });
    assert_eq!(desk.expect_refusal(interactive), Refusal::WindowClosed(None));
    desk.run(template(json!([]), None));

    desk.run(Receive::text("hi"));
    let last_inbound = desk.now;
    // `run` moves the clock by a second before it sends: to the window's last moment, and past it.
    desk.now = last_inbound + TimeDelta::hours(24) - TimeDelta::seconds(1);
    desk.run(text("hello"));
    desk.now = last_inbound + TimeDelta::hours(24);
    assert_eq!(desk.expect_refusal(text("hello")), Refusal::WindowClosed(Some(last_inbound + TimeDelta::hours(24))));
    desk.run(template(json!([]), None));
    desk.window = None;
    desk.run(text("hello"));
}

#[test]
fn loaded_facts_open_the_window_and_are_remembered() {
    let mut desk = Desk::on(PHONE);
    limit_window(&mut desk);
    let at = desk.now - TimeDelta::hours(1);
    let last_inbound = LastInbound::At(at);
    desk.run(Send { facts: ContactFacts { last_inbound, ..ContactFacts::default() }, ..text("hello") });
    desk.run(text("hello again"));
    desk.now += TimeDelta::hours(23);
    assert_eq!(
        desk.expect_refusal(Send { facts: ContactFacts { last_inbound, ..ContactFacts::default() }, ..text("hello") }),
        Refusal::WindowClosed(Some(at + TimeDelta::hours(24)))
    );
}

#[test]
fn the_window_of_a_contact_who_never_wrote_is_left_to_the_provider() {
    let mut desk = Desk::on(PHONE);
    limit_window(&mut desk);
    desk.run(Send {
        facts: ContactFacts { last_inbound: LastInbound::Never, ..ContactFacts::default() },
        ..text("hello")
    });
    desk.run(text("hello again"));
}

#[test]
fn only_phone_channels_have_a_window() {
    for channel in [WEBCHAT, SOCIAL] {
        let mut desk = Desk::on(channel);
        limit_window(&mut desk);
        desk.run(text("hello"));
    }
}

#[test]
fn a_closed_window_does_not_reopen_a_ticket() {
    let mut desk = Desk::with_closed_ticket();
    limit_window(&mut desk);
    assert_eq!(desk.expect_refusal(Send { reopen: true, ..text("hello") }), Refusal::WindowClosed(None));
    assert!(desk.ticket.is_closed());
}
