//! The settings of every session. Statements depend on them, so each session sets them itself: what an administrator
//! sets for a role or a database for other programs changes nothing here.

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

/// Settings that Hotline depends on. Time limits are off, which is PostgreSQL's default; the pools set some of them.
const REQUIRED_SETTINGS: [(&str, &str); 9] = [
    ("default_transaction_isolation", "read committed"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("standard_conforming_strings", "on"),
    ("transform_null_equals", "off"),
    // Any other value would omit results of a search.
    ("gin_fuzzy_search_limit", "0"),
    // Our statements are too short to benefit from it. And where only index scans are allowed, as for the persister, a
    // read of a one-row table without an index has such a high estimated cost that it would be compiled each time, for
    // 30 ms or more.
    ("jit", "off"),
];

/// Random reads cost hardly more than sequential ones: hot data is cached and databases run on flash. The default, 4,
/// is for spinning disks: with it, a page of a company that has most of a table's rows is found by reading and
/// sorting the whole table, although the key's index has the order (1,000,000 deliveries: 510 ms, against 2 ms by the
/// key).
const FAST_RANDOM_READS: (&str, &str) = ("random_page_cost", "1.1");

/// After 10 + 3 × 5 s without a reply, or 25 s with unacknowledged data, PostgreSQL ends the session of a machine that
/// died or that the network no longer reaches. By its defaults it would keep the session, and its locks, for more than
/// two hours. Without effect on a unix socket, whose other end cannot disappear unnoticed.
const KEEPALIVES: [(&str, &str); 4] = [
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "25000"),
];

/// A setting that only Hotline knows: a connection pooler that drops the settings above drops this one as well.
pub(crate) const SESSION_MARK: (&str, &str) = ("hotline.session", "on");

/// Adds the settings of every session.
pub(crate) fn with_defaults(options: PgConnectOptions) -> PgConnectOptions {
    options
        .application_name("hotline")
        .options(REQUIRED_SETTINGS)
        .options([FAST_RANDOM_READS, SESSION_MARK])
        .options(KEEPALIVES)
        .disable_statement_logging()
}
