//! Limits of connections: those of clients and of other processes are counted separately.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Node, TOKEN, ask, client, limits, until};
use crate::web::connections::Limits;

/// Maximum connections of each listener.
const CONNECTIONS_MAX: usize = 3;

fn few_connections() -> Limits {
    Limits { connections: CONNECTIONS_MAX, ..limits() }
}

/// As many open connections as the listener allows; each has had an answer.
async fn open_connections(address: SocketAddr) -> Vec<TcpStream> {
    let all = (0..CONNECTIONS_MAX).map(|_| async {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        send_request(&mut stream).await;
        expect_answer(&mut stream).await;
        stream
    });
    join_all(all).await
}

async fn send_request(stream: &mut TcpStream) {
    let request = format!("GET /api/v1/echo HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
}

async fn expect_answer(stream: &mut TcpStream) {
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1");
}

/// A connection beyond the limit, which waits in the backlog with its request.
async fn waiting_connection(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("it is in the backlog");
    send_request(&mut stream).await;
    stream
}

/// Whether nothing has been answered so far.
fn is_unanswered(stream: &TcpStream) -> bool {
    stream.try_read(&mut [0; 8]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[actix_web::test]
async fn clients_that_use_all_connections_do_not_block_other_processes() {
    let (edge, owner) = (Node::start(1), Node::start_with(2, few_connections()));
    owner.own_company();
    edge.forward_to(&owner.peer());
    let connections = open_connections(owner.public).await;
    let late = waiting_connection(owner.public).await;
    let answer = ask(&client(), Method::GET, edge.url("/api/v1/echo")).send().await.expect("an answer");
    // The forwarded request was served, and the waiting client's was not.
    assert_eq!(
        (answer.status().as_u16(), edge.started_requests(), owner.started_requests()),
        (200, 0, CONNECTIONS_MAX + 1)
    );
    assert!(is_unanswered(&late), "all connections are in use");
    drop((connections, late));
}

#[actix_web::test]
async fn processes_that_use_all_connections_do_not_block_clients() {
    let owner = Node::start_with(2, few_connections());
    owner.own_company();
    // These requests are not signed, so they are refused; their connections stay open.
    let connections = open_connections(owner.peers.address()).await;
    let mut late = waiting_connection(owner.peers.address()).await;
    let answer = ask(&client(), Method::GET, owner.url("/api/v1/echo")).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
    assert!(is_unanswered(&late), "all connections are in use");
    drop(connections);
    // A connection that ends makes room for the next one.
    expect_answer(&mut late).await;
}

#[actix_web::test]
async fn a_listener_for_peers_that_stops_waits_for_running_requests() {
    let (edge, owner) = (Node::start(1), Node::start(2));
    owner.own_company();
    edge.forward_to(&owner.peer());
    let request = tokio::spawn(ask(&client(), Method::POST, edge.url("/api/v1/hang/201")).send());
    owner.wait_for_requests(1).await;
    let mut idle = TcpStream::connect(owner.peers.address()).await.expect("connected");
    send_request(&mut idle).await;
    expect_answer(&mut idle).await;
    let (address, world) = (owner.peers.address(), owner.world.clone());
    let finish_once_refused = async {
        // The listener is closed at once.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        world.proceed.notify_one();
    };
    tokio::join!(owner.peers.stop(Duration::from_secs(30)), finish_once_refused);
    assert_eq!(request.await.expect("asked").expect("an answer").status().as_u16(), 201);
    until("the idle connection is closed", || {
        let mut rest = [0; 4096];
        matches!(idle.try_read(&mut rest), Ok(0))
    })
    .await;
}
