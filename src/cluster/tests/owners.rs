//! Owners that change, or end, while a request is in progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hotline_persistence::cluster::{LifeId, Moment, Peer};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket};

use super::{COMPANY, Node, ask, client, pair, slot, until};

#[actix_web::test]
async fn a_request_waits_for_its_owner_and_is_executed_once() {
    let (edge, first) = pair();
    let second = Node::start(3);
    first.membership.placement.close([slot()]);
    let client = client();
    let request = ask(&client, Method::POST, edge.url("/api/v1/echo")).body("abc").send();
    let request = tokio::spawn(request);
    until("the edge got 421, and waits for another owner", || edge.metrics.cluster.waited() == 1).await;
    assert_eq!((first.started_requests(), edge.started_requests()), (0, 0));
    second.own_company();
    edge.forward_to(&second.peer());
    let echo: Value = request.await.expect("asked").expect("an answer").json().await.expect("JSON");
    assert_eq!((echo["body"].as_u64(), second.started_requests(), first.started_requests()), (Some(3), 1, 0));

    // The company moves to the edge itself, whose gate for it (which lets requests in) is closed for a while.
    let closed_gate = edge.ownership.close(COMPANY).await.expect("closed");
    second.membership.placement.close([slot()]);
    edge.own_company();
    let request = tokio::spawn(ask(&client, Method::POST, edge.url("/api/v1/echo")).body("abcd").send());
    until("the request waits", || edge.metrics.cluster.waited() == 2).await;
    assert_eq!(edge.started_requests(), 0);
    drop(closed_gate);
    let echo: Value = request.await.expect("asked").expect("an answer").json().await.expect("JSON");
    assert_eq!((echo["body"].as_u64(), edge.started_requests()), (Some(4), 1));

    // There is no owner, or it cannot be reached: the response asks for a retry.
    let edge = Node::impatient(4);
    // Bound but not listening, so that no other process of this machine gets the port.
    let silent_socket = TcpSocket::new_v4().expect("a socket");
    silent_socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = silent_socket.local_addr().expect("an address").to_string();
    for owner in [None, Some(Peer { life: LifeId::new(9), node: "gone".to_owned(), address })] {
        if let Some(owner) = &owner {
            edge.forward_to(owner);
        }
        let answer = ask(&client, Method::POST, edge.url("/api/v1/echo")).body("abc").send().await.expect("an answer");
        assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"1".parse().expect("value")));
        assert!(answer.headers().contains_key("x-request-id"));
        let body: Value = answer.json().await.expect("JSON");
        assert_eq!(body["error"]["code"], "ERR_API_UNAVAILABLE");
    }
}

/// A process that reads a request and disconnects without a response.
async fn dying_peer() -> (Peer, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let request_count = Arc::new(AtomicUsize::new(0));
    let counter = request_count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let read = stream.read(&mut [0; 4096]).await;
            assert!(read.is_ok_and(|read| read > 0));
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    (Peer { life: LifeId::new(9), node: "dying_peer".to_owned(), address }, request_count)
}

#[actix_web::test]
async fn a_request_whose_outcome_is_lost_is_repeated_only_if_that_is_safe() {
    let edge = Node::start(1);
    let successor = Node::start(3);
    successor.own_company();
    let (dying_peer, request_count) = dying_peer().await;
    let client = client();
    let path = "/api/v1/echo";
    edge.forward_to(&dying_peer);
    let lost = ask(&client, Method::POST, edge.url(path)).body("abc").send().await;
    assert!(lost.is_err(), "the outcome is unknown, so there is no response: {lost:?}");
    assert_eq!((request_count.load(Ordering::SeqCst), edge.metrics.cluster.aborted()), (1, 1));
    for (method, key) in [(Method::GET, None), (Method::POST, Some("key"))] {
        edge.forward_to(&dying_peer);
        let before = request_count.load(Ordering::SeqCst);
        let mut request = ask(&client, method.clone(), edge.url(path)).body("abc");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let sent = tokio::spawn(request.send());
        until("the peer got the request", || request_count.load(Ordering::SeqCst) > before).await;
        edge.forward_to(&successor.peer());
        let echo: Value = sent.await.expect("asked").expect("an answer").json().await.expect("JSON");
        assert_eq!((&echo["method"], echo["body"].as_u64()), (&json!(method.as_str()), Some(3)));
    }
    assert_eq!(successor.started_requests(), 2);

    // A request that the next owner refuses for now may have been executed by the previous one.
    let impatient = Node::impatient(4);
    impatient.forward_to(&dying_peer);
    let before = request_count.load(Ordering::SeqCst);
    let request = ask(&client, Method::POST, impatient.url(path)).header("idempotency-key", "other").body("abc");
    let sent = tokio::spawn(request.send());
    until("the peer got the request", || request_count.load(Ordering::SeqCst) > before).await;
    successor.membership.lease.end();
    impatient.forward_to(&successor.peer());
    assert!(sent.await.expect("asked").is_err(), "503 would say that nothing was changed");
    assert_eq!(successor.started_requests(), 2);
    successor.membership.lease.extend(Moment::now() + Duration::from_secs(3600));

    // A process that hangs counts as ended once the placement says so.
    let hanging = Node::start(5);
    hanging.own_company();
    edge.forward_to(&hanging.peer());
    let get = tokio::spawn(ask(&client, Method::GET, edge.url("/api/v1/hang/200")).send());
    let post = tokio::spawn(ask(&client, Method::POST, edge.url("/api/v1/hang/200")).send());
    hanging.wait_for_requests(2).await;
    edge.forward_to(&successor.peer());
    assert!(post.await.expect("asked").is_err());
    successor.wait_for_requests(3).await;
    successor.world.proceed.notify_one();
    assert_eq!(get.await.expect("asked").expect("an answer").status().as_u16(), 200);
}
