//! Whether a process is reached, and whether it is the right one.

use hotline_persistence::cluster::Peer;

use super::{Node, SECRET};
use crate::cluster::reach::check;
use crate::cluster::signer::Signer;

#[actix_web::test]
async fn only_the_process_itself_at_its_own_address_is_reached() {
    let (one, two) = (Node::start(1), Node::start(2));
    let signer = Signer::new(&SECRET);
    assert_eq!(check(&one.peer(), &signer).await, Ok(()));
    let at = |address: String| Peer { address, ..one.peer() };
    let reason = async |peer: Peer, signer: &Signer| check(&peer, signer).await.expect_err("another address");
    let swapped = reason(at(two.peer().address), &signer).await;
    assert!(swapped.contains("another process of the cluster answers"), "{swapped}");
    let public = reason(at(one.public.to_string()), &signer).await;
    assert!(public.contains("is not the --cluster-listen address"), "{public}");
    let stranger = reason(one.peer(), &Signer::new(&[8; 64])).await;
    assert!(stranger.contains("another installation"), "{stranger}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let refused = reason(at(free.to_string()), &signer).await;
    assert!(refused.contains("could not connect"), "{refused}");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = reason(at(silent.local_addr().expect("an address").to_string()), &signer).await;
    assert!(silent.contains("no response"), "{silent}");
    // The checks are not requests of others that a stop waits for.
    assert_eq!((one.metrics.cluster.received(), two.metrics.cluster.received()), (0, 0));
}
