//! Files that contacts send: the message is shown at once, the file once it has been fetched.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use hotline::outbound::OutboundOptions;
use hotline_actors::clock;
use hotline_persistence::tables::channels::ChannelType::{Messenger, Whatsapp};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{MARIA, ProviderChannel, Setup, all_taken, contact, messages};
use crate::events::{newest, types};
use crate::steps::restarted;
use crate::support::provider::hooks::{events, file, image, voice};
use crate::support::provider::{Answer, Provider};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, TestApp, eventually, until_blocked};

/// A whole picture of one pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1F, 0x15, 0xC4, 0x89,
];
const PDF: &[u8] = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n";

async fn create_channel(app: &TestApp, provider: &Provider) -> ProviderChannel {
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    ProviderChannel::create(app, &app.company, Whatsapp, setup).await
}

/// Waits until the last message has its file, and returns that.
async fn wait_for_file(app: &TestApp, channel: &ProviderChannel) -> Value {
    let last = async || messages(&app.api, channel.id).await.pop().unwrap_or_default();
    eventually("the file is there", || async { last().await["media"].is_object() }).await;
    last().await["media"].clone()
}

async fn bytes_of(app: &TestApp, media: &Value) -> Vec<u8> {
    let url = media["url"].as_str().unwrap_or_else(|| panic!("no address: {media}"));
    let response = app.api.anonymous(reqwest::Method::GET, url).send().await.expect("an answer");
    assert_eq!(response.status(), 200, "{url}");
    response.bytes().await.expect("bytes").to_vec()
}

#[actix_web::test]
async fn a_file_is_fetched_after_the_answer_and_shown_with_its_message() {
    let provider = Provider::start().await;
    let app = TestApp::shared().await;
    let channel = create_channel(&app, &provider).await;
    let phone = channel.phone_account();
    let picture = provider.offer("image/png", PNG);
    let call = phone.message(MARIA, "Maria", image("wamid.1", &picture, Some("my cat")));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let media = wait_for_file(&app, &channel).await;
    assert_eq!((&media["mimeType"], &media["size"]), (&json!("image/png"), &json!(PNG.len())), "{media}");
    assert_eq!(bytes_of(&app, &media).await, PNG);
    let message = &messages(&app.api, channel.id).await[0];
    assert_eq!(
        (&message["type"], &message["body"], &message["error"]),
        (&json!("media"), &json!("my cat"), &Value::Null)
    );

    let paper = provider.offer("application/pdf", PDF);
    let call = phone.message(MARIA, "Maria", file("wamid.2", "document", &paper, "application/pdf", None));
    channel.deliver(&app.api, &call).await;
    let media = wait_for_file(&app, &channel).await;
    assert_eq!((&media["mimeType"], &media["fileName"]), (&json!("application/pdf"), &json!("invoice.pdf")));
    assert_eq!(messages(&app.api, channel.id).await[1]["body"], Value::Null);
    app.stop().await;
}

