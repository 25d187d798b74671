//! Many visitors at once. The small form runs with the other tests; `make load-sockets` runs the large ones and prints
//! their figures, which `benches/README.md` keeps.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::future::{join_all, join3};
use futures_util::{StreamExt, stream};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{Process, keys_of, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, TestApp, eventually};
use crate::visitor::{Browser, Session, Socket, embed};

/// What half of the pushes must not take longer than, from the moment the agent's request is sent.
const MEDIAN_MAX: Duration = Duration::from_millis(20);

/// Sessions opened at once, and sockets.
const OPENED_AT_ONCE: usize = 32;

/// How a load is made.
struct Load {
    sessions: usize,
    /// Of each side of each session.
    messages: usize,
    /// Between two messages of one side of one session.
    pace: Duration,
}

struct Pushes {
    count: usize,
    took: Duration,
    median: Duration,
    p99: Duration,
}

async fn open(browser: &Browser, sessions: usize) -> Vec<Session> {
    stream::iter(0..sessions)
        .map(|number| async move { browser.open(&format!("load-{number}")).await })
        .buffer_unordered(OPENED_AT_ONCE)
        .collect()
        .await
}

async fn connect(browser: &Browser, sessions: Vec<Session>) -> Vec<(Session, Socket)> {
    stream::iter(sessions)
        .map(|session| async move {
            let socket = browser.socket(&session).await;
            (session, socket)
        })
        .buffer_unordered(OPENED_AT_ONCE)
        .collect()
        .await
}

/// Everybody talks, and everything must be pushed once and in order.
async fn talk(browser: &Browser, api: &Api, load: &Load) -> Pushes {
    let sessions = connect(browser, open(browser, load.sessions).await).await;
    let begun = Instant::now();
    let took = join_all(sessions.into_iter().enumerate().map(|(number, (session, socket))| {
        // Nobody begins at the same moment.
        let begin = load.pace.mul_f64(number as f64 / load.sessions as f64);
        one_talks(browser, api, load, session, socket, begin)
    }))
    .await;
    let mut took: Vec<Duration> = took.into_iter().flatten().collect();
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    Pushes { count: took.len(), took: begun.elapsed(), median: at(0.5), p99: at(0.99) }
}

/// Answers how long each push of an agent's message took.
async fn one_talks(
    browser: &Browser,
    api: &Api,
    load: &Load,
    session: Session,
    mut socket: Socket,
    begin: Duration,
) -> Vec<Duration> {
    tokio::time::sleep(begin).await;
    // The first word opens the ticket.
    browser.say(&session, "v-0").await;
    let first = socket.message().await;
    let message = api.get(&format!("/messages/{}", first["id"])).await;
    let ticket = message.data(200)["ticketId"].clone();
    let sent: RefCell<HashMap<String, Instant>> = RefCell::default();
    let visitor = async {
        for count in 1..load.messages {
            tokio::time::sleep(load.pace).await;
            browser.say(&session, &format!("v-{count}")).await;
        }
    };
    let agent = async {
        for count in 0..load.messages {
            tokio::time::sleep(load.pace).await;
            let body = format!("a-{count}");
            let request = json!({"ticketId": ticket, "type": "text", "body": body});
            sent.borrow_mut().insert(body, Instant::now());
            api.post("/messages", request).await.data(202);
        }
    };
    let reads = async {
        let mut shown = vec![first.clone()];
        let mut took = Vec::new();
        while shown.len() < 2 * load.messages {
            let message = socket.message().await;
            let body = message["body"].as_str().unwrap_or_default();
            took.extend(sent.borrow().get(body).map(Instant::elapsed));
            shown.push(message);
        }
        let ids: Vec<_> = shown.iter().map(|message| message["id"].as_i64()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "out of order, or twice: {ids:?}");
        for side in ["v", "a"] {
            let said = |message: &&Value| message["body"].as_str().is_some_and(|body| body.starts_with(side));
            let bodies: Vec<&Value> = shown.iter().filter(said).map(|message| &message["body"]).collect();
            let expected: Vec<Value> = (0..load.messages).map(|count| json!(format!("{side}-{count}"))).collect();
            assert!(bodies.iter().copied().eq(&expected), "{bodies:?}");
        }
        took
    };
    join3(visitor, agent, reads).await.2
}

