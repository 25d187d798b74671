//! Broken connections, a killed service and a database outage: a visitor misses no message and sees none twice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use hotline::service::Service;
use hotline_actors::clock;
use hotline_postgres::{Cluster, ClusterOptions};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::door::{answer, only_ticket};
use crate::process::{Process, keys_of, with_database};
use crate::support::database::pool;
use crate::support::service::TestOptions;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, PATIENCE, Reply, TestApp, eventually, keys, patience};
use crate::visitor::{Browser, Session, embed, signed};

fn id(message: &Value) -> i64 {
    message["id"].as_i64().unwrap_or_else(|| panic!("no id: {message}"))
}

/// A visitor's tab, whose connection breaks again and again.
struct Tab {
    browser: Browser,
    session: Session,
    /// The ids of the shown messages, in order.
    shown: Vec<i64>,
}

impl Tab {
    fn last(&self) -> Option<i64> {
        self.shown.last().copied()
    }

    /// Reads some frames and disconnects.
    ///
    /// # Errors
    /// The status with which the socket was refused, or the code with which it was closed, if there is one.
    async fn read_some(&mut self, frames: usize) -> Result<(), Option<u16>> {
        let opened = self.browser.socket_with_room(&self.session.token).await;
        let mut socket = opened.map_err(|(status, _)| Some(status))?;
        let is_taken = socket.try_send(json!({"type": "after", "id": self.last()})).await;
        // The service closes a socket whose `after` it does not get in time; on a slow machine this is one more break.
        let is_late = socket.is_late();
        if !is_taken {
            return if is_late { Ok(()) } else { Err(None) };
        }
        for _ in 0..frames {
            let frame = match socket.next_or_end().await {
                Ok(frame) => frame,
                Err(_) if is_late => return Ok(()),
                Err(code) => return Err(code),
            };
            if frame["type"] == "message" {
                self.shown.push(id(&frame["message"]));
            }
        }
        Ok(())
    }

    /// Reads all messages that were not shown yet.
    async fn catch_up(&mut self) {
        let (_, rest) = self.browser.socket_after(&self.session, self.last()).await;
        self.shown.extend(rest.iter().map(id));
    }
}

#[actix_web::test]
async fn at_whatever_moment_a_connection_breaks_each_message_is_shown_once_and_in_order() {
    const MESSAGES: usize = 150;
    /// The close code of a client that reads too slowly. On a slow machine, more may be sent during a catch-up than a
    /// socket buffers; this close is one more break.
    const TOO_SLOW: u16 = 4413;
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    let (finish, finished) = watch::channel(false);
    let sending = async {
        for number in 0..MESSAGES {
            // Three at a time, from both sides: entries of one sync, and of several.
            let body = format!("v-{number}");
            let answers = join_all([answer(&app.api, ticket, "a"), answer(&app.api, ticket, "b")]);
            join(browser.say(&session, &body), answers).await;
        }
        finish.send_replace(true);
    };
    let reading = join_all((0..4).map(|_| async {
        let mut tab = Tab { browser: browser.clone(), session: session.clone(), shown: Vec::new() };
        let mut finished = finished.clone();
        loop {
            tokio::select! {
                read = tab.read_some(rand::random_range(1..12)) => {
                    assert!(matches!(read, Ok(()) | Err(Some(TOO_SLOW))), "the socket ended otherwise: {read:?}");
                }
                // Without new messages, `read_some` may wait for more frames than there are.
                _ = finished.wait_for(|is_finished| *is_finished) => break,
            }
        }
        tab.catch_up().await;
        tab.shown
    }));
    let ((), shown) = join(sending, reading).await;
    let sent: Vec<i64> = app.api.all(&format!("/tickets/{ticket}/messages")).await.iter().map(id).collect();
    assert_eq!(sent.len(), 1 + 3 * MESSAGES);
    for shown in shown {
        assert_eq!(shown, sent);
    }
    app.stop().await;
}

/// A browser and an API client of the company, once the service answers both.
async fn clients_once_ready(process: &Process, key: &str, company: &Company) -> (Browser, Api) {
    let (browser, api) = (Browser::at(process.address, key), Api::new(process.address, &company.key));
    eventually("the service answers", || async {
        Reply::of(browser.request(Method::GET, "/config")).await.status == 200
            && api.get("/channels").await.status == 200
    })
    .await;
    (browser, api)
}

