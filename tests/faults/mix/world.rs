//! What the callers of a load know of the service and of each other, and how they make calls and read answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::PAUSE;
use crate::record::{Action, Call, Outcome, Person};
use crate::support::{Api, Company, Reply};

/// How many failures are kept: the first ones are the most useful.
const FAILED_MAX: usize = 20;

/// A conversation as its callers see it.
pub(super) struct Conversation {
    pub(super) person: Person,
    /// Its current ticket, as far as is known.
    pub(super) ticket: AtomicI64,
    /// Whether that ticket is closed, as far as is known.
    pub(super) closed: AtomicBool,
}

/// What all callers share.
pub(super) struct World {
    pub(super) company: Company,
    pub(super) conversations: Vec<Conversation>,
    /// Counts calls and answers.
    pub(super) clock: AtomicU64,
    /// The newest acknowledged message of each ticket: no read may show an older one.
    pub(super) newest: Mutex<HashMap<i64, i64>>,
    pub(super) contradictions: Mutex<Vec<String>>,
    pub(super) acknowledged: AtomicU64,
    pub(super) unavailable: AtomicU64,
    pub(super) unanswered: AtomicU64,
    /// Some of the calls and reads that were not answered, or were answered 503.
    pub(super) failed: Mutex<Vec<String>>,
    pub(super) reads: AtomicU64,
    pub(super) repeats: AtomicU64,
    pub(super) slowest_ms: AtomicU64,
}

impl World {
    pub(super) fn of(company: &Company, people: Vec<Person>) -> Self {
        let conversation = |person| Conversation { person, ticket: AtomicI64::new(0), closed: AtomicBool::new(false) };
        Self {
            company: company.clone(),
            conversations: people.into_iter().map(conversation).collect(),
            clock: AtomicU64::new(0),
            newest: Mutex::default(),
            contradictions: Mutex::default(),
            acknowledged: AtomicU64::new(0),
            unavailable: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            failed: Mutex::default(),
            reads: AtomicU64::new(0),
            repeats: AtomicU64::new(0),
            slowest_ms: AtomicU64::new(0),
        }
    }

    /// A random next change in a conversation, now and then an impossible one. `None`: the caller reads instead.
    pub(super) fn choose(&self, conversation: usize) -> Option<Action> {
        let Conversation { person, closed, .. } = &self.conversations[conversation];
        let is_visitor = person.session.is_some();
        let opening = if is_visitor { Action::Say } else { Action::Open };
        let is_closed = closed.load(Ordering::Acquire) != rand::random_ratio(1, 20);
        match rand::random_range(0..100) {
            0..40 if is_closed => Some(opening),
            40..85 if is_closed => Some(Action::Reopen),
            0..35 => Some(Action::Send),
            35..55 if is_visitor => Some(Action::Say),
            35..55 => Some(Action::Send),
            55..63 => Some(Action::Transfer),
            63..70 => Some(Action::Close),
            _ => None,
        }
    }

    pub(super) fn plan(&self, action: Action, conversation: usize, label: String, keyed: bool) -> Call {
        let ticket = self.conversations[conversation].ticket.load(Ordering::Acquire);
        let ticket = (!matches!(action, Action::Open | Action::Say)).then_some(ticket);
        Call { action, conversation, ticket, label, keyed, started: 0, ended: 0, outcome: Outcome::Unknown }
    }

    fn request(&self, api: &Api, call: &Call) -> RequestBuilder {
        let Company { phone, support, ana, ben, solved, .. } = &self.company;
        let person = &self.conversations[call.conversation].person;
        let ticket = call.ticket.unwrap_or_default();
        let (path, body) = match call.action {
            Action::Open => ("/tickets".to_owned(), json!({"channelId": phone, "contactId": person.contact})),
            Action::Send => ("/messages".to_owned(), json!({"ticketId": ticket, "type": "text", "body": call.label})),
            Action::Say => {
                let session = person.session.as_deref().unwrap_or_default();
                let message = json!({"body": call.label, "clientId": call.label});
                (format!("/webchat/sessions/{session}/messages"), message)
            }
            Action::Transfer => {
                // Chosen by the label, so that a repeated call has the same body.
                let user = if call.label.len().is_multiple_of(2) { ana } else { ben };
                (format!("/tickets/{ticket}/transfer"), json!({"queueId": support, "userId": user}))
            }
            Action::Close => {
                let outcome = json!({"wrapupTypeId": solved, "wrapupNote": call.label});
                (format!("/tickets/{ticket}/close"), outcome)
            }
            Action::Reopen => (format!("/tickets/{ticket}/reopen"), json!({})),
        };
        let request = api.request(Method::POST, &path).json(&body);
        if call.keyed { request.header("idempotency-key", &call.label) } else { request }
    }

