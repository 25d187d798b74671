//! A condition that an operator must know of is logged once when it begins, and once when it ends.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tokio::net::{TcpSocket, TcpStream};

use crate::process::{Process, SERVE, keys_of, postmaster, serving, signal_with_children, with_database};
use crate::support::database::url;
use crate::support::form::Form;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, TestDatabase, eventually, patience};

/// Maximum time from the beginning of an outage until it is logged.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);

/// The lines with this message, as fields.
pub fn lines(process: &Process, message: &str) -> Vec<Value> {
    let log = process.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["fields"]["message"] == message).map(|line| line["fields"].clone()).collect()
}

/// Waits for a line with this message, and fails if there is more than one.
async fn wait_for_line(process: &Process, message: &str) -> Value {
    eventually(message, || async { !lines(process, message).is_empty() }).await;
    let mut found = lines(process, message);
    assert_eq!(found.len(), 1, "{message}: {found:?}");
    found.remove(0)
}

/// The private PostgreSQL of a folder, stopped until this is dropped.
struct Frozen {
    postmaster: Pid,
}

impl Frozen {
    fn postgres(folder: &Path) -> Self {
        let postmaster = postmaster(folder).expect("a running PostgreSQL");
        signal_with_children(postmaster, Signal::SIGSTOP).expect("the postmaster");
        Self { postmaster }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // In a test that failed, PostgreSQL may have ended.
        let _ = signal_with_children(self.postmaster, Signal::SIGCONT);
    }
}

/// A company that the process knows, and its client.
async fn company(process: &Process, folder: &Path) -> (Company, Api) {
    let company = with_database(folder, async |db| Company::create(db, "Acme").await).await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    (company, api)
}

#[actix_web::test]
async fn a_frozen_database_is_reported_in_time_measured() {
    let folder = prepared_folder();
    let process = Process::serve(folder.path());
    let (company, api) = company(&process, folder.path()).await;
    let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hello"});
    api.post("/messages", send).await.data(202);
    let frozen = Frozen::postgres(folder.path());
    let since = Instant::now();
    wait_for_line(&process, "database does not respond").await;
    assert!(since.elapsed() < patience(NOTICED_WITHIN), "it took {:?}", since.elapsed());
    drop(frozen);
    process.kill();
}

#[actix_web::test]
async fn a_frozen_database_and_a_full_journal_are_each_reported_once_and_without_log_lines_of_sqlx() {
    let folder = prepared_folder();
    let limits = ["--journal-segment-size", "64KiB", "--journal-max-size", "1MiB"];
    let mut process = Process::try_serve(folder.path(), &limits).expect("it serves");
    let (company, api) = company(&process, folder.path()).await;
    let send =
        |body: &str| json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": body});
    api.post("/messages", send("hello")).await.data(202);

    let frozen = Frozen::postgres(folder.path());
    let since = Instant::now();
    let begun = wait_for_line(&process, "database does not respond").await;
    assert_eq!(begun["state"], "database");
    assert!(begun["reason"].as_str().is_some_and(|reason| reason.contains("no response within")), "{begun}");
    assert!(begun["subject"].as_str().is_some_and(|place| place.contains(".s.PGSQL.")), "{begun}");
    assert!(begun["action"].as_str().is_some_and(|action| action.contains("PostgreSQL")), "{begun}");

    let filler = "x".repeat(4000);
    let mut refused = 0;
    eventually("the journal is full", || async { api.post("/messages", send(&filler)).await.status == 503 }).await;
    let full = wait_for_line(&process, "journal accepts no changes; they are answered 503").await;
    assert!(full["reason"].as_str().is_some_and(|reason| reason.contains("full")), "{full}");
    for _ in 0..20 {
        refused += u64::from(api.post("/messages", send(&filler)).await.status == 503);
    }
    assert_eq!(refused, 20);

    drop(frozen);
    let responds = wait_for_line(&process, "database responds again").await;
    assert!(responds["lasted_s"].as_u64().is_some_and(|lasted| lasted <= since.elapsed().as_secs()), "{responds}");
    let accepts = wait_for_line(&process, "journal accepts changes again").await;
    assert!(accepts["count"].as_u64().is_some_and(|count| count > refused), "{accepts}");
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
    let log = process.log();
    assert!(!log.contains("\"target\":\"sqlx"), "the library logs its attempts: {log}");
    assert_eq!(lines(&process, "too few database connections; requests that wait for one are answered 503").len(), 0);
}

#[actix_web::test]
async fn too_few_connections_are_reported_and_do_not_look_like_an_outage() {
    let folder = crate::process::data_folder();
    keys_of(folder.path());
    let database = TestDatabase::create().await;
    let name = database.options.get_database().expect("a name").to_owned();
    let run = async |statement: String| {
        sqlx::query(AssertSqlSafe(statement)).execute(&database.db).await.expect("it is run");
    };
    run(format!("create role {name} login")).await;
    run(format!("alter database {name} owner to {name}")).await;
    let database_url = url(&database.options.clone().username(&name));
    let mut process = Process::try_serve(folder.path(), &["--database-url", &database_url]).expect("it serves");
    let company = Company::create(&database.db, "Acme").await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;

    run(format!("alter role {name} connection limit 1")).await;
    let has_failed = || async {
        let lists = ["/contacts", "/tickets", "/messages", "/tags"].iter().cycle().take(32);
        join_all(lists.map(|list| api.get(list))).await.iter().any(|reply| reply.status == 503)
    };
    eventually("there are too few connections", has_failed).await;
    let begun =
        wait_for_line(&process, "too few database connections; requests that wait for one are answered 503").await;
    assert_eq!(begun["state"], "database_connections");
    run(format!("alter role {name} connection limit -1")).await;
    wait_for_line(&process, "database connections are available again").await;
    assert_eq!(lines(&process, "database does not respond").len(), 0, "{}", process.log());
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
    run(format!("alter database {name} owner to current_user")).await;
    run(format!("reassign owned by {name} to current_user")).await;
    run(format!("drop owned by {name}")).await;
    run(format!("drop role {name}")).await;
    database.drop().await;
}