#[actix_web::test]
async fn a_service_that_is_killed_loses_nothing_and_shows_nothing_twice() {
    const KILLS: usize = 5;
    const SESSIONS: usize = 6;
    let folder = prepared_folder();
    let options = [
        "--visitor-sessions-per-minute",
        "0",
        "--visitor-messages-per-minute",
        "0",
        "--visitor-requests-per-minute",
        "0",
    ];
    let serve =
        || Process::try_serve(folder.path(), &options).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    let mut process = serve();
    let (company, key) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let key = embed(db, &keys_of(folder.path()), company.id, company.webchat).await;
        (company, key)
    })
    .await;
    let (mut browser, mut api) = clients_once_ready(&process, &key, &company).await;
    let mut tabs = Vec::new();
    for number in 0..SESSIONS {
        let session = browser.open(&format!("v-{number}")).await;
        browser.say(&session, "hello").await;
        tabs.push(Tab { browser: browser.clone(), session, shown: Vec::new() });
    }
    let tickets: Vec<i64> = api.all("/tickets?status=open").await.iter().map(id).collect();
    assert_eq!(tickets.len(), SESSIONS);
    // The acknowledged messages of each session: none of them may be lost.
    let mut acknowledged: Vec<Vec<i64>> = vec![Vec::new(); SESSIONS];
    for round in 0..KILLS {
        let (stop, acknowledged_visitors) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (stop, acknowledged_visitors) = (&stop, &acknowledged_visitors);
        let conversations = tabs.iter_mut().zip(&mut acknowledged).enumerate().map(|(number, (tab, acknowledged))| {
            let ticket = tickets[number];
            let (browser, api, session) = (browser.clone(), api.clone(), tab.session.clone());
            async move {
                let talk = async {
                    for count in 0.. {
                        if stop.load(Ordering::Acquire) {
                            break;
                        }
                        let body = json!({"body": "v", "clientId": format!("{round}-{number}-{count}")});
                        let sent = browser.with(&session, Method::POST, "/messages").json(&body);
                        let Some(reply) = Reply::try_of(sent).await.filter(|reply| reply.status == 201) else { break };
                        acknowledged.push(id(reply.data(201)));
                        acknowledged_visitors.fetch_add(usize::from(count == 0), Ordering::AcqRel);
                        let answer = json!({"ticketId": ticket, "type": "text", "body": "a"});
                        let _ = api.try_post("/messages", &answer).await;
                    }
                };
                let read = async { while tab.read_some(rand::random_range(1..20)).await.is_ok() {} };
                join(talk, read).await;
            }
        });
        let kill = async {
            // At a random moment; in the first round only after each visitor has an acknowledged message.
            if round == 0 {
                let has_all = || async { acknowledged_visitors.load(Ordering::Acquire) == SESSIONS };
                eventually("each visitor has an acknowledged message", has_all).await;
            }
            tokio::time::sleep(Duration::from_millis(rand::random_range(50..600))).await;
            process.kill();
            stop.store(true, Ordering::Release);
        };
        join(kill, join_all(conversations)).await;
        process = serve();
        (browser, api) = clients_once_ready(&process, &key, &company).await;
        for tab in &mut tabs {
            tab.browser = browser.clone();
            // The token is still valid: the session is in the tables.
            tab.catch_up().await;
        }
    }
    for (tab, acknowledged) in tabs.iter().zip(&acknowledged) {
        let mut all: Vec<i64> = Vec::new();
        for page in 1.. {
            let listed = browser.get(&tab.session, &format!("/messages?page={page}")).await;
            let ids: Vec<i64> = listed.data(200).as_array().expect("list").iter().map(id).collect();
            if ids.is_empty() {
                break;
            }
            all.extend(ids);
        }
        assert_eq!(tab.shown, all, "each once, and in order");
        assert!(acknowledged.iter().all(|id| all.binary_search(id).is_ok()), "an acknowledged message was lost");
        assert!(!acknowledged.is_empty(), "no message was acknowledged");
    }
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

