//! Forms: their fields, their limits, and malformed ones.

use reqwest::Method;
use serde_json::json;

use super::{MediaFixture, PNG};
use crate::support::Reply;
use crate::support::form::Form;
use crate::support::service::TestOptions;

const BYTES_MAX: usize = 100_000;

async fn start_with_small_limit() -> MediaFixture {
    let mut options = TestOptions::default();
    options.media.bytes_max = BYTES_MAX as u64;
    MediaFixture::start_with(options).await
}

/// A picture of this many bytes.
fn picture(bytes: usize) -> Vec<u8> {
    let mut picture = PNG.to_vec();
    picture.resize(bytes, 0xa5);
    picture
}

#[actix_web::test]
async fn a_file_as_large_as_the_limit_is_taken_and_one_byte_more_is_not() {
    let fixture = start_with_small_limit().await;
    let message = fixture.sent("a.png", "image/png", &picture(BYTES_MAX)).await;
    assert_eq!(message["media"]["size"], BYTES_MAX);
    for bytes in [BYTES_MAX + 1, 3 * BYTES_MAX] {
        let form = fixture.form().file("a.png", "image/png", &picture(bytes));
        let refused = Reply::of(fixture.api().form(form.clone(), None)).await;
        refused.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
        assert_eq!(refused.body["error"]["message"], "the file is larger than 100000 bytes");
        Reply::of(fixture.api().form(form, Some(&format!("k-{bytes}")))).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    }
    assert_eq!(fixture.media_messages().await.len(), 1);
    assert_eq!((fixture.stored().len(), fixture.arriving().len()), (1, 0));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn ten_files_are_ten_messages_of_one_job_and_eleven_are_too_many() {
    let fixture = MediaFixture::start().await;
    let mut form = fixture.form().text("body", "My pictures, {{name}}");
    for number in 0..10 {
        form = form.file(&format!("{number}.png"), "image/png", PNG);
    }
    let sent = fixture.api().send_form(form.clone()).await;
    let job = sent.data(202)["jobId"].clone();
    let messages = fixture.media_messages().await;
    let seen: Vec<_> = messages
        .iter()
        .map(|message| (message["media"]["fileName"].as_str().expect("a name"), &message["body"], &message["jobId"]))
        .collect();
    let caption = json!("My pictures, visitor");
    for (number, (file_name, body, of_job)) in seen.iter().enumerate() {
        assert_eq!(*file_name, format!("{number}.png"));
        assert_eq!(**body, if number == 0 { caption.clone() } else { json!(null) });
        assert_eq!(**of_job, job);
    }
    assert_eq!(seen.len(), 10);

    let refused = fixture.api().send_form(form.file("10.png", "image/png", PNG)).await;
    assert_eq!(refused.invalid_fields(), ["medias"]);
    assert_eq!((fixture.media_messages().await.len(), fixture.stored().len(), fixture.arriving().len()), (10, 10, 0));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn the_fields_of_a_form_are_those_of_json_written_as_text() {
    let fixture = MediaFixture::start().await;
    let company = &fixture.app.company;
    let form = Form::default()
        .text("type", "media")
        .text("channelId", company.webchat)
        .text("contactId", fixture.contact)
        .text("contactName", "")
        .text("nobodyKnowsThis", "7")
        .part("name=\"attachment\"; filename=\"a.bin\"", None, b"\0\xffunknown as well")
        .text("closeTicket", "true")
        .text("wrapupTypeId", company.solved)
        .text("wrapupNote", "{\"a\": \"text\"}")
        .file("a.png", "image/png", PNG);
    fixture.api().send_form(form).await.data(202);
    let ticket = fixture.api().get(&format!("/tickets/{}", fixture.ticket)).await.data(200).clone();
    assert_eq!((&ticket["status"], &ticket["wrapupNote"]), (&json!("closed"), &json!("{\"a\": \"text\"}")));

    let refused = Form::default().text("type", "media").text("ticketId", "seven").text("closeTicket", "perhaps").file(
        "a.png",
        "image/png",
        PNG,
    );
    assert_eq!(fixture.api().send_form(refused).await.invalid_fields(), ["ticketId", "closeTicket"]);
    // A number too large for a float is refused under its own path, as in a JSON body.
    let template = r#"{"name": "code", "parameters": {"body": ["a", 1e400]}}"#;
    let too_large =
        Form::default().text("type", "template").text("ticketId", fixture.ticket).text("template", template);
    assert_eq!(fixture.api().send_form(too_large).await.invalid_fields(), ["template.parameters.body[1]"]);
    // A form without files is taken where none is needed; a type of message without files refuses them.
    let text = Form::default().text("type", "text").text("ticketId", fixture.ticket).text("reopenTicket", "true");
    fixture.api().send_form(text.clone().text("body", "words")).await.data(202);
    let with_file = text.text("body", "words").file("a.png", "image/png", PNG);
    assert_eq!(fixture.api().send_form(with_file).await.invalid_fields(), ["medias"]);
    assert_eq!((fixture.media_messages().await.len(), fixture.stored().len(), fixture.arriving().len()), (1, 1, 0));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn files_in_other_parts_or_in_json_do_not_count() {
    let fixture = MediaFixture::start().await;
    let elsewhere = fixture.form().part("name=\"file\"; filename=\"a.png\"", Some("image/png"), PNG);
    for form in [fixture.form(), elsewhere] {
        assert_eq!(fixture.api().send_form(form).await.invalid_fields(), ["medias"]);
    }
    let in_json = json!({"type": "media", "ticketId": fixture.ticket, "medias": ["a.png"]});
    assert_eq!(fixture.api().post("/messages", in_json).await.invalid_fields(), ["medias"]);
    fixture.app.stop().await;
}

#[actix_web::test]
async fn texts_parts_and_their_heads_are_limited() {
    let fixture = MediaFixture::start().await;
    let mebibyte = "x".repeat(1024 * 1024);
    let large = fixture.form().text("unknown", &mebibyte).file("a.png", "image/png", PNG);
    fixture.api().send_form(large).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    let as_file = fixture.form().part("name=\"other\"; filename=\"a\"", None, mebibyte.as_bytes());
    fixture.api().send_form(as_file).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
    let many = (0..70).fold(fixture.form(), |form, number| form.text(&format!("field{number}"), ""));
    fixture.api().send_form(many).await.error(400, "ERR_API_BAD_REQUEST");
    let head = "y".repeat(100_000);
    let long_head = fixture.form().part(&format!("name=\"medias\"; filename=\"{head}\""), None, PNG);
    fixture.api().send_form(long_head).await.error(400, "ERR_API_BAD_REQUEST");
    assert_eq!((fixture.media_messages().await.len(), fixture.stored().len(), fixture.arriving().len()), (0, 0, 0));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_body_that_is_not_a_complete_form_is_refused() {
    let fixture = MediaFixture::start().await;
    let whole = fixture.form().file("a.png", "image/png", PNG).bytes();
    let ask = async |content_type: &str, body: &[u8], key: Option<&str>| {
        let request = fixture.api().request(Method::POST, "/messages").header("content-type", content_type);
        let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
        Reply::of(request.body(body.to_vec())).await
    };
    let form = Form::content_type();
    for key in [None, Some("k")] {
        let refused = ask("text/plain", &whole, key).await;
        refused.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
        let key = key.map(|key| format!("{key}-2"));
        // Cut short at the end, in the file, in a head, and to nothing.
        for cut in [whole.len() - 6, whole.len() - 60, 30, 0] {
            let key = key.as_ref().map(|key| format!("{key}-{cut}"));
            ask(&form, &whole[..cut], key.as_deref()).await.error(400, "ERR_API_BAD_REQUEST");
        }
    }
    ask("multipart/form-data", &whole, None).await.error(400, "ERR_API_BAD_REQUEST");
    ask("multipart/form-data; boundary=other", &whole, None).await.error(400, "ERR_API_BAD_REQUEST");
    ask("multipart/mixed; boundary=other", &whole, None).await.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
    let nameless = fixture.form().part("filename=\"a.png\"", None, PNG);
    fixture.api().send_form(nameless).await.error(400, "ERR_API_BAD_REQUEST");
    // An endpoint that takes no files refuses a form like any other wrong type.
    let tags = fixture.api().request(Method::POST, "/tags").header("content-type", &form).body(whole.clone());
    Reply::of(tags).await.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
    assert_eq!((fixture.media_messages().await.len(), fixture.stored().len(), fixture.arriving().len()), (0, 0, 0));
    fixture.app.stop().await;
}
