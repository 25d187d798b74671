//! Echoes: what the company writes in other apps, the provider's own or another one that is connected to the account.

use hotline_persistence::tables::channels::ChannelType::{Instagram, Messenger, Whatsapp};
use serde_json::{Value, json};

use super::statuses::queued;
use super::{MARIA, ProviderChannel, Setup, Tally, all_taken, contact, messages, tickets};
use crate::events::{after, newest, types};
use crate::steps::{close, id, restarted, ticket};
use crate::support::events::check_events;
use crate::support::provider::Provider;
use crate::support::provider::hooks::{Message, events, image, reaction, text};
use crate::support::{OwnApp, TestApp, eventually};

const PSID: &str = "6548123456784821";
const STRANGER: &str = "5511900000009";
const PNG: &[u8] = &[
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1F, 0x15, 0xC4, 0x89,
];

async fn deliver_messages(app: &TestApp, channel: &ProviderChannel, messages: Vec<Message>) -> Tally {
    channel.deliver(&app.api, &channel.phone_account().messages(MARIA, "Maria", messages)).await
}

async fn deliver_echoes(app: &TestApp, channel: &ProviderChannel, messages: Vec<Message>) -> Tally {
    channel.deliver(&app.api, &channel.phone_account().echoes(MARIA, messages)).await
}

/// How many contacts wait for an answer.
async fn count_waiting(app: &TestApp) -> Value {
    app.api.get("/dashboards/service").await.data(200)["waitingAgent"].clone()
}

fn repeated(repeated: u64) -> Tally {
    Tally { repeated, ..Tally::default() }
}

fn ignored(ignored: u64) -> Tally {
    Tally { ignored, ..Tally::default() }
}

#[actix_web::test]
async fn what_is_written_on_the_phone_is_shown_once_as_the_companys_message_and_answers_the_contact() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    deliver_messages(&app, &channel, vec![text("wamid.1", "a question")]).await;
    let opened = tickets(&app.api, channel.id).await.remove(0);
    assert_eq!(count_waiting(&app).await, 1);
    let begin = newest(&app.api).await;
    let written = || text("wamid.e", "from the phone").replying_to(MARIA, "wamid.1");
    assert_eq!(deliver_echoes(&app, &channel, vec![written()]).await, all_taken(1));
    assert_eq!(deliver_echoes(&app, &channel, vec![written(), written()]).await, repeated(2));
    let all = messages(&app.api, channel.id).await;
    let [question, answer] = all.as_slice() else { panic!("two messages: {all:?}") };
    let fields = ["direction", "type", "body", "status", "source", "via", "app", "user", "jobId", "content"];
    let shown: Vec<&Value> = fields.iter().map(|field| &answer[field]).collect();
    let app_name = json!({"id": null, "name": "WhatsApp Business"});
    let expected =
        json!(["outbound", "text", "from the phone", "sent", "user", "nativeApp", app_name, null, null, null]);
    assert_eq!(json!(shown), expected);
    assert_eq!((&answer["quotedMessageId"], &answer["ticketId"]), (&question["id"], &opened["id"]));
    let answered = ticket(&app.api, id(&opened)).await;
    assert_eq!(answered["firstResponseAt"], answer["createdAt"]);
    assert_eq!((&answered["lastMessage"]["body"], count_waiting(&app).await), (&answer["body"], json!(0)));
    assert_eq!(answered["unreadCount"], 1, "nobody has read it here");

    let logged = after(&app.api, begin).await;
    assert_eq!(types(&logged), ["message.created"], "not exactly one event");
    assert_eq!(logged[0]["by"], json!({"type": "user", "id": null, "name": null}));
    assert_eq!(&logged[0]["data"], answer);
    check_events(&app.db, app.company.id).await;
    let app = restarted(app).await;
    assert_eq!(deliver_echoes(&app, &channel, vec![written()]).await, repeated(1), "taken again after a restart");
    assert_eq!(messages(&app.api, channel.id).await, all);
    app.stop().await;
}