/// Fifty sessions talk at this pace.
async fn fifty(pace: Duration) -> Pushes {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let load = Load { sessions: 50, messages: 10, pace };
    let pushes = talk(&browser, &app.api, &load).await;
    assert_eq!(pushes.count, load.sessions * load.messages);
    app.stop().await;
    pushes
}

#[actix_web::test]
async fn fifty_sessions_talk_and_everything_is_pushed_once_and_in_order() {
    fifty(Duration::from_millis(50)).await;
}

#[actix_web::test]
async fn fifty_sessions_talk_and_everything_is_pushed_soon_measured() {
    let pushes = fifty(Duration::from_millis(1500)).await;
    assert!(pushes.median < MEDIAN_MAX, "median {:?}", pushes.median);
}

/// A service in a process of its own, without limits by address, and as many files as the system allows.
async fn serve(folder: &tempfile::TempDir) -> (Process, Browser, Api) {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("limit");
    let unlimited = [
        "--visitor-sessions-per-minute=0",
        "--visitor-messages-per-minute=0",
        "--visitor-requests-per-minute=0",
        "--visitor-sockets-per-address=0",
        "--max-connections-per-address=0",
        "--rate-per-minute=0",
    ];
    let process = Process::try_serve(folder.path(), &unlimited).unwrap_or_else(|log| panic!("no start: {log}"));
    let (company, key) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let key = embed(db, &keys_of(folder.path()), company.webchat).await;
        (company, key)
    })
    .await;
    let (browser, api) = (Browser::at(process.address, &key), Api::new(process.address, &company.key));
    eventually("the door is there", || async {
        Reply::of(browser.request(Method::GET, "/config")).await.status == 200
            && api.get("/channels").await.status == 200
    })
    .await;
    (process, browser, api)
}

fn stop(mut process: Process) {
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

#[actix_web::test]
#[ignore = "a minute of load: make load-sockets"]
async fn two_thousand_sessions_talk() {
    let folder = prepared_folder();
    let (process, browser, api) = serve(&folder).await;
    let pace = std::env::var("PACE_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(6000);
    let load = Load { sessions: 2000, messages: 10, pace: Duration::from_millis(pace) };
    let Pushes { count, took, median, p99 } = talk(&browser, &api, &load).await;
    println!("{count} agents' messages pushed in {took:.1?}, as many visitors': median {median:.1?}, p99 {p99:.1?}");
    assert_eq!(count, load.sessions * load.messages);
    assert!(median < MEDIAN_MAX, "median {median:?}");
    stop(process);
}

/// Memory in use by a process.
fn resident_mib(process: &Process) -> u64 {
    process.resident_bytes() / (1024 * 1024)
}

#[actix_web::test]
#[ignore = "ten thousand sockets: make load-sockets"]
async fn ten_thousand_idle_sockets_fit_in_400_mib() {
    const SOCKETS: usize = 10_000;
    const MIB_MAX: u64 = 400;
    let folder = prepared_folder();
    let (process, browser, _) = serve(&folder).await;
    let before = resident_mib(&process);
    let sessions = open(&browser, SOCKETS).await;
    let opened = resident_mib(&process);
    let mut sockets = connect(&browser, sessions).await;
    // Every one of them is asked whether it is there, and answers.
    join_all(sockets.iter_mut().map(|(_, socket)| async {
        socket.answers = false;
        socket.next_of("ping").await;
        socket.answers = true;
        socket.send(json!({"type": "pong"})).await;
    }))
    .await;
    let connected = resident_mib(&process);
    println!("{SOCKETS} idle sockets: {connected} MiB; with the sessions alone {opened}, at the start {before}");
    assert!(connected <= MIB_MAX, "{connected} MiB");
    let (session, socket) = &mut sockets[SOCKETS / 2];
    let said = browser.say(session, "still there").await;
    assert_eq!(socket.message().await["id"], said["id"]);
    drop(sockets);
    stop(process);
}
