//! Connections, the service and the database break, and nothing is missed or shown twice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use hotline::service::Service;
use hotline_persistence::tables::channels::ChannelRow;
use hotline_postgres::{Cluster, ClusterOptions};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::door::{answer, only_ticket};
use crate::process::{Process, keys_of, with_database};
use crate::support::service::TestOptions;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, PATIENCE, Reply, TestApp, eventually, keys, patience};
use crate::visitor::{Browser, Session, embed, signed};

fn id(message: &Value) -> i64 {
    message["id"].as_i64().unwrap_or_else(|| panic!("no id: {message}"))
}

/// A visitor whose connection breaks again and again.
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
    /// When the socket is refused or ends: the status, or the code of its end if there is one.
    async fn read_some(&mut self, frames: usize) -> Result<(), Option<u16>> {
        let opened = self.browser.socket_with_room(&self.session.token).await;
        let mut socket = opened.map_err(|(status, _)| Some(status))?;
        if !socket.try_send(json!({"type": "after", "id": self.last()})).await {
            return Err(None);
        }
        for _ in 0..frames {
            let frame = socket.next_or_end().await?;
            if frame["type"] == "message" {
                self.shown.push(id(&frame["message"]));
            }
        }
        Ok(())
    }

    /// Reads until it is caught up.
    async fn catch_up(&mut self) {
        let (_, rest) = self.browser.socket_after(&self.session, self.last()).await;
        self.shown.extend(rest.iter().map(id));
    }
}

#[actix_web::test]
async fn at_whatever_moment_a_connection_breaks_each_message_is_shown_once_and_in_order() {
    const MESSAGES: usize = 150;
    /// On a slow machine more may be sent during a catch-up than a socket buffers. Its close is one more break.
    const TOO_SLOW: u16 = 4413;
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    let (over, was_over) = watch::channel(false);
    let talking = async {
        for number in 0..MESSAGES {
            // Three at a time, from both sides: entries of one sync, and of several.
            let sent = async { browser.say(&session, &format!("v-{number}")).await };
            join_all([answer(&app.api, ticket, "a"), answer(&app.api, ticket, "b")]).await;
            sent.await;
        }
        over.send_replace(true);
    };
    let tabs = join_all((0..4).map(|_| async {
        let mut tab = Tab { browser: browser.clone(), session: session.clone(), shown: Vec::new() };
        let mut over = was_over.clone();
        loop {
            tokio::select! {
                read = tab.read_some(rand::random_range(1..12)) => {
                    assert!(matches!(read, Ok(()) | Err(Some(TOO_SLOW))), "the service is there: {read:?}");
                }
                // Fewer frames than it waits for may be left.
                _ = over.wait_for(|over| *over) => break,
            }
        }
        tab.catch_up().await;
        tab.shown
    }));
    let ((), shown) = join(talking, tabs).await;
    let sent: Vec<i64> = app.api.all(&format!("/tickets/{ticket}/messages")).await.iter().map(id).collect();
    assert_eq!(sent.len(), 1 + 3 * MESSAGES);
    for shown in shown {
        assert_eq!(shown, sent);
    }
    app.stop().await;
}

