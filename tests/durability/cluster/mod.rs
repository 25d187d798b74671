//! Two processes on one database: slots move under load, and one stops. `tests/cluster` tests their failures.

mod lost_commits;
mod many;
mod reach;
mod seals;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::ConnectOptions;
use tempfile::TempDir;

use crate::process::{Process, command, data_folder, keys_of, serving};
use crate::support::{Api, Company, Reply, TestDatabase, eventually, free_address, patience};

/// So many that their slots are in both halves of all slots.
const COMPANIES: usize = 8;

/// What all processes share.
struct TestCluster {
    database: TestDatabase,
    keys: TempDir,
    media: TempDir,
}

/// One process.
struct Node {
    folder: TempDir,
    name: &'static str,
}

impl TestCluster {
    async fn new() -> Self {
        let keys = data_folder();
        keys_of(keys.path());
        Self { database: TestDatabase::migrated().await, keys, media: data_folder() }
    }

    fn options(&self, node: &Node) -> Vec<String> {
        let url = self.database.options.to_url_lossy().to_string();
        let path = |path: &std::path::Path| path.to_str().expect("a path").to_owned();
        [
            ("--database-url", url),
            ("--durability", "database".to_owned()),
            ("--cluster-listen", free_address().to_string()),
            ("--cluster-node", node.name.to_owned()),
            ("--media-shared", path(self.media.path())),
            ("--key-file", path(&self.keys.path().join("secrets.key"))),
            ("--rate-per-minute", "0".to_owned()),
            ("--cluster-notice", "0".to_owned()),
        ]
        .into_iter()
        .flat_map(|(option, value)| [option.to_owned(), value])
        .collect()
    }

    fn serve(&self, node: &Node) -> Process {
        let mut command = serving(node.folder.path());
        command.args(self.options(node)).env("RUST_LOG", "info");
        Process::start(node.folder.path(), &mut command)
            .unwrap_or_else(|log| panic!("{} does not start: {log}", node.name))
    }

    /// How many slots the process of this name serves.
    async fn slots_of(&self, node: &Node) -> i64 {
        let count = "select count(*) from slots join lives using (life) where node = $1 and next is null";
        sqlx::query_scalar(count).bind(node.name).fetch_one(&self.database.db).await.expect("slots")
    }

    /// Waits until a process serves a number of slots in this range.
    async fn wait_until_owned(&self, node: &Node, slots: std::ops::RangeInclusive<i64>) {
        let what = format!("{} serves {slots:?} slots", node.name);
        eventually(&what, || async { slots.contains(&self.slots_of(node).await) }).await;
    }

    async fn count(&self, statement: &'static str) -> i64 {
        sqlx::query_scalar(statement).fetch_one(&self.database.db).await.expect("a number")
    }
}

impl Node {
    fn new(name: &'static str) -> Self {
        Self { folder: data_folder(), name }
    }
}

/// A company's conversation, over whichever process answers.
struct Talk {
    company: Company,
    ticket: Value,
    /// The ids of the acknowledged messages, in order.
    sent: Vec<i64>,
    /// When the last message was acknowledged.
    answered_at: Instant,
    /// The longest time between two answers since this was reset.
    longest_pause: Duration,
}

/// Where the processes are now.
type Addresses = Arc<parking_lot::Mutex<Vec<std::net::SocketAddr>>>;

fn apis(addresses: &Addresses, company: &Company) -> Vec<Api> {
    addresses.lock().iter().map(|address| Api::new(*address, &company.key)).collect()
}

/// How long a request is repeated until a process answers it.
const REPEATED_FOR_MAX: Duration = Duration::from_secs(60);