#[actix_web::test]
async fn during_a_database_outage_open_sockets_continue_and_new_ones_wait_for_earlier_messages() {
    let folder = prepared_folder();
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let key = embed(&db, &keys(), company.id, company.webchat).await;
    let service =
        Service::start(TestOptions::default().settings(&folder, cluster.connect_options())).await.expect("the service");
    // The clock stands still, so that the service never closes a socket because its `after` is late.
    clock::stop();
    let (browser, api) = (Browser::at(service.address, &key), Api::new(service.address, &company.key));
    let session = browser.open("v").await;
    let hello = browser.say(&session, "hello").await;
    let ticket = only_ticket(&api).await;
    let mut socket = browser.socket(&session).await;

    cluster.stop().await.expect("PostgreSQL stops");
    eventually("the API reports the outage", || async { api.get("/contacts").await.status == 503 }).await;
    answer(&api, ticket, "during").await;
    let during = socket.message().await;
    assert_eq!(during["body"], "during");
    let sent = browser.say(&session, "also during").await;
    assert_eq!(socket.message().await["id"], sent["id"]);
    // A socket that is opened now does not get new messages before old ones.
    let mut late = browser.raw_socket(&session).await;
    late.send(json!({"type": "after", "id": hello["id"]})).await;
    answer(&api, ticket, "last").await;
    let last = socket.message().await;
    let (next, cluster) = join(late.next(), async {
        Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back")
    })
    .await;
    assert_eq!(next["message"]["id"], during["id"], "{next}");
    // The last message is read from the tables with the others, or pushed after them if it reaches the tables later.
    let caught_up = async {
        let (mut shown, mut is_caught_up) = (Vec::new(), false);
        while shown.len() < 2 || !is_caught_up {
            let frame = late.next().await;
            is_caught_up |= frame["type"] == "caughtUp";
            if frame["type"] == "message" {
                shown.push(frame["message"]["id"].clone());
            }
        }
        shown
    };
    let shown = timeout(patience(PATIENCE), caught_up).await.expect("the other messages arrive");
    assert_eq!(shown, [sent["id"].clone(), last["id"].clone()]);
    service.stop().await.expect("the service stops");
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}

/// A visitor who has a session elsewhere signs in, and the service aborts at this failpoint. Checks that the sign-in
/// can be repeated after a restart.
async fn check_sign_in_after_crash(point: &str) {
    let folder = prepared_folder();
    let mut process = Process::serve_with_failpoint(folder.path(), &[], point);
    let (company, key) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let key = embed(db, &keys_of(folder.path()), company.id, company.webchat).await;
        (company, key)
    })
    .await;
    let (browser, _) = clients_once_ready(&process, &key, &company).await;
    let home = browser.open("v-1").await;
    browser.say(&home, "from home").await;
    let unknown = browser.open_unknown(json!({})).await;
    browser.say(&unknown, "where is my order?").await;
    let identity = signed("v-1", json!({}));
    let body = json!({"identity": identity});
    let interrupted = browser.with(&unknown, Method::POST, "/identify").json(&body);
    let reply = Reply::try_of(interrupted).await;
    assert!(reply.is_none_or(|reply| reply.status.is_server_error()), "{point}: the sign-in was acknowledged");
    process.wait();

    let process = Process::serve(folder.path());
    let (browser, api) = clients_once_ready(&process, &key, &company).await;
    for _ in 0..2 {
        let verified = Session::of(browser.identify(&unknown, &identity).await.data(200));
        assert_eq!(verified.id, home.id, "{point}");
        assert_eq!(browser.get(&verified, "/session").await.data(200)["verified"], true);
    }
    // The note that the visitor has signed in is written once.
    assert_eq!(api.all("/messages?type=note").await.len(), 1, "{point}");
    assert_eq!(api.all("/contacts").await.len(), 2, "{point}");
    assert_eq!(browser.get(&unknown, "/session").await.data(200)["status"], "ended");
    assert_eq!(browser.get(&home, "/session").await.data(200)["status"], "active");
    process.kill();
}

#[actix_web::test]
async fn a_sign_in_that_a_crash_interrupts_has_the_same_result_when_it_is_repeated() {
    for point in ["visitor_admitted", "visitor_left"] {
        check_sign_in_after_crash(point).await;
    }
}
