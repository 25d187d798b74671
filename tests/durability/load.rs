//! Visitors and agents who talk, and keep their own record of the responses.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Api, Company, Reply};

/// The pause before each step of a slow conversation.
const SLOW_PAUSE: Duration = Duration::from_millis(20);

/// One conversation: a visitor, and the company that answers.
pub struct Conversation {
    name: String,
    session: String,
    contact: i64,
    /// The current one: after a closing whose response was lost, the visitor's next message opens another.
    ticket: i64,
    next_step: usize,
    /// Message ids by body, of acknowledged messages.
    pub acknowledged: HashMap<String, i64>,
    /// Bodies of messages without a response: each exists once or not at all.
    pub unknown: Vec<String>,
    /// Changes of state that were acknowledged, and those without a response.
    pub changes: Changes,
    pub unknown_changes: Changes,
    /// Error responses.
    pub refused: Vec<String>,
    /// Whether a request that gets 503 is sent again. Not where the service must do without a database.
    pub repeats_busy: bool,
}

/// The state that concurrent conversations share.
#[derive(Debug, Default)]
pub struct LoadProgress {
    /// Whether the conversations must end.
    pub must_end: AtomicBool,
    /// Whether each conversation pauses before its steps: at full speed it has tens of thousands of messages after half
    /// a minute.
    pub is_slow: AtomicBool,
    /// Responses in all conversations.
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
    /// Opens the conversation; the service must be available.
    pub async fn begin(api: &Api, company: &Company, name: &str) -> Self {
        let visitor = json!({"channelId": company.webchat, "visitor": {"externalId": name}});
        let opened = api.post_while_busy("/webchat/sessions", &visitor).await;
        let session = opened.data(201)["id"].as_str().expect("id").to_owned();
        let contact = opened.data(201)["contact"]["id"].as_i64().expect("contact");
        let hello = json!({"body": format!("{name}/hello")});
        let sent = api.post_while_busy(&format!("/webchat/sessions/{session}/messages"), &hello).await;
        let message = sent.data(201);
        let mut acknowledged = HashMap::new();
        acknowledged.insert(format!("{name}/hello"), message["id"].as_i64().expect("id"));
        Self {
            name: name.to_owned(),
            session,
            contact,
            ticket: message["ticketId"].as_i64().expect("ticket"),
            next_step: 0,
            acknowledged,
            unknown: Vec::new(),
            changes: Changes::default(),
            unknown_changes: Changes::default(),
            refused: Vec::new(),
            repeats_busy: false,
        }
    }

    /// Talks until it must end, or the service does not respond.
    pub async fn run(&mut self, api: &Api, company: &Company, progress: Arc<LoadProgress>) {
        while !progress.must_end.load(Ordering::Acquire) {
            if progress.is_slow.load(Ordering::Acquire) {
                tokio::time::sleep(SLOW_PAUSE).await;
            }
            let step = self.next_step;
            self.next_step += 1;
            let answered = match step % 8 {
                3 => {
                    // To the other agent each time: a transfer to the present one changes nothing, and has no event.
                    let user = if step % 16 == 3 { company.ana } else { company.ben };
                    self.change(api, "transfer", json!({"queueId": company.support, "userId": user})).await
                }
                6 => self.change(api, "close", json!({"wrapupTypeId": company.solved})).await,
                7 => self.change(api, "reopen", json!({})).await,
                step if step % 2 == 0 => self.send_as_visitor(api).await,
                _ => self.send_as_company(api).await,
            };
            if !answered {
                break;
            }
            progress.answered.fetch_add(1, Ordering::Release);
        }
    }

    /// The answer to a request; `None` if the service does not respond.
    async fn post(&self, api: &Api, path: &str, body: &Value) -> Option<Reply> {
        if self.repeats_busy { api.try_post_while_busy(path, body).await } else { api.try_post(path, body).await }
    }

    async fn send_as_visitor(&mut self, api: &Api) -> bool {
        let body = format!("{}/{}", self.name, self.next_step);
        let message = json!({"body": body, "clientId": body});
        let reply = self.post(api, &format!("/webchat/sessions/{}/messages", self.session), &message).await;
        match reply {
            Some(reply) if reply.status == 201 => {
                self.acknowledged.insert(body, reply.body["data"]["id"].as_i64().expect("id"));
                self.ticket = reply.body["data"]["ticketId"].as_i64().expect("ticket");
                true
            }
            Some(reply) => self.record_refusal("say", &reply.body),
            None => self.record_unknown(body),
        }
    }

