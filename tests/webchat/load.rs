//! Many visitors at once. The small form runs with the other tests; `make load-sockets` runs the large ones and prints
//! their figures, which `benches/README.md` keeps.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// The longest median time of a push, from the moment the agent's request is sent.
const MEDIAN_MAX: Duration = Duration::from_millis(20);

/// How many sessions, and later sockets, are opened at once.
const OPENED_AT_ONCE: usize = 32;

/// The highest 99th percentile of push times in [`many_sessions_talk`].
const P99_MAX: Duration = Duration::from_millis(20);

/// Sockets that `make load-sockets` opens, unless `SOCKETS` says otherwise.
const SOCKETS: usize = 10_000;

/// The size of a load, and how fast each side talks.
struct Load {
    sessions: usize,
    visitor: Pace,
    agent: Pace,
}

/// How one side of each session talks.
#[derive(Clone, Copy)]
struct Pace {
    messages: usize,
    /// Between two messages.
    pause: Duration,
}

/// How many messages of agents were pushed, and how fast.
struct Pushes {
    count: usize,
    total_time: Duration,
    median: Duration,
    p99: Duration,
}

async fn open_sessions(browser: &Browser, sessions: usize) -> Vec<Session> {
    stream::iter(0..sessions)
        .map(|number| async move { browser.open(&format!("load-{number}")).await })
        .buffer_unordered(OPENED_AT_ONCE)
        .collect()
        .await
}

async fn open_sockets(browser: &Browser, sessions: Vec<Session>) -> Vec<(Session, Socket)> {
    stream::iter(sessions)
        .map(|session| async move {
            let socket = browser.socket(&session).await;
            (session, socket)
        })
        .buffer_unordered(OPENED_AT_ONCE)
        .collect()
        .await
}

/// Lets every session talk. Fails unless every message is pushed once and in order.
async fn talk(browser: &Browser, api: &Api, load: &Load) -> Pushes {
    let sessions = open_sockets(browser, open_sessions(browser, load.sessions).await).await;
    let begun = Instant::now();
    let took = join_all(sessions.into_iter().enumerate().map(|(number, (session, socket))| {
        // No two sessions begin at the same moment.
        let delay = load.agent.pause.mul_f64(number as f64 / load.sessions as f64);
        talk_in_session(browser, api, load, session, socket, delay)
    }))
    .await;
    let mut took: Vec<Duration> = took.into_iter().flatten().collect();
    took.sort_unstable();
    let quantile = |fraction: f64| took[((took.len() - 1) as f64 * fraction) as usize];
    Pushes { count: took.len(), total_time: begun.elapsed(), median: quantile(0.5), p99: quantile(0.99) }
}

/// Lets one session talk, after a delay. Returns how long each push of an agent's message took.
async fn talk_in_session(
    browser: &Browser,
    api: &Api,
    load: &Load,
    session: Session,
    mut socket: Socket,
    delay: Duration,
) -> Vec<Duration> {
    tokio::time::sleep(delay).await;
    // The first message opens the ticket.
    browser.say(&session, "v-0").await;
    let first = socket.message().await;
    let message = api.get_while_busy(&format!("/messages/{}", first["id"])).await;
    let ticket = message.data(200)["ticketId"].clone();
    let sent: RefCell<HashMap<String, Instant>> = RefCell::default();
    let visitor = async {
        for count in 1..load.visitor.messages {
            tokio::time::sleep(load.visitor.pause).await;
            browser.say(&session, &format!("v-{count}")).await;
        }
    };
    let agent = async {
        for count in 0..load.agent.messages {
            tokio::time::sleep(load.agent.pause).await;
            let body = format!("a-{count}");
            let request = json!({"ticketId": ticket, "type": "text", "body": body});
            sent.borrow_mut().insert(body, Instant::now());
            api.post_while_busy("/messages", &request).await.data(202);
        }
    };
    let pushes = async {
        let mut shown = vec![first.clone()];
        let mut took = Vec::new();
        while shown.len() < load.visitor.messages + load.agent.messages {
            let message = socket.message().await;
            let body = message["body"].as_str().unwrap_or_default();
            took.extend(sent.borrow().get(body).map(Instant::elapsed));
            shown.push(message);
        }
        let ids: Vec<_> = shown.iter().map(|message| message["id"].as_i64()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "out of order, or twice: {ids:?}");
        for (side, Pace { messages, .. }) in [("v", load.visitor), ("a", load.agent)] {
            let theirs = |message: &&Value| message["body"].as_str().is_some_and(|body| body.starts_with(side));
            let bodies: Vec<&Value> = shown.iter().filter(theirs).map(|message| &message["body"]).collect();
            let expected: Vec<Value> = (0..messages).map(|count| json!(format!("{side}-{count}"))).collect();
            assert!(bodies.iter().copied().eq(&expected), "{bodies:?}");
        }
        took
    };
    join3(visitor, agent, pushes).await.2
}