#[actix_web::test]
async fn an_echo_without_an_open_ticket_opens_one_without_a_greeting() {
    let app = OwnApp::start().await;
    let queue = app.company.sales;
    let greeting = json!({"name": "Sales", "greeting": "How can we help?"});
    app.api.put(&format!("/queues/{queue}"), greeting).await.data(200);
    let setup = Setup { queue: Some(queue), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    let call = channel.phone_account().echoes(STRANGER, vec![text("wamid.1", "first words from the phone")]);
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let opened = tickets(&app.api, channel.id).await.remove(0);
    assert_eq!((&opened["creationSource"], &opened["unreadCount"]), (&json!("user"), &json!(0)));
    assert_eq!(opened["contact"]["number"], STRANGER);
    assert_eq!((&opened["queue"]["id"], count_waiting(&app).await), (&json!(queue), json!(0)));
    let logged = app.api.get("/events?types=contact.created,ticket.opened,message.created").await;
    let logged: Vec<_> = logged.data(200).as_array().expect("events").iter().collect();
    assert_eq!(logged.len(), 3, "the contact was greeted");
    assert!(logged.iter().all(|event| event["by"]["type"] == "user"), "{logged:?}");
    close(&app.api, id(&opened)).await;
    let call = channel.phone_account().echoes(STRANGER, vec![text("wamid.2", "one more thing")]);
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    assert_eq!(tickets(&app.api, channel.id).await.len(), 2);
    assert_eq!(app.api.all("/contacts").await.len(), 1);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_picture_from_the_phone_has_its_file() {
    let provider = Provider::start().await;
    let app = OwnApp::start().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    deliver_messages(&app, &channel, vec![text("wamid.1", "send me a picture")]).await;
    let picture = provider.offer("image/png", PNG);
    assert_eq!(deliver_echoes(&app, &channel, vec![image("wamid.2", &picture, Some("here"))]).await, all_taken(1));
    let last = async || messages(&app.api, channel.id).await.pop().unwrap_or_default();
    eventually("the file is there", || async { last().await["media"].is_object() }).await;
    let shown = last().await;
    assert_eq!(
        (&shown["direction"], &shown["type"], &shown["body"]),
        (&json!("outbound"), &json!("media"), &json!("here"))
    );
    assert_eq!(shown["media"]["mimeType"], "image/png");
    assert_eq!(provider.calls(&channel.account).len(), 0, "it was sent again");
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn the_company_edits_deletes_and_reacts_on_the_phone_too() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    deliver_messages(&app, &channel, vec![text("wamid.1", "hello")]).await;
    let echo = |id: &str, kind: &str, part: Value| Message(json!({"id": id, "type": kind, kind: part}));
    let edited = json!({"type": "text", "text": {"body": "new text"}});
    let edit = echo("wamid.d", "edit", json!({"original_message_id": "wamid.2", "message": edited}));
    // The edit arrives before its original.
    assert_eq!(deliver_echoes(&app, &channel, vec![edit]).await, all_taken(1));
    assert_eq!(
        deliver_echoes(&app, &channel, vec![text("wamid.2", "old text"), text("wamid.3", "a secret")]).await,
        all_taken(2)
    );
    let revoke = echo("wamid.r", "revoke", json!({"original_message_id": "wamid.3"}));
    let strange = echo("wamid.s", "poll_creation", json!({"name": "Pizza?"}));
    let tally =
        deliver_echoes(&app, &channel, vec![reaction("wamid.l", "wamid.1", Some("\u{1F44D}")), revoke, strange]).await;
    assert_eq!(tally, Tally { taken: 2, ignored: 1, ..Tally::default() });
    eventually("the early edit is applied", || async { messages(&app.api, channel.id).await[1]["body"] == "new text" })
        .await;
    let all = messages(&app.api, channel.id).await;
    let reactions = &all[0]["reactions"];
    assert_eq!((&reactions[0]["emoji"], &reactions[0]["by"]), (&json!("\u{1F44D}"), &json!("user")));
    assert_eq!(all[1]["edits"][0]["body"], "old text");
    assert_eq!((all.len(), &all[2]["body"]), (3, &Value::Null));
    assert!(all[2]["deletedAt"].is_string());
    assert_eq!(all[2]["via"], "nativeApp");
    let logged = app.api.get("/events?types=message.updated,message.deleted,message.reaction").await;
    let logged = logged.data(200).as_array().expect("events").clone();
    assert!(logged.len() == 3 && logged.iter().all(|event| event["by"]["type"] == "user"), "{logged:?}");
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn echoes_and_messages_of_the_contact_may_arrive_in_any_order() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let now = chrono::Utc::now().timestamp();
    deliver_messages(&app, &channel, vec![text("wamid.1", "a question").at(now - 100)]).await;
    let opened = id(&tickets(&app.api, channel.id).await[0]);
    let first_response = async || ticket(&app.api, opened).await["firstResponseAt"].clone();
    // Written before the question, so it is no answer.
    deliver_echoes(&app, &channel, vec![text("wamid.2", "good morning").at(now - 200)]).await;
    assert_eq!((first_response().await, count_waiting(&app).await), (Value::Null, json!(1)));
    // Written after the question, and reported late, like the question itself.
    deliver_echoes(&app, &channel, vec![text("wamid.3", "an answer").at(now - 50)]).await;
    assert!(first_response().await.is_string());
    assert_eq!(count_waiting(&app).await, 0);
    // The contact has written again before this answer is reported: they still wait.
    deliver_messages(&app, &channel, vec![text("wamid.4", "and?").at(now)]).await;
    deliver_echoes(&app, &channel, vec![text("wamid.5", "one moment").at(now - 20)]).await;
    assert_eq!(count_waiting(&app).await, 1);
    deliver_echoes(&app, &channel, vec![text("wamid.6", "yes").at(now)]).await;
    assert_eq!(count_waiting(&app).await, 0);
    assert_eq!(tickets(&app.api, channel.id).await.len(), 1);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn social_channels_show_what_other_apps_have_sent() {
    let app = OwnApp::start().await;
    for (kind, object, native) in [(Messenger, "page", "Messenger"), (Instagram, "instagram", "Instagram")] {
        let channel = ProviderChannel::create(&app, &app.company, kind, Setup::default()).await;
        let page = channel.page(object);
        let now = chrono::Utc::now().timestamp_millis();
        channel.deliver(&app.api, &page.call_body(PSID, now, vec![events::text("m_1", "a question")])).await;
        let echoes = vec![
            json!({"mid": "m_2", "text": "from the app"}),
            json!({"mid": "m_3", "text": "from the inbox", "app_id": 263_902_037_430_900_i64}),
            json!({"mid": "m_4", "text": "from another app", "app_id": 1, "metadata": "7"}),
            json!({"mid": "m_5", "attachments": [
                {"type": "image", "payload": {"url": "https://127.0.0.1:1/a.png"}},
                {"type": "image", "payload": {"url": "https://127.0.0.1:1/b.png"}}]}),
        ];
        let call = page.echoes(PSID, now, echoes);
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(5), "{object}");
        assert_eq!(channel.deliver(&app.api, &call).await, repeated(5), "{object}");
        // To an app that has handed the conversation over, echoes come this way.
        let mut standby = page.echoes(PSID, now, vec![json!({"mid": "m_6", "text": "from a bot", "app_id": 2})]);
        standby["entry"][0]["standby"] = standby["entry"][0]["messaging"].take();
        assert_eq!(channel.deliver(&app.api, &standby).await, all_taken(1), "{object}");
        let all = messages(&app.api, channel.id).await;
        let of = |id: Value, name: Value| json!({"id": id, "name": name});
        let shown: Vec<_> = all[1..].iter().map(|message| (message["via"].clone(), message["app"].clone())).collect();
        let in_app = || (json!("nativeApp"), of(Value::Null, json!(native)));
        let expected = [
            in_app(),
            (json!("nativeApp"), of(json!("263902037430900"), json!("Page Inbox"))),
            (json!("otherApp"), of(json!("1"), Value::Null)),
            in_app(),
            in_app(),
            (json!("otherApp"), of(json!("2"), Value::Null)),
        ];
        assert_eq!(shown, expected, "{object}");
        assert!(all[1..].iter().all(|message| message["direction"] == "outbound"));
        assert_eq!((tickets(&app.api, channel.id).await.len(), count_waiting(&app).await), (1, json!(0)));
        let name = contact(&app.api, &all[0]["contactId"]).await["name"].clone();
        assert_eq!(name, json!(format!("{native} 4821")));
        // A read by the account itself is not a read by the contact.
        let read_at = chrono::Utc::now().timestamp_millis();
        let mut own = page.call_body(&channel.account, read_at, vec![events::read(read_at)]);
        own["entry"][0]["messaging"][0]["recipient"] = json!({"id": PSID});
        assert_eq!(channel.deliver(&app.api, &own).await, ignored(1));
        assert_eq!(messages(&app.api, channel.id).await[1]["status"], "sent");
        channel.deliver(&app.api, &page.call_body(PSID, read_at, vec![events::read(read_at)])).await;
        assert_eq!(messages(&app.api, channel.id).await[1]["status"], "read", "{object}");
    }
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn what_an_earlier_process_may_have_sent_is_not_shown_twice() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::create(&app, &app.company, Instagram, Setup::default()).await;
    let page = channel.page("instagram");
    let now = chrono::Utc::now().timestamp_millis();
    channel.deliver(&app.api, &page.call_body(PSID, now, vec![events::text("m_1", "hi")])).await;
    let contact = messages(&app.api, channel.id).await[0]["contactId"].clone();
    queued(&app, &channel, &contact, "our  answer").await;
    let at = chrono::Utc::now().timestamp_millis();
    let app = restarted(app).await;
    let echo = |mid: &str, text: &str| page.echoes(PSID, at, vec![json!({"mid": mid, "text": text})]);
    assert_eq!(channel.deliver(&app.api, &echo("m_2", "our answer")).await, ignored(1));
    assert_eq!(channel.deliver(&app.api, &echo("m_2", "our answer")).await, ignored(1));
    assert_eq!(channel.deliver(&app.api, &echo("m_3", "other words")).await, all_taken(1));
    assert_eq!(messages(&app.api, channel.id).await.len(), 3);
    app.stop().await;
}

#[actix_web::test]
async fn copies_of_an_echo_are_one_message() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let call = channel.phone_account().echoes(MARIA, vec![text("wamid.1", "from the phone")]);
    let tallies = futures_util::future::join_all((0..8).map(|_| channel.deliver(&app.api, &call))).await;
    assert_eq!(tallies.iter().map(|tally| tally.taken).sum::<u64>(), 1);
    assert_eq!((messages(&app.api, channel.id).await.len(), tickets(&app.api, channel.id).await.len()), (1, 1));
    app.stop().await;
}

#[actix_web::test]
async fn messages_to_another_app_are_shown_and_wait_for_no_agent() {
    let app = OwnApp::start().await;
    let queue = app.company.sales;
    let greeting = json!({"name": "Sales", "greeting": "How can we help?"});
    app.api.put(&format!("/queues/{queue}"), greeting).await.data(200);
    let setup = Setup { queue: Some(queue), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Messenger, setup).await;
    let page = channel.page("page");
    let now = chrono::Utc::now().timestamp_millis();
    let mut call =
        page.call_body(PSID, now, vec![events::text("m_1", "to the bot"), events::postback("m_2", "A", "Yes")]);
    call["entry"][0]["standby"] = call["entry"][0]["messaging"].take();
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(2));
    assert_eq!(channel.deliver(&app.api, &call).await, repeated(2));
    let all = messages(&app.api, channel.id).await;
    assert_eq!(all.len(), 2, "the contact was greeted: {all:?}");
    for message in &all {
        assert_eq!((&message["direction"], &message["via"]), (&json!("inbound"), &json!("otherApp")));
        assert_eq!(message["app"], json!({"id": null, "name": null}));
    }
    let opened = tickets(&app.api, channel.id).await.remove(0);
    assert_eq!((&opened["creationSource"], &opened["unreadCount"]), (&json!("automation"), &json!(2)));
    assert_eq!(count_waiting(&app).await, 0);
    let handled_by = async || ticket(&app.api, id(&opened)).await["handledBy"].clone();
    let other = |id: Value, name: Value| json!({"app": {"id": id, "name": name}});
    assert_eq!(handled_by().await, other(Value::Null, Value::Null));
    // A change of the app that handles the conversation is a notice; one that concerns no contact is ignored.
    for (at, kind, expected) in [
        (1, "pass_thread_control", Value::Null),
        (2, "take_thread_control", other(json!("263902037430900"), json!("Page Inbox"))),
    ] {
        let control = json!({kind: {"new_owner_app_id": "263902037430900", "previous_owner_app_id": "2"}});
        assert_eq!(channel.deliver(&app.api, &page.call_body(PSID, now + at, vec![control])).await, all_taken(1));
        assert_eq!(messages(&app.api, channel.id).await.pop().expect("a notice")["body"], format!("[{kind}]"));
        assert_eq!(handled_by().await, expected, "{kind}");
    }
    let mut call = page.echoes(PSID, now, vec![json!({"mid": "m_bot", "text": "from the bot", "app_id": 7})]);
    call["entry"][0]["standby"] = call["entry"][0]["messaging"].take();
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    assert_eq!(handled_by().await, other(json!("7"), Value::Null));
    let app = restarted(app).await;
    let handled_by = async || ticket(&app.api, id(&opened)).await["handledBy"].clone();
    assert_eq!(handled_by().await, other(json!("7"), Value::Null), "forgotten after a restart");
    let roles = json!({"app_roles": {"1": ["primary_receiver"]}});
    assert_eq!(channel.deliver(&app.api, &page.call_body(PSID, now, vec![roles])).await, ignored(1));
    // A message that is sent to this app again waits for the company.
    channel.deliver(&app.api, &page.call_body(PSID, now, vec![events::text("m_3", "to you")])).await;
    assert_eq!((count_waiting(&app).await, handled_by().await), (json!(1), Value::Null));
    assert_eq!(messages(&app.api, channel.id).await.pop().expect("a message")["via"], Value::Null);

    let phone = ProviderChannel::phone(&app).await;
    let mut call = phone.phone_account().message(MARIA, "Maria", text("wamid.1", "to the bot"));
    call["entry"][0]["changes"][0]["field"] = "standby".into();
    assert_eq!(phone.deliver(&app.api, &call).await, all_taken(1));
    assert_eq!(messages(&app.api, phone.id).await[0]["via"], "otherApp");
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}
