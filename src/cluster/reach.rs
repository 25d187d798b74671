//! Checks that another process of the cluster can be reached at its address, and that no other process answers there.
//! Two requests to its listener prove it. The first is for a life that never existed: only a listener with this
//! installation's key responds with `421`. The second is for the life of that process, and must not be answered with
//! `421`. Neither is counted as forwarded.

use std::time::Duration;

use actix_http::RequestHead;
use actix_web::http::{StatusCode, Uri};
use hotline_persistence::cluster::{LifeId, Peer};
use tokio::time::timeout;

use super::link::PeerLink;
use super::signer::{FORWARDED, Forwarded, Signer};

/// Timeout of a check: twice as long as a request may take to connect.
const CHECK_TIME_MAX: Duration = Duration::from_secs(2);

/// A path that every process of every release answers.
const PATH: &str = "/health/live";

/// Bytes of a response after which no more are read, even if its first line has not ended.
const LINE_BYTES_MAX: usize = 1024;

/// No life has this id.
const NO_LIFE: LifeId = LifeId::new(0);

/// Checks a process.
///
/// # Errors
/// Why requests cannot be forwarded to it, as a human-readable message.
pub(super) async fn check(peer: &Peer, signer: &Signer) -> Result<(), String> {
    let address = &peer.address;
    match timeout(CHECK_TIME_MAX, identify(peer, signer)).await {
        Ok(result) => result,
        Err(_) => Err(format!("no response from {address} within {} s", CHECK_TIME_MAX.as_secs())),
    }
}

async fn identify(peer: &Peer, signer: &Signer) -> Result<(), String> {
    let address = &peer.address;
    match request(address, signer, NO_LIFE).await? {
        StatusCode::MISDIRECTED_REQUEST => {}
        StatusCode::FORBIDDEN => return Err(format!("a process of another installation answers at {address}")),
        _ => return Err(format!("{address} is not the --cluster-listen address of a process")),
    }
    match request(address, signer, peer.life).await? {
        StatusCode::MISDIRECTED_REQUEST => Err(format!("another process of the cluster answers at {address}")),
        _ => Ok(()),
    }
}

/// Sends a request for this life, and returns the status of the response.
async fn request(address: &str, signer: &Signer, life: LifeId) -> Result<StatusCode, String> {
    let text = request_text(address, signer, life);
    let link = PeerLink::connect(address).await;
    let mut link = link.map_err(|error| format!("could not connect to {address}: {error}"))?;
    let closed = || format!("{address} closed the connection without a response");
    link.write(text.as_bytes()).await.map_err(|_| closed())?;
    // Only the first line is of interest.
    while !link.buffer.contains(&b'\n') && link.buffer.len() < LINE_BYTES_MAX {
        link.read_more().await.map_err(|_| closed())?;
    }
    status_in(&link.buffer).ok_or_else(|| format!("{address} does not respond in HTTP"))
}

fn request_text(address: &str, signer: &Signer, life: LifeId) -> String {
    let mut head = RequestHead::default();
    head.uri = Uri::from_static(PATH);
    let signed = signer.sign(&head, Forwarded { life, client: None });
    format!("GET {PATH} HTTP/1.1\r\nhost: {address}\r\n{FORWARDED}: {signed}\r\nconnection: close\r\n\r\n")
}

/// The status in the first line of a response.
fn status_in(response: &[u8]) -> Option<StatusCode> {
    let status = response.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    StatusCode::from_bytes(status).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_read_from_http_only() {
        assert_eq!(status_in(b"HTTP/1.1 421 Misdirected Request\r\n"), Some(StatusCode::MISDIRECTED_REQUEST));
        for other in [&b"HTTP/1.1 42"[..], b"HTTP/1.1 abc\r\n", b"SSH-2.0-OpenSSH_9\r\n", b""] {
            assert_eq!(status_in(other), None);
        }
    }
}