/// Fifty sessions talk at this pace.
async fn talk_in_fifty_sessions(pause: Duration) -> Pushes {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let pace = Pace { messages: 10, pause };
    let load = Load { sessions: 50, visitor: pace, agent: pace };
    let pushes = talk(&browser, &app.api, &load).await;
    assert_eq!(pushes.count, load.sessions * pace.messages);
    app.stop().await;
    pushes
}

#[actix_web::test]
async fn fifty_sessions_talk_and_everything_is_pushed_once_and_in_order() {
    talk_in_fifty_sessions(Duration::from_millis(50)).await;
}

#[actix_web::test]
async fn fifty_sessions_talk_and_everything_is_pushed_soon_measured() {
    let pushes = talk_in_fifty_sessions(Duration::from_millis(1500)).await;
    assert!(pushes.median < MEDIAN_MAX, "median {:?}", pushes.median);
}

/// Options without limits by address or on the company's requests.
const UNLIMITED: &[&str] = &[
    "--visitor-sessions-per-minute=0",
    "--visitor-messages-per-minute=0",
    "--visitor-requests-per-minute=0",
    "--visitor-sockets-per-address=0",
    "--max-connections-per-address=0",
    "--rate-per-minute=0",
];

/// A service in a process of its own, without limits by address, and as many files as the system allows.
async fn serve(folder: &tempfile::TempDir) -> (Process, Browser, Api) {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("limit");
    let process =
        Process::try_serve(folder.path(), UNLIMITED).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    let (company, key) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let key = embed(db, &keys_of(folder.path()), company.id, company.webchat).await;
        (company, key)
    })
    .await;
    let (browser, api) = (Browser::at(process.address, &key), Api::new(process.address, &company.key));
    eventually("the webchat and the API are served", || async {
        Reply::of(browser.request(Method::GET, "/config")).await.status == 200
            && api.get("/channels").await.status == 200
    })
    .await;
    (process, browser, api)
}