/// File descriptors that the process may have.
const DESCRIPTORS: u64 = 512;

/// Connections that are opened to the process: more than it accepts with so few descriptors.
const CONNECTIONS: usize = 400;

#[actix_web::test]
async fn reaching_the_file_limit_is_reported_with_a_remedy() {
    let folder = prepared_folder();
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {DESCRIPTORS}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_hotline")]);
    limited.args(SERVE).arg("--data-dir").arg(folder.path()).stdin(std::process::Stdio::null());
    let mut process = Process::start(folder.path(), &mut limited).expect("it serves");
    let idle = join_all((0..CONNECTIONS).map(|_| connect(process.address))).await;
    let begun = wait_for_line(&process, "connection limit is reached; new clients wait").await;
    assert!(begun["action"].as_str().is_some_and(|action| action.contains("ulimit -n")), "{begun}");
    assert!(begun["reason"].as_str().is_some_and(|reason| reason.contains("connections are open")), "{begun}");
    drop(idle);
    wait_for_line(&process, "connections are available again").await;
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

/// A connection without a request; `None` if the backlog is full.
async fn connect(address: SocketAddr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    tokio::time::timeout(Duration::from_secs(1), socket.connect(address)).await.ok()?.ok()
}

/// Sends a message with a file. Returns the address of the file.
async fn send_file(company: &Company, api: &Api) -> String {
    let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hello"});
    let job = api.post("/messages", send).await.data(202)["jobId"].as_str().expect("a job").to_owned();
    let ticket = api.get(&format!("/messages/jobs/{job}")).await.data(200)["ticketId"].as_i64().expect("a ticket");
    let form = Form::default().text("type", "media").text("ticketId", ticket);
    api.send_form(form.file("a.png", "image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01"))
        .await
        .data(202);
    let messages = api.all("/messages?type=media").await;
    messages[0]["media"]["url"].as_str().expect("an address").to_owned()
}

/// Moves the files of messages away.
fn move_files_away(media: &Path, elsewhere: &Path) {
    std::fs::rename(media, elsewhere).expect("the files are moved away");
    std::fs::create_dir_all(media.join("incoming")).expect("an empty folder");
}

#[actix_web::test]
async fn missing_message_files_are_reported_until_they_are_back() {
    let folder = prepared_folder();
    let mut process = Process::serve(folder.path());
    let (company, api) = company(&process, folder.path()).await;
    let address = send_file(&company, &api).await;
    let status = || async { api.anonymous(Method::GET, &address).send().await.expect("an answer").status().as_u16() };
    assert_eq!(status().await, 200);

    let (media, elsewhere) = (folder.path().join("media"), folder.path().join("elsewhere"));
    move_files_away(&media, &elsewhere);
    assert_eq!(status().await, 404);
    let begun = wait_for_line(&process, "message files are missing in their store").await;
    assert_eq!(begun["reason"], format!("a file of company {} is missing", company.id), "{begun}");
    std::fs::remove_dir_all(&media).expect("the empty folder is removed");
    std::fs::rename(&elsewhere, &media).expect("the files are back");
    wait_for_line(&process, "message files are available again").await;
    assert_eq!(status().await, 200);
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

#[actix_web::test]
async fn a_nearly_full_disk_is_reported_for_each_folder() {
    let folder = prepared_folder();
    let mut serving = serving(folder.path());
    // More than any disk has.
    let mut process =
        Process::start(folder.path(), serving.args(["--min-free-space", "1048576GiB"])).expect("it serves");
    eventually("both folders are reported", || async {
        lines(&process, "disk is nearly full; message files are refused").len() == 2
    })
    .await;
    for line in lines(&process, "disk is nearly full; message files are refused") {
        let subject = line["subject"].as_str().expect("a folder");
        assert!(subject.starts_with(folder.path().to_str().expect("a path")), "{line}");
        assert!(line["reason"].as_str().is_some_and(|reason| reason.contains("--min-free-space")), "{line}");
    }
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

#[actix_web::test]
async fn rejected_rows_of_an_earlier_run_are_reported_at_the_start() {
    let folder = prepared_folder();
    with_database(folder.path(), async |db| {
        let insert =
            "insert into rejected_changes (company_id, kind, change, reason) values (1, 'message', '{}', 'test')";
        sqlx::query(insert).execute(db).await.expect("a row");
    })
    .await;
    let mut process = Process::serve(folder.path());
    let begun =
        wait_for_line(&process, "database has rejected rows; acknowledged changes are missing in their tables").await;
    assert!(begun["action"].as_str().is_some_and(|action| action.contains("rejected_changes")), "{begun}");
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}