#[actix_web::test]
async fn a_voice_message_is_shown_as_one() {
    let provider = Provider::start().await;
    let app = TestApp::shared().await;
    let channel = create_channel(&app, &provider).await;
    let phone = channel.phone_account();
    let sound = provider
        .offer("audio/ogg", &b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead\x01\x01"[..]);
    assert_eq!(channel.deliver(&app.api, &phone.message(MARIA, "Maria", voice("wamid.v", &sound))).await, all_taken(1));
    let media = wait_for_file(&app, &channel).await;
    assert_eq!((&media["mimeType"], &media["voice"]), (&json!("audio/ogg"), &json!(true)), "{media}");
    let message = phone.message(MARIA, "Maria", file("wamid.a", "audio", &sound, "audio/ogg", None));
    assert_eq!(channel.deliver(&app.api, &message).await, all_taken(1));
    let media = wait_for_file(&app, &channel).await;
    assert_eq!(media["voice"], json!(false), "{media}");
    app.stop().await;
}

#[actix_web::test]
async fn a_file_that_is_not_available_yet_is_requested_again_and_one_that_is_lost_has_an_error() {
    let provider = Provider::start().await;
    let app = TestApp::shared().await;
    let channel = create_channel(&app, &provider).await;
    let phone = channel.phone_account();
    // The token is refused for a while.
    provider.only_token("", "another token");
    let picture = provider.offer("image/png", PNG);
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", image("wamid.1", &picture, None))).await;
    let waiting = messages(&app.api, channel.id).await[0].clone();
    assert_eq!((&waiting["type"], &waiting["media"]), (&json!("media"), &Value::Null), "{waiting}");
    provider.only_token("", "access token");
    assert_eq!(bytes_of(&app, &wait_for_file(&app, &channel).await).await, PNG);

    channel.deliver(&app.api, &phone.message(MARIA, "Maria", image("wamid.2", "404", Some("gone")))).await;
    let last = async || messages(&app.api, channel.id).await.pop().expect("a message");
    eventually("it is known that the file is lost", || async { last().await["error"].is_object() }).await;
    let lost = last().await;
    assert_eq!(lost["error"]["code"], "ERR_MEDIA_UNAVAILABLE", "{lost}");
    assert_eq!((&lost["media"], &lost["body"], &lost["status"]), (&Value::Null, &json!("gone"), &json!("received")));

    let empty = provider.offer("image/png", "");
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", image("wamid.3", &empty, None))).await;
    eventually("an empty file is refused", || async { last().await["error"]["code"] == "ERR_API_MEDIA_EMPTY" }).await;
    // A file has the type of its content, not the announced one.
    let named_otherwise = provider.offer("audio/ogg", PDF);
    let call = phone.message(MARIA, "Maria", file("wamid.4", "audio", &named_otherwise, "audio/ogg", None));
    channel.deliver(&app.api, &call).await;
    assert_eq!(wait_for_file(&app, &channel).await["mimeType"], "application/pdf");
    app.stop().await;
}

/// In the past, each such refusal was final, because its status is that of a file that is lost.
#[actix_web::test]
async fn a_file_is_requested_again_after_a_refused_token_a_limit_and_an_outage() {
    let provider = Provider::start().await;
    let app = TestApp::shared().await;
    let channel = create_channel(&app, &provider).await;
    for (index, code) in [190, 4, 131_000].into_iter().enumerate() {
        provider.refuse_look_up(Answer::refuse(400, code, "not now"));
        let picture = provider.offer("image/png", PNG);
        let call = channel.phone_account().message(MARIA, "Maria", image(&format!("wamid.{index}"), &picture, None));
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
        let last = async || messages(&app.api, channel.id).await.pop().expect("a message");
        let is_settled = || async {
            let last = last().await;
            last["media"].is_object() || last["error"].is_object()
        };
        eventually("the download has ended", is_settled).await;
        let shown = last().await;
        assert_eq!(shown["error"], Value::Null, "{code}: {shown}");
        assert_eq!(bytes_of(&app, &shown["media"]).await, PNG);
        assert_eq!(provider.refused_look_ups(), index + 1);
    }
    app.stop().await;
}

#[actix_web::test]
async fn files_that_are_not_fetched_yet_are_fetched_after_a_restart() {
    let provider = Provider::start().await;
    let app = OwnApp::start().await;
    let channel = create_channel(&app, &provider).await;
    provider.only_token("", "another token");
    let picture = provider.offer("image/png", PNG);
    let call = channel.phone_account().message(MARIA, "Maria", image("wamid.1", &picture, None));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let app = restarted(app).await;
    assert_eq!(messages(&app.api, channel.id).await[0]["media"], Value::Null);
    provider.only_token("", "access token");
    assert_eq!(bytes_of(&app, &wait_for_file(&app, &channel).await).await, PNG);
    app.stop().await;
}

/// In the past, the event of the file had the time at which it was written, and so had those of all changes after it.
#[actix_web::test]
async fn the_event_of_a_file_that_is_written_late_does_not_change_the_times_of_later_events() {
    let provider = Provider::start().await;
    // A process of a cluster has no journal: it answers once a change is written.
    let app = OwnApp::start_with(TestOptions { member: false, ..TestOptions::default() }).await;
    let channel = create_channel(&app, &provider).await;
    fail::cfg("file_unattached", "return").expect("failpoint");
    let picture = provider.offer("image/png", PNG);
    let call = channel.phone_account().message(MARIA, "Maria", image("wamid.1", &picture, None));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let ticket = messages(&app.api, channel.id).await[0]["ticketId"].clone();
    let begin = newest(&app.api).await;

    let mut blocker = app.db.begin().await.expect("a transaction");
    let lock = sqlx::query("select from journal_watermark for update").execute(&mut *blocker).await;
    lock.expect("nothing is written from here on");
    let log = &app.service.app.engine.store().log;
    let appended = log.appended();
    fail::remove("file_unattached");
    eventually("the file is in the journal", || async { log.durable() > appended }).await;
    until_blocked(1, &mut blocker, &app.db).await;
    let note = app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "later"})).await.data(201).clone();
    clock::advance(Duration::from_secs(60));
    blocker.rollback().await.expect("all is written");

    let events = app.api.get(&format!("/events?after={begin}&types=message.updated,note.added")).await;
    let events = events.data(200).as_array().expect("a list");
    assert_eq!(types(events), ["message.updated", "note.added"]);
    assert_eq!(events[1]["createdAt"], note["createdAt"], "{events:?}");
    assert!(events[0]["data"]["media"].is_object(), "{events:?}");
    app.stop().await;
}

