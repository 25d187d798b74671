//! Signatures, verified by the Standard Webhooks library of another language; rotated secrets; test deliveries.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use hotline::webhooks::WebhookOptions;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{add_webhook, note, webhook_with_receiver, with_retry_pauses};
use crate::events::{after, ids, types};
use crate::steps::id;
use crate::support::service::TestOptions;
use crate::support::{Conduct, OwnApp, Received, Receiver, Reply, TestApp, eventually};

/// The Python of the environment in which the library is installed, once for all tests of this machine; `None` where
/// there is no Python or no registry.
fn verifier() -> Option<std::path::PathBuf> {
    let folder = std::env::temp_dir().join("hotline-standardwebhooks");
    let python = folder.join("bin/python");
    let works = || {
        let import = Command::new(&python).args(["-c", "import standardwebhooks"]).output();
        import.is_ok_and(|done| done.status.success())
    };
    if works() {
        return Some(python);
    }
    let venv = Command::new("python3").args(["-m", "venv"]).arg(&folder).output().ok()?;
    if venv.status.success() {
        drop(Command::new(&python).args(["-m", "pip", "install", "-q", "standardwebhooks==1.0.1"]).output());
    }
    works().then_some(python)
}

/// Prints that a part of these tests is not run, which `.config/nextest.toml` shows although they pass. Fails in CI,
/// where everything that they need has to be there.
fn skip(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "not to be skipped in CI: {why}");
    eprintln!("not run: {why}");
}

const VERIFY: &str = r#"
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
for case in json.load(sys.stdin):
    try:
        Webhook(case["secret"]).verify(case["body"], case["headers"])
        print("good")
    except WebhookVerificationError as error:
        print("bad:", error)
"#;

fn case(secret: &str, request: &Received) -> Value {
    json!({
        "secret": secret,
        "body": String::from_utf8(request.body.clone()).expect("text"),
        "headers": request.headers,
    })
}

/// What the library prints for each case.
fn run_verifier(python: &std::path::Path, cases: &[Value]) -> Vec<String> {
    use std::io::Write;
    let mut child = Command::new(python)
        .args(["-c", VERIFY])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("python runs");
    child.stdin.take().expect("stdin").write_all(json!(cases).to_string().as_bytes()).expect("the cases");
    let output = child.wait_with_output().expect("python ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[actix_web::test]
async fn the_standard_webhooks_library_of_python_accepts_what_is_signed_and_nothing_else() {
    let Some(python) = verifier() else {
        skip("there is no Python with venv, or no registry to install standardwebhooks from");
        return;
    };
    let app = TestApp::shared().await;
    let receiver = Receiver::start().await;
    let made = app.api.post("/webhooks", json!({"url": receiver.url(), "types": ["note.added"]})).await;
    let (webhook, first) = (id(made.data(201)), made.data(201)["secret"].as_str().expect("a secret").to_owned());
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "Olá, ação! 😀 \"quoted\" \\ \u{2028}").await;
    let before = receiver.has(1).await[0].clone();
    let rotated = app.api.post(&format!("/webhooks/{webhook}/rotate-secret"), json!({})).await;
    let second = rotated.data(200)["secret"].as_str().expect("a secret").to_owned();
    let signatures = |request: &Received| request.header("webhook-signature").split(' ').count();
    // The courier (the task that delivers to the webhook) learns of the rotation by itself.
    eventually("both secrets sign", || async {
        note(&app.api, ticket.0, "again").await;
        receiver.has(receiver.count() + 1).await.last().is_some_and(|request| signatures(request) == 2)
    })
    .await;
    let both = receiver.received().last().expect("a request").clone();
    sqlx::query("update webhooks set old_secret_until = now() - interval '1 second', url = url where id = $1")
        .bind(webhook)
        .execute(&app.db)
        .await
        .expect("a day has passed");
    eventually("only the new one signs", || async {
        note(&app.api, ticket.0, "alone").await;
        receiver.has(receiver.count() + 1).await.last().is_some_and(|request| signatures(request) == 1)
    })
    .await;
    let after = receiver.received().last().expect("a request").clone();
    let mut forged = both.clone();
    forged.body.push(b' ');
    let mut with_other_id = both.clone();
    with_other_id.headers.insert("webhook-id".to_owned(), "evt_1_1".to_owned());
    let mut stale = both.clone();
    stale.headers.insert("webhook-timestamp".to_owned(), "1700000000".to_owned());
    let cases = [
        (case(&first, &before), true),
        (case(&second, &before), false),
        (case(&first, &both), true),
        (case(&second, &both), true),
        (case(&second, &after), true),
        (case(&first, &after), false),
        (case(&first, &forged), false),
        (case(&first, &with_other_id), false),
        (case(&first, &stale), false),
    ];
    let output = run_verifier(&python, &cases.iter().map(|(case, _)| case.clone()).collect::<Vec<_>>());
    let expected: Vec<bool> = cases.iter().map(|(_, is_good)| *is_good).collect();
    assert_eq!(output.iter().map(|word| word == "good").collect::<Vec<_>>(), expected, "{output:?}");
    app.stop().await;
}

/// The code of a language in `docs/events.md`.
fn snippet(language: &str) -> String {
    let page = include_str!("../../../docs/events.md");
    let begin = format!("```{language}\n");
    let code = page.split(&begin).nth(1).and_then(|rest| rest.split("\n```").next());
    code.unwrap_or_else(|| panic!("docs/events.md has no {language}")).to_owned()
}

/// What the code of the manual prints for each case, run by its interpreter; `None` where there is no interpreter.
fn run(interpreter: &str, code: &str, cases: &[Value]) -> Option<Vec<String>> {
    use std::io::Write;
    if Command::new(interpreter).arg("--version").output().is_err() {
        skip(&format!("there is no {interpreter}"));
        return None;
    }
    let flag = if interpreter == "node" { "-e" } else { "-c" };
    let mut child = Command::new(interpreter)
        .args([flag, code])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    child.stdin.take().expect("stdin").write_all(json!(cases).to_string().as_bytes()).expect("the cases");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{interpreter}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect())
}

