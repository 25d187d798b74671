//! A receiver of webhooks that accepts and counts every request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The received requests.
#[derive(Default)]
pub struct Received {
    pub count: AtomicUsize,
    bytes: AtomicUsize,
    keeps_bodies: AtomicBool,
    kept: Mutex<Vec<(Instant, Bytes)>>,
    more: Notify,
}

impl Received {
    /// Resets the counts.
    pub fn reset_counts(&self) {
        self.count.store(0, Ordering::Release);
        self.bytes.store(0, Ordering::Release);
    }

    /// Waits until this many requests have been received.
    pub async fn wait_for(&self, count: usize) {
        loop {
            let more = self.more.notified();
            if self.count.load(Ordering::Acquire) >= count {
                return;
            }
            more.await;
        }
    }

    /// Keeps the bodies of requests from now on.
    pub fn keep_bodies(&self) {
        self.keeps_bodies.store(true, Ordering::Release);
    }

    /// Takes the kept bodies, with the time of each.
    pub fn take_bodies(&self) -> Vec<(Instant, Bytes)> {
        std::mem::take(&mut *self.kept.lock())
    }

    /// The mean size of a body, in bytes.
    pub fn mean_bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire) / self.count.load(Ordering::Acquire).max(1)
    }
}

/// Serves on a thread of its own; returns the address.
pub fn serve(received: Arc<Received>) -> SocketAddr {
    let (address_sender, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        actix_rt::System::new().block_on(async move {
            let app = move || App::new().app_data(Data::from(received.clone())).route("/", web::post().to(receive));
            let server = HttpServer::new(app).workers(1).disable_signals().bind(("127.0.0.1", 0)).expect("a free port");
            address_sender.send(server.addrs()[0]).expect("the bench waits");
            server.run().await.expect("the receiver serves");
        });
    });
    address.recv().expect("the receiver serves")
}

async fn receive(received: Data<Received>, body: Bytes) -> HttpResponse {
    received.bytes.fetch_add(body.len(), Ordering::Relaxed);
    if received.keeps_bodies.load(Ordering::Acquire) {
        received.kept.lock().push((Instant::now(), body));
    }
    received.count.fetch_add(1, Ordering::Release);
    received.more.notify_waiters();
    HttpResponse::Ok().finish()
}
