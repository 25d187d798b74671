//! What a process trusts: its lease, and requests that another process has signed.

use std::time::Duration;

use futures_util::StreamExt;
use hotline_persistence::cluster::{LifeId, Moment};
use reqwest::Method;
use serde_json::Value;

use super::{Node, SECRET, ask, client, pair, slot};
use crate::cluster::signer::{FORWARDED, Forwarded, Signer};

#[actix_web::test]
async fn without_the_lease_nothing_is_served() {
    let node = Node::impatient(1);
    node.own_company();
    let client = client();
    // A change that was made is not answered with 503, which would mean that nothing was changed.
    for (method, status, expected) in
        [(Method::GET, 200, Some(503)), (Method::POST, 409, Some(503)), (Method::POST, 201, None)]
    {
        node.membership.lease.extend(Moment::now() + Duration::from_secs(3600));
        let before = node.started_requests();
        let request = tokio::spawn(ask(&client, method, node.url(&format!("/api/v1/hang/{status}"))).send());
        node.wait_for_requests(before + 1).await;
        node.membership.lease.end();
        node.world.proceed.notify_one();
        let answer = request.await.expect("asked");
        assert_eq!(answer.ok().map(|answer| answer.status().as_u16()), expected, "{status}");
    }
    let before = node.started_requests();
    let answer = ask(&client, Method::POST, node.url("/api/v1/echo")).send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), node.started_requests()), (503, before), "no request is started");
    let stranger = client.get(node.url("/api/v1/echo")).send().await.expect("an answer");
    assert_eq!(stranger.status().as_u16(), 503, "a request without a token also requires the lease");
    let health = client.get(node.url("/health/live")).send().await.expect("an answer");
    assert_eq!(health.status().as_u16(), 200);
}

#[actix_web::test]
async fn a_stream_ends_with_the_lease() {
    let node = Node::start(1);
    node.own_company();
    let answer = ask(&client(), Method::GET, node.url("/api/v1/events")).send().await.expect("an answer");
    let mut events = answer.bytes_stream();
    assert!(events.next().await.is_some_and(|event| event.is_ok()));
    node.membership.lease.end();
    node.world.proceed.notify_waiters();
    assert!(events.next().await.is_none_or(|event| event.is_err()), "no event is sent without the lease");
}

#[actix_web::test]
async fn the_listener_for_peers_accepts_only_signed_requests_for_this_life() {
    let (_, owner) = pair();
    let client = client();
    let url = |path: &str| format!("http://{}{path}", owner.peers.address());
    let answer = ask(&client, Method::GET, url("/api/v1/echo")).send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), owner.started_requests()), (403, 0), "the request is not signed");
    let signed = |secret: [u8; 64], life: i64| {
        let mut head = actix_http::RequestHead::default();
        head.uri = "/api/v1/echo".parse().expect("a target");
        let client = Some("203.0.113.9:4711".parse().expect("an address"));
        Signer::new(&secret).sign(&head, Forwarded { life: LifeId::new(life), client })
    };
    for (secret, life, status) in [([8; 64], 2, 403), (SECRET, 3, 421), (SECRET, 2, 200)] {
        let request = ask(&client, Method::GET, url("/api/v1/echo")).header(FORWARDED.as_str(), signed(secret, life));
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), status, "{life}");
        if status == 200 {
            let echo: Value = answer.json().await.expect("JSON");
            assert_eq!(echo["from"], "203.0.113.9:4711");
        }
    }
    owner.membership.placement.close([slot()]);
    let request = ask(&client, Method::GET, url("/api/v1/echo")).header(FORWARDED.as_str(), signed(SECRET, 2));
    assert_eq!(request.send().await.expect("an answer").status().as_u16(), 421, "it is not forwarded again");
}
