//! Files of messages: many uploads in little memory, a process that dies during one, a bucket, and who may read them.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{Process, with_database};
use crate::support::bucket::Bucket;
use crate::support::form::Form;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, eventually};

const MIB: usize = 1024 * 1024;

/// Uploads at once, and how large each file is.
const UPLOADS: usize = 50;
const FILE_BYTES: usize = 16 * MIB;

/// How many bytes all uploads may add to the idle process.
const GROWTH_BYTES_MAX: u64 = 200 * MIB as u64;

/// A company on a running process, and the ticket of a visitor who waits.
async fn begin(process: &Process, folder: &Path) -> (Api, Company, i64) {
    let company = with_database(folder, async |db| Company::create(db, "Acme").await).await;
    let api = Api::new(process.address, &company.key);
    let ready = || async { api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2) };
    eventually("the company is seen", ready).await;
    let open = json!({"channelId": company.webchat, "visitor": {"externalId": "visitor"}});
    let session = api.post("/webchat/sessions", open).await.data(201)["id"].as_str().expect("id").to_owned();
    let sent = api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "send it"})).await;
    let ticket = sent.data(201)["ticketId"].as_i64().expect("ticket");
    (api, company, ticket)
}

/// This many bytes that begin like a picture: no test looks at more.
fn picture(bytes: usize) -> Vec<u8> {
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
    picture.resize(bytes, 0x5a);
    picture
}

fn files_in(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.map(|path| if path.is_dir() { files_in(&path) } else { 1 }).sum()
}

#[actix_web::test]
async fn fifty_uploads_of_sixteen_mebibytes_at_once_do_not_pass_through_memory_measured() {
    let folder = prepared_folder();
    let process = Process::serve(folder.path());
    let (api, _, ticket) = begin(&process, folder.path()).await;
    let form = Form::default().text("type", "media").text("ticketId", ticket);
    // One upload of each kind before: memory that is allocated only once is not measured.
    let small = form.clone().file("a.png", "image/png", &picture(MIB));
    api.send_form(small.clone()).await.data(202);
    Reply::of(api.form(small, Some("first"))).await.data(202);

    let body = Arc::new(form.file("a.png", "image/png", &picture(FILE_BYTES)).bytes());
    for keyed in [false, true] {
        let idle = process.resident_bytes();
        process.forget_peak();
        let upload = async |number: usize| {
            let request = api.request(Method::POST, "/messages").header("content-type", Form::content_type());
            let request = if keyed { request.header("idempotency-key", format!("k{number}")) } else { request };
            // Read piece by piece from one buffer, so that all fifty are under way at once.
            let (body, chunk) = (body.clone(), 64 * 1024);
            let chunks = (0..body.len().div_ceil(chunk)).map(move |index| {
                let end = body.len().min((index + 1) * chunk);
                Ok::<_, std::io::Error>(bytes::Bytes::copy_from_slice(&body[index * chunk..end]))
            });
            let body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
            Reply::of(request.body(body)).await.data(202).clone()
        };
        let sent: Vec<Value> = join_all((0..UPLOADS).map(upload)).await;
        assert_eq!(sent.len(), UPLOADS);
        let growth = process.peak_bytes().saturating_sub(idle);
        println!(
            "{UPLOADS} uploads of {} MiB, keyed: {keyed}: {} MiB above {} MiB",
            FILE_BYTES / MIB,
            growth / MIB as u64,
            idle / MIB as u64
        );
        assert!(growth < GROWTH_BYTES_MAX, "{} MiB above idle", growth / MIB as u64);
    }
    let stored = files_in(&folder.path().join("media"));
    assert_eq!(stored, 2 + 2 * UPLOADS, "every file is there once");
}

#[actix_web::test]
async fn a_process_that_dies_between_a_file_and_its_message_sends_neither_and_a_retry_sends_once() {
    let folder = prepared_folder();
    let process = Process::serve(folder.path());
    let (api, company, ticket) = begin(&process, folder.path()).await;
    drop(api);
    process.kill();

    let mut process = Process::serve_with_failpoint(folder.path(), &[], "media_published");
    let api = Api::new(process.address, &company.key);
    let form = Form::default().text("type", "media").text("ticketId", ticket).file("a.png", "image/png", &picture(MIB));
    assert!(Reply::try_of(api.form(form.clone(), Some("k"))).await.is_none(), "the process is gone");
    assert!(!process.wait().success());
    let media = folder.path().join("media");
    // What a kill in the middle of an upload leaves behind.
    std::fs::write(media.join("incoming/arriving-x"), b"half").expect("a file");

    let process = Process::serve(folder.path());
    let api = Api::new(process.address, &company.key);
    assert_eq!(files_in(&media.join("incoming")), 0, "an incomplete upload is left");
    assert_eq!(api.all("/messages?type=media").await.len(), 0, "a file without a message");
    assert_eq!(files_in(&media), 1);
    let sent = Reply::of(api.form(form.clone(), Some("k"))).await;
    sent.data(202);
    assert!(!sent.is_replay());
    assert!(Reply::of(api.form(form, Some("k"))).await.is_replay());
    let messages = api.all("/messages?type=media").await;
    assert_eq!(messages.len(), 1);
    let url = messages[0]["media"]["url"].as_str().expect("an address");
    // Only the path: the next process listens at another address.
    let url = url[url.find("/media/").expect("the path of a file")..].to_owned();

    // The path is valid for the next process as well.
    process.kill();
    let process = Process::serve(folder.path());
    let api = Api::new(process.address, &company.key);
    let served = api.anonymous(Method::GET, &url).send().await.expect("an answer");
    assert_eq!(served.status(), 200);
    assert_eq!(served.bytes().await.expect("a file").len(), MIB);
}