/// The number in an environment variable, or `default`.
fn variable(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn stop(mut process: Process) {
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

#[actix_web::test]
#[ignore = "a minute of load: make load-sockets"]
async fn many_sessions_talk() {
    let folder = prepared_folder();
    let (process, browser, api) = serve(&folder).await;
    let agent = Pace { messages: 20, pause: Duration::from_millis(variable("PAUSE_MS", 1000) as u64) };
    let visitor = Pace { messages: 4, pause: 6 * agent.pause };
    let load = Load { sessions: 2000, visitor, agent };
    let Pushes { count, total_time, median, p99 } = talk(&browser, &api, &load).await;
    let rate = count as f64 / total_time.as_secs_f64();
    println!("{count} agents' messages pushed, {rate:.0} a second: median {median:.1?}, p99 {p99:.1?}");
    assert_eq!(count, load.sessions * agent.messages);
    assert!(p99 < P99_MAX, "p99 {p99:?}");
    stop(process);
}

/// Opens sessions with a socket each, and returns once each has answered a ping.
async fn open_idle(browser: &Browser, sessions: usize) -> Vec<(Session, Socket)> {
    let mut sockets = open_sockets(browser, open_sessions(browser, sessions).await).await;
    join_all(sockets.iter_mut().map(|(_, socket)| async {
        socket.answers_pings = false;
        socket.next_of("ping").await;
        socket.answers_pings = true;
        socket.send(json!({"type": "pong"})).await;
    }))
    .await;
    sockets
}

#[actix_web::test]
#[ignore = "ten thousand sockets: make load-sockets"]
async fn an_idle_visitor_takes_12_kib() {
    const FIRST_VISITORS: usize = 2_000;
    const KIB_MAX: f64 = 12.0;
    let many = variable("SOCKETS", SOCKETS);
    let folder = prepared_folder();
    let (process, browser, _) = serve(&folder).await;
    let mut sockets = open_idle(&browser, FIRST_VISITORS).await;
    let before = process.resident_bytes();
    sockets.extend(open_idle(&browser, many - FIRST_VISITORS).await);
    let after = process.resident_bytes();
    let visitor_kib = after.saturating_sub(before) as f64 / (many - FIRST_VISITORS) as f64 / 1024.0;
    println!(
        "{FIRST_VISITORS} idle visitors: {} MiB, {many}: {} MiB, each {visitor_kib:.1} KiB",
        before >> 20,
        after >> 20
    );
    let (session, socket) = &mut sockets[many / 2];
    let sent = browser.say(session, "still there").await;
    assert_eq!(socket.message().await["id"], sent["id"]);
    assert!(visitor_kib <= KIB_MAX, "{visitor_kib:.1} KiB");
    drop(sockets);
    stop(process);
}

/// Connects again as the widget does, and returns once the socket is caught up.
async fn come_back(browser: &Browser, session: Session) -> (Session, Socket) {
    let mut back_off = Duration::from_millis(500);
    loop {
        tokio::time::sleep(back_off.mul_f64(rand::random_range(0.5..1.0))).await;
        back_off = (2 * back_off).min(Duration::from_secs(30));
        let Ok(mut socket) = browser.try_socket(&session.token).await else { continue };
        if !socket.try_send(json!({"type": "after", "id": null})).await {
            continue;
        }
        loop {
            match socket.next_or_end().await {
                Ok(frame) if frame["type"] == "caughtUp" => return (session, socket),
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
}

/// Runs `work`, and meanwhile sends one request after the other. The requests have a thread of their own: what is
/// measured is the service, not a caller that also has thousands of sockets. Returns the result of `work`, and the
/// times of the requests, sorted.
async fn requests_during<T>(address: SocketAddr, key: String, work: impl Future<Output = T>) -> (T, Vec<Duration>) {
    let is_done = Arc::new(AtomicBool::new(false));
    let done = is_done.clone();
    let requests = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let api = Api::new(address, &key);
            let mut took = Vec::new();
            while !done.load(Ordering::Relaxed) {
                for path in ["/channels", "/tickets?status=open&perPage=20"] {
                    let begun = Instant::now();
                    api.get(path).await.data(200);
                    took.push(begun.elapsed());
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            took
        })
    });
    let result = work.await;
    is_done.store(true, Ordering::Relaxed);
    let mut took = requests.join().expect("the requests");
    took.sort_unstable();
    (result, took)
}

#[actix_web::test]
#[ignore = "ten thousand sockets: make load-sockets"]
async fn all_visitors_are_back_within_30_s_of_a_restart() {
    const BACK_TIME_MAX: Duration = Duration::from_secs(30);
    const REQUEST_TIME_MAX: Duration = Duration::from_millis(100);
    let sockets = variable("SOCKETS", SOCKETS);
    let folder = prepared_folder();
    let (process, browser, api) = serve(&folder).await;
    let visitors = open_idle(&browser, sockets).await;
    let stopped_at = Instant::now();
    stop(process);
    let process =
        Process::try_serve(folder.path(), UNLIMITED).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    let browser = Browser::at(process.address, &browser.key);
    let restarted_at = Instant::now();
    let coming = visitors.into_iter().map(|(session, _)| come_back(&browser, session));
    let (visitors, took) = requests_during(process.address, api.key, join_all(coming)).await;
    let (restart, back) = (restarted_at - stopped_at, restarted_at.elapsed());
    let p99 = took[(took.len() - 1) * 99 / 100];
    println!(
        "{} visitors are back {back:.1?} after a restart of {restart:.1?}; {} requests meanwhile, p99 {p99:.1?}",
        visitors.len(),
        took.len(),
    );
    assert_eq!(visitors.len(), sockets);
    assert!(back < BACK_TIME_MAX, "{back:?}");
    assert!(p99 < REQUEST_TIME_MAX, "{p99:?}");
    drop(visitors);
    stop(process);
}
