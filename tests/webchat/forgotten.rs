//! A company is dropped from memory while it is served, and served again: nothing that was answered is missing, and no
//! other company notices.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all, join5};
use hotline_actors::channels::SendingOptions;
use hotline_actors::{EngineOptions, clock};
use hotline_persistence::ChannelId;
use hotline_persistence::tables::channels::{ChannelRow, ChannelType};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::provider::Answer;
use crate::support::provider::hooks::{Phone, signature, text};
use crate::support::seed::{APP_SECRET, provided};
use crate::support::service::TestOptions;
use crate::support::service::refresh;
use crate::support::{Api, Company, OwnApp, Provider, Reply, TestApp, eventually, keys};
use crate::visitor::{Browser, PAUSE, Session};

/// How often the company is dropped, and how many of its requests are answered between two drops, at least.
const ROUNDS: usize = 15;
const ANSWERED_BETWEEN_MIN: usize = 20;

/// Conversations over the phone channel.
const NUMBERS: usize = 4;

/// Another company never waits this long, although a drop may take longer.
const WAIT_MAX: Duration = Duration::from_secs(2);

const ACCOUNT: &str = "6001";

/// Options without a limit on the rate of sending.
fn unlimited_options() -> TestOptions {
    let sending = SendingOptions { per_second: 0, recipient_interval: Duration::ZERO, ..SendingOptions::default() };
    let options = TestOptions::default();
    TestOptions { engine: EngineOptions { sending, ..options.engine.clone() }, ..options }
}

async fn create_phone_channel(app: &TestApp, company: &Company, account: &str, provider: &Provider) -> ChannelRow {
    let row = provided(&app.db, &keys(), company.id, ChannelType::Whatsapp, account, &provider.url).await;
    refresh(&app.api, company).await;
    row
}

/// The state that all callers share.
#[derive(Default)]
struct Run {
    is_over: Cell<bool>,
    answered: Cell<usize>,
    /// How many sockets the visitor has opened, one after the other.
    opened: Cell<usize>,
    /// The longest that another company has waited.
    longest_wait: Cell<Duration>,
}

impl Run {
    /// True if the reply has this status. The only other reply is a refusal while the company is being dropped: then
    /// false, after a pause.
    async fn is_answered(&self, reply: &Reply, status: u16) -> bool {
        if reply.status.as_u16() == status {
            self.answered.set(self.answered.get() + 1);
            return true;
        }
        reply.error(503, "ERR_API_UNAVAILABLE");
        assert!(reply.headers.contains_key("retry-after"), "{:?}", reply.headers);
        tokio::time::sleep(PAUSE).await;
        false
    }
}

/// Sends texts to a number one after the other, every other one with a key, which is repeated until it is answered.
/// Returns the accepted texts, in order.
async fn send_texts(run: &Run, api: &Api, channel: ChannelId, number: usize) -> Vec<String> {
    let mut accepted = Vec::new();
    for count in 0.. {
        if run.is_over.get() {
            break;
        }
        let text = format!("{number}-{count}");
        let to = format!("55119{number:08}");
        let body = json!({"channelId": channel, "number": to, "type": "text", "body": text});
        let job = loop {
            let is_keyed = count % 2 == 0;
            let reply = match is_keyed {
                true => Reply::of(api.keyed(Method::POST, "/messages", &text, body.to_string())).await,
                false => api.post("/messages", body.clone()).await,
            };
            if run.is_answered(&reply, 202).await {
                break Some(reply.data(202)["jobId"].as_str().expect("a job").to_owned());
            }
            if !is_keyed {
                break None;
            }
        };
        let Some(job) = job else { continue };
        accepted.push(text);
        // The job of an accepted message is found, however long it takes.
        while !run.is_answered(&api.get(&format!("/messages/jobs/{job}")).await, 200).await {}
    }
    accepted
}

/// Reads tickets, hot or not, and lists.
async fn read_tickets(run: &Run, api: &Api) {
    while !run.is_over.get() {
        let reply = api.get("/tickets?status=open").await;
        if !run.is_answered(&reply, 200).await {
            continue;
        }
        for ticket in reply.data(200).as_array().expect("a list") {
            run.is_answered(&api.get(&format!("/tickets/{}", ticket["id"])).await, 200).await;
        }
    }
}

/// The visitor and an agent take turns. Returns the accepted texts, in order.
async fn take_turns(run: &Run, browser: &Browser, session: &Session, api: &Api) -> Vec<String> {
    let mut sent = Vec::new();
    for count in 0.. {
        if run.is_over.get() {
            break;
        }
        let text = format!("v-{count}");
        let body = json!({"body": text, "clientId": text});
        let reply = loop {
            let reply = browser.post(session, "/messages", body.clone()).await;
            if run.is_answered(&reply, 201).await {
                break reply;
            }
        };
        sent.push(text);
        let id = reply.data(201)["id"].clone();
        let ticket = loop {
            let message = api.get(&format!("/messages/{id}")).await;
            if run.is_answered(&message, 200).await {
                break message.data(200)["ticketId"].clone();
            }
        };
        let text = format!("a-{count}");
        let body = json!({"ticketId": ticket, "type": "text", "body": text});
        if run.is_answered(&api.post("/messages", body).await, 202).await {
            sent.push(text);
        }
    }
    sent
}

