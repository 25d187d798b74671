//! Visitors of a company with open sockets, who get messages all the time and reconnect whenever they are cut off.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use hotline_persistence::sealed::Keyring;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::caller::{Caller, PAUSE};
use crate::rig::Rig;
use crate::support::eventually;
use crate::visitor::{Browser, Session, Socket, embed, signed};

/// A socket that was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedSocket {
    /// The member it went through.
    pub at: SocketAddr,
    /// The code of the close; `None` if there was none.
    pub code: Option<u16>,
}

/// The visitors of a company without other load: the record of the load does not have their messages.
pub struct Visitors {
    count: usize,
    closed: Arc<Mutex<Vec<ClosedSocket>>>,
    watching: Vec<JoinHandle<()>>,
    /// Returns how many rounds of messages were sent, and how many attempts failed.
    sending: JoinHandle<(usize, usize)>,
    must_end: watch::Sender<bool>,
    /// How many rounds of messages were sent, once that is known.
    goal: watch::Sender<Option<usize>>,
}

impl Visitors {
    /// Opens sockets at all members, for this many visitors of a company that this member serves.
    pub async fn begin(rig: &Rig, owner: usize, count: usize) -> Self {
        let company = rig.another_company_of(owner).await;
        let keys = Keyring::at(rig.shared().join("secrets.key"));
        let key = embed(&rig.db, &keys, company.id, company.webchat).await;
        let caller = rig.caller(&company);
        let browser = Browser::at(caller.address(0), &key);
        let mut sessions = Vec::new();
        for number in 0..count {
            let browser = browser.through(caller.address(number));
            let identity = signed(&format!("shopper-{number}"), json!({}));
            // A member allows the page once it has read the change.
            eventually("the page is allowed everywhere", || async {
                browser.try_open_as(&identity).await.status == 201
            })
            .await;
            let session = Session::of(browser.try_open_as(&identity).await.data(201));
            let sent = browser.say(&session, "hello").await["id"].clone();
            let sent = rig.members[owner].api(&company.key).get(&format!("/messages/{sent}")).await;
            sessions.push((session, sent.data(200)["ticketId"].clone()));
        }
        let (goal, goals) = watch::channel(None);
        let closed: Arc<Mutex<Vec<ClosedSocket>>> = Arc::default();
        let watching = sessions.iter().enumerate().map(|(number, (session, _))| {
            let follower = Follower { browser: browser.clone(), session: session.clone(), closed: closed.clone() };
            tokio::spawn(follower.follow(caller.clone(), number, goals.clone()))
        });
        let watching = watching.collect();
        let (must_end, is_over) = watch::channel(false);
        let tickets = sessions.into_iter().map(|(_, ticket)| ticket).collect();
        let sending = tokio::spawn(send_rounds(caller, tickets, is_over));
        Self { count, closed, watching, sending, must_end, goal }
    }

    /// The sockets that were closed so far.
    pub fn closed(&self) -> Vec<ClosedSocket> {
        self.closed.lock().clone()
    }

    /// Waits until this many sockets were closed.
    pub async fn wait_for_closed(&self, closed: usize) {
        eventually("sockets are closed", || async { self.closed().len() >= closed }).await;
    }

    /// Waits until each visitor was shown every message, once and in order. Returns how many messages there were, and
    /// how many attempts failed.
    pub async fn end(self) -> (usize, usize) {
        self.must_end.send_replace(true);
        let (rounds, failed_attempts) = self.sending.await.expect("the sender ends");
        self.goal.send_replace(Some(rounds));
        for watching in join_all(self.watching).await {
            watching.expect("a visitor");
        }
        (rounds * self.count, failed_attempts)
    }
}

/// A socket of a visitor who is idle, at the member that serves their company.
pub async fn idle_socket(rig: &Rig, owner: usize) -> Socket {
    let company = rig.another_company_of(owner).await;
    let keys = Keyring::at(rig.shared().join("secrets.key"));
    let key = embed(&rig.db, &keys, company.id, company.webchat).await;
    let browser = Browser::at(rig.members[owner].address(), &key);
    let identity = signed("idle", json!({}));
    let is_allowed = || async { browser.try_open_as(&identity).await.status == 201 };
    eventually("the page is allowed", is_allowed).await;
    let session = Session::of(browser.try_open_as(&identity).await.data(201));
    browser.socket(&session).await
}

impl Browser {
    /// The same browser, connected to another member.
    fn through(&self, address: SocketAddr) -> Self {
        let mut browser = self.clone();
        browser.address = address;
        browser
    }
}

/// Sends every visitor the number of the round, until it is over. Returns how many rounds there were, and how many
/// attempts failed.
async fn send_rounds(caller: Caller, tickets: Vec<Value>, is_over: watch::Receiver<bool>) -> (usize, usize) {
    let (mut rounds, mut failed_attempts) = (0, 0);
    while !*is_over.borrow() {
        let all = tickets.iter().enumerate().map(async |(number, ticket)| {
            let message = json!({"ticketId": ticket, "type": "text", "body": rounds.to_string()});
            caller.send(rounds + number, &format!("told-{number}-{rounds}"), &message).await
        });
        failed_attempts += join_all(all).await.into_iter().sum::<usize>();
        rounds += 1;
    }
    (rounds, failed_attempts)
}

/// A visitor who follows a conversation.
struct Follower {
    browser: Browser,
    session: Session,
    closed: Arc<Mutex<Vec<ClosedSocket>>>,
}

impl Follower {
    /// Follows the conversation through a socket, and reconnects to the next member whenever it is closed.
    /// Ends when as many answers were shown as were sent.
    async fn follow(self, caller: Caller, first: usize, mut goal: watch::Receiver<Option<usize>>) {
        let (mut answers, mut last) = (0, None);
        for turn in first.. {
            let at = caller.address(turn);
            let Ok(mut socket) = self.browser.through(at).try_socket(&self.session.token).await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            // A socket that is cut at once takes nothing.
            if !socket.try_send(json!({"type": "after", "id": last})).await {
                continue;
            }
            loop {
                if goal.borrow().is_some_and(|goal| answers >= goal) {
                    assert_eq!(Some(answers), *goal.borrow(), "more answers than were sent");
                    return;
                }
                let frame = tokio::select! {
                    frame = socket.next_or_end() => frame,
                    _ = goal.changed() => continue,
                };
                let frame = match frame {
                    Ok(frame) => frame,
                    Err(code) => {
                        self.closed.lock().push(ClosedSocket { at, code });
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
                    assert_eq!(frame["message"]["body"], answers.to_string(), "an answer is missing");
                    answers += 1;
                }
            }
        }
    }
}