/// In the past, the sweep removed the file while it waited, and the message then referred to a missing one.
#[actix_web::test]
async fn a_file_that_cannot_be_added_to_its_message_for_hours_is_fetched_again() {
    let provider = Provider::start().await;
    let app = OwnApp::start().await;
    let channel = create_channel(&app, &provider).await;
    fail::cfg("file_unattached", "return").expect("failpoint");
    clock::stop();
    let picture = provider.offer("image/png", PNG);
    let call = channel.phone_account().message(MARIA, "Maria", image("wamid.1", &picture, None));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    eventually("the file is stored", || async { app.stored_files().len() == 1 }).await;
    let first = app.stored_files().remove(0);
    clock::advance(Duration::from_secs(3 * 3600));
    let service = &app.service.app;
    let swept = service.media.sweep(&service.engine, clock::now()).await;
    assert!(swept.is_ok() && !app.stored_files().contains(&first), "{swept:?}");
    fail::remove("file_unattached");
    assert_eq!(bytes_of(&app, &wait_for_file(&app, &channel).await).await, PNG);
    assert_eq!(app.stored_files().len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_file_of_a_closed_ticket_is_fetched_and_one_of_a_deleted_contact_is_removed() {
    let provider = Provider::start().await;
    let app = OwnApp::start().await;
    let channel = create_channel(&app, &provider).await;
    let phone = channel.phone_account();
    provider.only_token("", "another token");
    let picture = provider.offer("image/png", PNG);
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", image("wamid.1", &picture, None))).await;
    let other = "5511900000002";
    channel.deliver(&app.api, &phone.message(other, "João", image("wamid.2", &picture, None))).await;
    let all = messages(&app.api, channel.id).await;
    for message in &all {
        crate::steps::close(&app.api, message["ticketId"].as_i64().expect("ticket")).await;
    }
    assert_eq!(app.api.delete(&format!("/contacts/{}", all[1]["contactId"])).await.status, 204);
    provider.only_token("", "access token");
    let media = wait_for_file(&app, &channel).await;
    assert_eq!(bytes_of(&app, &media).await, PNG);
    assert_eq!(contact(&app.api, &all[0]["contactId"]).await["name"], "Maria");
    // The other file arrives all the same, without a message, and the sweep removes it.
    eventually("both files are stored", || async { app.stored_files().len() == 2 }).await;
    let service = &app.service.app;
    let removed = service.media.sweep(&service.engine, Utc::now() + TimeDelta::hours(3)).await;
    assert_eq!((removed, app.stored_files().len()), (Ok(1), 1), "the file of the deleted contact is still there");
    assert_eq!(bytes_of(&app, &media).await, PNG, "the file of the closed ticket was removed");
    app.stop().await;
}

#[actix_web::test]
async fn files_of_a_social_message_are_one_message_each() {
    let provider = Provider::start().await;
    let app = TestApp::shared().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Messenger, setup).await;
    let url = |bytes: &'static [u8], kind: &str| provider.file_url(&provider.offer(kind, bytes));
    let mut event = events::attachment("m_1", "image", &url(PNG, "image/png"));
    event["message"]["text"] = "two files".into();
    let second = json!({"type": "file", "payload": {"url": url(PDF, "application/pdf")}});
    event["message"]["attachments"].as_array_mut().expect("attachments").push(second);
    let call = channel.page("page").call_body("77", 1_700_000_000_000, vec![event, events::text("m_2", "that is all")]);
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(3));
    let media = async || {
        let all = messages(&app.api, channel.id).await;
        all.iter().map(|message| message["media"]["mimeType"].clone()).collect::<Vec<_>>()
    };
    eventually("both files are there", || async {
        media().await
            == ["image/png", "application/pdf", ""].map(|kind| if kind.is_empty() { Value::Null } else { json!(kind) })
    })
    .await;
    let bodies: Vec<Value> =
        messages(&app.api, channel.id).await.iter().map(|message| message["body"].clone()).collect();
    assert_eq!(bodies, [json!("two files"), Value::Null, json!("that is all")]);
    app.stop().await;
}