    async fn send_as_company(&mut self, api: &Api) -> bool {
        let body = format!("{}/{}", self.name, self.next_step);
        let message = json!({"ticketId": self.ticket, "type": "text", "body": body, "reopenTicket": true});
        match self.post(api, "/messages", &message).await {
            Some(reply) if reply.status == 202 => {
                let job = reply.body["data"]["jobId"].as_str().expect("job").trim_start_matches("job_").to_owned();
                self.acknowledged.insert(body, job.parse().expect("a number"));
                true
            }
            // A close or reopen had no response, and a later message of the visitor neither. That message may have
            // opened another ticket, which the error names.
            Some(reply) if reply.status == 409 && self.unknown_changes.may_be_closed() && !self.unknown.is_empty() => {
                let open = reply.body["error"]["details"]["ticketId"].as_i64();
                self.ticket = open.unwrap_or_else(|| panic!("{}: {}", self.name, reply.body));
                true
            }
            Some(reply) => self.record_refusal("send", &reply.body),
            None => self.record_unknown(body),
        }
    }

    async fn change(&mut self, api: &Api, verb: &str, body: Value) -> bool {
        let reply = self.post(api, &format!("/tickets/{}/{verb}", self.ticket), &body).await;
        let count = match &reply {
            Some(reply) if reply.status == 200 => &mut self.changes,
            // A change without a response may have been made: the next verb then conflicts with the new state.
            Some(reply) if reply.status == 409 && self.unknown_changes.any() => return true,
            Some(reply) => return self.record_refusal(verb, &reply.body),
            None => &mut self.unknown_changes,
        };
        match verb {
            "transfer" => count.transferred += 1,
            "close" => count.closed += 1,
            _ => count.reopened += 1,
        }
        reply.is_some()
    }

    fn record_refusal(&mut self, what: &str, body: &Value) -> bool {
        self.refused.push(format!("{what}: {body}"));
        true
    }

    fn record_unknown(&mut self, body: String) -> bool {
        self.unknown.push(body);
        false
    }

    /// Compares the record with the service's lists.
    pub async fn check(&self, api: &Api) {
        assert!(self.refused.is_empty(), "{}: {:?}", self.name, self.refused);
        let messages = api.all(&format!("/messages?contactId={}", self.contact)).await;
        let listed: Vec<(String, i64)> = messages
            .iter()
            .map(|message| (message["body"].as_str().expect("body").to_owned(), message["id"].as_i64().expect("id")))
            .collect();
        self.check_messages(&listed);
        let tickets = api.all(&format!("/tickets?contactId={}", self.contact)).await;
        let open = tickets.iter().filter(|ticket| ticket["status"] == "open").count();
        assert!(open <= 1, "{}: {open} open tickets", self.name);
        let mut events = Vec::new();
        for ticket in tickets {
            events.extend(api.all(&format!("/tickets/{}/events", ticket["id"])).await);
        }
        for (kind, changed, unknown) in [
            ("transferred", self.changes.transferred, self.unknown_changes.transferred),
            ("closed", self.changes.closed, self.unknown_changes.closed),
        ] {
            let seen = events.iter().filter(|event| event["type"] == kind).count();
            // After a transfer without a response, the next one may be to the present agent, and so have no event.
            let least = if kind == "transferred" { changed.saturating_sub(unknown) } else { changed };
            assert!((least..=changed + unknown).contains(&seen), "{}: {seen} {kind}, {changed} answered", self.name);
        }
        // Sends reopen as well, so there may be more reopenings than explicit ones.
        let reopened = events.iter().filter(|event| event["type"] == "reopened").count();
        assert!(reopened >= self.changes.reopened, "{}: {reopened} reopenings", self.name);
    }

    /// Every acknowledged message is listed under its id, none twice, and none that was never sent.
    pub fn check_messages(&self, listed: &[(String, i64)]) {
        let mut seen = HashMap::new();
        for (body, id) in listed {
            assert!(seen.insert(body.as_str(), *id).is_none(), "twice: {body}");
            assert!(self.acknowledged.contains_key(body) || self.unknown.contains(body), "never sent: {body}");
        }
        for (body, id) in &self.acknowledged {
            assert_eq!(seen.get(body.as_str()), Some(id), "acknowledged and lost: {body}");
        }
    }

    pub fn contact(&self) -> i64 {
        self.contact
    }
}

impl Changes {
    /// Whether the ticket may be closed although this record has it as open.
    fn may_be_closed(self) -> bool {
        self.closed + self.reopened > 0
    }

    fn any(self) -> bool {
        self.transferred + self.closed + self.reopened > 0
    }
}
