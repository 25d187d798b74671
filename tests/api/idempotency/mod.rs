//! A retry is safe: requests with an idempotency key, on plain and on live resources.

mod lifetime;
mod replay;
mod rules;
mod twins;

use hotline_persistence::SessionId;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::steps::{close, id};
use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp, Reply, TestApp};

/// A request, its expected status, and how its effects are counted.
#[derive(Clone)]
struct Call {
    method: Method,
    path: String,
    body: String,
    status: u16,
    /// SQL that counts every effect of its kind.
    effects: &'static str,
}

const TICKETS: &str = "select count(*) from tickets";
const MESSAGES: &str = "select count(*) from messages where type <> 'note'";
const NOTES: &str = "select count(*) from messages where type = 'note'";
const SESSIONS: &str = "select count(*) from webchat_sessions";
const ENDED_SESSIONS: &str = "select count(*) from webchat_sessions where ended_at is not null";
const TAGS: &str = "select count(*) from tags";
const TAG_UPDATES: &str = "select count(*) from tag_updates";
const CLOSED: &str = "select count(*) from ticket_events where type = 'closed'";
const BOARDS: &str = "select count(*) from boards";
// A new board has stages of its own, which do not count.
const STAGES: &str = "select count(*) from board_lists where label = 'Fourth'";
/// Keys that have not expired; rows of expired ones may still be there.
const KEYS: &str = "select count(*) from idempotency_keys where created_at > now() - interval '24 hours'";

impl Call {
    fn of(method: Method, path: impl Into<String>, body: Value, status: u16, effects: &'static str) -> Self {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Self { method, path: path.into(), body, status, effects }
    }

    fn post(path: impl Into<String>, body: Value, status: u16, effects: &'static str) -> Self {
        Self::of(Method::POST, path, body, status, effects)
    }

    fn request(&self, api: &Api, key: &str) -> RequestBuilder {
        api.keyed(self.method.clone(), &self.path, key, self.body.as_str())
    }

    async fn send(&self, api: &Api, key: &str) -> Reply {
        Reply::of(self.request(api, key)).await
    }

    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// Starts a service whose database records each update of a tag.
async fn started() -> OwnApp {
    started_with(TestOptions::default()).await
}

async fn started_with(options: TestOptions) -> OwnApp {
    let app = OwnApp::start_with(options).await;
    sqlx::raw_sql(
        "create table tag_updates (id bigint);
         create function note_tag_update() returns trigger language plpgsql as
             'begin insert into tag_updates values (new.id); return new; end';
         create trigger tag_updated after update on tags for each row execute function note_tag_update();",
    )
    .execute(&app.db)
    .await
    .expect("trigger");
    app
}

/// Counts effects, once the tables have all journaled changes.
async fn count(app: &OwnApp, effects: &'static str) -> i64 {
    let log = &app.service.app.engine.store().log;
    log.wait_until_flushed(log.appended()).await.expect("the tables catch up");
    sqlx::query_scalar(effects).fetch_one(&app.db).await.expect(effects)
}

async fn create_tag(app: &TestApp, name: &str) -> i64 {
    id(app.api.post("/tags", json!({"name": name})).await.data(201))
}

/// One call of every operation, on records of their own. Sets with different seeds share no record.
async fn every_call(app: &TestApp, seed: u8) -> Vec<Call> {
    let number = |line: u8| format!("55119{seed:03}000{line:02}");
    let phone = app.company.phone;
    let count_events = |kind: &str| -> &'static str {
        match kind {
            "transferred" => "select count(*) from ticket_events where type = 'transferred'",
            "reopened" => "select count(*) from ticket_events where type = 'reopened'",
            "wrapup_changed" => "select count(*) from ticket_events where type = 'wrapup_changed'",
            _ => "select count(*) from ticket_events where type = 'read'",
        }
    };
    let (transferred, kept, to_close) =
        (app.ticket(&number(1)).await, app.ticket(&number(2)).await, app.ticket(&number(3)).await);
    let (to_reopen, to_wrap_up) = (app.ticket(&number(4)).await, app.ticket(&number(5)).await);
    close(&app.api, to_reopen.0).await;
    close(&app.api, to_wrap_up.0).await;
    let contact = app.contact(&number(6)).await;
    let (SessionId(talking), _) = app.session(&format!("talking-{seed}")).await;
    let (SessionId(ending), _) = app.session(&format!("ending-{seed}")).await;
    let message = app.api.post(&format!("/webchat/sessions/{ending}/messages"), json!({"body": "hello"})).await;
    let unread = message.data(201)["ticketId"].clone();
    let tag = create_tag(app, &format!("before {seed}")).await;

