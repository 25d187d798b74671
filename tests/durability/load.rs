//! Visitors and agents who talk, and keep their own record of what they were answered.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{Api, Company};

/// One conversation: a visitor, and the company that answers.
pub struct Conversation {
    name: String,
    session: String,
    contact: i64,
    /// Where it goes on: a closing whose answer was lost makes the visitor's next words open another ticket.
    ticket: i64,
    next: usize,
    /// Body to message id, for what was answered.
    pub kept: HashMap<String, i64>,
    /// What was asked for and not answered: it may or may not be there, but not twice.
    pub unknown: Vec<String>,
    /// Changes of state that were answered, and those that were not.
    pub changed: Changes,
    pub changes_unknown: Changes,
    /// Answers that were neither a success nor no answer at all.
    pub refused: Vec<String>,
}

/// What conversations that go on at the same time have in common.
#[derive(Debug, Default)]
pub struct Going {
    /// Whether they are to end.
    pub is_over: AtomicBool,
    /// What was answered in all of them.
    pub answered: AtomicUsize,
}

/// How often a ticket was changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
    pub transferred: usize,
    pub closed: usize,
    pub reopened: usize,
}

impl Conversation {
    /// Begins; the service must be well.
    pub async fn begin(api: &Api, company: &Company, name: &str) -> Self {
        let visitor = json!({"channelId": company.webchat, "visitor": {"externalId": name}});
        let opened = api.post("/webchat/sessions", visitor).await;
        let session = opened.data(201)["id"].as_str().expect("id").to_owned();
        let contact = opened.data(201)["contact"]["id"].as_i64().expect("contact");
        let said =
            api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": format!("{name}/hello")})).await;
        let message = said.data(201);
        let mut kept = HashMap::new();
        kept.insert(format!("{name}/hello"), message["id"].as_i64().expect("id"));
        Self {
            name: name.to_owned(),
            session,
            contact,
            ticket: message["ticketId"].as_i64().expect("ticket"),
            next: 0,
            kept,
            unknown: Vec::new(),
            changed: Changes::default(),
            changes_unknown: Changes::default(),
            refused: Vec::new(),
        }
    }

    /// Talks until it is over, or until the service is gone.
    pub async fn step(&mut self, api: &Api, company: &Company, going: Arc<Going>) {
        while !going.is_over.load(Ordering::Acquire) {
            let step = self.next;
            self.next += 1;
            let answered = match step % 8 {
                3 => {
                    // To the other one each time: a transfer to who has it already is no change, and has no event.
                    let user = if step % 16 == 3 { company.ana } else { company.ben };
                    self.change(api, "transfer", json!({"queueId": company.support, "userId": user})).await
                }
                6 => self.change(api, "close", json!({"wrapupTypeId": company.solved})).await,
                7 => self.change(api, "reopen", json!({})).await,
                step if step % 2 == 0 => self.say(api).await,
                _ => self.send(api).await,
            };
            if !answered {
                break;
            }
            going.answered.fetch_add(1, Ordering::Release);
        }
    }

    async fn say(&mut self, api: &Api) -> bool {
        let body = format!("{}/{}", self.name, self.next);
        let said = json!({"body": body, "clientId": body});
        let reply = api.try_post(&format!("/webchat/sessions/{}/messages", self.session), &said).await;
        match reply {
            Some(reply) if reply.status == 201 => {
                self.kept.insert(body, reply.body["data"]["id"].as_i64().expect("id"));
                self.ticket = reply.body["data"]["ticketId"].as_i64().expect("ticket");
                true
            }
            Some(reply) => self.refuse("say", &reply.body),
            None => self.lose(body),
        }
    }

