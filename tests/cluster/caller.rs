//! A caller who goes from member to member, and repeats a request until there is an answer.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use tokio::sync::watch;

use crate::rig::Rig;
use crate::support::{Api, Company, Reply};

/// How long a caller waits for an answer: longer than an edge (the member that forwards the call to the owner) does.
const CALL_TIME_MAX: Duration = Duration::from_secs(8);

/// The pause before the next member is asked.
pub const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub struct Caller {
    api: Api,
    members: watch::Receiver<Vec<SocketAddr>>,
}

impl Rig {
    /// A caller of this company.
    pub fn caller(&self, company: &Company) -> Caller {
        let members = self.addresses.subscribe();
        let api = Api::new(members.borrow()[0], &company.key);
        Caller { api, members }
    }
}

impl Caller {
    /// The member that has this turn.
    pub fn address(&self, turn: usize) -> SocketAddr {
        let members = self.members.borrow();
        members[turn % members.len()]
    }

    /// The API of the member that has this turn.
    pub fn at(&self, turn: usize) -> Api {
        self.api.at(self.address(turn))
    }

    /// Makes a request to one member; `None` if it did not answer, or answered 503. Any other answer must be a success.
    pub async fn ask(&self, request: RequestBuilder) -> Option<Reply> {
        let reply = Reply::try_of(request.timeout(CALL_TIME_MAX)).await?;
        if reply.status == 503 {
            return None;
        }
        assert!(reply.status.is_success(), "{}: {}", reply.status, reply.body);
        Some(reply)
    }

    /// Repeats a message with an idempotency key until it is accepted. Returns how many attempts failed.
    pub async fn send(&self, turn: usize, key: &str, message: &Value) -> usize {
        for tries in 0.. {
            let request = self.at(turn + tries).keyed(Method::POST, "/messages", key, message.to_string());
            if let Some(reply) = self.ask(request).await {
                assert_eq!(reply.status, 202, "{}", reply.body);
                return tries;
            }
            tokio::time::sleep(PAUSE).await;
        }
        unreachable!("there is no last try")
    }
}