#[actix_web::test]
async fn the_code_of_the_manual_accepts_what_is_signed_and_nothing_else() {
    let app = TestApp::shared().await;
    let receiver = Receiver::start().await;
    let made = app.api.post("/webhooks", json!({"url": receiver.url(), "types": ["note.added"]})).await;
    let secret = made.data(201)["secret"].as_str().expect("a secret").to_owned();
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "Olá, ação! 😀").await;
    let good = receiver.has(1).await[0].clone();
    let with_header = |name: &str, value: &str| {
        let mut changed = good.clone();
        changed.headers.insert(name.to_owned(), value.to_owned());
        changed
    };
    let two_signatures = format!("v1,AAAA {}", good.header("webhook-signature"));
    let mut forged = good.clone();
    forged.body.push(b' ');
    let other_secret = hotline::webhooks::new_secret().0;
    let cases = [
        (case(&secret, &good), "True"),
        (case(&secret, &with_header("webhook-signature", &two_signatures)), "True"),
        (case(&other_secret, &good), "False"),
        (case(&secret, &forged), "False"),
        (case(&secret, &with_header("webhook-id", "evt_1_1")), "False"),
        (case(&secret, &with_header("webhook-timestamp", "1700000000")), "False"),
        (case(&secret, &with_header("webhook-signature", "v1,AAAA")), "False"),
    ];
    let (inputs, expected): (Vec<Value>, Vec<&str>) = cases.iter().cloned().unzip();
    let python = format!(
        "{}\nimport json, sys\nfor case in json.load(sys.stdin):\n    \
         print(verify(case['secret'], case['headers'], case['body'].encode()))",
        snippet("python")
    );
    let node = format!(
        "{}\nfor (const one of JSON.parse(require('node:fs').readFileSync(0, 'utf8')))\n  \
         console.log(verify(one.secret, one.headers, Buffer.from(one.body)) ? 'True' : 'False');",
        snippet("js")
    );
    for (interpreter, code) in [("python3", python), ("node", node)] {
        if let Some(output) = run(interpreter, &code, &inputs) {
            assert_eq!(output, expected, "{interpreter}");
        }
    }
    for language in ["go", "php", "ruby"] {
        assert!(snippet(language).contains("verify"), "{language}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn metrics_show_how_attempts_end_and_how_far_behind_an_endpoint_is() {
    let options = TestOptions { metrics: true, ..with_retry_pauses(&[30, 3_600_000]) };
    let app = OwnApp::start_with(options).await;
    let address = app.service.metrics_listener.as_ref().expect("metrics are served").address;
    let metrics = || crate::support::metrics::ScrapedMetrics::of(address);
    let attempts = |end: &str| format!("hotline_webhook_attempts_total{{end=\"{end}\"}}");
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "a").await;
    eventually("one is delivered", || async { metrics().await.value(&attempts("delivered")) == 1.0 }).await;
    receiver.behave(Conduct::status(500));
    note(&app.api, ticket.0, "b").await;
    eventually("one is tried again", || async { metrics().await.value(&attempts("retried")) == 2.0 }).await;
    eventually("it is behind", || async { metrics().await.value("hotline_webhook_lag_seconds") > 0.2 }).await;
    assert_eq!(metrics().await.value(&attempts("failed")), 0.0);
    app.api.delete(&format!("/webhooks/{webhook}")).await;
    eventually("nothing is behind", || async { metrics().await.value("hotline_webhook_lag_seconds") == 0.0 }).await;
    let (_, removed) = webhook_with_receiver(&app, &["note.added"]).await;
    removed.behave(Conduct::status(410));
    note(&app.api, ticket.0, "c").await;
    let off = || async { metrics().await.value("hotline_webhooks_switched_off_total") == 1.0 };
    eventually("one is switched off", off).await;
    eventually("nothing is under way", || async { metrics().await.value("hotline_webhook_attempts_under_way") == 0.0 })
        .await;
    app.stop().await;
}

