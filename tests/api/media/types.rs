//! How the type of a file is determined, and the three reasons for which a file is refused.

use super::{MediaFixture, PDF, PNG, url};

#[actix_web::test]
async fn a_picture_declared_as_another_type_is_sent_as_its_actual_type() {
    let fixture = MediaFixture::start().await;
    let message = fixture.sent("holiday.jpg", "image/jpeg", PNG).await;
    assert_eq!(message["type"], "media");
    assert_eq!(message["direction"], "outbound");
    assert_eq!(message["media"]["mimeType"], "image/png");
    assert_eq!(message["media"]["fileName"], "holiday.jpg");
    assert_eq!(message["media"]["size"], PNG.len());
    let served = fixture.read(&url(&message), &[]).await;
    assert_eq!((served.status, served.header("content-type")), (200, "image/png"));
    assert_eq!(served.bytes, PNG);
    fixture.app.stop().await;
}

#[actix_web::test]
async fn an_empty_file_an_unknown_type_and_a_mismatch_have_codes_of_their_own_and_leave_nothing() {
    let fixture = MediaFixture::start().await;
    const NOISE: &[u8] = &[0, 0x9c, 0xff, 1, 0x80];
    for (file_name, mime_type, content, code) in [
        ("a.png", "image/png", b"".as_slice(), "ERR_API_MEDIA_EMPTY"),
        ("", "", b"", "ERR_API_MEDIA_EMPTY"),
        ("data", "", NOISE, "ERR_API_MEDIA_TYPE_UNKNOWN"),
        ("a.png", "image/png", PDF, "ERR_API_MEDIA_TYPE_MISMATCH"),
        ("a.png", "", PDF, "ERR_API_MEDIA_TYPE_MISMATCH"),
        ("a.pdf", "application/pdf", PNG, "ERR_API_MEDIA_TYPE_MISMATCH"),
        ("a.png", "image/png", b"<!DOCTYPE html><script>alert(1)</script>", "ERR_API_MEDIA_TYPE_MISMATCH"),
        ("a.mp3", "audio/mpeg", b"just a text", "ERR_API_MEDIA_TYPE_MISMATCH"),
        ("a.png", "image/png", NOISE, "ERR_API_MEDIA_TYPE_MISMATCH"),
        ("a.jpg", "", NOISE, "ERR_API_MEDIA_TYPE_MISMATCH"),
    ] {
        let refused = fixture.api().send_form(fixture.form().file(file_name, mime_type, content)).await;
        refused.error(400, code);
        // An invalid file beside a valid one: nothing is sent.
        let form = fixture.form().file("good.png", "image/png", PNG).file(file_name, mime_type, content);
        fixture.api().send_form(form).await.error(400, code);
    }
    assert_eq!(fixture.media_messages().await, Vec::<serde_json::Value>::new());
    assert_eq!((fixture.stored(), fixture.arriving()), (Vec::new(), Vec::new()));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_type_that_the_content_does_not_show_is_taken_from_the_sender() {
    let fixture = MediaFixture::start().await;
    for (file_name, mime_type, content, expected) in [
        ("a.csv", "text/csv", b"a,b\n1,2\n".as_slice(), "text/csv"),
        ("a.csv", "", b"a,b\n1,2\n", "text/csv"),
        ("notes", "", b"plain words", "text/plain"),
        ("a.bin", "application/x-thing", &[0, 0x9c, 0xff, 1], "application/x-thing"),
        ("data", "application/octet-stream", &[0, 0x9c, 0xff, 1], "application/octet-stream"),
        ("backup.dat", "", &[0, 0x9c, 0xff, 1], "application/octet-stream"),
    ] {
        let message = fixture.sent(file_name, mime_type, content).await;
        assert_eq!(message["media"]["mimeType"], expected, "{file_name}");
    }
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_file_without_name_and_type_gets_both_from_its_content() {
    let fixture = MediaFixture::start().await;
    for (content, mime_type, file_name) in [(PNG, "image/png", "file.png"), (PDF, "application/pdf", "file.pdf")] {
        let media = fixture.sent("", "", content).await["media"].clone();
        assert_eq!((&media["mimeType"], &media["fileName"]), (&mime_type.into(), &file_name.into()));
    }
    fixture.app.stop().await;
}

#[actix_web::test]
async fn file_names_lose_their_folders_and_keep_letters_of_any_language() {
    let fixture = MediaFixture::start().await;
    for (sent, expected) in [("../../etc/passwd.png", "passwd.png"), ("Férias 1.png", "Férias 1.png"), ("", "file.png")]
    {
        let message = fixture.sent(sent, "image/png", PNG).await;
        assert_eq!(message["media"]["fileName"], expected);
        let served = fixture.read(&url(&message), &[]).await;
        assert_eq!(served.bytes, PNG, "{expected}");
    }
    let extended = "name=\"medias\"; filename=\"x.png\"; filename*=UTF-8''%E2%82%AC%20rates.png";
    let sent = fixture.api().send_form(fixture.form().part(extended, Some("image/png"), PNG)).await;
    sent.data(202);
    let messages = fixture.media_messages().await;
    assert_eq!(messages.last().expect("a message")["media"]["fileName"], "€ rates.png");
    fixture.app.stop().await;
}
