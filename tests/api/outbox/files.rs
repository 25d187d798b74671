//! Files as providers accept them: their sizes, names and types, and the texts that follow them.

use hotline_persistence::ChannelId;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use super::statuses::call_hook;
use super::{Office, number};
use crate::media::PNG;
use crate::support::form::Form;
use crate::support::provider::hooks::Phone;
use crate::support::provider::{Answer, Call};
use crate::support::service::TestOptions;
use crate::support::{Reply, TestDatabase};

/// The head of an Ogg file with Opus in it.
const OPUS: &[u8] = b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead\x01\x01\x38\x01";
/// The head of an MP3 file.
const MP3: &[u8] = b"ID3\x04\0\0\0\0\0\0\xff\xfb\x90\x64\0\0\0\0";

fn media_form(channel: ChannelId) -> Form {
    Form::default().text("type", "media").text("channelId", channel).text("number", number(1))
}

impl Office {
    async fn send_file(&self, form: Form) -> String {
        self.app.api.send_form(form).await.data(202)["jobId"].as_str().expect("a job").to_owned()
    }
}

/// A PNG file of this many bytes.
fn picture(bytes: usize) -> Vec<u8> {
    let mut picture = PNG.to_vec();
    picture.resize(bytes, 0xa5);
    picture
}

#[actix_web::test]
async fn a_picture_larger_than_its_provider_accepts_is_refused_when_it_is_sent() {
    let office = Office::open().await;
    let phone = office.phone("1701").await;
    let limit = 5 << 20;
    let refused = Reply::of(office.app.api.form(media_form(phone).file("a.png", "", &picture(limit + 1)), None)).await;
    refused.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    assert_eq!(refused.body["error"]["details"], json!({"limitBytes": limit, "kind": "image"}), "{}", refused.body);
    // The limit is for the types that the provider shows as pictures: any other is a document, which may be larger.
    let gif = [b"GIF89a".as_slice(), &vec![0; limit + 1]].concat();
    office.send_file(media_form(phone).file("a.gif", "", &gif)).await;
    office.send_file(media_form(phone).file("a.png", "", &picture(limit))).await;
    let calls = office.provider.accepts("1701", 2).await;
    assert_eq!((&calls[0].body["type"], &calls[1].body["type"]), (&json!("document"), &json!("image")));
    assert_eq!(office.app.api.get("/messages?type=media").await.data(200).as_array().map(Vec::len), Some(2));
    office.close().await;
}

#[actix_web::test]
async fn a_file_is_uploaded_under_a_name_that_matches_its_type() {
    let office = Office::open().await;
    let channel = office.phone("1702").await;
    for (index, (name, declared, content, uploaded_name)) in [
        ("voice.m4a", "audio/mp4", OPUS, "voice.ogg"),
        ("photo.jpg", "image/jpeg", PNG, "photo.png"),
        ("photo.png", "image/png", PNG, "photo.png"),
        ("report.pdf", "application/pdf", b"%PDF-1.7\n".as_slice(), "report.pdf"),
    ]
    .into_iter()
    .enumerate()
    {
        let job = office.send_file(media_form(channel).file(name, declared, content)).await;
        let call = &office.provider.accepts("1702", index + 1).await[index].body;
        let id = call[call["type"].as_str().expect("a type")]["id"].as_str().expect("an id");
        assert_eq!(office.provider.file(id).file_name, uploaded_name, "{name}");
        assert_eq!(
            office.message(&job).await["media"]["fileName"],
            name,
            "the name that is shown is not the one that was given"
        );
    }
    office.close().await;
}

#[actix_web::test]
async fn a_voice_message_reaches_the_provider_as_one() {
    let office = Office::open().await;
    let channel = office.phone("1703").await;
    let job = office.send_file(media_form(channel).text("voice", "true").file("v.ogg", "audio/ogg", OPUS)).await;
    assert_eq!(office.provider.accepts("1703", 1).await[0].body["audio"]["voice"], json!(true));
    assert_eq!(office.message(&job).await["media"]["voice"], json!(true));
    let job = office.send_file(media_form(channel).file("v.ogg", "audio/ogg", OPUS)).await;
    assert_eq!(office.provider.accepts("1703", 2).await[1].body["audio"].get("voice"), None);
    assert_eq!(office.message(&job).await["media"]["voice"], json!(false));
    for (name, content) in [("a.mp3", MP3), ("a.png", PNG)] {
        let refused =
            Reply::of(office.app.api.form(media_form(channel).text("voice", "true").file(name, "", content), None))
                .await;
        refused.error(422, "ERR_API_VALIDATION");
        assert_eq!(refused.body["error"]["details"][0]["field"], "voice", "{}", refused.body);
    }
    let text = json!({"channelId": channel, "number": number(1), "type": "text", "body": "hi", "voice": true});
    office.app.api.post("/messages", text).await.error(422, "ERR_API_VALIDATION");
    office.close().await;
}

