//! The mixed load: callers who open, send, transfer, close, reopen, read and list, and visitors who talk, all at once and
//! in each other's conversations. Every answer is recorded; an answer that is lost is asked for again where that is safe.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand::seq::IndexedRandom;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::record::{Call, Deed, Outcome, Person, Record};
use crate::support::{Api, Company, Reply, eventually};

/// Callers at once; every other one also asks for what only the database can tell, and so comes to stand when it does.
pub const CALLERS: usize = 8;
/// Conversations on the phone and on the webchat; few enough that callers meet in them.
const PHONES: usize = 6;
const VISITORS: usize = 6;
/// What a caller does who was told to come back later.
const PAUSE: Duration = Duration::from_millis(25);
/// One success in so many is asked for again at once.
const REPEATED_ONE_IN: u32 = 10;
/// Successes that are asked for again at the end.
const REPLAYED_MAX: usize = 200;

/// Where the service is found.
#[derive(Clone, Default)]
pub struct Door {
    /// Its addresses; none while it is down.
    pub apis: Vec<Api>,
    /// Which of its lives this is.
    pub life: u64,
    /// Whether the load ends.
    pub over: bool,
}

/// A conversation as its callers see it.
struct Conversation {
    person: Person,
    /// Where it goes on, as far as is known.
    ticket: AtomicI64,
    /// Whether that one is closed, as far as is known.
    closed: AtomicBool,
}

struct World {
    company: Company,
    conversations: Vec<Conversation>,
    /// Counts calls and answers.
    clock: AtomicU64,
    /// The newest message of each ticket that was acknowledged: no read may show less.
    newest: Mutex<HashMap<i64, i64>>,
    contradictions: Mutex<Vec<String>>,
    acknowledged: AtomicU64,
    unavailable: AtomicU64,
    reads: AtomicU64,
    repeats: AtomicU64,
    slowest_ms: AtomicU64,
}

/// A load that runs.
pub struct Mix {
    world: Arc<World>,
    callers: Vec<JoinHandle<Vec<Call>>>,
    first: Vec<Call>,
}

impl Mix {
    /// Begins every conversation of a company, and lets so many callers go through the door.
    pub async fn begin_with(api: &Api, company: &Company, door: watch::Receiver<Door>, callers: usize) -> Self {
        let mut conversations = Vec::new();
        for number in 0..PHONES + VISITORS {
            let person = meet(api, company, number).await;
            let (ticket, closed) = (AtomicI64::new(0), AtomicBool::new(false));
            conversations.push(Conversation { person, ticket, closed });
        }
        let world = Arc::new(World {
            company: company.clone(),
            conversations,
            clock: AtomicU64::new(0),
            newest: Mutex::default(),
            contradictions: Mutex::default(),
            acknowledged: AtomicU64::new(0),
            unavailable: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            repeats: AtomicU64::new(0),
            slowest_ms: AtomicU64::new(0),
        });
        let mut first = Vec::new();
        for (number, conversation) in world.conversations.iter().enumerate() {
            let deed = if conversation.person.session.is_some() { Deed::Say } else { Deed::Open };
            let call = world.carry_out(api, world.plan(deed, number, format!("first/{number}"), false)).await;
            assert!(call.acknowledged().is_some(), "the beginning: {call:?}");
            first.push(call);
        }
        let go = |number| tokio::spawn(call_on(world.clone(), number, door.clone()));
        Self { callers: (0..callers).map(go).collect(), world, first }
    }