/// The company's webchat on a running service, once it is there.
async fn ready(process: &Process, key: &str, company: &Company) -> (Browser, Api) {
    let (browser, api) = (Browser::at(process.address, key), Api::new(process.address, &company.key));
    eventually("the door is there", || async {
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
        let key = embed(db, &keys_of(folder.path()), company.webchat).await;
        (company, key)
    })
    .await;
    let (mut browser, mut api) = ready(&process, &key, &company).await;
    let mut tabs = Vec::new();
    for number in 0..SESSIONS {
        let session = browser.open(&format!("v-{number}")).await;
        browser.say(&session, "hello").await;
        tabs.push(Tab { browser: browser.clone(), session, shown: Vec::new() });
    }
    let tickets: Vec<i64> = api.all("/tickets?status=open").await.iter().map(id).collect();
    assert_eq!(tickets.len(), SESSIONS);
    // The messages of each session that were answered: they must be shown whatever happens.
    let mut answered: Vec<Vec<i64>> = vec![Vec::new(); SESSIONS];
    for round in 0..KILLS {
        let (stop, answered_first) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (stop, answered_first) = (&stop, &answered_first);
        let going = tabs.iter_mut().zip(&mut answered).enumerate().map(|(number, (tab, answered))| {
            let ticket = tickets[number];
            let (browser, api, session) = (browser.clone(), api.clone(), tab.session.clone());
            async move {
                let talk = async {
                    for count in 0.. {
                        if stop.load(Ordering::Acquire) {
                            break;
                        }
                        let say = json!({"body": "v", "clientId": format!("{round}-{number}-{count}")});
                        let sent = browser.with(&session, Method::POST, "/messages").json(&say);
                        let Some(reply) = Reply::try_of(sent).await.filter(|reply| reply.status == 201) else { break };
                        answered.push(id(reply.data(201)));
                        answered_first.fetch_add(usize::from(count == 0), Ordering::AcqRel);
                        let answer = json!({"ticketId": ticket, "type": "text", "body": "a"});
                        let _ = api.try_post("/messages", &answer).await;
                    }
                };
                let read = async { while tab.read_some(rand::random_range(1..20)).await.is_ok() {} };
                join(talk, read).await;
            }
        });
        let killed = async {
            // At a random moment, after every visitor was answered once.
            if round == 0 {
                let all = || async { answered_first.load(Ordering::Acquire) == SESSIONS };
                eventually("everybody is answered", all).await;
            }
            tokio::time::sleep(Duration::from_millis(rand::random_range(50..600))).await;
            process.kill();
            stop.store(true, Ordering::Release);
        };
        join(killed, join_all(going)).await;
        process = serve();
        (browser, api) = ready(&process, &key, &company).await;
        for tab in &mut tabs {
            // The token is still valid: the session is in the tables.
            tab.browser = browser.clone();
            tab.catch_up().await;
        }
    }
    for (tab, answered) in tabs.iter().zip(&answered) {
        let listed = browser.get(&tab.session, "/messages?perPage=100").await;
        let mut all: Vec<i64> = listed.data(200).as_array().expect("list").iter().map(id).collect();
        for page in 2.. {
            let next = browser.get(&tab.session, &format!("/messages?page={page}")).await;
            let next: Vec<i64> = next.data(200).as_array().expect("list").iter().map(id).collect();
            if next.is_empty() {
                break;
            }
            all.extend(next);
        }
        assert_eq!(tab.shown, all, "each once, and in order");
        assert!(answered.iter().all(|id| all.binary_search(id).is_ok()), "something that was answered is gone");
        assert!(!answered.is_empty(), "hardly anything was said");
    }
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

#[actix_web::test]
async fn while_the_database_is_away_open_sockets_go_on_and_new_ones_wait_for_the_past() {
    let folder = prepared_folder();
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = hotline_persistence::pool::connect(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let key = embed(&db, &keys(), company.webchat).await;
    let service =
        Service::start(TestOptions::default().settings(&folder, cluster.connect_options())).await.expect("the service");
    let allowed = service.app.engine.directory().company(company.id).expect("the company");
    assert!(allowed.channels.get(&company.webchat).map(ChannelRow::settings).is_some());
    let (browser, api) = (Browser::at(service.address, &key), Api::new(service.address, &company.key));
    let session = browser.open("v").await;
    let hello = browser.say(&session, "hello").await;
    let ticket = only_ticket(&api).await;
    let mut socket = browser.socket(&session).await;

    cluster.stop().await.expect("PostgreSQL stops");
    eventually("the outage is felt", || async { api.get("/contacts").await.status == 503 }).await;
    answer(&api, ticket, "during").await;
    let during = socket.message().await;
    assert_eq!(during["body"], "during");
    let sent = browser.say(&session, "the same").await;
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
    // The last message is read with the others, or pushed after them: it may be flushed later.
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
    let shown = timeout(patience(PATIENCE), caught_up).await.expect("the rest comes");
    assert_eq!(shown, [sent["id"].clone(), last["id"].clone()]);
    service.stop().await.expect("the service stops");
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}

/// A visitor who has a session elsewhere signs in, and the service is killed at this failpoint.
async fn killed_while_signing_in(point: &str) {
    let folder = prepared_folder();
    let mut process = Process::serve_failing(folder.path(), &[], point);
    let (company, key) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let key = embed(db, &keys_of(folder.path()), company.webchat).await;
        (company, key)
    })
    .await;
    let (browser, _) = ready(&process, &key, &company).await;
    let home = browser.open("v-1").await;
    browser.say(&home, "from home").await;
    let unknown = browser.open_unknown(json!({})).await;
    browser.say(&unknown, "where is my order?").await;
    let identity = signed("v-1", json!({}));
    let body = json!({"identity": identity});
    let lost = browser.with(&unknown, Method::POST, "/identify").json(&body);
    assert!(Reply::try_of(lost).await.is_none_or(|reply| reply.status.is_server_error()), "{point}: it was answered");
    process.wait();

    let process = Process::serve(folder.path());
    let (browser, api) = ready(&process, &key, &company).await;
    for _ in 0..2 {
        let mine = Session::of(browser.identify(&unknown, &identity).await.data(200));
        assert_eq!(mine.id, home.id, "{point}");
        assert_eq!(browser.get(&mine, "/session").await.data(200)["verified"], true);
    }
    assert_eq!(api.all("/messages?type=note").await.len(), 1, "{point}");
    assert_eq!(api.all("/contacts").await.len(), 2, "{point}");
    assert_eq!(browser.get(&unknown, "/session").await.data(200)["status"], "ended");
    assert_eq!(browser.get(&home, "/session").await.data(200)["status"], "active");
    process.kill();
}

#[actix_web::test]
async fn who_signs_in_while_the_service_is_killed_comes_to_the_same_end() {
    for point in ["visitor_admitted", "visitor_left"] {
        killed_while_signing_in(point).await;
    }
}
