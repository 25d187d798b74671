//! A form with an idempotency key takes effect once, however large it is and however often it is sent.

use reqwest::Method;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{MediaFixture, PNG};
use crate::support::form::Form;
use crate::support::{Reply, eventually};

/// A file that is larger than any JSON body may be.
fn large_file() -> Vec<u8> {
    [PNG, &vec![0x5a; 3 * 1024 * 1024]].concat()
}

#[actix_web::test]
async fn a_keyed_form_larger_than_any_json_body_takes_effect_once() {
    let fixture = MediaFixture::start().await;
    let form = fixture.form().file("a.png", "image/png", &large_file());
    let first = Reply::of(fixture.api().form(form.clone(), Some("k"))).await;
    let job = first.data(202)["jobId"].clone();
    let again = Reply::of(fixture.api().form(form.clone(), Some("k"))).await;
    assert!(again.is_replay());
    assert_eq!(again.data(202)["jobId"], job);
    // One byte more is another body.
    let other = Reply::of(fixture.api().form(form.clone().text("body", "x"), Some("k"))).await;
    other.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    // The same form several times at once.
    let twins = (0..4).map(|_| Reply::of(fixture.api().form(form.clone(), Some("twins"))));
    let jobs: Vec<_> =
        futures_util::future::join_all(twins).await.iter().map(|twin| twin.data(202)["jobId"].clone()).collect();
    assert!(jobs.iter().all(|twin| *twin == jobs[0] && *twin != job), "{jobs:?}");
    assert_eq!((fixture.media_messages().await.len(), fixture.stored().len(), fixture.arriving().len()), (2, 2, 0));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_refusal_under_a_key_is_replayed() {
    let fixture = MediaFixture::start().await;
    let form = fixture.form().file("a.png", "image/png", b"");
    Reply::of(fixture.api().form(form.clone(), Some("k"))).await.error(400, "ERR_API_MEDIA_EMPTY");
    let again = Reply::of(fixture.api().form(form, Some("k"))).await;
    again.error(400, "ERR_API_MEDIA_EMPTY");
    assert!(again.is_replay());
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_retry_after_a_cut_connection_sends_once() {
    let fixture = MediaFixture::start().await;
    let form = fixture.form().file("a.png", "image/png", &large_file());
    let body = form.clone().bytes();
    let head = |key: &str| {
        format!(
            "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: {}\r\n\
             Idempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n",
            fixture.app.company.key,
            Form::content_type(),
            body.len(),
        )
    };
    // Cut before its end: nothing has happened.
    let mut stream = TcpStream::connect(fixture.app.address).await.expect("a connection");
    stream.write_all(head("cut").as_bytes()).await.expect("sent");
    stream.write_all(&body[..body.len() / 2]).await.expect("sent");
    drop(stream);
    // Cut after it: the request is completed, and its answer is lost.
    let mut stream = TcpStream::connect(fixture.app.address).await.expect("a connection");
    stream.write_all(head("whole").as_bytes()).await.expect("sent");
    stream.write_all(&body).await.expect("sent");
    eventually("the complete request has its message", || async { fixture.media_messages().await.len() == 1 }).await;
    drop(stream);

    let whole = Reply::of(fixture.api().form(form.clone(), Some("whole"))).await;
    whole.data(202);
    assert!(whole.is_replay());
    let cut = Reply::of(fixture.api().form(form, Some("cut"))).await;
    cut.data(202);
    assert!(!cut.is_replay());
    assert_eq!((fixture.media_messages().await.len(), fixture.stored().len()), (2, 2));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_keyed_form_that_is_too_large_sends_nothing() {
    let fixture = {
        let mut options = crate::support::service::TestOptions::default();
        options.media.bytes_max = 1000;
        MediaFixture::start_with(options).await
    };
    // Ten files of a thousand bytes, a mebibyte of texts and 64 heads of 64 KiB are the most a form may have.
    let mut body = fixture.form().bytes();
    body.resize(6 * 1024 * 1024, b'x');
    let request = fixture.api().request(Method::POST, "/messages").header("content-type", Form::content_type());
    let refused = Reply::try_of(request.header("idempotency-key", "k").body(body)).await;
    // A client that still writes may not receive the answer; if it does, it is one of these.
    if let Some(refused) = refused {
        assert!([400, 413].contains(&refused.status.as_u16()), "{}", refused.body);
    }
    assert_eq!((fixture.media_messages().await.len(), fixture.arriving().len()), (0, 0));
    fixture.app.stop().await;
}
