//! A member is drained under load, and visitors with open sockets move with their company.

use std::time::Duration;

use futures_util::future::join_all;
use hotline_persistence::sealed::Keyring;
use reqwest::Method;
use serde_json::json;
use tokio::sync::watch;

use crate::load::is_long;
use crate::rig::Rig;
use crate::summary::Row;
use crate::support::{Api, Reply, eventually};
use crate::visitor::{Browser, Session, embed, signed};

const CHANGES_MIN: u64 = 15;

/// Visitors with an open socket each; for long as many as a large shop has.
const VISITORS: usize = 40;
const VISITORS_LONG: usize = 400;

/// What a visitor does whose socket is refused for now.
const PAUSE: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn visitors_miss_nothing_while_their_company_moves() {
    let row = Row::begin(
        9,
        "a member drained under load (`hotline cluster drain`), with visitors' sockets at all edges",
        "no request fails; sockets are closed with 1012 and come again; each visitor is shown every message once and in order",
    );
    let rig = Rig::start(3).await;
    let load = rig.load().await;
    let owner = rig.owner().await;
    // Of their own: the record of the load knows nothing of what they say.
    let company = &rig.another_of(owner).await;
    let keys = Keyring::at(rig.shared().join("secrets.key"));
    let key = embed(&rig.db, &keys, company.webchat).await;
    let browsers: Vec<Browser> = rig.members.iter().map(|member| Browser::at(member.address(), &key)).collect();
    let visitors = if is_long() { VISITORS_LONG } else { VISITORS };
    let mut sessions = Vec::new();
    for number in 0..visitors {
        let browser = &browsers[number % browsers.len()];
        let identity = signed(&format!("shopper-{number}"), json!({}));
        // The page is allowed once the news of it has come.
        eventually("the page is allowed everywhere", || async { browser.try_open_as(&identity).await.status == 201 })
            .await;
        let session = Session::of(browser.try_open_as(&identity).await.data(201));
        let said = browser.say(&session, "hello").await["id"].clone();
        let said = rig.members[owner].api(&company.key).get(&format!("/messages/{said}")).await;
        sessions.push((session, said.data(200)["ticketId"].clone()));
    }
    let (over, is_over) = watch::channel(None);
    let watching: Vec<_> = sessions
        .iter()
        .enumerate()
        .map(|(number, (session, _))| {
            let mut at = browsers.clone();
            at.rotate_left(number % browsers.len());
            tokio::spawn(watches(at, session.clone(), is_over.clone()))
        })
        .collect();
    let apis: Vec<Api> = rig.members.iter().map(|member| member.api(&company.key)).collect();
    let tickets: Vec<_> = sessions.iter().map(|(_, ticket)| ticket.clone()).collect();
    let (moved, is_moved) = watch::channel(false);
    let telling = tokio::spawn(async move {
        let mut rounds: usize = 0;
        while !*is_moved.borrow() {
            let all = tickets.iter().enumerate().map(async |(number, ticket)| {
                let body = json!({"ticketId": ticket, "type": "text", "body": rounds.to_string()}).to_string();
                let api = &apis[(rounds + number) % apis.len()];
                let key = format!("told-{number}-{rounds}");
                Reply::of(api.keyed(Method::POST, "/messages", &key, body)).await.data(202);
            });
            join_all(all).await;
            rounds += 1;
        }
        rounds
    });
    load.progress(CHANGES_MIN).await;
    rig.drain(owner).await;
    load.progress(CHANGES_MIN).await;
    moved.send_replace(true);
    let rounds = telling.await.expect("everybody is told");
    over.send_replace(Some(rounds));
    let closed: usize = join_all(watching).await.into_iter().map(|closed| closed.expect("a visitor")).sum();
    assert!(closed >= visitors, "{closed} sockets of {visitors} visitors were closed");
    load.check_none_failed();
    let (verdict, reads) = rig.end(load).await;
    let told = rounds * visitors;
    row.end(
        &verdict,
        &format!(
            "{told} messages to {visitors} visitors, each shown once; {closed} sockets closed with 1012; {reads} reads"
        ),
    );
}

/// Watches the conversation through a socket, and comes back whenever it is closed: to the next member each time. Ends when
/// it has shown as many answers as there were, and tells how often the socket was closed.
async fn watches(at: Vec<Browser>, session: Session, mut goal: watch::Receiver<Option<usize>>) -> usize {
    let (mut answers, mut last, mut closed) = (0, None, 0);
    for browser in at.iter().cycle() {
        let Ok(mut socket) = browser.try_socket(&session.token).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // A socket that is cut at once takes nothing.
        if !socket.try_send(json!({"type": "after", "id": last})).await {
            continue;
        }
        loop {
            if goal.borrow().is_some_and(|goal| answers >= goal) {
                assert_eq!(Some(answers), *goal.borrow(), "more than was said");
                return closed;
            }
            let frame = tokio::select! {
                frame = socket.next_or_end() => frame,
                _ = goal.changed() => continue,
            };
            let frame = match frame {
                Ok(frame) => frame,
                Err(code) => {
                    assert_eq!(code, Some(1012), "it is closed by the move");
                    closed += 1;
                    break;
                }
            };
            if frame["type"] != "message" {
                continue;
            }
            let id = frame["message"]["id"].as_i64();
            assert!(id > last, "shown twice, or out of order: {frame}");
            last = id;
            if frame["message"]["body"] != "hello" {
                assert_eq!(frame["message"]["body"], answers.to_string(), "one is missing");
                answers += 1;
            }
        }
    }
    closed
}