    let board = id(app.api.post("/crm/boards", json!({"name": "kept"})).await.data(201));

    let text = |body: &str| json!({"type": "text", "body": format!("{body} {seed}")});
    let with = |mut body: Value, field: &str, value: Value| {
        body[field] = value;
        body
    };
    let opening = with(with(text("opening"), "channelId", json!(phone)), "number", json!(number(7)));
    let continuing = with(text("going on"), "ticketId", json!(kept));
    let question = json!({"type": "button", "body": {"text": "Sure?"}});
    let asking = json!({"ticketId": kept, "type": "interactive", "interactive": question});
    vec![
        Call::post("/tags", json!({"name": format!("made {seed}")}), 201, TAGS),
        Call::of(Method::PUT, format!("/tags/{tag}"), json!({"name": format!("after {seed}")}), 200, TAG_UPDATES),
        Call::post("/crm/boards", json!({"name": "made", "crmBoardLists": [{"label": "New"}]}), 201, BOARDS),
        Call::post(format!("/crm/boards/{board}/lists"), json!({"label": "Fourth"}), 201, STAGES),
        Call::post("/messages", opening, 202, MESSAGES),
        Call::post("/messages", continuing, 202, MESSAGES),
        Call::post("/messages", asking, 202, MESSAGES),
        Call::post("/tickets", json!({"channelId": phone, "contactId": contact}), 201, TICKETS),
        Call::post(format!("/tickets/{to_close}/close"), json!({"wrapupNote": "done"}), 200, CLOSED),
        Call::post(format!("/tickets/{kept}/notes"), json!({"body": "a note"}), 201, NOTES),
        Call::post(
            format!("/tickets/{transferred}/transfer"),
            json!({"queueId": app.company.sales}),
            200,
            count_events("transferred"),
        ),
        Call::post(format!("/tickets/{to_reopen}/reopen"), Value::Null, 200, count_events("reopened")),
        Call::of(
            Method::PUT,
            format!("/tickets/{to_wrap_up}/wrapup"),
            json!({"wrapupTypeId": app.company.sold}),
            200,
            count_events("wrapup_changed"),
        ),
        Call::post(format!("/tickets/{unread}/read"), Value::Null, 200, count_events("read")),
        Call::post(
            "/webchat/sessions",
            json!({"channelId": app.company.webchat, "visitor": {"externalId": format!("new-{seed}")}}),
            201,
            SESSIONS,
        ),
        Call::post(format!("/webchat/sessions/{talking}/messages"), json!({"body": "hello"}), 201, MESSAGES),
        Call::post(format!("/webchat/sessions/{ending}/end"), Value::Null, 200, ENDED_SESSIONS),
    ]
}

/// Asserts that the second answer is a replay of the first.
#[track_caller]
fn assert_replayed(name: &str, first: &Reply, second: &Reply) {
    assert!(second.is_replay(), "{name}: not a replay: {} {}", second.status, second.body);
    assert_same(name, first, second);
}

#[track_caller]
fn assert_same(name: &str, first: &Reply, second: &Reply) {
    assert_eq!(second.status, first.status, "{name}: {}", second.body);
    if first.body["data"].get("token").is_some() {
        // Only the first answer shows the token.
        assert_eq!(without_token(second), without_token(first), "{name}");
    } else {
        assert_eq!(second.bytes, first.bytes, "{name}: {} and {}", first.body, second.body);
    }
    assert_eq!(second.headers.get("content-type"), first.headers.get("content-type"), "{name}");
}

fn without_token(reply: &Reply) -> Value {
    let mut body = reply.body.clone();
    body["data"]["token"] = Value::Null;
    body
}

/// Sends the call for the first time under this key, and asserts that it has one effect.
async fn send_first(app: &OwnApp, call: &Call, key: &str) -> Reply {
    let before = count(app, call.effects).await;
    let first = call.send(&app.api, key).await;
    assert_eq!(first.status, call.status, "{}: {}", call.name(), first.body);
    assert!(!first.is_replay(), "{}: the first answer is a replay", call.name());
    assert!(!first.headers.contains_key("idempotent-replay"), "{}", call.name());
    assert_eq!(count(app, call.effects).await, before + 1, "{}: its effect does not show", call.name());
    first
}

/// Sends the call again, and asserts that the answer is a replay and has no effect.
async fn send_again(app: &OwnApp, call: &Call, key: &str, first: &Reply) {
    let before = count(app, call.effects).await;
    assert_replayed(&call.name(), first, &call.send(&app.api, key).await);
    assert_eq!(count(app, call.effects).await, before, "{}: happened twice", call.name());
}