    /// Changes that were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.world.acknowledged.load(Ordering::Acquire)
    }

    /// Times somebody was told to come back later.
    pub fn unavailable(&self) -> u64 {
        self.world.unavailable.load(Ordering::Acquire)
    }

    /// Waits until so many more changes are acknowledged.
    pub async fn progress(&self, changes: u64) {
        let goal = self.acknowledged() + changes;
        eventually("the load goes on", || async { self.acknowledged() >= goal }).await;
    }

    /// A ticket somebody talks in.
    pub fn some_ticket(&self) -> i64 {
        self.world.conversations[0].ticket.load(Ordering::Acquire)
    }

    /// Ends the load on a service that is well, once its door has said that it is over: whatever can be asked for again is,
    /// and so are some successes, which must be answered as before.
    pub async fn end_with(self, api: &Api) -> Record {
        let mut calls = self.first;
        for caller in self.callers {
            calls.extend(caller.await.expect("a caller's record"));
        }
        let world = self.world;
        for call in calls.iter_mut().filter(|call| call.is_unknown() && call.is_repeatable()) {
            world.ask_again(api, call).await;
            assert!(!call.is_unknown(), "no answer from a service that is well: {call:?}");
        }
        let answered: Vec<&Call> = calls.iter().filter(|call| call.keyed && call.acknowledged().is_some()).collect();
        for call in answered.sample(&mut rand::rng(), REPLAYED_MAX) {
            world.repeat(api, call).await;
        }
        let contradictions = std::mem::take(&mut *lock(&world.contradictions));
        Record {
            people: world.conversations.iter().map(|conversation| conversation.person.clone()).collect(),
            calls,
            contradictions,
            reads: world.reads.load(Ordering::Acquire),
            repeats: world.repeats.load(Ordering::Acquire),
            slowest: Duration::from_millis(world.slowest_ms.load(Ordering::Acquire)),
        }
    }
}

/// Somebody new: the first half on the phone, the others on the webchat.
async fn meet(api: &Api, company: &Company, number: usize) -> Person {
    if number < PHONES {
        let contact = api.post("/contacts", json!({"number": format!("55119000000{number:02}")})).await;
        return Person { contact: contact.data(201)["id"].as_i64().expect("id"), session: None };
    }
    let visitor = json!({"channelId": company.webchat, "visitor": {"externalId": format!("visitor-{number}")}});
    let opened = api.post("/webchat/sessions", visitor).await;
    let contact = opened.data(201)["contact"]["id"].as_i64().expect("contact");
    Person { contact, session: opened.data(201)["id"].as_str().map(str::to_owned) }
}

/// A caller's life: until the load is over.
async fn call_on(world: Arc<World>, caller: usize, mut door: watch::Receiver<Door>) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut lost_in = 0;
    for number in 0.. {
        let found = door.wait_for(|door| door.over || (!door.apis.is_empty() && door.life > lost_in)).await;
        let found = found.ok().filter(|door| !door.over);
        let Some((api, life)) = found.and_then(|door| Some((door.apis.choose(&mut rand::rng())?.clone(), door.life)))
        else {
            break;
        };
        if let Some(lost) = calls.last_mut().filter(|call| call.is_unknown() && call.is_repeatable()) {
            world.ask_again(&api, lost).await;
            if lost.is_unknown() {
                lost_in = life;
                continue;
            }
        }
        let conversation = rand::random_range(0..world.conversations.len());
        let Some(deed) = world.choose(conversation) else {
            let is_answered = match caller % 2 {
                0 => world.read(&api, conversation).await,
                _ => world.list(&api, conversation).await,
            };
            if !is_answered {
                lost_in = life;
            }
            continue;
        };
        let call = world.plan(deed, conversation, format!("{caller}/{number}"), rand::random());
        let call = world.carry_out(&api, call).await;
        match call.outcome {
            Outcome::Unknown => lost_in = life,
            Outcome::Refused(503) => tokio::time::sleep(PAUSE).await,
            Outcome::Refused(_) => {}
            Outcome::Acknowledged { .. } if call.is_repeatable() && rand::random_ratio(1, REPEATED_ONE_IN) => {
                world.repeat(&api, &call).await;
            }
            Outcome::Acknowledged { .. } => {}
        }
        calls.push(call);
    }
    calls
}

impl World {
    /// What a caller does next in a conversation; none: looks at it. Now and then it is what cannot be done.
    fn choose(&self, conversation: usize) -> Option<Deed> {
        let Conversation { person, closed, .. } = &self.conversations[conversation];
        let is_visitor = person.session.is_some();
        let opening = if is_visitor { Deed::Say } else { Deed::Open };
        let is_closed = closed.load(Ordering::Acquire) != rand::random_ratio(1, 20);
        match rand::random_range(0..100) {
            0..40 if is_closed => Some(opening),
            40..85 if is_closed => Some(Deed::Reopen),
            0..35 => Some(Deed::Send),
            35..55 if is_visitor => Some(Deed::Say),
            35..55 => Some(Deed::Send),
            55..63 => Some(Deed::Transfer),
            63..70 => Some(Deed::Close),
            _ => None,
        }
    }

