//! Timeouts of connections, and their maximum number.

use std::time::Duration;

/// Time for a whole request head, from its first byte (for the first request: from the start of the connection). A slow
/// phone needs less than a second; clients that hold connections open on purpose get no more.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Time a connection may be idle between two requests. Longer than the 60 seconds of the usual load balancers: the
/// balancer owns the pool and must close first, or it sends a request on a connection that has just closed.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Time for a client to read more of a response when its receive window is full. The response is in memory meanwhile,
/// and counts against the client's memory limit. A phone that has lost its network for longer repeats the request.
const WRITE_TIME_MAX: Duration = Duration::from_secs(10);

/// Minimum bytes per second that a client reads of a pending response, once `WRITE_TIME_MAX` has passed: a phone at the
/// edge of its network reads more. Otherwise a client that reads a byte now and then could hold a piece of a response
/// indefinitely.
pub(super) const WRITE_BYTES_PER_S_MIN: u64 = 1024;

/// Time for a client whose body the handler did not read completely: it should receive the response and close, while
/// the framework discards the rest of the body. Closing at once would reset the connection because of its unread bytes,
/// and the response could be lost.
const LINGER_TIME_MAX: Duration = Duration::from_secs(5);

/// Bytes of a body that may follow its response while only the keep-alive timeout applies. Beyond that,
/// `LINGER_TIME_MAX` applies, however long the body is.
pub(super) const LINGER_BYTES_MAX: u64 = 1024 * 1024;

/// Maximum connections per worker; further ones wait in the backlog. At about 20 KiB each (two buffers of 8 KiB and the
/// state), they use 200 MiB. Where the file descriptor limit is low, the maximum is lower, because descriptors are
/// reserved for everything else.
const CONNECTIONS_PER_WORKER: usize = 10_000;

/// Maximum connections per address. An office, or a server that calls the API, stays far below; a single address cannot
/// use up all connections.
pub const CONNECTIONS_PER_ADDRESS: u32 = 2000;

/// Maximum connections in the accept backlog. The kernel's own bound (`net.core.somaxconn`, 4096) is higher.
const BACKLOG: u32 = 2048;

/// Timeouts and maximum numbers of connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for a whole request head.
    pub head: Duration,
    /// Time between two requests.
    pub keep_alive: Duration,
    /// Time for a client to read more of a response.
    pub write: Duration,
    /// Time for a client to close after the last response.
    pub linger: Duration,
    /// Connections per worker, if there are enough descriptors.
    pub connections: usize,
    /// Connections per address; 0: no limit.
    pub per_address: u32,
    /// Connections in the accept backlog.
    pub backlog: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: HEAD_TIME_MAX,
            keep_alive: KEEP_ALIVE,
            write: WRITE_TIME_MAX,
            linger: LINGER_TIME_MAX,
            connections: CONNECTIONS_PER_WORKER,
            per_address: CONNECTIONS_PER_ADDRESS,
            backlog: BACKLOG,
        }
    }
}
