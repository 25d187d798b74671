//! The mixed load: callers who open, send, transfer, close, reopen, read and list, and visitors who talk, all at once
//! and in each other's conversations. Every answer is recorded; a call whose answer is lost is repeated where that is
//! safe.

mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::seq::IndexedRandom;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use world::World;

use crate::record::{Action, Call, Outcome, Person, Record};
use crate::support::{Api, Company, eventually};

/// Callers at once; every other one also reads lists, which need the database, and so waits while it is away.
pub const CALLERS: usize = 8;
/// Conversations on the phone and on the webchat; few enough that callers meet in them.
const PHONES: usize = 6;
const VISITORS: usize = 6;
/// The pause of a caller after a 503.
const PAUSE: Duration = Duration::from_millis(25);
/// One success in this many is repeated at once.
const REPEATED_ONE_IN: u32 = 10;
/// The most successes that are repeated at the end.
const REPLAYED_MAX: usize = 200;

/// Where callers find the service.
#[derive(Clone, Default)]
pub struct Door {
    /// Clients of its addresses; empty while it is down.
    pub apis: Vec<Api>,
    /// Raised when callers whose call was not answered may call again.
    pub life: u64,
    /// Whether the load is over.
    pub over: bool,
}

/// A running load.
pub struct Mix {
    world: Arc<World>,
    callers: Vec<JoinHandle<Vec<Call>>>,
    first: Vec<Call>,
}

impl Mix {
    /// Begins every conversation of a company, and starts this many callers through the door.
    pub async fn begin_with(api: &Api, company: &Company, door: watch::Receiver<Door>, callers: usize) -> Self {
        let mut people = Vec::new();
        for number in 0..PHONES + VISITORS {
            people.push(create_person(api, company, number).await);
        }
        let world = Arc::new(World::of(company, people));
        let mut first = Vec::new();
        for (number, conversation) in world.conversations.iter().enumerate() {
            let action = if conversation.person.session.is_some() { Action::Say } else { Action::Open };
            let call = world.carry_out(api, world.plan(action, number, format!("first/{number}"), false)).await;
            assert!(call.acknowledged().is_some(), "the first call of a conversation failed: {call:?}");
            first.push(call);
        }
        let start_caller = |number| tokio::spawn(run_caller(world.clone(), number, door.clone()));
        Self { callers: (0..callers).map(start_caller).collect(), world, first }
    }

    /// Changes that were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.world.acknowledged.load(Ordering::Acquire)
    }

    /// How many calls and reads were answered 503.
    pub fn unavailable(&self) -> u64 {
        self.world.unavailable.load(Ordering::Acquire)
    }

    /// How many calls and reads were not answered; and the first calls and reads that failed, by no answer or by a 503.
    #[allow(dead_code, reason = "only runs of a cluster use it")]
    pub fn unanswered(&self) -> (u64, Vec<String>) {
        (self.world.unanswered.load(Ordering::Acquire), self.world.failed.lock().clone())
    }

    /// Waits until this many more changes are acknowledged.
    pub async fn progress(&self, changes: u64) {
        let goal = self.acknowledged() + changes;
        eventually("enough changes are acknowledged", || async { self.acknowledged() >= goal }).await;
    }

    /// The ticket of each conversation.
    pub fn tickets(&self) -> Vec<i64> {
        self.world.conversations.iter().map(|conversation| conversation.ticket.load(Ordering::Acquire)).collect()
    }

    /// Ends the load on a healthy service, after `Door::over` is set. Repeats calls without an answer if they are
    /// repeatable, and some successes, which must be answered as before.
    pub async fn end_with(self, api: &Api) -> Record {
        let mut calls = self.first;
        for caller in self.callers {
            calls.extend(caller.await.expect("a caller's record"));
        }
        let world = self.world;
        for call in calls.iter_mut().filter(|call| call.is_unknown() && call.is_repeatable()) {
            world.repeat_until_answered(api, call).await;
            assert!(!call.is_unknown(), "no answer from a healthy service: {call:?}");
        }
        let answered: Vec<&Call> = calls.iter().filter(|call| call.keyed && call.acknowledged().is_some()).collect();
        for call in answered.sample(&mut rand::rng(), REPLAYED_MAX) {
            world.repeat(api, call).await;
        }
        let contradictions = std::mem::take(&mut *world.contradictions.lock());
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

/// Creates a person: the first half on the phone, the others on the webchat.
async fn create_person(api: &Api, company: &Company, number: usize) -> Person {
    if number < PHONES {
        let contact = api.post("/contacts", json!({"number": format!("55119000000{number:02}")})).await;
        return Person { contact: contact.data(201)["id"].as_i64().expect("id"), session: None };
    }
    let visitor = json!({"channelId": company.webchat, "visitor": {"externalId": format!("visitor-{number}")}});
    let opened = api.post("/webchat/sessions", visitor).await;
    let contact = opened.data(201)["contact"]["id"].as_i64().expect("contact");
    Person { contact, session: opened.data(201)["id"].as_str().map(str::to_owned) }
}

/// Makes the calls of one caller until the load is over. Returns them with their outcomes.
async fn run_caller(world: Arc<World>, caller: usize, mut door: watch::Receiver<Door>) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut unanswered_life = 0;
    for number in 0.. {
        let open_door = door.wait_for(|door| door.over || (!door.apis.is_empty() && door.life > unanswered_life)).await;
        let open_door = open_door.ok().filter(|door| !door.over);
        let Some((api, life)) =
            open_door.and_then(|door| Some((door.apis.choose(&mut rand::rng())?.clone(), door.life)))
        else {
            break;
        };
        if let Some(lost) = calls.last_mut().filter(|call| call.is_unknown() && call.is_repeatable()) {
            world.repeat_until_answered(&api, lost).await;
            if lost.is_unknown() {
                unanswered_life = life;
                continue;
            }
        }
        let conversation = rand::random_range(0..world.conversations.len());
        let Some(action) = world.choose(conversation) else {
            let is_answered = match caller % 2 {
                0 => world.read(&api, conversation).await,
                _ => world.list(&api, conversation).await,
            };
            if !is_answered {
                unanswered_life = life;
            }
            continue;
        };
        let call = world.plan(action, conversation, format!("{caller}/{number}"), rand::random());
        let call = world.carry_out(&api, call).await;
        match call.outcome {
            Outcome::Unknown => unanswered_life = life,
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