#[actix_web::test]
async fn files_may_be_stored_in_a_bucket() {
    let (folder, bucket) = (prepared_folder(), Bucket::start().await);
    let options = ["--media-store", "s3://files/hotline"];
    let process = Process::serve_with(folder.path(), &options, &bucket.variables());
    let (api, company, ticket) = begin(&process, folder.path()).await;
    let form = Form::default().text("type", "media").text("ticketId", ticket);
    let (small, large) = (picture(1000), picture(12 * MIB));
    let sent = form.clone().file("small.png", "image/png", &small).file("large.png", "image/png", &large);
    api.send_form(sent).await.data(202);
    let sizes: Vec<usize> = bucket.objects().into_iter().map(|(_, size)| size).collect();
    assert_eq!(sizes.iter().sum::<usize>(), small.len() + large.len());
    assert_eq!(bucket.parts(), 3, "what is large goes in parts, what is small in one");
    let of_company = format!("/{}/", company.id);
    assert!(bucket.objects().iter().all(|(key, _)| key.starts_with("hotline/") && key.contains(&of_company)));
    assert_eq!(files_in(&folder.path().join("media")), 0, "nothing is left here");

    let messages = api.all("/messages?type=media").await;
    for (message, content) in messages.iter().zip([&small, &large]) {
        let url = message["media"]["url"].as_str().expect("an address");
        let whole = api.anonymous(Method::GET, url).send().await.expect("an answer");
        assert_eq!((whole.status().as_u16(), whole.bytes().await.expect("a file").as_ref()), (200, content.as_slice()));
        let part = api.anonymous(Method::GET, url).header("range", "bytes=1-3").send().await.expect("an answer");
        assert_eq!((part.status().as_u16(), part.bytes().await.expect("a part").as_ref()), (206, &b"PNG"[..]));
    }

    // While the bucket is away no file is sent, and everything else continues.
    bucket.set_unavailable(true);
    let refused = api.send_form(form.clone().file("a.png", "image/png", &small)).await;
    refused.error(503, "ERR_API_UNAVAILABLE");
    let url = messages[0]["media"]["url"].as_str().expect("an address");
    assert_eq!(Reply::of(api.anonymous(Method::GET, url)).await.status, 503);
    api.post("/messages", json!({"type": "text", "ticketId": ticket, "body": "words"})).await.data(202);
    bucket.set_unavailable(false);

    // A deleted contact's files leave the bucket as well.
    let contact = messages[0]["contactId"].clone();
    api.post(&format!("/tickets/{ticket}/close"), json!({"wrapupTypeId": company.solved})).await.data(200);
    // A contact with an active session cannot be deleted.
    with_database(folder.path(), async |db| {
        sqlx::query("update webchat_sessions set status = 'ended', ended_at = now()").execute(db).await.expect("ended");
    })
    .await;
    let deleted = api.delete(&format!("/contacts/{contact}")).await;
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    eventually("the bucket is empty", || async { bucket.objects().is_empty() }).await;
    bucket.stop().await;
}

/// Finds what other users of this machine may access below a folder. A folder that only its user may enter, like that
/// of the private PostgreSQL, protects all of its files.
fn open_to_others(folder: &Path, found: &mut Vec<String>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, metadata) = (entry.path(), entry.metadata().expect("metadata"));
        // The test's own log, and a socket, which its folder protects.
        if path.ends_with("service.log") || !(metadata.is_dir() || metadata.is_file()) {
            continue;
        }
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            found.push(format!("{} {mode:o}", path.display()));
        } else if metadata.is_dir() {
            continue; // No other user may enter.
        }
        if metadata.is_dir() {
            open_to_others(&path, found);
        }
    }
}

#[actix_web::test]
async fn nobody_else_reads_what_is_in_the_data_folder_also_where_an_earlier_release_left_it_open() {
    use std::os::unix::fs::PermissionsExt;
    let folder = prepared_folder();
    let process = Process::serve(folder.path());
    let (api, _, ticket) = begin(&process, folder.path()).await;
    let form = Form::default().text("type", "media").text("ticketId", ticket);
    api.send_form(form.file("a.png", "image/png", &picture(100))).await.data(202);
    let check = || {
        let mut found = Vec::new();
        open_to_others(folder.path(), &mut found);
        assert!(found.is_empty(), "{found:#?}");
    };
    check();
    process.kill();
    for (name, mode) in [("journal", 0o755), ("journal/id", 0o644), ("journal/lock", 0o644), ("media", 0o755)] {
        let path = folder.path().join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect(name);
    }
    let process = Process::serve(folder.path());
    check();
    let id = std::fs::metadata(folder.path().join("journal/id")).expect("the id").permissions();
    assert_eq!(id.mode() & 0o7777, 0o600);
    process.kill();
}