#[actix_web::test]
async fn a_file_whose_name_and_content_show_no_type_has_the_type_of_its_download() {
    const NOISE: &[u8] = &[0x00, 0x9c, 0xff, 0x01, 0x80, 0x00, 0x17];
    let provider = Provider::start().await;
    let app = TestApp::shared().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Messenger, setup).await;
    for (mid, header, expected) in
        [("m_1", "application/x-thing", "application/x-thing"), ("m_2", "nonsense", "application/octet-stream")]
    {
        let mut event = events::attachment(mid, "file", &provider.file_url(&provider.offer(header, NOISE)));
        event["message"]["attachments"][0]["payload"]["title"] = "report".into();
        let call = channel.page("page").call_body("77", 1_700_000_000_000, vec![event]);
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
        assert_eq!(wait_for_file(&app, &channel).await["mimeType"], expected);
    }
    app.stop().await;
}

/// Only public addresses are fetched, whether a call or the provider names them.
#[actix_web::test]
async fn a_file_at_a_private_address_is_not_fetched() {
    let provider = Provider::start().await;
    let options = TestOptions { outbound: OutboundOptions::default(), metrics: true, ..TestOptions::default() };
    let app = OwnApp::start_with(options).await;
    let metrics = app.service.metrics_listener.as_ref().expect("metrics").address.port();
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Messenger, setup).await;
    let own = app.address.port();
    let private_urls = [
        format!("http://127.0.0.1:{metrics}/metrics"),
        format!("https://127.0.0.1:{metrics}/metrics"),
        format!("http://localhost:{metrics}/metrics"),
        format!("https://localhost:{metrics}/metrics"),
        format!("http://0x7f.1:{metrics}/metrics"),
        format!("https://2130706433:{metrics}/metrics"),
        format!("https://[::ffff:127.0.0.1]:{metrics}/metrics"),
        format!("http://user:secret@127.0.0.1:{own}/health/live"),
        "https://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        provider.file_url(&provider.offer("image/png", PNG)),
    ];
    let events =
        private_urls.iter().zip(0..).map(|(url, number)| events::attachment(&format!("m_{number}"), "image", url));
    let call = channel.page("page").call_body("77", 1_700_000_000_000, events.collect());
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(private_urls.len() as u64));
    eventually("each is given up", || async {
        messages(&app.api, channel.id).await.iter().all(|message| message["error"].is_object())
    })
    .await;
    for (message, url) in messages(&app.api, channel.id).await.iter().zip(&private_urls) {
        assert_eq!(message["error"]["code"], "ERR_MEDIA_ADDRESS_FORBIDDEN", "{url}: {message}");
        assert_eq!(message["media"], Value::Null, "{url}");
        let reason = message["error"]["message"].as_str().expect("a reason");
        assert!(!reason.contains("127.0.0.1") && !reason.contains("secret"), "{reason}");
    }
    // A file's address from the provider is trusted no more than one in a call.
    let phone = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    let picture = provider.offer("image/png", PNG);
    phone.deliver(&app.api, &phone.phone_account().message(MARIA, "Maria", image("wamid.1", &picture, None))).await;
    let code = async || messages(&app.api, phone.id).await[0]["error"]["code"].clone();
    eventually("it is given up", || async { code().await == "ERR_MEDIA_ADDRESS_FORBIDDEN" }).await;
    assert_eq!(app.stored_files().len(), 0);
    app.stop().await;
}

/// Thousands of addresses of one company never answer, on more channels than there used to be places for fetches.
/// Files of another company are fetched all the same.
#[actix_web::test]
async fn dead_addresses_of_one_company_delay_no_files_of_another() {
    const CHANNELS: usize = 6;
    const CALLS: usize = 20;
    const FILES_OF_A_CALL: usize = 32;
    let provider = Provider::start().await;
    // A dead address is waited for as long as the test takes.
    let defaults = TestOptions::default();
    let outbound = OutboundOptions { call_time_max: Duration::from_secs(3600), ..defaults.outbound.clone() };
    let app = OwnApp::start_with(TestOptions { outbound, ..defaults }).await;
    // Accepts connections, and never answers.
    let dead = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let port = dead.local_addr().expect("an address").port();
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let mut files = 0;
    for number in 0..CHANNELS {
        let channel = ProviderChannel::create(&app, &app.company, Messenger, setup).await;
        for call in 0..CALLS {
            let files_of_call = (0..FILES_OF_A_CALL).map(|file| {
                json!({"type": "image", "payload": {"url": format!("http://127.0.0.1:{port}/{number}/{call}/{file}")}})
            });
            let attachments: Vec<Value> = files_of_call.collect();
            files += attachments.len() as u64;
            let event = json!({"message": {"mid": format!("m_{number}_{call}"), "attachments": attachments}});
            let call = channel.page("page").call_body("77", 1_700_000_000_000, vec![event]);
            assert_eq!(channel.deliver(&app.api, &call).await, all_taken(FILES_OF_A_CALL as u64));
        }
    }
    assert_eq!(files, (CHANNELS * CALLS * FILES_OF_A_CALL) as u64);
    let (other, api) = app.another_company().await;
    let channel = ProviderChannel::create(&app, &other, Messenger, setup).await;
    for number in 0..5 {
        let url = provider.file_url(&provider.offer("image/png", PNG));
        let event = events::attachment(&format!("m_{number}"), "image", &url);
        let call = channel.page("page").call_body("78", 1_700_000_000_000, vec![event]);
        assert_eq!(channel.deliver(&api, &call).await, all_taken(1));
    }
    eventually("the other company's files are there", || async {
        messages(&api, channel.id).await.iter().all(|message| message["media"].is_object())
    })
    .await;
    drop(dead);
    app.stop().await;
}