#[actix_web::test]
async fn a_test_shows_what_the_endpoint_answers_and_is_not_in_the_event_log() {
    let app = OwnApp::start_with(with_retry_pauses(&[3_600_000])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    app.api.put(&format!("/webhooks/{webhook}"), json!({"active": false})).await.data(200);
    let path = format!("/webhooks/{webhook}/test");
    let test = || app.api.post(&path, json!({}));
    receiver.behave(Conduct::Answer(201, "é".repeat(2_000)));
    let tested = test().await;
    let tested = tested.data(200);
    assert_eq!((&tested["delivered"], &tested["status"], &tested["error"]), (&json!(true), &json!(201), &Value::Null));
    assert_eq!(tested["body"].as_str().map(|body| body.chars().count()), Some(1_000));
    assert!(tested["durationMs"].is_u64());
    let request = receiver.received()[0].clone();
    let event = request.event();
    assert_eq!(
        (&event["type"], &event["id"], &event["data"]),
        (&json!("webhook.test"), &json!(0), &json!({"webhookId": webhook}))
    );
    assert!(request.header("webhook-id").starts_with("test_"));
    assert!(request.header("webhook-signature").starts_with("v1,"));
    for (conduct, status, error) in [
        (Conduct::Answer(500, "oh".to_owned()), json!(500), "the endpoint responded with 500"),
        (Conduct::status(410), json!(410), "the endpoint responded with 410 Gone"),
    ] {
        receiver.behave(conduct);
        let tested = test().await;
        let tested = tested.data(200);
        assert_eq!((&tested["delivered"], &tested["status"]), (&json!(false), &status));
        assert_eq!(tested["error"], error);
    }
    // A repetition with a key sends nothing.
    receiver.behave(Conduct::status(200));
    let before = receiver.count();
    let keyed = || Reply::of(app.api.keyed(reqwest::Method::POST, &path, "test-once", "{}"));
    assert_eq!(keyed().await.data(200), keyed().await.data(200));
    assert_eq!(receiver.count(), before + 1);
    // A webhook has one test at a time, during which the company can be closed.
    let (go, before) = (Arc::new(Notify::new()), receiver.count());
    receiver.behave(Conduct::Held(go.clone()));
    let during_the_test = async {
        receiver.has(before + 1).await;
        let refused = test().await;
        let closed = app.service.app.engine.store().ownership().close(app.company.id).await;
        drop(closed.expect("no request is in progress"));
        go.notify_one();
        refused
    };
    let (good, refused) = futures_util::future::join(test(), during_the_test).await;
    good.data(200);
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "test_running");
    // The log has no event of a test and no gap for one, and the webhook has no delivery.
    app.api.post("/contacts", json!({"name": "Maria"})).await.data(201);
    let events = after(&app.api, 0).await;
    assert!(types(&events).contains(&"contact.created"), "{events:?}");
    assert!(types(&events).iter().all(|kind| !kind.starts_with("webhook.")), "a test is in the log: {events:?}");
    assert!(ids(&events).into_iter().eq(1..=events.len() as i64), "the log has a gap: {events:?}");
    let deliveries = app.api.all(&format!("/webhooks/{webhook}/deliveries")).await;
    assert!(deliveries.is_empty(), "a test is a delivery: {deliveries:?}");
    app.stop().await;
}

#[actix_web::test]
async fn a_delivery_waits_for_an_answer_as_long_as_the_options_say() {
    let defaults = TestOptions::default();
    assert_eq!(defaults.webhooks.response_time_max, Duration::from_secs(15));
    let webhooks = WebhookOptions { response_time_max: Duration::from_millis(300), ..defaults.webhooks.clone() };
    let app = OwnApp::start_with(TestOptions { webhooks, ..defaults }).await;
    let receiver = Receiver::start().await;
    let webhook = add_webhook(&app.api, &receiver.url(), &[]).await;
    receiver.behave(Conduct::Hang);
    let took_ms = async || {
        let tested = app.api.post(&format!("/webhooks/{webhook}/test"), json!({})).await;
        let tested = tested.data(200);
        assert_eq!((&tested["delivered"], &tested["status"]), (&json!(false), &Value::Null));
        assert_eq!(tested["error"], "the request failed: no response in time");
        tested["durationMs"].as_u64().expect("a time")
    };
    assert!(took_ms().await >= 300);
    // A machine that stalls may delay one of them; the default time would delay every one.
    eventually("one ends before the default time", || async { took_ms().await < 15_000 }).await;
    app.stop().await;
}