    /// Makes the call once, and records its outcome.
    pub(super) async fn carry_out(&self, api: &Api, mut call: Call) -> Call {
        call.started = self.tick();
        self.send_call(api, &mut call).await;
        call
    }

    async fn send_call(&self, api: &Api, call: &mut Call) {
        let begun = Instant::now();
        let reply = Reply::result_of(self.request(api, call)).await;
        self.note_wait(begun);
        call.ended = self.tick();
        self.note_failure(&reply, &format!("{:?} {}", call.action, call.label), begun);
        call.outcome = reply.map_or(Outcome::Unknown, |reply| self.outcome_of(call, &reply));
        match call.outcome {
            Outcome::Acknowledged { id, ticket } => self.note_success(call, id, ticket),
            Outcome::Refused(503) => drop(self.unavailable.fetch_add(1, Ordering::AcqRel)),
            Outcome::Refused(_) | Outcome::Unknown => {}
        }
    }

    /// Repeats a call whose answer was lost, until it gets an answer other than 503, or again no answer.
    pub(super) async fn repeat_until_answered(&self, api: &Api, call: &mut Call) {
        loop {
            self.repeats.fetch_add(1, Ordering::AcqRel);
            self.send_call(api, call).await;
            if call.outcome != Outcome::Refused(503) {
                return;
            }
            call.outcome = Outcome::Unknown;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Repeats a call that has succeeded: it must be answered as before, and change nothing more.
    pub(super) async fn repeat(&self, api: &Api, call: &Call) {
        let begun = Instant::now();
        let reply = Reply::result_of(self.request(api, call)).await;
        self.note_failure(&reply, &format!("{:?} {} again", call.action, call.label), begun);
        let Ok(reply) = reply else { return };
        self.repeats.fetch_add(1, Ordering::AcqRel);
        if reply.status == 503 {
            return;
        }
        if self.outcome_of(call, &reply) != call.outcome || (call.keyed && !reply.is_replay()) {
            self.contradict(format!(
                "the repeated call was answered otherwise: {call:?}: {} {}",
                reply.status, reply.body
            ));
        }
    }

    fn outcome_of(&self, call: &Call, reply: &Reply) -> Outcome {
        let conversation = &self.conversations[call.conversation];
        let data = &reply.body["data"];
        let number = |value: &Value| value.as_i64();
        let success = match (call.action, reply.status.as_u16()) {
            (Action::Open, 201) => number(&data["id"]).map(|id| (id, id)),
            (Action::Say, 201) => number(&data["id"]).zip(number(&data["ticketId"])),
            (Action::Send, 202) => {
                let job = data["jobId"].as_str().and_then(|job| job.strip_prefix("job_")?.parse().ok());
                job.zip(call.ticket)
            }
            (Action::Transfer | Action::Reopen, 200) => {
                number(&data["id"]).filter(|_| data["status"] == "open").map(|id| (id, id))
            }
            (Action::Close, 200) => number(&data["id"]).filter(|_| data["wrapupNote"] == call.label).map(|id| (id, id)),
            (_, 409) => {
                // Another caller was faster; the answer names the current ticket.
                if let Some(open) =
                    number(&reply.body["error"]["details"]["ticketId"]).filter(|_| call.action != Action::Send)
                {
                    conversation.ticket.store(open, Ordering::Release);
                    conversation.closed.store(false, Ordering::Release);
                } else {
                    conversation.closed.store(call.action != Action::Reopen, Ordering::Release);
                }
                return Outcome::Refused(409);
            }
            (_, 503) if reply.headers.contains_key("retry-after") => return Outcome::Refused(503),
            _ => None,
        };
        match success {
            Some((id, ticket)) => Outcome::Acknowledged { id, ticket },
            None => {
                self.contradict(format!("not an answer to {call:?}: {} {}", reply.status, reply.body));
                Outcome::Refused(reply.status.as_u16())
            }
        }
    }

    fn note_success(&self, call: &Call, id: i64, ticket: i64) {
        self.acknowledged.fetch_add(1, Ordering::AcqRel);
        if matches!(call.action, Action::Send | Action::Say) {
            let mut newest = self.newest.lock();
            let newest = newest.entry(ticket).or_default();
            *newest = id.max(*newest);
        }
        let conversation = &self.conversations[call.conversation];
        if matches!(call.action, Action::Open | Action::Say) {
            conversation.ticket.store(ticket, Ordering::Release);
        }
        conversation.closed.store(call.action == Action::Close, Ordering::Release);
    }

    /// Reads a conversation's ticket. Returns whether there was an answer.
    pub(super) async fn read(&self, api: &Api, conversation: usize) -> bool {
        let ticket = self.conversations[conversation].ticket.load(Ordering::Acquire);
        let newest = self.newest_of(ticket);
        let Some(reply) = self.read_path(api, &format!("/tickets/{ticket}")).await else { return false };
        self.check_read(&reply, |shown| shown["lastMessage"]["id"].as_i64().unwrap_or(0) >= newest);
        true
    }

    /// Reads a list, which only the database can answer. Returns whether there was an answer.
    pub(super) async fn list(&self, api: &Api, conversation: usize) -> bool {
        let Conversation { person, ticket, .. } = &self.conversations[conversation];
        let ticket = ticket.load(Ordering::Acquire);
        let newest = self.newest_of(ticket);
        if rand::random() {
            let path = format!("/tickets/{ticket}/messages?order=desc&perPage=5");
            let Some(reply) = self.read_path(api, &path).await else { return false };
            self.check_read(&reply, |shown| shown[0]["id"].as_i64().unwrap_or(0) >= newest);
        } else {
            let path = format!("/tickets?contactId={}&status=open", person.contact);
            let Some(reply) = self.read_path(api, &path).await else { return false };
            self.check_read(&reply, |shown| shown.as_array().is_some_and(|open| open.len() <= 1));
        }
        true
    }

    async fn read_path(&self, api: &Api, path: &str) -> Option<Reply> {
        let begun = Instant::now();
        let reply = Reply::result_of(api.request(Method::GET, path)).await;
        self.note_wait(begun);
        self.note_failure(&reply, path, begun);
        reply.ok()
    }

    fn check_read(&self, reply: &Reply, holds: impl Fn(&Value) -> bool) {
        match reply.status.as_u16() {
            200 if holds(&reply.body["data"]) => drop(self.reads.fetch_add(1, Ordering::AcqRel)),
            503 => drop(self.unavailable.fetch_add(1, Ordering::AcqRel)),
            status => self.contradict(format!("a read shows less than was acknowledged: {status} {}", reply.body)),
        }
    }

    fn newest_of(&self, ticket: i64) -> i64 {
        self.newest.lock().get(&ticket).copied().unwrap_or(0)
    }

    fn note_wait(&self, since: Instant) {
        let waited_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.slowest_ms.fetch_max(waited_ms, Ordering::AcqRel);
    }

    fn note_failure(&self, reply: &reqwest::Result<Reply>, what: &str, begun: Instant) {
        let why = match reply {
            Ok(reply) if reply.status == 503 => "answered 503".to_owned(),
            Ok(_) => return,
            Err(error) => {
                self.unanswered.fetch_add(1, Ordering::AcqRel);
                format!("{error:?}")
            }
        };
        let mut failed = self.failed.lock();
        if failed.len() < FAILED_MAX {
            failed.push(format!("{what}, after {:.1?}: {why}", begun.elapsed()));
        }
    }

    fn contradict(&self, what: String) {
        self.contradictions.lock().push(what);
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::AcqRel)
    }
}