#[actix_web::test]
async fn a_file_is_fetched_up_to_the_providers_own_limit() {
    // More than may be uploaded.
    const SIZE: usize = 17 << 20;
    let provider = Provider::start().await;
    let app = TestApp::shared().await;
    let channel = create_channel(&app, &provider).await;
    let mut bytes = PDF.to_vec();
    bytes.resize(SIZE, b' ');
    let paper = provider.offer("application/pdf", bytes);
    let call =
        channel.phone_account().message(MARIA, "Maria", file("wamid.1", "document", &paper, "application/pdf", None));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let media = wait_for_file(&app, &channel).await;
    assert_eq!((&media["mimeType"], &media["size"]), (&json!("application/pdf"), &json!(SIZE)));
    app.stop().await;
}

/// A file arrives in pieces, with a pause before each. One pause is shorter than [`CALL_TIME_MAX`], all of them
/// together are longer.
const PIECES: usize = 30;
const PIECE_BYTES: usize = 64 << 10;
const PAUSE: Duration = Duration::from_millis(100);
const CALL_TIME_MAX: Duration = Duration::from_secs(2);

/// Answers a request with a file in pieces.
async fn send_slowly(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let size = PIECES * PIECE_BYTES;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/pdf\r\ncontent-length: {size}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut file = PDF.to_vec();
    file.resize(size, b' ');
    for piece in file.chunks(PIECE_BYTES) {
        tokio::time::sleep(PAUSE).await;
        stream.write_all(piece).await?;
    }
    Ok(())
}

#[actix_web::test]
async fn a_file_that_takes_longer_than_a_call_may_is_fetched_as_long_as_it_keeps_arriving() {
    let provider = Provider::start().await;
    let defaults = TestOptions::default();
    let outbound = OutboundOptions { call_time_max: CALL_TIME_MAX, ..defaults.outbound.clone() };
    let app = OwnApp::start_with(TestOptions { outbound, ..defaults }).await;
    let files = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let url = format!("http://{}/file", files.local_addr().expect("an address"));
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = files.accept().await {
            // A service that gives up ends the connection.
            tokio::spawn(async move { drop(send_slowly(stream).await) });
        }
    });
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Messenger, setup).await;
    let event = events::attachment("m_1", "file", &url);
    let call = channel.page("page").call_body("77", 1_700_000_000_000, vec![event]);
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let media = wait_for_file(&app, &channel).await;
    let expected = (&json!("application/pdf"), &json!(PIECES * PIECE_BYTES));
    assert_eq!((&media["mimeType"], &media["size"]), expected, "{media}");
    server.abort();
    app.stop().await;
}

#[actix_web::test]
async fn the_error_of_a_file_that_is_too_large_names_the_option() {
    let provider = Provider::start().await;
    let mut options = TestOptions::default();
    options.media.fetched_bytes_max = 20;
    let app = OwnApp::start_with(options).await;
    let channel = create_channel(&app, &provider).await;
    let paper = provider.offer("application/pdf", PDF);
    let call =
        channel.phone_account().message(MARIA, "Maria", file("wamid.1", "document", &paper, "application/pdf", None));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let first = async || messages(&app.api, channel.id).await.remove(0);
    eventually("it is given up", || async { first().await["error"].is_object() }).await;
    let message = "the file is larger than 20 bytes, the limit set by --media-fetch-max-size";
    let shown = first().await;
    assert_eq!(shown["error"], json!({"code": "ERR_API_PAYLOAD_TOO_LARGE", "message": message}));
    assert_eq!(shown["media"], Value::Null);
    app.stop().await;
}
