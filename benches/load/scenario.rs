//! The scenarios: what is requested, and what it is compared with.

use clap::ValueEnum;
use serde::Serialize;

/// One kind of request, or a mix of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// A message into an open ticket
    Send,
    /// The same with an idempotency key
    SendKeyed,
    /// A ticket for a contact that has none open
    Open,
    /// A ticket closed with its wrap-up
    Close,
    /// One hot ticket
    Read,
    /// The first 100 open tickets
    List100,
    /// The first 20 open tickets
    List20,
    /// The 100 open tickets with the latest activity
    Inbox,
    /// The same at 100 a second, beside 2,500 sends a second
    BusyInbox,
    /// A visitor's message
    Say,
    /// Half sends, a fifth reads, 15 % lists, 15 % changes of state
    Mix,
    /// Sends at half the rate that was reached
    HalfLoad,
    /// 2,500 sends a second, which a transaction for each can do as well
    Offered,
}

/// Requests a second of [`Scenario::Offered`], and sends a second beside [`Scenario::BusyInbox`].
pub const OFFERED: f64 = 2_500.0;

/// Requests a second of [`Scenario::BusyInbox`].
pub const INBOX_OFFERED: f64 = 100.0;

/// A measured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Server {
    /// The service.
    Hotline,
    /// (a) Parses the same body and answers the same bytes.
    Bare,
    /// (b) One transaction a request.
    Plain,
    /// (c) The same statement, and nothing before it.
    SameSql,
}

impl Server {
    /// The prefix of its paths.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Hotline => hotline::web::admission::modules::API,
            Self::Bare => "/bare",
            Self::Plain => "/plain",
            Self::SameSql => "/same-sql",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Hotline => "Hotline",
            Self::Bare => "(a) bare handler",
            Self::Plain => "(b) transaction",
            Self::SameSql => "(c) same SQL",
        }
    }
}

/// A ratio that is aimed at: this many times the requests a second of the yardstick.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Aim {
    pub server: Server,
    pub at_least: f64,
}

/// A ratio that is aimed at: this many times Hotline's requests a second in another scenario.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OwnAim {
    pub scenario: Scenario,
    pub at_least: f64,
}

impl Scenario {
    pub const ALL: [Self; 13] = [
        Self::Send,
        Self::SendKeyed,
        Self::Open,
        Self::Close,
        Self::Read,
        Self::List100,
        Self::List20,
        Self::Inbox,
        Self::BusyInbox,
        Self::Say,
        Self::Mix,
        Self::HalfLoad,
        Self::Offered,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::SendKeyed => "send, keyed",
            Self::Open => "open a ticket",
            Self::Close => "close with wrap-up",
            Self::Read => "read a ticket",
            Self::List100 => "list of 100",
            Self::List20 => "list of 20",
            Self::Inbox => "inbox of 100",
            Self::BusyInbox => "inbox beside sends",
            Self::Say => "visitor's message",
            Self::Mix => "mix",
            Self::HalfLoad => "send at half load",
            Self::Offered => "send, 2,500/s",
        }
    }

    /// The name of its script in `lua/`.
    pub fn script(self) -> &'static str {
        match self {
            Self::Send | Self::HalfLoad | Self::Offered => "send",
            Self::SendKeyed => "send_keyed",
            Self::Open => "open",
            Self::Close => "close",
            Self::Read => "read",
            Self::List100 => "list_100",
            Self::List20 => "list_20",
            Self::Inbox | Self::BusyInbox => "inbox",
            Self::Say => "say",
            Self::Mix => "mix",
        }
    }

    /// The servers that are measured, in turn.
    pub fn servers(self) -> &'static [Server] {
        match self {
            Self::Send | Self::SendKeyed | Self::Offered => &[Server::Hotline, Server::Bare, Server::Plain],
            Self::List100 | Self::List20 => &[Server::Hotline, Server::SameSql],
            Self::BusyInbox => &[Server::Hotline],
            _ => &[Server::Hotline, Server::Bare],
        }
    }

    /// The aims relative to other servers.
    pub fn aims(self) -> &'static [Aim] {
        match self {
            Self::Send => &[Aim { server: Server::Bare, at_least: 0.45 }, Aim { server: Server::Plain, at_least: 5.0 }],
            Self::Read => &[Aim { server: Server::Bare, at_least: 0.85 }],
            Self::List100 | Self::List20 => &[Aim { server: Server::SameSql, at_least: 0.9 }],
            Self::Inbox => &[Aim { server: Server::Bare, at_least: 0.5 }],
            _ => &[],
        }
    }

    /// The aim relative to another scenario, if there is one.
    pub fn own_aim(self) -> Option<OwnAim> {
        match self {
            Self::SendKeyed => Some(OwnAim { scenario: Self::Send, at_least: 0.85 }),
            Self::Open => Some(OwnAim { scenario: Self::Send, at_least: 0.5 }),
            _ => None,
        }
    }

    /// Messages that one answered request leaves in the table, to verify the counted requests; `None` if their number
    /// varies.
    pub fn messages_per_request(self) -> Option<u64> {
        match self {
            Self::Send | Self::SendKeyed | Self::Say | Self::HalfLoad | Self::Offered => Some(1),
            Self::Open | Self::Close | Self::Read | Self::List100 | Self::List20 | Self::Inbox => Some(0),
            Self::Mix | Self::BusyInbox => None,
        }
    }

    /// Whether the scenario has a fixed rate, at which all servers have the same throughput.
    pub fn is_paced(self) -> bool {
        matches!(self, Self::BusyInbox | Self::HalfLoad | Self::Offered)
    }

    /// Whether each subject can be used only once, so that there is no warm-up.
    pub fn consumes_subjects(self) -> bool {
        matches!(self, Self::Open | Self::Close)
    }
}
