//! The check that another process is reached at its address.

use hotline_persistence::cluster::Peer;

use super::{Node, SECRET};
use crate::cluster::reach::check;
use crate::cluster::signer::Signer;

#[actix_web::test]
async fn only_the_process_itself_at_its_own_address_is_reached() {
    let (one, two) = (Node::start(1), Node::start(2));
    let signer = Signer::new(&SECRET);
    assert_eq!(check(&one.peer(), &signer).await, Ok(()));
    let peer_at = |address: String| Peer { address, ..one.peer() };
    let failure = async |peer: Peer, signer: &Signer| check(&peer, signer).await.expect_err("a failed check");
    let swapped = failure(peer_at(two.peer().address), &signer).await;
    assert!(swapped.contains("another process of the cluster answers"), "{swapped}");
    let public = failure(peer_at(one.public.to_string()), &signer).await;
    assert!(public.contains("is not the --cluster-listen address"), "{public}");
    let stranger = failure(one.peer(), &Signer::new(&[8; 64])).await;
    assert!(stranger.contains("another installation"), "{stranger}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let refused = failure(peer_at(free.to_string()), &signer).await;
    assert!(refused.contains("could not connect"), "{refused}");
    let silent_listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = failure(peer_at(silent_listener.local_addr().expect("an address").to_string()), &signer).await;
    assert!(silent.contains("no response"), "{silent}");
    // A stop waits for received requests, but not for checks.
    assert_eq!((one.metrics.cluster.received(), two.metrics.cluster.received()), (0, 0));
}
