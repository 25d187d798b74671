//! The database server: version, encoding, settings, connections, TLS and clock.

use chrono::TimeDelta;
use hotline_persistence::backup::{DatabaseServer, server};
use hotline_persistence::{PgPool, Result, clock};

use crate::cli::findings::Finding;

/// The oldest supported version, in the format of `server_version_num`.
const VERSION_MIN: i32 = 150_000;

const ENCODING: &str = "UTF8";

/// Connections that the service opens under load.
const CONNECTIONS_NEEDED: i64 = 18;

/// Maximum difference between the clocks.
const CLOCK_ERROR_MAX: TimeDelta = TimeDelta::seconds(2);

pub async fn check(db: &PgPool) -> Result<Vec<Finding>> {
    let mut connection = db.acquire().await?;
    let sent_at = clock::now();
    let server = server(&mut connection).await?;
    // The server read its clock in about the middle of the call.
    let local_time = sent_at + (clock::now() - sent_at) / 2;
    Ok(vec![
        check_version(&server),
        check_encoding(&server),
        check_extensions(&server),
        check_settings(&server),
        check_connections(&server),
        check_tls(&server),
        check_clock(server.now - local_time),
    ])
}

fn check_version(server: &DatabaseServer) -> Finding {
    let version = format!("{}.{}", server.version / 10_000, server.version % 10_000);
    match (server.version < VERSION_MIN, server.is_standby) {
        (true, _) => Finding::problem("PostgreSQL", version, "upgrade it to 15 or newer"),
        (_, true) => Finding::problem("PostgreSQL", format!("{version}, a standby"), "use the address of the primary"),
        _ => Finding::ok("PostgreSQL", version),
    }
}

fn check_encoding(server: &DatabaseServer) -> Finding {
    let next = "create a database with `encoding 'UTF8' template template0`, and move the tables to it";
    match server.encoding.as_str() {
        ENCODING => Finding::ok("encoding", ENCODING),
        other => Finding::problem("encoding", other, next),
    }
}

fn check_extensions(server: &DatabaseServer) -> Finding {
    if server.missing_extensions.is_empty() {
        return Finding::ok("extensions", "installed");
    }
    let missing = server.missing_extensions.join(", ");
    let next = "the first start creates them if its role owns the database; otherwise an administrator has to";
    Finding::note("extensions", format!("not installed: {missing}"), next)
}

fn check_settings(server: &DatabaseServer) -> Finding {
    const SETTINGS: &str = "settings";
    if server.fsync == "off" {
        return Finding::problem(SETTINGS, "fsync is off", "set it to on: a crash of the machine loses data");
    }
    if server.synchronous_commit == "off" {
        let next = "set it to on: a crash of the server loses contacts and settings that were acknowledged";
        return Finding::problem(SETTINGS, "synchronous_commit is off", next);
    }
    Finding::ok(SETTINGS, "a commit waits for the disk")
}

fn check_connections(server: &DatabaseServer) -> Finding {
    const CONNECTIONS: &str = "connections";
    let DatabaseServer { connections, connections_max, .. } = server;
    let role_limit = i64::from(server.role_connections_max);
    let limit = if role_limit < 0 { *connections_max } else { role_limit.min(*connections_max) };
    let found = format!("{connections} open, at most {limit} for this role");
    if limit < CONNECTIONS_NEEDED {
        let next = format!("allow at least {CONNECTIONS_NEEDED} (max_connections, or the limit of the role)");
        return Finding::problem(CONNECTIONS, found, next);
    }
    if connections_max - connections < 2 {
        return Finding::problem(CONNECTIONS, found, "raise max_connections, or close other clients");
    }
    Finding::ok(CONNECTIONS, found)
}

fn check_tls(server: &DatabaseServer) -> Finding {
    match (server.is_over_tcp, server.is_encrypted) {
        (false, _) => Finding::ok("database TLS", "not needed: a socket of this machine"),
        (true, true) => Finding::ok("database TLS", "encrypted"),
        (true, false) => Finding::note(
            "database TLS",
            "the connection is not encrypted",
            "outside of a trusted network use ?sslmode=verify-full in --database-url",
        ),
    }
}

fn check_clock(difference: TimeDelta) -> Finding {
    let found = format!("{} ms from the database's", difference.num_milliseconds());
    if difference.abs() > CLOCK_ERROR_MAX {
        return Finding::problem("clock", found, "run a time service on both machines");
    }
    Finding::ok("clock", found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suitable_server() -> DatabaseServer {
        DatabaseServer {
            version: 150_004,
            encoding: ENCODING.to_owned(),
            synchronous_commit: "on".to_owned(),
            fsync: "on".to_owned(),
            is_standby: false,
            connections_max: 97,
            connections: 10,
            role_connections_max: -1,
            is_encrypted: true,
            is_over_tcp: true,
            now: clock::now(),
            missing_extensions: Vec::new(),
        }
    }

    fn json(finding: &Finding) -> String {
        serde_json::to_string(finding).expect("JSON")
    }

    #[test]
    fn each_unsuitable_setting_is_named() {
        let checks: [fn(&DatabaseServer) -> Finding; 6] =
            [check_version, check_encoding, check_extensions, check_settings, check_connections, check_tls];
        for check in checks {
            assert!(json(&check(&suitable_server())).contains("\"ok\""), "{}", json(&check(&suitable_server())));
        }
        for (finding, word) in [
            (check_version(&DatabaseServer { version: 140_010, ..suitable_server() }), "15 or newer"),
            (check_version(&DatabaseServer { is_standby: true, ..suitable_server() }), "primary"),
            (check_encoding(&DatabaseServer { encoding: "LATIN1".to_owned(), ..suitable_server() }), "LATIN1"),
            (check_settings(&DatabaseServer { fsync: "off".to_owned(), ..suitable_server() }), "fsync"),
            (
                check_settings(&DatabaseServer { synchronous_commit: "off".to_owned(), ..suitable_server() }),
                "synchronous_commit",
            ),
            (check_connections(&DatabaseServer { role_connections_max: 6, ..suitable_server() }), "at least 18"),
            (check_connections(&DatabaseServer { connections: 96, ..suitable_server() }), "raise max_connections"),
            (check_clock(TimeDelta::seconds(-3)), "-3000 ms"),
        ] {
            let text = json(&finding);
            assert!(text.contains("\"problem\"") && text.contains(word), "{word}: {text}");
        }
        let notes = [
            check_extensions(&DatabaseServer { missing_extensions: vec!["unaccent".to_owned()], ..suitable_server() }),
            check_tls(&DatabaseServer { is_encrypted: false, ..suitable_server() }),
        ];
        assert!(notes.iter().all(|note| json(note).contains("\"note\"")));
    }
}
