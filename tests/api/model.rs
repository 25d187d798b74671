//! The contract's ticket table over HTTP: random sequences of calls against a model that knows nothing of the code.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::support::{Company, Reply, TestApp};

/// Sequences tried, and calls in each.
const SEQUENCES: u32 = 24;
const CALLS: std::ops::Range<usize> = 5..30;

/// One call on a ticket.
#[derive(Clone, Debug)]
enum Call {
    Send { reopen: bool, close: bool },
    Transfer { queue: Option<bool>, user: Option<Option<bool>> },
    Close { wrapup: Option<bool> },
    Reopen,
    Wrapup { support: bool },
    Note,
    Read,
    OpenAnother,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => (any::<bool>(), any::<bool>()).prop_map(|(reopen, close)| Call::Send { reopen, close }),
        3 => (any::<Option<bool>>(), any::<Option<Option<bool>>>()).prop_map(|(queue, user)| Call::Transfer { queue, user }),
        2 => any::<Option<bool>>().prop_map(|wrapup| Call::Close { wrapup }),
        2 => Just(Call::Reopen),
        1 => any::<bool>().prop_map(|support| Call::Wrapup { support }),
        1 => Just(Call::Note),
        1 => Just(Call::Read),
        1 => Just(Call::OpenAnother),
    ]
}

/// What the contract says of a ticket. A queue and a wrap-up type are `true` for support, `false` for sales; a user is
/// `true` for Ana (support only), `false` for Ben (both).
#[derive(Clone, Debug, Default)]
struct Model {
    is_closed: bool,
    queue: Option<bool>,
    user: Option<bool>,
    wrapup: Option<bool>,
    reopened: i64,
    messages: usize,
}

impl Model {
    fn belongs(user: bool, queue: Option<bool>) -> bool {
        !user || queue != Some(false)
    }

    fn may_close(&self, wrapup: Option<bool>) -> bool {
        match (wrapup, self.queue) {
            (Some(wrapup), Some(queue)) => wrapup == queue,
            (Some(_), None) => true,
            (None, queue) => queue != Some(true),
        }
    }

    fn reopen(&mut self) {
        self.is_closed = false;
        self.wrapup = None;
        self.reopened += 1;
    }

    /// The status the contract demands; the model moves along.
    fn expect(&mut self, call: &Call) -> u16 {
        match *call {
            Call::Send { reopen, .. } if self.is_closed && !reopen => 409,
            Call::Send { close: true, .. } if !self.may_close(None) => 422,
            Call::Send { close, .. } => {
                if self.is_closed {
                    self.reopen();
                }
                self.messages += 1;
                self.is_closed = close;
                202
            }
            Call::Transfer { queue: None, user: None } => 422,
            Call::Transfer { .. } | Call::Close { .. } | Call::Note if self.is_closed => 409,
            Call::Transfer { queue, user } => {
                let queue = queue.or(self.queue);
                if let Some(Some(user)) = user
                    && !Self::belongs(user, queue)
                {
                    return 422;
                }
                self.user = match user {
                    Some(user) => user,
                    None => self.user.filter(|user| Self::belongs(*user, queue)),
                };
                self.queue = queue;
                200
            }
            Call::Close { wrapup } if !self.may_close(wrapup) => 422,
            Call::Close { wrapup } => {
                self.is_closed = true;
                self.wrapup = wrapup;
                200
            }
            Call::Reopen if !self.is_closed => 409,
            Call::Reopen => {
                self.reopen();
                200
            }
            Call::Wrapup { .. } if !self.is_closed => 409,
            Call::Wrapup { support } if self.queue.is_some_and(|queue| queue != support) => 422,
            Call::Wrapup { support } => {
                self.wrapup = Some(support);
                200
            }
            Call::Note => {
                self.messages += 1;
                201
            }
            Call::Read => 200,
            Call::OpenAnother if !self.is_closed => 409,
            // Opens one, which the test closes at once: the ticket under test must not notice.
            Call::OpenAnother => 201,
        }
    }

