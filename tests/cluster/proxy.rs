//! A proxy between two parts of the cluster, whose connections can be held up, slowed down, halved and cut.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How bytes are forwarded in one direction.
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

/// How bytes are forwarded in both directions, and how often all connections were cut.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    to_target: Flow,
    to_caller: Flow,
    /// A process whose connections are held in both directions.
    held_process: Option<u32>,
    cuts: u64,
}

impl State {
    /// How bytes are forwarded on a connection of this caller: by `flow`, unless its process is held.
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
        let (target, targets) = watch::channel(target);
        let (state, states) = watch::channel(State::default());
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let target = *targets.borrow();
                tokio::spawn(forward_connection(caller, target, states.clone()));
            }
        });
        Self { address, target, state }
    }

    /// Sets the target of new connections.
    pub fn set_target(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }

    /// Sets how bytes are forwarded to the target, and to the caller.
    pub fn set_flow(&self, to_target: Flow, to_caller: Flow) {
        self.state.send_modify(|state| (state.to_target, state.to_caller) = (to_target, to_caller));
    }

    /// Holds, in both directions, the connections that this process has opened; `None` releases them.
    pub fn hold_process(&self, process: Option<u32>) {
        self.state.send_modify(|state| state.held_process = process);
    }

    /// Cuts every open connection.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }
}

async fn forward_connection(caller: TcpStream, target: SocketAddr, states: watch::Receiver<State>) {
    let cuts = states.borrow().cuts;
    let port = caller.peer_addr().ok().map(|address| address.port());
    // The same caller, once for each direction.
    let (sending_caller, receiving_caller) = (Caller::new(port), Caller::new(port));
    let Ok(target) = TcpStream::connect(target).await else { return };
    let _ = (caller.set_nodelay(true), target.set_nodelay(true));
    let (from_caller, to_caller) = caller.into_split();
    let (from_target, to_target) = target.into_split();
    let flow_to_target = move |state: &State| state.flow_of(state.to_target, &sending_caller);
    let flow_to_caller = move |state: &State| state.flow_of(state.to_caller, &receiving_caller);
    let mut until_cut = states.clone();
    tokio::select! {
        () = forward_bytes(from_caller, to_target, states.clone(), flow_to_target) => {}
        () = forward_bytes(from_target, to_caller, states.clone(), flow_to_caller) => {}
        // The sender of the states lives as long as the run.
        _ = until_cut.wait_for(|state| state.cuts > cuts) => {}
    }
}

async fn forward_bytes(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut states: watch::Receiver<State>,
    flow_of: impl Fn(&State) -> Flow,
) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut bytes).await.unwrap_or(0);
        let Ok(flow) = states.wait_for(|state| flow_of(state) != Flow::Held).await.map(|state| flow_of(&state)) else {
            return;
        };
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
