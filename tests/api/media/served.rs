//! Files are served only at valid URLs, and never in a way that lets a browser run them.

use chrono::{TimeDelta, Utc};
use hotline_persistence::tables::media::StoredMedia;
use reqwest::Method;

use super::{MediaFixture, PDF, PNG, url};
use crate::support::service::TestOptions;

#[actix_web::test]
async fn any_range_of_a_file_can_be_read() {
    let fixture = MediaFixture::start().await;
    let content: Vec<u8> = PNG.iter().copied().chain((0..200_000_u32).map(|byte| byte as u8)).collect();
    let size = content.len();
    let url = url(&fixture.sent("a.png", "image/png", &content).await);

    let whole = fixture.read(&url, &[]).await;
    assert_eq!((whole.status, whole.header("accept-ranges"), whole.bytes.len()), (200, "bytes", size));
    assert_eq!(whole.bytes, content);
    for (range, from, to) in [
        ("bytes=0-0".to_owned(), 0, 1),
        ("bytes=5-9".to_owned(), 5, 10),
        (format!("bytes={}-", size - 3), size - 3, size),
        ("bytes=-4".to_owned(), size - 4, size),
        (format!("bytes=-{}", 2 * size), 0, size),
        (format!("bytes=100-{}", 2 * size), 100, size),
    ] {
        let part = fixture.read(&url, &[("range", &range)]).await;
        assert_eq!(part.status, 206, "{range}");
        assert_eq!(part.header("content-range"), format!("bytes {from}-{}/{size}", to - 1), "{range}");
        assert_eq!(part.header("content-length"), (to - from).to_string(), "{range}");
        assert_eq!(part.bytes, content[from..to], "{range}");
    }
    for range in [format!("bytes={size}-"), "bytes=999999999999-".to_owned(), "bytes=-0".to_owned()] {
        let refused = fixture.read(&url, &[("range", &range)]).await;
        assert_eq!((refused.status, refused.code().as_str()), (416, "ERR_API_RANGE_NOT_SATISFIABLE"), "{range}");
        assert_eq!(refused.header("content-range"), format!("bytes */{size}"), "{range}");
    }
    // Anything but one valid range of bytes is ignored.
    for range in ["bytes=9-5", "bytes=0-1,4-5", "bytes=x", "lines=1-2", "bytes=999999999999999999999-"] {
        let whole = fixture.read(&url, &[("range", range)]).await;
        assert_eq!((whole.status, whole.bytes.len()), (200, size), "{range}");
    }
    // With `If-Range`, a part is sent only to a client that has the rest of the same file.
    let tag = whole.header("etag");
    assert_eq!(fixture.read(&url, &[("range", "bytes=0-0"), ("if-range", tag)]).await.status, 206);
    assert_eq!(fixture.read(&url, &[("range", "bytes=0-0"), ("if-range", "\"other\"")]).await.status, 200);
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_client_that_has_a_file_need_not_read_it_again() {
    let fixture = MediaFixture::start().await;
    let url = url(&fixture.sent("a.png", "image/png", PNG).await);
    let whole = fixture.read(&url, &[]).await;
    let cached = whole.header("cache-control");
    assert!(cached.starts_with("private, max-age=") && cached.ends_with(", immutable"), "{cached}");
    let tag = whole.header("etag");
    let not_modified = fixture.read(&url, &[("if-none-match", tag)]).await;
    assert_eq!((not_modified.status, not_modified.bytes.len(), not_modified.header("etag")), (304, 0, tag));
    assert_eq!(fixture.read(&url, &[("if-none-match", "\"other\"")]).await.status, 200);

    let head = fixture.ask(Method::HEAD, &url, &[]).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    assert_eq!(head.header("content-length"), PNG.len().to_string());
    let refused = fixture.ask(Method::POST, &url, &[]).await;
    assert_eq!((refused.status, refused.header("allow")), (405, "GET, HEAD"));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn a_url_is_valid_for_one_file_and_expires() {
    let fixture = MediaFixture::start().await;
    let message = fixture.sent("a.png", "image/png", PNG).await;
    let shown = url(&message);
    let site = format!("http://{}", fixture.app.address);
    let valid = shown.strip_prefix(&site).expect("the address of the service").to_owned();
    assert!(valid.starts_with("/media/"), "{valid}");
    assert_eq!(fixture.read(&valid, &[]).await.status, 200);
    let (unsigned, signature) = valid.split_once("signature=").expect("a signature");
    let company = format!("/media/{}/", fixture.app.company.id);
    let reversed: String = signature.chars().rev().collect();
    for forged in [
        format!("{unsigned}signature={reversed}"),
        format!("{unsigned}signature="),
        format!("{unsigned}signature=zz{}", &signature[2..]),
        unsigned.trim_end_matches('&').to_owned(),
        valid.split('?').next().expect("a path").to_owned(),
        valid.replace("type=image%2Fpng", "type=text%2Fhtml"),
        valid.replace("name=a.png", "name=b.png"),
        valid.replace("expires=1", "expires=2"),
        valid.replace("expires=", "expires=x"),
        valid.replace(&company, &format!("/media/{}/", fixture.app.company.id.0 + 1)),
        valid.replace(&company, "/media/x/"),
        valid.replacen("/media/", "/media//", 1),
    ] {
        assert_ne!(forged, valid);
        let refused = fixture.read(&forged, &[]).await;
        assert_eq!((refused.status, refused.code().as_str()), (404, "ERR_API_NOT_FOUND"), "{forged}");
    }

    // A URL of the same file, created two days ago.
    let row: serde_json::Value = sqlx::query_scalar("select media from messages where id = $1")
        .bind(message["id"].as_i64())
        .fetch_one(&fixture.app.db)
        .await
        .expect("a row");
    let stored = StoredMedia::of(&row).expect("a file");
    let links = fixture.app.service.app.media.links();
    let old = links.url(fixture.app.company.id, &stored, Utc::now() - TimeDelta::hours(48));
    let expired = fixture.read(&old, &[]).await;
    assert_eq!((expired.status, expired.code().as_str()), (403, "ERR_API_LINK_EXPIRED"));
    fixture.app.stop().await;
}

#[actix_web::test]
async fn another_company_cannot_read_a_file() {
    let fixture = MediaFixture::start().await;
    let message = fixture.sent("a.png", "image/png", PNG).await;
    let (other, api) = fixture.app.another_company().await;
    api.get(&format!("/messages/{}", message["id"])).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(api.all("/messages?type=media").await.len(), 0);
    // Even at a URL that is signed for the other company, the file does not exist.
    let row: serde_json::Value = sqlx::query_scalar("select media from messages where id = $1")
        .bind(message["id"].as_i64())
        .fetch_one(&fixture.app.db)
        .await
        .expect("a row");
    let stored = StoredMedia::of(&row).expect("a file");
    let links = fixture.app.service.app.media.links();
    let of_other = fixture.read(&links.url(other.id, &stored, Utc::now()), &[]).await;
    assert_eq!((of_other.status, of_other.code().as_str()), (404, "ERR_API_NOT_FOUND"));
    // A company that is not active serves no files.
    sqlx::query("update companies set active = false where id = $1")
        .bind(fixture.app.company.id)
        .execute(&fixture.app.db)
        .await
        .expect("an update");
    let valid = url(&message);
    crate::support::eventually("it is not served", || async { fixture.read(&valid, &[]).await.status == 404 }).await;
    fixture.app.stop().await;
}

#[actix_web::test]
async fn nothing_that_a_browser_could_run_is_shown_inline() {
    let fixture = MediaFixture::start().await;
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>".as_slice();
    for (file_name, mime_type, content, disposition) in [
        ("a.png", "image/png", PNG, "inline"),
        ("a.pdf", "application/pdf", PDF, "inline"),
        ("a.svg", "image/svg+xml", svg, "attachment"),
        ("film.svg", "video/x+xml", svg, "attachment"),
        ("sound.svg", "audio/x+xml", svg, "attachment"),
        ("a.html", "text/html", b"<html><script>alert(1)</script></html>", "attachment"),
        ("a.xhtml", "application/xhtml+xml", b"<?xml version=\"1.0\"?><html/>", "attachment"),
        ("a.js", "text/javascript", b"alert(1)", "attachment"),
        ("a.txt", "text/plain", b"words", "attachment"),
    ] {
        let message = fixture.sent(file_name, mime_type, content).await;
        let served = fixture.read(&url(&message), &[]).await;
        assert_eq!((served.status, served.header("content-type")), (200, mime_type));
        assert_eq!(served.header("x-content-type-options"), "nosniff", "{file_name}");
        assert_eq!(served.header("content-disposition"), format!("{disposition}; filename=\"{file_name}\""));
        let policy = served.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("script-src"), "{file_name}: {policy}");
        assert_eq!(policy.contains("sandbox"), mime_type != "application/pdf", "{file_name}: {policy}");
        assert_eq!(served.bytes, content);
    }
    fixture.app.stop().await;
}

#[actix_web::test]
async fn urls_begin_with_the_public_url() {
    let mut options = TestOptions::default();
    options.media.public_url = Some("https://support.example".to_owned());
    let fixture = MediaFixture::start_with(options).await;
    let url = url(&fixture.sent("a.png", "image/png", PNG).await);
    let path = url.strip_prefix("https://support.example").expect("the public URL");
    assert_eq!(fixture.read(path, &[]).await.bytes, PNG);
    fixture.app.stop().await;
}