/// Repeats a request at all processes until one answers for the company. The request has an idempotency key if it
/// changes something.
async fn ask(addresses: &Addresses, company: &Company, request: impl Fn(&Api) -> reqwest::RequestBuilder) -> Reply {
    let deadline = Instant::now() + patience(REPEATED_FOR_MAX);
    loop {
        for api in apis(addresses, company) {
            let attempt = request(&api).timeout(Duration::from_millis(1500));
            match Reply::try_of(attempt).await {
                Some(reply) if [503, 421, 401].contains(&reply.status.as_u16()) => {}
                Some(reply) => return reply,
                None => {}
            }
        }
        assert!(Instant::now() < deadline, "no process answers for company {}", company.id);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Talk {
    async fn begin(cluster: &TestCluster, addresses: &Addresses, number: usize) -> Self {
        let company = Company::create(&cluster.database.db, &format!("Company {number}")).await;
        let contact = json!({"name": "Ana", "number": format!("551190000000{number}")}).to_string();
        let made =
            ask(addresses, &company, |api| api.keyed(Method::POST, "/contacts", "contact", contact.clone())).await;
        let body = json!({"contactId": made.data(201)["id"], "channelId": company.phone}).to_string();
        let opened = ask(addresses, &company, |api| api.keyed(Method::POST, "/tickets", "ticket", body.clone())).await;
        let ticket = opened.data(201)["id"].clone();
        Self { company, ticket, sent: Vec::new(), answered_at: Instant::now(), longest_pause: Duration::ZERO }
    }

    /// Sends a message, and reads it.
    async fn send(&mut self, addresses: &Addresses) {
        let (number, company) = (self.sent.len(), &self.company);
        let body = json!({"ticketId": self.ticket, "type": "text", "body": number.to_string()}).to_string();
        let key = format!("message-{number}");
        let sent = ask(addresses, company, |api| api.keyed(Method::POST, "/messages", &key, body.clone())).await;
        self.longest_pause = self.longest_pause.max(self.answered_at.elapsed());
        self.answered_at = Instant::now();
        let job = format!("/messages/jobs/{}", sent.data(202)["jobId"].as_str().expect("a job"));
        let known = ask(addresses, company, |api| api.request(Method::GET, &job)).await;
        let id = known.data(200)["messageId"].as_i64().expect("an id");
        self.sent.push(id);
        let path = format!("/messages/{id}");
        let read = ask(addresses, company, |api| api.request(Method::GET, &path)).await;
        assert_eq!(read.data(200)["body"], number.to_string(), "the read does not have the acknowledged message");
    }

    /// Fails unless every acknowledged message is there, once and in order.
    async fn check(&self, addresses: &Addresses) {
        let mut found = Vec::new();
        for page in 1.. {
            let path = format!("/tickets/{}/messages?page={page}", self.ticket);
            let reply = ask(addresses, &self.company, |api| api.request(Method::GET, &path)).await;
            let rows = reply.data(200).as_array().expect("a list").clone();
            found.extend(rows.iter().map(|row| (row["id"].as_i64().expect("an id"), row["body"].clone())));
            if reply.body["meta"]["hasMore"] == false {
                break;
            }
        }
        found.sort_by_key(|(id, _)| *id);
        let ids: Vec<i64> = found.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, self.sent, "of company {}", self.company.id);
        assert!(found.iter().zip(0_usize..).all(|((_, body), number)| body == &number.to_string()), "{found:?}");
    }
}

/// Lets all conversations send while `work` runs; returns its result, and the longest pause of any conversation.
async fn send_during<T>(talks: &mut [Talk], addresses: &Addresses, work: impl Future<Output = T>) -> (T, Duration) {
    let is_over = AtomicBool::new(false);
    let all = talks.iter_mut().map(|talk| async {
        (talk.answered_at, talk.longest_pause) = (Instant::now(), Duration::ZERO);
        while !is_over.load(Ordering::Acquire) {
            talk.send(addresses).await;
        }
        talk.longest_pause
    });
    let worked = async {
        let done = work.await;
        is_over.store(true, Ordering::Release);
        done
    };
    let (done, longest) = futures_util::future::join(worked, join_all(all)).await;
    (done, longest.into_iter().max().unwrap_or_default())
}

/// Waits until this many more messages are stored.
async fn wait_for_messages(cluster: &TestCluster, more: i64) {
    let count = "select count(*) from messages";
    let before = cluster.count(count).await;
    eventually("more messages are stored", || async { cluster.count(count).await >= before + more }).await;
}

/// The effects of a move and of a stop on callers and processes.
struct Effects {
    /// The longest pauses.
    pauses: [Duration; 2],
    /// Processes that were ended by another one.
    ended: i64,
}

/// Lets processes join and stop under load, and checks that what was answered is there.
async fn move_and_stop_under_load() -> Effects {
    let (cluster, one, two) = (TestCluster::new().await, Node::new("one"), Node::new("two"));
    let addresses = Addresses::default();
    let set_addresses = |processes: &[&Process]| {
        *addresses.lock() = processes.iter().map(|process| process.address).collect();
    };

    // The first process, which is alone, serves all slots.
    let first = cluster.serve(&one);
    set_addresses(&[&first]);
    cluster.wait_until_owned(&one, 1024..=1024).await;
    let mut talks = Vec::new();
    for number in 0..COMPANIES {
        talks.push(Talk::begin(&cluster, &addresses, number).await);
    }

    // The second process joins, and gets half of the slots under load.
    let second = cluster.serve(&two);
    set_addresses(&[&first, &second]);
    let ((), pause) = send_during(&mut talks, &addresses, async {
        cluster.wait_until_owned(&two, 460..=564).await;
        wait_for_messages(&cluster, 50).await;
    })
    .await;
    println!("moved to the second: longest pause {pause:?}");
    let moved = pause;
    let spread = "select count(distinct s.life) from companies c join slots s on s.slot = c.slot";
    assert_eq!(cluster.count(spread).await, 2, "both have companies");

    // The first process stops: it gives all slots away, and no other process has to end it.
    let mut first = first;
    let ((), pause) = send_during(&mut talks, &addresses, async {
        wait_for_messages(&cluster, 20).await;
        first.terminate();
        cluster.wait_until_owned(&two, 1024..=1024).await;
        wait_for_messages(&cluster, 50).await;
    })
    .await;
    println!("stopped: longest pause {pause:?}");
    assert!(first.wait().success(), "the stop was not clean: {}", first.log());
    let ended = cluster.count("select count(*) from seals").await;
    set_addresses(&[&second]);
    for talk in &talks {
        talk.check(&addresses).await;
        assert!(talk.sent.len() > 5, "few messages were sent");
    }

    // What the command line shows.
    let url = cluster.database.options.to_url_lossy().to_string();
    let status = command(two.folder.path(), &["cluster", "status", "--json", "--database-url", &url]).output();
    let status = status.expect("hotline runs").stdout;
    let status: Value = serde_json::from_slice(&status).expect("JSON");
    assert_eq!(status["processes"].as_array().map(Vec::len), Some(1), "{status}");
    assert_eq!((&status["processes"][0]["node"], &status["processes"][0]["slots"]), (&json!("two"), &json!(1024)));
    let check =
        command(two.folder.path(), &["cluster", "check", "--database-url", &url]).output().expect("hotline runs");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    let none = command(two.folder.path(), &["cluster", "drain", "nobody", "--database-url", &url]).output();
    assert!(!none.expect("hotline runs").status.success());

    // A process outside the cluster is refused while another serves.
    let outsider = Process::try_serve(one.folder.path(), &["--database-url", &url]);
    assert!(
        outsider.is_err_and(|log| log.contains("another Hotline")),
        "a process outside the cluster starts beside one in it"
    );
    drop(second);
    cluster.database.drop().await;
    Effects { pauses: [moved, pause], ended }
}

#[actix_web::test]
async fn what_was_answered_survives_a_move_and_a_stop_under_load() {
    move_and_stop_under_load().await;
}

#[actix_web::test]
async fn a_move_and_a_stop_under_load_are_short_and_no_process_is_ended_measured() {
    let Effects { pauses, ended } = move_and_stop_under_load().await;
    assert!(pauses.iter().all(|pause| *pause < Duration::from_secs(5)), "{pauses:?}");
    assert_eq!(ended, 0, "a process was ended by another one");
}

#[test]
fn a_process_of_a_cluster_says_all_that_it_needs() {
    let folder = data_folder();
    let refused = |options: &[&str]| {
        let output = serving(folder.path()).args(options).output().expect("hotline runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let all = refused(&["--cluster-listen", "0.0.0.0:7400"]);
    for option in ["--database-url", "--durability database", "--media-shared", "--cluster-address"] {
        assert!(all.contains(option), "{option}: {all}");
    }
    assert!(refused(&["--cluster-node", "one"]).contains("--cluster-listen"));
    assert!(refused(&["--cluster-listen", ":7400", "--cluster-address", "one"]).contains("host with a port"));
}