/// Watches the conversation through a socket, and opens another whenever it is closed. Returns the shown texts, in
/// order, and how often a socket was closed.
async fn watch_socket(
    run: &Run,
    browser: &Browser,
    session: &Session,
    until: impl AsyncFn(&[String]) -> bool,
) -> (Vec<String>, usize) {
    let (mut shown, mut last, mut closed) = (Vec::new(), None, 0);
    loop {
        let mut socket = match browser.try_socket(&session.token).await {
            Ok(socket) => socket,
            Err((503, _)) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(refused) => panic!("the socket is refused: {refused:?}"),
        };
        // A socket that is closed at once takes no frame.
        if !socket.try_send(json!({"type": "after", "id": last})).await {
            continue;
        }
        run.opened.set(run.opened.get() + 1);
        loop {
            if until(&shown).await {
                return (shown, closed);
            }
            let frame = match socket.next_or_end().await {
                Ok(frame) => frame,
                Err(code) => {
                    assert_eq!(code, Some(1012), "the socket was not closed by the drop");
                    closed += 1;
                    break;
                }
            };
            if frame["type"] == "message" {
                let id = frame["message"]["id"].as_i64();
                assert!(id > last, "shown twice, or out of order: {frame}");
                last = id;
                shown.push(frame["message"]["body"].as_str().expect("a text").to_owned());
            }
        }
    }
}

/// Another company sends all the time, and its longest wait is recorded.
async fn send_meanwhile(run: &Run, api: &Api, channel: ChannelId) {
    for count in 0.. {
        if run.is_over.get() {
            break;
        }
        let began = Instant::now();
        let text = json!({"channelId": channel, "number": "551188887777", "type": "text", "body": format!("{count}")});
        let job = api.post("/messages", text).await.data(202)["jobId"].as_str().expect("a job").to_owned();
        api.get(&format!("/messages/jobs/{job}")).await.data(200);
        run.longest_wait.set(run.longest_wait.get().max(began.elapsed()));
    }
}

/// Drops the company. A drop is given up when a request takes ten seconds, as on a slow machine; then it is repeated.
async fn drop_company(app: &OwnApp) {
    eventually("the company is dropped", || async { app.service.forget(app.company.id).await.is_ok() }).await;
}

/// Drops a company again and again while it is used. Returns the longest that another company has waited meanwhile.
async fn drop_under_load() -> Duration {
    let app = OwnApp::start_with(unlimited_options()).await;
    // The clock stands still, so that the service never closes a socket because its `after` is late.
    clock::stop();
    let provider = Provider::start().await;
    let channel = create_phone_channel(&app, &app.company, ACCOUNT, &provider).await.id;
    let (other, other_api) = app.another_company().await;
    let other_channel = create_phone_channel(&app, &other, "6002", &provider).await.id;
    let browser = Browser::of(&app).await;
    let session = browser.open("v-1").await;
    let run = Run::default();

    let drops = async {
        for round in 1..=ROUNDS {
            let target = run.answered.get() + ANSWERED_BETWEEN_MIN;
            // Each drop closes the visitor's socket, so the next drop waits until another one has been opened.
            let is_in_use = || async { run.answered.get() >= target && run.opened.get() >= round };
            eventually("the company is served and watched", is_in_use).await;
            drop_company(&app).await;
        }
        run.is_over.set(true);
    };
    let sent_count = RefCell::new(None);
    let talk = async {
        let sent = take_turns(&run, &browser, &session, &app.api).await;
        *sent_count.borrow_mut() = Some(sent.len());
        sent
    };
    let watch = watch_socket(&run, &browser, &session, async |shown: &[String]| {
        sent_count.borrow().is_some_and(|all| shown.len() >= all)
    });
    let load = join_all((0..NUMBERS).map(|number| send_texts(&run, &app.api, channel, number)));
    let of_company = join5(load, read_tickets(&run, &app.api), talk, watch, drops);
    let ((accepted, (), sent, (shown, closed), ()), ()) =
        join(of_company, send_meanwhile(&run, &other_api, other_channel)).await;

    assert_eq!(shown, sent, "what the visitor saw");
    assert!(closed >= ROUNDS - 1, "the socket was closed {closed} times");
    let stored = app.api.all("/messages?perPage=100").await;
    for (number, accepted) in accepted.iter().enumerate() {
        assert!(accepted.len() > 1, "too little was accepted: {accepted:?}");
        let is_theirs = |text: &&str| text.starts_with(&format!("{number}-"));
        let bodies: Vec<&str> =
            stored.iter().filter_map(|message| message["body"].as_str()).filter(is_theirs).collect();
        assert_eq!(bodies, *accepted, "what is stored of number {number}");
    }
    let total: usize = accepted.iter().map(Vec::len).sum();
    let provider_calls = provider.accepts(ACCOUNT, total).await;
    for (number, accepted) in accepted.iter().enumerate() {
        let to = format!("55119{number:08}");
        let texts: Vec<&str> = provider_calls.iter().filter(|call| call.to == to).map(|call| call.text()).collect();
        assert_eq!(texts, *accepted, "what the provider got for number {number}");
    }
    app.stop().await;
    run.longest_wait.get()
}

