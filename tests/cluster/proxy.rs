//! A connection between two parts of the cluster, which can be held up, slowed down, halved and cut.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How bytes go one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    #[default]
    Open,
    /// They are held back, as on a network that loses everything: neither side is notified.
    Held,
    Slow(Duration),
    /// Half of the next bytes arrive, and then the connection is cut.
    Halved,
}

/// How bytes go both ways, and how often all connections were cut.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    there: Flow,
    back: Flow,
    /// A process whose connections are held both ways.
    held_process: Option<u32>,
    cuts: u64,
}

impl State {
    /// How bytes go on a connection of this caller: by `flow`, unless its process is held.
    fn flow_of(&self, flow: Flow, caller: &Caller) -> Flow {
        if self.held_process.is_some_and(|process| caller.is_process(process)) { Flow::Held } else { flow }
    }
}

/// The process that has connected. It is looked up only when it matters, since that reads the open files of all
/// processes.
struct Caller {
    port: Option<u16>,
    process: OnceLock<Option<u32>>,
}

impl Caller {
    fn new(port: Option<u16>) -> Self {
        Self { port, process: OnceLock::new() }
    }

    fn is_process(&self, process: u32) -> bool {
        *self.process.get_or_init(|| process_at(self.port?)) == Some(process)
    }
}

/// A proxy between two parts.
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
                tokio::spawn(forward_connection(caller, to, states.clone()));
            }
        });
        Self { address, target, state }
    }

    /// Sets the target of new connections.
    pub fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }

    /// Sets how bytes go to the target, and back.
    pub fn flow(&self, there: Flow, back: Flow) {
        self.state.send_modify(|state| (state.there, state.back) = (there, back));
    }

    /// Holds up both ways of connections that this process has opened; `None`: of no process.
    pub fn hold_process(&self, process: Option<u32>) {
        self.state.send_modify(|state| state.held_process = process);
    }

    /// Cuts every connection that there is.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }
}

async fn forward_connection(caller: TcpStream, to: SocketAddr, states: watch::Receiver<State>) {
    let cuts = states.borrow().cuts;
    let port = caller.peer_addr().ok().map(|address| address.port());
    let (there, back) = (Caller::new(port), Caller::new(port));
    let Ok(target) = TcpStream::connect(to).await else { return };
    let _ = (caller.set_nodelay(true), target.set_nodelay(true));
    let (from_caller, to_caller) = caller.into_split();
    let (from_target, to_target) = target.into_split();
    let mut ends = states.clone();
    tokio::select! {
        () = forward_bytes(from_caller, to_target, states.clone(), move |state| state.flow_of(state.there, &there)) => {}
        () = forward_bytes(from_target, to_caller, states.clone(), move |state| state.flow_of(state.back, &back)) => {}
        // Its sender lives as long as the run.
        _ = ends.wait_for(|state| state.cuts > cuts) => {}
    }
}

async fn forward_bytes(
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

/// The process that has connected from this port of this machine.
fn process_at(port: u16) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let inode = table.lines().find_map(|line| {
        // Number, own address, other address, state, …, user, time-out, inode.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, own) = fields.get(1)?.split_once(':')?;
        let is_own_port = u16::from_str_radix(own, 16).is_ok_and(|own| own == port);
        fields.get(9).filter(|inode| is_own_port && **inode != "0").map(|inode| (*inode).to_owned())
    })?;
    let socket = format!("socket:[{inode}]");
    let has_socket = |process: &u32| {
        let files = std::fs::read_dir(format!("/proc/{process}/fd"));
        let mut files = files.into_iter().flatten().filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        files.any(|file| file.as_os_str() == socket.as_str())
    };
    let names = std::fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).find(has_socket)
}