    fn plan(&self, deed: Deed, conversation: usize, label: String, keyed: bool) -> Call {
        let ticket = self.conversations[conversation].ticket.load(Ordering::Acquire);
        let ticket = (!matches!(deed, Deed::Open | Deed::Say)).then_some(ticket);
        Call { deed, conversation, ticket, label, keyed, asked: 0, answered: 0, outcome: Outcome::Unknown }
    }

    fn request(&self, api: &Api, call: &Call) -> RequestBuilder {
        let Company { phone, support, ana, ben, solved, .. } = &self.company;
        let person = &self.conversations[call.conversation].person;
        let ticket = call.ticket.unwrap_or_default();
        let (path, body) = match call.deed {
            Deed::Open => ("/tickets".to_owned(), json!({"channelId": phone, "contactId": person.contact})),
            Deed::Send => ("/messages".to_owned(), json!({"ticketId": ticket, "type": "text", "body": call.label})),
            Deed::Say => {
                let session = person.session.as_deref().unwrap_or_default();
                let said = json!({"body": call.label, "clientId": call.label});
                (format!("/webchat/sessions/{session}/messages"), said)
            }
            Deed::Transfer => {
                // Told by the label, so that a repeated call has the same body.
                let user = if call.label.len().is_multiple_of(2) { ana } else { ben };
                (format!("/tickets/{ticket}/transfer"), json!({"queueId": support, "userId": user}))
            }
            Deed::Close => {
                let outcome = json!({"wrapupTypeId": solved, "wrapupNote": call.label});
                (format!("/tickets/{ticket}/close"), outcome)
            }
            Deed::Reopen => (format!("/tickets/{ticket}/reopen"), json!({})),
        };
        let request = api.request(Method::POST, &path).json(&body);
        if call.keyed { request.header("idempotency-key", &call.label) } else { request }
    }

    /// Makes the call once, and notes what came of it.
    async fn carry_out(&self, api: &Api, mut call: Call) -> Call {
        call.asked = self.tick();
        self.ask(api, &mut call).await;
        call
    }

    async fn ask(&self, api: &Api, call: &mut Call) {
        let begun = Instant::now();
        let reply = Reply::try_of(self.request(api, call)).await;
        self.note_wait(begun);
        call.answered = self.tick();
        call.outcome = reply.map_or(Outcome::Unknown, |reply| self.understand(call, &reply));
        match call.outcome {
            Outcome::Acknowledged { id, ticket } => self.note_success(call, id, ticket),
            Outcome::Refused(503) => drop(self.unavailable.fetch_add(1, Ordering::AcqRel)),
            Outcome::Refused(_) | Outcome::Unknown => {}
        }
    }

