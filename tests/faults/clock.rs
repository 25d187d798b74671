//! The wall clock is set back by an hour.

use serde_json::json;

use crate::alone::check;
use crate::mix::Mix;
use crate::rig::{Needs, Rig};
use crate::shim::Knob;
use crate::summary::Row;
use crate::support::{Api, Company, eventually};

const CHANGES_MIN: u64 = 200;
const CLOCK_OFFSET_S: i64 = -3600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a fault run: make faults"]
async fn the_clock_goes_back_by_an_hour() {
    let row = Row::begin(
        11,
        "the wall clock set back by an hour under load, then `kill -9`",
        "ids keep the order, keys are known, nothing waits for the clock to catch up but what a visitor is shown",
    );
    let mut rig = Rig::with(Needs { shim: true, ..Needs::default() }).await;
    let mix = Mix::begin(&rig).await;
    let visitor = Visitor::begin(&rig).await;
    assert!(visitor.sees_exchange(&rig, "before").await);
    mix.progress(CHANGES_MIN).await;
    rig.shim().set(Knob::ClockOffsetS, CLOCK_OFFSET_S);
    let sees_messages = visitor.sees_exchange(&rig, "an hour earlier").await;
    mix.progress(CHANGES_MIN).await;
    rig.kill();
    rig.serve();
    mix.progress(CHANGES_MIN).await;
    rig.shim().set(Knob::ClockOffsetS, 0);
    assert!(visitor.sees_exchange(&rig, "when the clock was right again").await);
    let record = mix.end(&rig).await;
    let verdict = check(&record, &mut rig).await;
    // A session shows what was said since it began, by the clock (docs/durability.md).
    let visitors = if sees_messages {
        "see what is said meanwhile"
    } else {
        "with an earlier session see only later what is said meanwhile"
    };
    let seen = format!(
        "visitors {visitors}; {} calls repeated and known; slowest answer {:.1?}",
        record.repeats, record.slowest
    );
    row.end(&verdict, &seen);
}

/// A visitor whose session lasts for the whole run, in a company of its own.
struct Visitor {
    company: Company,
    session: String,
}

impl Visitor {
    async fn begin(rig: &Rig) -> Self {
        let company = rig.database(async |db| Company::create(db, "Other").await).await;
        let api = Api::new(rig.address(), &company.key);
        eventually("the company is seen", || async {
            api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2)
        })
        .await;
        let visitor = json!({"channelId": company.webchat, "visitor": {"externalId": "vera"}});
        let opened = api.post("/webchat/sessions", visitor).await;
        let session = opened.data(201)["id"].as_str().expect("id").to_owned();
        Self { company, session }
    }

    /// Sends a visitor's message, and answers it. Returns whether both are the last messages that the session shows.
    async fn sees_exchange(&self, rig: &Rig, when: &str) -> bool {
        let api = Api::new(rig.address(), &self.company.key);
        let path = format!("/webchat/sessions/{}/messages", self.session);
        let ticket = api.post(&path, json!({"body": format!("said {when}")})).await.data(201)["ticketId"].clone();
        let answer = json!({"ticketId": ticket, "type": "text", "body": format!("answered {when}")});
        api.post("/messages", answer).await.data(202);
        let seen = api.all(&path).await;
        let bodies: Vec<_> = seen.iter().rev().take(2).filter_map(|message| message["body"].as_str()).collect();
        bodies == [format!("answered {when}"), format!("said {when}")]
    }
}
