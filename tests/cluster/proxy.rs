//! A connection between two parts of the cluster, which can be held up, slowed down, halved and cut.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How bytes go one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    #[default]
    Open,
    /// They lie where they are, as on a network that loses everything: neither side hears of it.
    Held,
    Slow(Duration),
    /// Half of the next ones arrive, and then the connection is cut.
    Halved,
}

/// Both ways, and when all connections were cut last.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    there: Flow,
    back: Flow,
    cuts: u64,
}

/// What stands between two parts.
pub struct Proxy {
    pub address: SocketAddr,
    target: watch::Sender<SocketAddr>,
    state: watch::Sender<State>,
}

impl Proxy {
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (target, to) = watch::channel(target);
        let (state, states) = watch::channel(State::default());
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let to = *to.borrow();
                tokio::spawn(carry(caller, to, states.clone()));
            }
        });
        Self { address, target, state }
    }

    /// What connects from here on comes to another place.
    pub fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }

    /// Sets how bytes go to the target, and back.
    pub fn flow(&self, there: Flow, back: Flow) {
        self.state.send_modify(|state| (state.there, state.back) = (there, back));
    }

    /// Cuts every connection that there is.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }
}

async fn carry(caller: TcpStream, to: SocketAddr, states: watch::Receiver<State>) {
    let cuts = states.borrow().cuts;
    let Ok(target) = TcpStream::connect(to).await else { return };
    let _ = (caller.set_nodelay(true), target.set_nodelay(true));
    let (from_caller, to_caller) = caller.into_split();
    let (from_target, to_target) = target.into_split();
    let mut ends = states.clone();
    tokio::select! {
        () = pump(from_caller, to_target, states.clone(), |state| state.there) => {}
        () = pump(from_target, to_caller, states.clone(), |state| state.back) => {}
        // Its sender lives as long as the run.
        _ = ends.wait_for(|state| state.cuts > cuts) => {}
    }
}

async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut states: watch::Receiver<State>,
    way: impl Fn(&State) -> Flow,
) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut bytes).await.unwrap_or(0);
        let Ok(flow) = states.wait_for(|state| way(state) != Flow::Held).await.map(|state| way(&state)) else { return };
        let mut arriving = &bytes[..read];
        match flow {
            Flow::Slow(by) => tokio::time::sleep(by).await,
            Flow::Halved => arriving = &bytes[..read / 2],
            Flow::Open | Flow::Held => {}
        }
        if to.write_all(arriving).await.is_err() || read == 0 || flow == Flow::Halved {
            return;
        }
    }
}
