//! `HEAD` wherever there is `GET`: the same head, and no body.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use hotline::openapi::Operation;
use hotline::routes;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::support::{PATIENCE, TestApp, patience};

/// Headers that differ from one answer to the next.
const VOLATILE_HEADERS: [&str; 5] =
    ["date", "x-request-id", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];

/// The headers that are the same in the next answer, sorted by name.
fn stable_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut stable: Vec<(String, String)> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
        .filter(|(name, _)| !VOLATILE_HEADERS.contains(&name.as_str()))
        .collect();
    stable.sort();
    stable
}

#[actix_web::test]
async fn every_get_has_a_head_with_the_same_headers_and_no_body() {
    let app = TestApp::shared().await;
    let (session, contact) = app.session("visitor").await;
    let sent = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
    let (ticket_id, message) = (sent.data(201)["ticketId"].to_string(), sent.data(201)["id"].to_string());
    let public_key: String = sqlx::query_scalar("select public_key from channels where id = $1")
        .bind(app.company.webchat)
        .fetch_one(&app.db)
        .await
        .expect("the key");
    let filled = |path: &str| {
        path.replace("{ticketId}", &ticket_id)
            .replace("{messageId}", &message)
            .replace("{contactId}", &contact.to_string())
            .replace("{sessionId}", &session.0)
            .replace("{channelId}", &app.company.webchat.to_string())
            .replace("{queueId}", &app.company.support.to_string())
            .replace("{userId}", &app.company.ana.to_string())
            .replace("{publicKey}", &public_key)
    };
    let gets = |operations: Vec<Operation>| -> Vec<String> {
        let gets = operations.into_iter().filter(|operation| operation.method == "GET");
        gets.map(|operation| operation.full_path()).collect()
    };
    let mut paths = gets(routes::operations(&mut BTreeMap::new()));
    let api_paths = paths.len();
    // A socket is opened by a `GET` only. The paths of providers answer only requests with the provider's token.
    let other_paths = gets(routes::operations_outside_api(&mut BTreeMap::new())).into_iter();
    paths.extend(other_paths.filter(|path| !path.ends_with("/socket") && !path.starts_with("/hooks")));
    paths.extend(["/api/v1/openapi.json", "/docs", "/docs/", "/nothing"].map(str::to_owned));
    let client = hotline::tls::client().redirect(reqwest::redirect::Policy::none()).build().expect("client");
    let mut successes = 0;
    for path in paths {
        let url = format!("http://{}{}", app.address, filled(&path));
        let ask = async |method: Method, packed: bool| {
            let mut request = client.request(method.clone(), &url).bearer_auth(&app.company.key);
            if packed {
                request = request.header("accept-encoding", "gzip");
            }
            let response = request.send().await.expect("an answer");
            let (status, headers) = (response.status(), response.headers().clone());
            // The body of a `HEAD` of a stream ends; that of a `GET` does not.
            let is_endless = path.ends_with("/stream") && headers.contains_key("transfer-encoding");
            let body = if is_endless && method == Method::GET {
                Bytes::new()
            } else {
                response.bytes().await.expect("a body")
            };
            (status, headers, body)
        };
        for packed in [false, true] {
            let mut get = ask(Method::GET, packed).await;
            let mut head = ask(Method::HEAD, packed).await;
            // The answers show seconds, and one may have passed between the two requests. Then the next `GET` has the
            // headers of the `HEAD`, unless another second has passed: only then are both sent again.
            let deadline = Instant::now() + patience(PATIENCE);
            while stable_headers(&head.1) != stable_headers(&get.1) {
                let last = get;
                get = ask(Method::GET, packed).await;
                let has_changed = stable_headers(&last.1) != stable_headers(&get.1) || last.2 != get.2;
                if stable_headers(&head.1) == stable_headers(&get.1) || !has_changed || Instant::now() > deadline {
                    break;
                }
                head = ask(Method::HEAD, packed).await;
            }
            let ((status, headers, body), (head_status, head_headers, head_body)) = (get, head);
            assert_eq!(head_status, status, "{path}");
            assert!(head_body.is_empty(), "{path}: {} bytes", head_body.len());
            assert_eq!(stable_headers(&head_headers), stable_headers(&headers), "{path}");
            if status != 204 && status != 304 && !headers.contains_key("transfer-encoding") {
                assert_eq!(headers["content-length"], body.len().to_string(), "{path}");
            }
            successes += usize::from(status == 200);
        }
    }
    assert!(successes > api_paths, "only {successes} answers are 200");

    // A `HEAD` needs the same permission as a `GET`, and does not mark the messages of the list as delivered.
    let list = format!("/webchat/sessions/{session}/messages");
    app.api
        .post("/messages", json!({"ticketId": ticket_id.parse::<i64>().expect("an id"), "type": "text", "body": "x"}))
        .await
        .data(202);
    for _ in 0..3 {
        assert_eq!(app.api.request(Method::HEAD, &list).send().await.expect("an answer").status(), 200);
    }
    let last = app.api.all("/messages?direction=outbound").await.pop().expect("a message");
    assert_eq!(last["status"], "sent");
    assert_eq!(app.api.anonymous(Method::HEAD, "/api/v1/tickets").send().await.expect("an answer").status(), 401);
    app.stop().await;
}

#[actix_web::test]
async fn an_unknown_route_is_answered_with_no_such_endpoint() {
    let app = TestApp::shared().await;
    for path in ["/nothing", "/tickets/1/nothing", "/tickets/"] {
        let reply = app.api.get(path).await;
        reply.error(404, "ERR_API_NOT_FOUND");
        assert_eq!(reply.body["error"]["message"], "no such endpoint", "{path}");
    }
    let reply = app.api.get("/tickets/999999999").await;
    reply.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(reply.body["error"]["message"], "record not found");
    app.api.with_key("sk_live_x").get("/nothing").await.error(401, "ERR_API_UNAUTHORIZED");
    app.stop().await;
}