#[actix_web::test]
async fn a_caption_that_fails_after_it_was_accepted_is_shown_as_an_error_of_the_delivered_file() {
    let office = Office::open().await;
    let voice_channel = office.channel(ChannelType::Whatsapp, "1708", |_| {}).await;
    let phone = Phone { id: "1708".to_owned(), number: "15550001708".to_owned() };
    let voice = media_form(voice_channel.id).file("v.ogg", "audio/ogg", OPUS).text("body", "the caption");
    let job = office.send_file(voice).await;
    office.wait_for_status(&job, "sent").await;
    let calls = office.provider.accepted("1708");
    let now = chrono::Utc::now().timestamp();
    let report = async |call: &Call, mut status: Value| {
        let callback = &mut status["entry"][0]["changes"][0]["value"]["statuses"][0]["biz_opaque_callback_data"];
        *callback = call.body["biz_opaque_callback_data"].clone();
        call_hook(&office, &voice_channel.public_key, &status).await;
    };
    let id = |call: &Call| call.accepted.clone().expect("an id");
    report(&calls[0], phone.status(&id(&calls[0]), &number(1), "delivered", now)).await;
    report(&calls[1], phone.status(&id(&calls[1]), &number(1), "sent", now)).await;
    assert_eq!(office.message(&job).await["error"], json!(null));
    for _ in 0..2 {
        report(&calls[1], phone.failed(&id(&calls[1]), &number(1), 131_026, "Message undeliverable", now)).await;
        let shown = office.message(&job).await;
        assert_eq!((&shown["status"], &shown["error"]["code"]), (&json!("delivered"), &json!("131026")));
    }
    assert_eq!(office.message(&job).await["media"]["fileName"], "v.ogg");
    office.close().await;
}

#[actix_web::test]
async fn a_file_that_was_accepted_is_not_sent_again_after_a_restart() {
    let office = Office::open().await;
    let voice_channel = office.phone("1706").await;
    let page = office.channel(ChannelType::Messenger, "1707", |_| {}).await;
    let contact = office.receive_from_contact(&page, "1707").await;
    let to_page = Form::default().text("type", "media").text("channelId", page.id).text("contactId", contact);
    let mut jobs = Vec::new();
    for (account, form) in
        [("1706", media_form(voice_channel).file("v.ogg", "audio/ogg", OPUS)), ("1707", to_page.file("a.png", "", PNG))]
    {
        office.provider.next(account, [Answer::Accept]);
        office.provider.always(account, Answer::refuse(503, 2, "later"));
        jobs.push(office.send_file(form.text("body", "the caption")).await);
        office.provider.called_times(account, 3).await;
    }
    let Office { app, provider } = office;
    let accept = async |_: &TestDatabase| {
        for account in ["1706", "1707"] {
            provider.always(account, Answer::Accept);
        }
    };
    let app = app.restarted(&TestOptions::default(), accept).await;
    let office = Office { app, provider };
    for (job, account) in jobs.iter().zip(["1706", "1707"]) {
        office.wait_for_status(job, "sent").await;
        let accepted = office.provider.accepted(account);
        assert_eq!(
            (accepted.len(), count_captions(&accepted[1..])),
            (2, 1),
            "{account}: not the file first, and then its text"
        );
        let job = office.job(job).await;
        assert_eq!(job["attempts"], 1, "{account}");
    }
    office.close().await;
}

/// How many calls carry the caption. A voice message, and a file to a page, send it as a text of its own.
fn count_captions(calls: &[Call]) -> usize {
    let texts = calls
        .iter()
        .filter_map(|call| call.body["text"]["body"].as_str().or_else(|| call.body["message"]["text"].as_str()));
    texts.filter(|text| *text == "the caption").count()
}

#[actix_web::test]
async fn a_caption_that_follows_its_file_is_retried_and_the_file_is_sent_once() {
    let office = Office::open().await;
    let voice_channel = office.phone("1704").await;
    let page = office.channel(ChannelType::Messenger, "1705", |_| {}).await;
    let contact = office.receive_from_contact(&page, "1705").await;
    let to_page = Form::default().text("type", "media").text("channelId", page.id).text("contactId", contact);
    let voice = media_form(voice_channel).file("v.ogg", "audio/ogg", OPUS);
    let later = || Answer::refuse(503, 2, "later");
    for (account, form) in [("1704", voice), ("1705", to_page.file("a.png", "", PNG))] {
        office.provider.next(account, [Answer::Accept, later(), later()]);
        let job = office.send_file(form.text("body", "the caption")).await;
        let shown = office.wait_for_status(&job, "sent").await;
        let calls = office.provider.calls(account);
        assert_eq!(
            (calls.len(), count_captions(&calls)),
            (4, 3),
            "{account}: not one file, and its text until it was accepted"
        );
        let accepted = office.provider.accepted(account);
        assert_eq!((accepted.len(), count_captions(&accepted[1..])), (2, 1), "{account}");
        assert_eq!(shown["error"], json!(null));
    }
    // A caption that is refused fails the message, although its file has arrived.
    office.provider.next("1704", [Answer::Accept, Answer::refuse(400, 131_026, "undeliverable")]);
    let voice = media_form(voice_channel).file("v.ogg", "audio/ogg", OPUS).text("body", "the caption");
    let job = office.send_file(voice).await;
    assert_eq!(office.wait_for_status(&job, "failed").await["error"]["code"], "131026");
    assert_eq!(office.provider.calls("1704").len(), 6);
    office.close().await;
}