#[actix_web::test]
async fn a_company_that_is_dropped_under_load_loses_nothing() {
    drop_under_load().await;
}

#[actix_web::test]
async fn no_other_company_waits_for_one_that_is_dropped_under_load_measured() {
    let longest_wait = drop_under_load().await;
    assert!(longest_wait < WAIT_MAX, "another company waited {longest_wait:?}");
}

#[actix_web::test]
async fn a_dropped_company_leaves_nothing_in_memory_and_repeated_requests_have_no_second_effect() {
    let app = OwnApp::start_with(unlimited_options()).await;
    let provider = Provider::start().await;
    let channel = create_phone_channel(&app, &app.company, ACCOUNT, &provider).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v-1").await;
    browser.say(&session, "hello").await;
    let mut socket = browser.socket(&session).await;
    let send = json!({"channelId": channel.id, "number": "5511999990000", "type": "text", "body": "once"}).to_string();
    let send = async || Reply::of(app.api.keyed(Method::POST, "/messages", "key", send.clone())).await;
    let first = send().await.data(202).clone();
    let business_phone = Phone { id: ACCOUNT.to_owned(), number: "15550783881".to_owned() };
    let call = business_phone.message("5511999991111", "Ana", text("wamid.1", "written once"));
    let call = async || {
        let bytes = call.to_string().into_bytes();
        let request = app.api.anonymous(Method::POST, &format!("/hooks/{}", channel.public_key));
        let signed = request.header("x-hub-signature-256", signature(APP_SECRET, &bytes));
        Reply::of(signed.header("content-type", "application/json").body(bytes)).await.data(200).clone()
    };
    assert_eq!(call().await["taken"], 1);
    provider.accepts(ACCOUNT, 1).await;

    let engine = &app.service.app.engine;
    let before = engine.stats();
    assert_eq!((before.tickets.hot, before.sessions.hot), (3, 1));
    drop_company(&app).await;
    let after = engine.stats();
    assert_eq!((after.tickets.hot, after.sessions.hot), (0, 0), "actors are left");
    assert_eq!(engine.sessions.connected_sessions(), 0, "a session is watched");
    assert_eq!(engine.store().log.last_of(app.company.id), 0);
    assert_eq!(socket.close_code().await, Some(1012));

    let again = send().await;
    assert!(again.is_replay(), "{again:?}");
    assert_eq!(again.data(202), &first);
    assert_eq!(call().await["repeated"], 1, "the repeated call was taken again");
    assert_eq!(browser.get(&session, "/messages").await.data(200)[0]["body"], "hello");
    let (_socket, shown) = browser.socket_after(&session, None).await;
    assert_eq!(shown.len(), 1);
    let messages = app.api.all("/messages").await;
    let bodies: Vec<&Value> = messages.iter().map(|message| &message["body"]).collect();
    assert_eq!(bodies, ["hello", "once", "written once"]);
    assert_eq!(provider.accepted_count(ACCOUNT), 1, "it was sent again");
    app.stop().await;
}

#[actix_web::test]
async fn a_company_whose_provider_does_not_answer_is_not_dropped_and_continues() {
    let app = OwnApp::start_with(unlimited_options()).await;
    let provider = Provider::start().await;
    let channel = create_phone_channel(&app, &app.company, ACCOUNT, &provider).await.id;
    let send = async |body: &str| {
        let body = json!({"channelId": channel, "number": "5511999990000", "type": "text", "body": body});
        app.api.post("/messages", body).await.data(202).clone()
    };
    provider.next(ACCOUNT, [Answer::Hang]);
    send("first").await;
    provider.called_times(ACCOUNT, 1).await;
    let engine = &app.service.app.engine;
    let is_closed = || async { engine.store().ownership().try_enter(app.company.id).is_none() };
    tokio::select! {
        biased;
        () = eventually("the company takes no new requests", is_closed) => {}
        dropped = app.service.forget(app.company.id) => panic!("the drop ended while a call is under way: {dropped:?}"),
    }
    assert!(engine.owns(app.company.id), "a drop that was given up has removed the company");
    send("second").await;
    provider.release();
    let calls = provider.accepts(ACCOUNT, 2).await;
    assert_eq!(calls.iter().map(|call| call.text()).collect::<Vec<_>>(), ["first", "second"]);
    drop_company(&app).await;
    send("third").await;
    provider.accepts(ACCOUNT, 3).await;
    app.stop().await;
}
