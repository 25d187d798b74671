//! The check that another process is reached at its address.

use hotline_persistence::cluster::Peer;
use tokio::net::TcpSocket;

use super::{Node, SECRET};
use crate::cluster::reach::check;
use crate::cluster::signer::Signer;

/// Attempts at a check that should not time out, as one may on a busy machine.
const ATTEMPTS_MAX: usize = 12;

/// The result of a check, repeated while it times out.
async fn checked(peer: &Peer, signer: &Signer) -> Result<(), String> {
    for _ in 1..ATTEMPTS_MAX {
        match check(peer, signer).await {
            Err(failure) if failure.contains("no response") => {}
            result => return result,
        }
    }
    check(peer, signer).await
}

#[actix_web::test]
async fn only_the_process_itself_at_its_own_address_is_reached() {
    let (one, two) = (Node::start(1), Node::start(2));
    let signer = Signer::new(&SECRET);
    assert_eq!(checked(&one.peer(), &signer).await, Ok(()));
    let peer_at = |address: String| Peer { address, ..one.peer() };
    let failure = async |peer: Peer, signer: &Signer| checked(&peer, signer).await.expect_err("a failed check");
    let swapped = failure(peer_at(two.peer().address), &signer).await;
    assert!(swapped.contains("another process of the cluster answers"), "{swapped}");
    let public = failure(peer_at(one.public.to_string()), &signer).await;
    assert!(public.contains("is not the --cluster-listen address"), "{public}");
    let stranger = failure(one.peer(), &Signer::new(&[8; 64])).await;
    assert!(stranger.contains("another installation"), "{stranger}");
    // Bound but not listening, so that no other process of this machine gets the port.
    let silent_socket = TcpSocket::new_v4().expect("a socket");
    silent_socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let refused = failure(peer_at(silent_socket.local_addr().expect("an address").to_string()), &signer).await;
    assert!(refused.contains("could not connect"), "{refused}");
    let silent_listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_peer = peer_at(silent_listener.local_addr().expect("an address").to_string());
    let silent = check(&silent_peer, &signer).await.expect_err("a failed check");
    assert!(silent.contains("no response"), "{silent}");
    // A stop waits for received requests, but not for checks.
    assert_eq!((one.metrics.cluster.received(), two.metrics.cluster.received()), (0, 0));
}
