//! Clients during a stop: none is left with an unknown outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use nix::sys::signal::Signal;
use reqwest::header::CONNECTION;
use serde_json::json;

use super::Starting;
use crate::process::with_database;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, eventually, patience};

/// How long the stop is announced before nothing listens: more than two answers take while all clients send.
const NOTICE: Duration = Duration::from_secs(5);

const CLIENTS: usize = 16;

/// Requests of all clients before the stop.
const REQUESTS_BEFORE: usize = 200;

/// Sends one request after the other on kept connections, until nothing listens. Returns those without an outcome.
async fn send_until_refused(base: String, company: Arc<Company>, sent: Arc<AtomicUsize>) -> Vec<String> {
    let client = hotline::tls::client().build().expect("a client");
    let mut unknown = Vec::new();
    loop {
        let number = sent.fetch_add(1, Ordering::Relaxed);
        let body = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "x"});
        let request = client.post(format!("{base}/api/v1/messages")).bearer_auth(&company.key).json(&body);
        match request.send().await {
            Ok(answer) if answer.status() == 202 => drop(answer.bytes().await),
            // Refused, so its outcome is known.
            Ok(answer) if answer.status() == 503 => tokio::time::sleep(Duration::from_millis(100)).await,
            Ok(answer) => unknown.push(format!("{number}: {}", answer.status())),
            Err(error) if error.is_connect() => return unknown,
            Err(error) => unknown.push(format!("{number}: {error:?}")),
        }
    }
}

#[actix_web::test]
async fn no_client_is_left_with_an_unknown_outcome_by_a_stop() {
    let folder = prepared_folder();
    let company = Arc::new(with_database(folder.path(), async |db| Company::create(db, "Acme").await).await);
    let notice = format!("{}s", patience(NOTICE).as_secs());
    let mut process = Starting::serve(folder.path(), &["--stop-notice", &notice, "--rate-per-minute", "0"]);
    process.wait_until_ready().await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    let base = format!("http://{}", process.address);
    let sent: Arc<AtomicUsize> = Arc::default();
    let clients = (0..CLIENTS).map(|_| send_until_refused(base.clone(), company.clone(), sent.clone()));
    let stop = async {
        eventually("the load runs", || async { sent.load(Ordering::Relaxed) > REQUESTS_BEFORE }).await;
        process.signal(Signal::SIGTERM);
        eventually("the stop is announced", || async {
            process.get("/health/ready").await.is_some_and(|(status, ready)| {
                assert!(status == 200 || ready["status"] == "stopping", "{ready}");
                status == 503
            })
        })
        .await;
        // Requests are still served, and their connections end with the answer.
        let client = hotline::tls::client().build().expect("a client");
        let live = client.get(format!("{base}/health/live")).send().await.expect("an answer");
        assert_eq!((live.status().as_u16(), live.headers()[CONNECTION].to_str().ok()), (200, Some("close")));
    };
    let (unknown, ()) = futures_util::future::join(join_all(clients), stop).await;
    let unknown: Vec<String> = unknown.into_iter().flatten().collect();
    assert!(unknown.is_empty(), "unknown outcomes: {unknown:?}");
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}