    /// Asks for an answer that was lost, until there is one or the service is gone again.
    async fn ask_again(&self, api: &Api, call: &mut Call) {
        loop {
            self.repeats.fetch_add(1, Ordering::AcqRel);
            self.ask(api, call).await;
            if call.outcome != Outcome::Refused(503) {
                return;
            }
            call.outcome = Outcome::Unknown;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Repeats a call that has succeeded: it must be answered as it was, and be no other.
    async fn repeat(&self, api: &Api, call: &Call) {
        let Some(reply) = Reply::try_of(self.request(api, call)).await else { return };
        self.repeats.fetch_add(1, Ordering::AcqRel);
        if reply.status == 503 {
            return;
        }
        if self.understand(call, &reply) != call.outcome || (call.keyed && !reply.is_replay()) {
            self.contradict(format!("repeated and answered otherwise: {call:?}: {} {}", reply.status, reply.body));
        }
    }

    fn understand(&self, call: &Call, reply: &Reply) -> Outcome {
        let conversation = &self.conversations[call.conversation];
        let data = &reply.body["data"];
        let number = |value: &Value| value.as_i64();
        let success = match (call.deed, reply.status.as_u16()) {
            (Deed::Open, 201) => number(&data["id"]).map(|id| (id, id)),
            (Deed::Say, 201) => number(&data["id"]).zip(number(&data["ticketId"])),
            (Deed::Send, 202) => {
                let job = data["jobId"].as_str().and_then(|job| job.strip_prefix("job_")?.parse().ok());
                job.zip(call.ticket)
            }
            (Deed::Transfer | Deed::Reopen, 200) => {
                number(&data["id"]).filter(|_| data["status"] == "open").map(|id| (id, id))
            }
            (Deed::Close, 200) => number(&data["id"]).filter(|_| data["wrapupNote"] == call.label).map(|id| (id, id)),
            (_, 409) => {
                // Another caller was faster; the conversation goes on where it says.
                if let Some(open) =
                    number(&reply.body["error"]["details"]["ticketId"]).filter(|_| call.deed != Deed::Send)
                {
                    conversation.ticket.store(open, Ordering::Release);
                    conversation.closed.store(false, Ordering::Release);
                } else {
                    conversation.closed.store(call.deed != Deed::Reopen, Ordering::Release);
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
        if matches!(call.deed, Deed::Send | Deed::Say) {
            let mut newest = lock(&self.newest);
            let newest = newest.entry(ticket).or_default();
            *newest = id.max(*newest);
        }
        let conversation = &self.conversations[call.conversation];
        if matches!(call.deed, Deed::Open | Deed::Say) {
            conversation.ticket.store(ticket, Ordering::Release);
        }
        conversation.closed.store(call.deed == Deed::Close, Ordering::Release);
    }

    /// Looks at a conversation's ticket. False: nobody answered.
    async fn read(&self, api: &Api, conversation: usize) -> bool {
        let ticket = self.conversations[conversation].ticket.load(Ordering::Acquire);
        let newest = self.newest_of(ticket);
        let Some(reply) = self.look(api, &format!("/tickets/{ticket}")).await else { return false };
        self.check_look(&reply, |shown| shown["lastMessage"]["id"].as_i64().unwrap_or(0) >= newest);
        true
    }

    /// Looks into the lists, which only the database can answer.
    async fn list(&self, api: &Api, conversation: usize) -> bool {
        let Conversation { person, ticket, .. } = &self.conversations[conversation];
        let ticket = ticket.load(Ordering::Acquire);
        let newest = self.newest_of(ticket);
        if rand::random() {
            let path = format!("/tickets/{ticket}/messages?order=desc&perPage=5");
            let Some(reply) = self.look(api, &path).await else { return false };
            self.check_look(&reply, |shown| shown[0]["id"].as_i64().unwrap_or(0) >= newest);
        } else {
            let path = format!("/tickets?contactId={}&status=open", person.contact);
            let Some(reply) = self.look(api, &path).await else { return false };
            self.check_look(&reply, |shown| shown.as_array().is_some_and(|open| open.len() <= 1));
        }
        true
    }

    async fn look(&self, api: &Api, path: &str) -> Option<Reply> {
        let begun = Instant::now();
        let reply = api.try_get(path).await;
        self.note_wait(begun);
        reply
    }

    fn check_look(&self, reply: &Reply, holds: impl Fn(&Value) -> bool) {
        match reply.status.as_u16() {
            200 if holds(&reply.body["data"]) => drop(self.reads.fetch_add(1, Ordering::AcqRel)),
            503 => drop(self.unavailable.fetch_add(1, Ordering::AcqRel)),
            status => self.contradict(format!("a read shows less than was acknowledged: {status} {}", reply.body)),
        }
    }

    fn newest_of(&self, ticket: i64) -> i64 {
        lock(&self.newest).get(&ticket).copied().unwrap_or(0)
    }

    fn note_wait(&self, since: Instant) {
        let waited_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.slowest_ms.fetch_max(waited_ms, Ordering::AcqRel);
    }

    fn contradict(&self, what: String) {
        lock(&self.contradictions).push(what);
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::AcqRel)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
