//! How long connections are waited for, and how many there are.

use std::time::Duration;

/// Seconds for a whole request head, from its first byte (the first of a connection: from its start). A slow phone
/// needs less than one; who opens connections to keep them open gets no more.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Seconds a connection may lie idle between two requests. Longer than the 60 of the usual load balancers: the side
/// that keeps the pool must be the one that closes, else it meets a closed connection with a request in hand.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Seconds for a client to take more of an answer when its window is full.
const WRITE_TIME_MAX: Duration = Duration::from_secs(60);

/// Seconds for a client that sends more than is read to take the answer and close: the framework throws the rest away
/// meanwhile. Closed at once, its unread bytes would reset the connection, and the answer could be lost with it.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(5);

/// Bytes of a body that may go on behind its answer: what goes on for longer has the time above, be it without end.
pub(super) const GOODBYE_BYTES_MAX: u64 = 1024 * 1024;

/// Connections of a worker; the next wait in the backlog. At about 20 KiB each (two buffers of 8 KiB and the
/// state), 200 MiB. Fewer where the system lends fewer file descriptors: what everything else needs is held back.
const CONNECTIONS_MAX: usize = 10_000;

/// Connections of one address. An office, or a server that calls the API, stays far below; nobody alone takes all that
/// there are.
pub const CONNECTIONS_PER_ADDRESS: u32 = 2000;

/// Connections that wait to be taken. The kernel's own bound (`net.core.somaxconn`, 4096) is above it.
const BACKLOG: u32 = 2048;

/// How long a connection is waited for, and how many there are.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a whole request head.
    pub head: Duration,
    /// Between two requests.
    pub keep_alive: Duration,
    /// For a client to take more of an answer.
    pub write: Duration,
    /// For a client to close after the last answer.
    pub goodbye: Duration,
    /// Connections of a worker, if the system lends as many descriptors.
    pub connections: usize,
    /// Connections of one address; 0: as many as it likes.
    pub per_address: u32,
    /// Connections that wait to be taken.
    pub backlog: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: HEAD_TIME_MAX,
            keep_alive: KEEP_ALIVE,
            write: WRITE_TIME_MAX,
            goodbye: GOODBYE_TIME_MAX,
            connections: CONNECTIONS_MAX,
            per_address: CONNECTIONS_PER_ADDRESS,
            backlog: BACKLOG,
        }
    }
}