    fn check(&self, company: &Company, ticket: &Value) {
        let queue = |support| if support { company.support.0 } else { company.sales.0 };
        let user = |ana| if ana { company.ana.0 } else { company.ben.0 };
        let wrapup = |support| if support { company.solved.0 } else { company.sold.0 };
        assert_eq!(ticket["status"], if self.is_closed { "closed" } else { "open" });
        assert_eq!(ticket["queue"]["id"].as_i64(), self.queue.map(queue));
        assert_eq!(ticket["assignedTo"]["id"].as_i64(), self.user.map(user));
        assert_eq!(ticket["wrapupType"]["id"].as_i64(), self.wrapup.map(wrapup));
        assert_eq!(ticket["reopenCount"], self.reopened);
        assert_eq!(ticket["closedAt"].is_null(), !self.is_closed);
    }
}

async fn carry_out(app: &TestApp, ticket: i64, contact: i64, call: &Call) -> Reply {
    let company = &app.company;
    let queue = |support| if support { company.support.0 } else { company.sales.0 };
    let user = |ana| if ana { company.ana.0 } else { company.ben.0 };
    let wrapup = |support| if support { company.solved.0 } else { company.sold.0 };
    let path = |verb: &str| format!("/tickets/{ticket}/{verb}");
    match *call {
        Call::Send { reopen, close } => {
            let body =
                json!({"ticketId": ticket, "type": "text", "body": "x", "reopenTicket": reopen, "closeTicket": close});
            app.api.post("/messages", body).await
        }
        Call::Transfer { queue: to, user: by } => {
            let mut body = json!({});
            if let Some(to) = to {
                body["queueId"] = json!(queue(to));
            }
            if let Some(by) = by {
                body["userId"] = json!(by.map(user));
            }
            app.api.post(&path("transfer"), body).await
        }
        Call::Close { wrapup: kind } => app.api.post(&path("close"), json!({"wrapupTypeId": kind.map(wrapup)})).await,
        Call::Reopen => app.api.post(&path("reopen"), json!({})).await,
        Call::Wrapup { support } => app.api.put(&path("wrapup"), json!({"wrapupTypeId": wrapup(support)})).await,
        Call::Note => app.api.post(&path("notes"), json!({"body": "note"})).await,
        Call::Read => app.api.post(&path("read"), json!({})).await,
        Call::OpenAnother => {
            // Without a queue of its own this one needs no wrap-up: sales asks for none.
            let body = json!({"channelId": company.webchat, "contactId": contact, "queueId": company.sales});
            let reply = app.api.post("/tickets", body).await;
            if reply.status == 201 {
                let other = reply.body["data"]["id"].as_i64().expect("id");
                let refused = app.api.post(&path("reopen"), json!({})).await;
                assert_eq!(refused.error(409, "ERR_API_CONFLICT")["ticketId"], other);
                app.api.post(&format!("/tickets/{other}/close"), json!({})).await.data(200);
            }
            reply
        }
    }
}

#[actix_web::test]
async fn random_calls_on_a_ticket_answer_and_leave_what_the_contract_says() {
    let app = TestApp::start().await;
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let sequences = proptest::collection::vec(call(), CALLS);
    for sequence in 0..SEQUENCES {
        let calls = sequences.new_tree(&mut runner).expect("a sequence").current();
        let (session, contact) = app.session(&format!("visitor-{sequence}")).await;
        let said = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
        let ticket = said.data(201)["ticketId"].as_i64().expect("ticket");
        let mut model = Model { queue: Some(true), messages: 1, ..Model::default() };
        for (step, call) in calls.iter().enumerate() {
            let expected = model.expect(call);
            let reply = carry_out(&app, ticket, contact.0, call).await;
            assert_eq!(reply.status.as_u16(), expected, "step {step} of {calls:?}: {}", reply.body);
            let shown = app.api.get(&format!("/tickets/{ticket}")).await;
            model.check(&app.company, shown.data(200));
        }
        // The tables hold what the actor says.
        let listed = app.api.get(&format!("/tickets?contactId={contact}")).await;
        let row =
            listed.data(200).as_array().expect("rows").iter().find(|row| row["id"] == ticket).expect("listed").clone();
        assert_eq!(&row, app.api.get(&format!("/tickets/{ticket}")).await.data(200));
        assert_eq!(app.api.all(&format!("/tickets/{ticket}/messages")).await.len(), model.messages);
    }
    app.stop().await;
}
