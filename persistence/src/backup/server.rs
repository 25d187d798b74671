//! What `hotline doctor` reads from the database server.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};

use crate::Result;

/// The server, the role and the session, as the service sees them.
#[derive(Clone, Debug, FromRow)]
pub struct DatabaseServer {
    /// The setting `server_version_num`, such as 150004 for 15.4.
    pub version: i32,
    /// The encoding of the database.
    pub encoding: String,
    /// The setting `synchronous_commit`: whether a commit waits for the disk.
    pub synchronous_commit: String,
    /// The setting `fsync`: whether the server syncs at all.
    pub fsync: String,
    /// Whether it is a standby.
    pub is_standby: bool,
    /// Maximum number of connections of the server, without those reserved for superusers and, since PostgreSQL 16, for
    /// `pg_use_reserved_connections`.
    pub connections_max: i64,
    /// Open connections to all databases. Without `pg_read_all_stats`, background workers of other roles are counted as
    /// well: their type is hidden.
    pub connections: i64,
    /// Maximum number of connections of the role; -1: no limit.
    pub role_connections_max: i32,
    /// Whether the session is encrypted.
    pub is_encrypted: bool,
    /// Whether the session is over TCP instead of a Unix socket.
    #[sqlx(rename = "is_remote")]
    pub is_over_tcp: bool,
    /// The database's time.
    pub now: DateTime<Utc>,
    /// The extensions that the tables use and that are not installed.
    pub missing_extensions: Vec<String>,
}

/// Reads the properties of the server, the role and this session.
///
/// # Errors
/// When the database cannot answer.
pub async fn server(db: &mut PgConnection) -> Result<DatabaseServer> {
    let statement = "select current_setting('server_version_num')::int4 as version,
             current_setting('server_encoding') as encoding,
             current_setting('synchronous_commit') as synchronous_commit,
             current_setting('fsync') as fsync,
             pg_is_in_recovery() as is_standby,
             current_setting('max_connections')::bigint
                 - current_setting('superuser_reserved_connections')::bigint
                 - coalesce(current_setting('reserved_connections', true)::bigint, 0) as connections_max,
             (select count(*) from pg_stat_activity where datid is not null
                 and coalesce(backend_type, 'client backend') = 'client backend') as connections,
             (select rolconnlimit from pg_roles where rolname = current_user) as role_connections_max,
             coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as is_encrypted,
             inet_server_addr() is not null as is_remote,
             clock_timestamp() as now,
             array(select x.name from unnest(array['unaccent', 'pg_trgm', 'btree_gin']) as x (name)
                 where not exists (select from pg_extension e where e.extname = x.name)) as missing_extensions";
    Ok(sqlx::query_as(statement).fetch_one(db).await?)
}
