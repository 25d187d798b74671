//! A file and its message appear together or not at all, and are deleted together.

use chrono::{TimeDelta, Utc};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{MediaFixture, PDF, PNG, url};
use crate::support::eventually;
use crate::support::form::Form;

/// The head of a request whose body has this length.
fn head(fixture: &MediaFixture, length: usize) -> String {
    format!(
        "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: {}\r\n\
         Content-Length: {length}\r\n\r\n",
        fixture.app.company.key,
        Form::content_type(),
    )
}

#[actix_web::test]
async fn an_upload_that_is_cut_off_leaves_nothing() {
    let fixture = MediaFixture::start().await;
    let file = [PNG, &[7; 300_000]].concat();
    let body = fixture.form().file("a.png", "image/png", &file).bytes();
    for sent in [body.len() / 2, body.len() - 1] {
        let mut stream = TcpStream::connect(fixture.app.address).await.expect("a connection");
        stream.write_all(head(&fixture, body.len()).as_bytes()).await.expect("sent");
        stream.write_all(&body[..sent]).await.expect("sent");
        eventually("the file arrives", || async { fixture.arriving().len() == 1 }).await;
        drop(stream);
        eventually("what has arrived is gone", || async { fixture.arriving().is_empty() }).await;
    }
    assert_eq!(fixture.sweep_later().await, 0, "a file was left to sweep");
    assert_eq!((fixture.media_messages().await.len(), fixture.stored().len()), (0, 0));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_client_that_half_closes_gets_400_or_no_answer() {
    let fixture = MediaFixture::start().await;
    let body = fixture.form().file("a.png", "image/png", PNG).bytes();
    let mut stream = TcpStream::connect(fixture.app.address).await.expect("a connection");
    stream.write_all(head(&fixture, body.len()).as_bytes()).await.expect("sent");
    stream.write_all(&body[..body.len() - 10]).await.expect("sent");
    stream.shutdown().await.expect("half closed");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    eventually("what has arrived is gone", || async { fixture.arriving().is_empty() }).await;
    assert_eq!((fixture.media_messages().await.len(), fixture.stored().len()), (0, 0));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_failure_between_a_file_and_its_message_leaves_a_file_that_is_swept() {
    let fixture = MediaFixture::start().await;
    let kept = fixture.sent("kept.png", "image/png", PNG).await;
    fail::cfg("media_published", "1*panic(a defect)").expect("failpoint");
    let refused = fixture.api().send_form(fixture.form().file("lost.png", "image/png", PNG)).await;
    refused.error(503, "ERR_API_UNAVAILABLE");
    assert_eq!((fixture.media_messages().await.len(), fixture.stored().len()), (1, 2), "no file is left over");

    let app = &fixture.app.service.app;
    // A file is not swept while its request may still be on its way.
    let soon = Utc::now() + TimeDelta::minutes(50);
    assert_eq!(app.media.sweep(&app.engine, soon).await, Ok(0));
    assert_eq!(fixture.stored().len(), 2);
    assert_eq!(fixture.sweep_later().await, 1);
    assert_eq!(fixture.sweep_later().await, 0, "an hour was swept again");
    assert_eq!(fixture.stored().len(), 1);
    assert_eq!(fixture.read(&url(&kept), &[]).await.bytes, PNG, "a file with a message was swept");
    fixture.app.stop().await;
}

#[actix_web::test]
async fn the_files_of_a_refused_message_are_deleted() {
    let fixture = MediaFixture::start().await;
    let solved = json!({"wrapupTypeId": fixture.app.company.solved});
    fixture.api().post(&format!("/tickets/{}/close", fixture.ticket), solved).await.data(200);
    let form = fixture.form().file("a.png", "image/png", PNG).file("b.pdf", "application/pdf", PDF);
    fixture.api().send_form(form).await.error(409, "ERR_API_TICKET_CLOSED");
    eventually("the files are gone", || async { fixture.stored().is_empty() }).await;
    let no_ticket = Form::default().text("type", "media").text("ticketId", 999_999_999).file("a.png", "image/png", PNG);
    fixture.api().send_form(no_ticket).await.error(404, "ERR_API_NOT_FOUND");
    eventually("the file is gone", || async { fixture.stored().is_empty() && fixture.arriving().is_empty() }).await;
    fixture.app.stop().await;
}

#[actix_web::test]
async fn the_files_of_a_deleted_contact_are_deleted() {
    let fixture = MediaFixture::start().await;
    let api = fixture.api();
    let message = fixture.sent("a.png", "image/png", PNG).await;
    let (_, other_contact) = fixture.app.session("another").await;
    let other_form = Form::default()
        .text("type", "media")
        .text("channelId", fixture.app.company.webchat)
        .text("contactId", other_contact)
        .file("b.png", "image/png", PNG);
    api.send_form(other_form).await.data(202);
    assert_eq!(fixture.stored().len(), 2);

    let solved = json!({"wrapupTypeId": fixture.app.company.solved});
    api.post(&format!("/tickets/{}/close", fixture.ticket), solved).await.data(200);
    api.post(&format!("/webchat/sessions/{}/end", fixture.session), json!({})).await.data(200);
    let deleted = api.delete(&format!("/contacts/{}", fixture.contact)).await;
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    eventually("the file of the contact is gone", || async { fixture.stored().len() == 1 }).await;
    assert_eq!(fixture.read(&url(&message), &[]).await.status, 404);
    eventually("its row is deleted", || async {
        let rows: i64 =
            sqlx::query_scalar("select count(*) from media").fetch_one(&fixture.app.db).await.expect("count");
        rows == 1
    })
    .await;
    let left = fixture.media_messages().await;
    assert_eq!(left.len(), 1);
    assert_eq!(fixture.read(&url(&left[0]), &[]).await.bytes, PNG, "the file of another contact was deleted");
    fixture.app.stop().await;
}