    async fn send(&mut self, api: &Api) -> bool {
        let body = format!("{}/{}", self.name, self.next);
        let sent = json!({"ticketId": self.ticket, "type": "text", "body": body, "reopenTicket": true});
        match api.try_post("/messages", &sent).await {
            Some(reply) if reply.status == 202 => {
                let job = reply.body["data"]["jobId"].as_str().expect("job").trim_start_matches("job_").to_owned();
                self.kept.insert(body, job.parse().expect("a number"));
                true
            }
            // A closing, or a reopening that was lost, and then the visitor's words, unanswered too, may have opened another
            // ticket: it is named.
            Some(reply) if reply.status == 409 && self.changes_unknown.closes() && !self.unknown.is_empty() => {
                let open = reply.body["error"]["details"]["ticketId"].as_i64();
                self.ticket = open.unwrap_or_else(|| panic!("{}: {}", self.name, reply.body));
                true
            }
            Some(reply) => self.refuse("send", &reply.body),
            None => self.lose(body),
        }
    }

    async fn change(&mut self, api: &Api, verb: &str, body: Value) -> bool {
        let reply = api.try_post(&format!("/tickets/{}/{verb}", self.ticket), &body).await;
        let count = match &reply {
            Some(reply) if reply.status == 200 => &mut self.changed,
            // A lost answer may have moved the ticket: the next verb then meets the other state.
            Some(reply) if reply.status == 409 && self.changes_unknown.any() => return true,
            Some(reply) => return self.refuse(verb, &reply.body),
            None => &mut self.changes_unknown,
        };
        match verb {
            "transfer" => count.transferred += 1,
            "close" => count.closed += 1,
            _ => count.reopened += 1,
        }
        reply.is_some()
    }

    fn refuse(&mut self, what: &str, body: &Value) -> bool {
        self.refused.push(format!("{what}: {body}"));
        true
    }

    fn lose(&mut self, body: String) -> bool {
        self.unknown.push(body);
        false
    }

    /// Compares the record with what the service shows.
    pub async fn check(&self, api: &Api) {
        assert!(self.refused.is_empty(), "{}: {:?}", self.name, self.refused);
        let messages = api.all(&format!("/messages?contactId={}", self.contact)).await;
        let shown: Vec<(String, i64)> = messages
            .iter()
            .map(|message| (message["body"].as_str().expect("body").to_owned(), message["id"].as_i64().expect("id")))
            .collect();
        self.check_messages(&shown);
        let tickets = api.all(&format!("/tickets?contactId={}", self.contact)).await;
        let open = tickets.iter().filter(|ticket| ticket["status"] == "open").count();
        assert!(open <= 1, "{}: {open} open tickets", self.name);
        let mut events = Vec::new();
        for ticket in tickets {
            events.extend(api.all(&format!("/tickets/{}/events", ticket["id"])).await);
        }
        for (kind, changed, unknown) in [
            ("transferred", self.changed.transferred, self.changes_unknown.transferred),
            ("closed", self.changed.closed, self.changes_unknown.closed),
        ] {
            let seen = events.iter().filter(|event| event["type"] == kind).count();
            // Who has the ticket after a transfer whose answer was lost is not known, so the next may go to who has it.
            let least = if kind == "transferred" { changed.saturating_sub(unknown) } else { changed };
            assert!((least..=changed + unknown).contains(&seen), "{}: {seen} {kind}, {changed} answered", self.name);
        }
        // Sends reopen as well, so a ticket was reopened at least as often as that was asked for by name.
        let reopened = events.iter().filter(|event| event["type"] == "reopened").count();
        assert!(reopened >= self.changed.reopened, "{}: {reopened} reopenings", self.name);
    }

    /// Every answered message is there under its id; none is there twice; nothing is there that was never said.
    pub fn check_messages(&self, shown: &[(String, i64)]) {
        let mut seen = HashMap::new();
        for (body, id) in shown {
            assert!(seen.insert(body.as_str(), *id).is_none(), "twice: {body}");
            assert!(self.kept.contains_key(body) || self.unknown.contains(body), "never said: {body}");
        }
        for (body, id) in &self.kept {
            assert_eq!(seen.get(body.as_str()), Some(id), "answered and lost: {body}");
        }
    }

    pub fn contact(&self) -> i64 {
        self.contact
    }
}

impl Changes {
    /// Whether the ticket may be closed although its owner takes it for open.
    fn closes(self) -> bool {
        self.closed + self.reopened > 0
    }

    fn any(self) -> bool {
        self.transferred + self.closed + self.reopened > 0
    }
}
