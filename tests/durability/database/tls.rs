//! TLS to PostgreSQL: each `sslmode`, the files, PostgreSQL's own variables. Whether a session is encrypted follows
//! from the role: one may connect only with TLS, one only without, one only with a client certificate.

use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use hotline_postgres::{Cluster, ClusterOptions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{AssertSqlSafe, PgPool};
use tempfile::TempDir;

use super::link::Link;
use crate::process::{Process, command, data_folder, serving};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, TestDatabase, eventually};

/// Who may connect, and how.
const RULES: &str = "local all all trust\n\
                     host all hotline 127.0.0.0/8 trust\n\
                     hostssl all only_tls 127.0.0.0/8 trust\n\
                     hostnossl all only_clear 127.0.0.0/8 trust\n\
                     hostssl all with_certificate 127.0.0.0/8 cert\n";

/// PostgreSQL with a certificate, at two addresses of this machine; the certificate names the first.
struct Server {
    cluster: Cluster,
    folder: TempDir,
    files: TempDir,
    named: Ipv4Addr,
    unnamed: Ipv4Addr,
}

impl Server {
    async fn start() -> Self {
        let (folder, files) = (prepared_folder(), data_folder());
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let (named, unnamed) = (Ipv4Addr::new(127, 78, high, low), Ipv4Addr::new(127, 79, high, low));
        let rules = files.path().join("pg_hba.conf");
        std::fs::write(&rules, RULES).expect("the rules");
        std::fs::set_permissions(&rules, std::fs::Permissions::from_mode(0o644)).expect("mode");
        let mut options = ClusterOptions::for_tests(folder.path());
        options.settings.push(("listen_addresses".to_owned(), format!("{named},{unnamed}")));
        options.settings.push(("hba_file".to_owned(), rules.display().to_string()));
        let cluster = Cluster::start(options).await.expect("PostgreSQL");
        let server = Self { cluster, folder, files, named, unnamed };
        server.make_certificates();
        let db = server.db();
        for role in ["only_tls", "only_clear", "with_certificate"] {
            execute(&db, &format!("create role {role} login superuser")).await;
        }
        for (setting, value) in [
            ("ssl_cert_file", server.file("server.pem")),
            ("ssl_key_file", server.file("server.key")),
            ("ssl_ca_file", server.file("ca.pem")),
            ("ssl", "on".to_owned()),
        ] {
            execute(&db, &format!("alter system set {setting} = '{value}'")).await;
        }
        execute(&db, "select pg_reload_conf()").await;
        eventually("TLS is served", || async {
            let shown: String = sqlx::query_scalar("show ssl").fetch_one(&db).await.expect("a setting");
            shown == "on"
        })
        .await;
        db.close().await;
        server
    }

    fn db(&self) -> PgPool {
        crate::support::database::pool(self.cluster.connect_options())
    }

    fn file(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    fn make_certificates(&self) {
        let folder = self.files.path();
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        openssl(
            folder,
            &[
                &["req", "-x509", "-days", "2", "-subj", "/CN=authority"][..],
                &key,
                &["-keyout", "ca.key", "-out", "ca.pem"],
            ]
            .concat(),
        );
        for (name, subject, usage) in
            [("server", "/CN=database", "serverAuth"), ("client", "/CN=with_certificate", "clientAuth")]
        {
            let (key_file, request) = (format!("{name}.key"), format!("{name}.csr"));
            let ask = ["-subj", subject, "-keyout", &key_file, "-out", &request];
            openssl(folder, &[&["req"][..], &key, &ask].concat());
            let extensions = format!("subjectAltName=IP:{}\nextendedKeyUsage={usage}\n", self.named);
            std::fs::write(folder.join("extensions"), extensions).expect("extensions");
            let certificate = format!("{name}.pem");
            let sign =
                ["x509", "-req", "-in", &request, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"];
            openssl(folder, &[&sign[..], &["-extfile", "extensions", "-out", &certificate]].concat());
        }
        // PostgreSQL accepts only a key that no other user can read.
        let owner = std::fs::metadata(self.cluster.cluster_dir()).expect("the cluster");
        let key: PathBuf = folder.join("server.key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("mode");
        chown(&key, Some(owner.uid()), Some(owner.gid())).expect("owner");
        for certificate in ["server.pem", "ca.pem"] {
            let mode = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(folder.join(certificate), mode).expect("mode");
        }
    }

    fn url(&self, role: &str, host: Ipv4Addr, parameters: &str) -> String {
        format!("postgres://{role}@{host}/hotline?{parameters}")
    }

    /// Runs a command on the database of this URL; why it failed, or `None` if it succeeded.
    fn failure_at(&self, url: &str, variables: &[(&str, String)]) -> Option<String> {
        let mut list = command(self.folder.path(), &["company", "list", "--database-url", url]);
        let output = list.envs(variables.iter().cloned()).output().expect("hotline runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (!output.status.success()).then_some(text)
    }
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).current_dir(folder).output().expect("openssl");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

async fn execute(db: &PgPool, statement: &str) {
    sqlx::query(AssertSqlSafe(statement)).execute(db).await.expect(statement);
}

#[actix_web::test]
async fn every_mode_of_tls_connects_as_its_name_says_and_a_failure_names_what_corrects_it() {
    let server = Server::start().await;
    let (named, unnamed) = (server.named, server.unnamed);
    let root = format!("sslrootcert={}", server.file("ca.pem"));
    let client = format!("sslcert={}&sslkey={}", server.file("client.pem"), server.file("client.key"));
    for (role, host, parameters) in [
        ("only_clear", named, "sslmode=disable".to_owned()),
        ("only_clear", named, "sslmode=allow".to_owned()),
        ("only_tls", named, "sslmode=allow".to_owned()),
        ("only_tls", named, "sslmode=prefer".to_owned()),
        ("only_clear", named, "sslmode=prefer".to_owned()),
        ("only_tls", named, String::new()),
        ("only_tls", unnamed, "sslmode=require".to_owned()),
        ("only_tls", unnamed, format!("sslmode=require&{root}")),
        ("only_tls", unnamed, format!("sslmode=verify-ca&{root}")),
        ("only_tls", named, format!("sslmode=verify-full&{root}")),
        ("with_certificate", named, format!("sslmode=verify-full&{root}&{client}")),
    ] {
        let failure = server.failure_at(&server.url(role, host, &parameters), &[]);
        assert_eq!(failure, None, "{role} at {host} with {parameters}");
    }
    for (role, host, parameters, words) in [
        ("only_tls", named, "sslmode=disable".to_owned(), "pg_hba.conf"),
        ("only_clear", named, "sslmode=require".to_owned(), "pg_hba.conf"),
        ("only_tls", named, "sslmode=verify-ca".to_owned(), "sslrootcert"),
        ("only_tls", named, "sslmode=verify-full".to_owned(), "sslrootcert"),
        ("only_tls", unnamed, format!("sslmode=verify-full&{root}"), "as the certificate does"),
        ("with_certificate", named, format!("sslmode=verify-full&{root}"), "certificate"),
        ("only_tls", named, "sslmode=verify-full&sslrootcert=/nowhere/ca.pem".to_owned(), "/nowhere/ca.pem"),
    ] {
        let failure = server.failure_at(&server.url(role, host, &parameters), &[]);
        assert!(
            failure.as_ref().is_some_and(|text| text.contains(words)),
            "{role} at {host} with {parameters}: {failure:?}"
        );
    }
    let variables = |mode: &str| {
        [
            ("PGSSLMODE", mode.to_owned()),
            ("PGSSLROOTCERT", server.file("ca.pem")),
            ("PGSSLCERT", server.file("client.pem")),
            ("PGSSLKEY", server.file("client.key")),
        ]
    };
    let url = server.url("with_certificate", named, "");
    assert_eq!(server.failure_at(&url, &variables("verify-full")), None);
    let failure = server.failure_at(&url, &variables("strict"));
    assert!(failure.is_some_and(|text| text.contains("PGSSLMODE") && text.contains("strict")));
    server.cluster.stop().await.expect("PostgreSQL stops");
}

#[actix_web::test]
async fn all_sessions_of_a_service_are_encrypted_and_end_soon_after_their_client() {
    let server = Server::start().await;
    let folder = data_folder();
    let url =
        server.url("hotline", server.named, &format!("sslmode=verify-full&sslrootcert={}", server.file("ca.pem")));
    let mut serve = serving(folder.path());
    serve.args(["--database-url", &url]);
    let process =
        Process::start(folder.path(), &mut serve).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    let db = server.db();
    let sessions = "select count(*), bool_and(s.ssl) from pg_stat_ssl s join pg_stat_activity a using (pid)
        where a.client_addr is not null and a.application_name like 'hotline%'";
    let (count, all): (i64, Option<bool>) = sqlx::query_as(sessions).fetch_one(&db).await.expect("sessions");
    assert!(count > 1 && all == Some(true), "{count} sessions, all with TLS: {all:?}");
    process.kill();
    db.close().await;
    let options =
        PgConnectOptions::new_without_pgpass().host(&server.named.to_string()).username("hotline").database("hotline");
    let db = crate::support::database::pool(options.ssl_mode(PgSslMode::Require));
    for (setting, value) in [
        ("tcp_keepalives_idle", "10"),
        ("tcp_keepalives_interval", "5"),
        ("tcp_keepalives_count", "3"),
        ("tcp_user_timeout", "25000"),
    ] {
        let show = AssertSqlSafe(format!("show {setting}"));
        let shown: String = sqlx::query_scalar(show).fetch_one(&db).await.expect("a setting");
        assert_eq!(shown, value, "{setting}");
    }
    db.close().await;
    server.cluster.stop().await.expect("PostgreSQL stops");
}

#[actix_web::test]
async fn an_unencrypted_connection_to_another_address_causes_a_warning_unless_it_was_chosen() {
    let (folder, database) = (data_folder(), TestDatabase::migrated().await);
    let link = Link::to(&database.options);
    // Linux connects to itself at this address, which is not a loopback address.
    let url = link.url().replace("127.0.0.1", "0.0.0.0");
    for (mode, is_warned) in [("sslmode=prefer", true), ("sslmode=disable", false)] {
        let mut serve = serving(folder.path());
        serve.args(["--database-url", &url.replace("sslmode=disable", mode)]);
        let process =
            Process::start(folder.path(), &mut serve).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
        let log = process.log();
        let lines =
            log.lines().filter(|line| line.contains("is not encrypted") && line.contains("sslmode=verify-full"));
        assert_eq!(lines.count(), usize::from(is_warned), "{mode}: {log}");
        process.kill();
    }
    database.drop().await;
}

/// The process id of each session of the service, and the serial number of its client certificate.
async fn sessions(db: &PgPool) -> Vec<(i32, String)> {
    let sessions =
        "select a.pid, coalesce(s.client_serial::text, '') from pg_stat_ssl s join pg_stat_activity a using (pid)
        where a.usename = 'with_certificate' order by a.pid";
    sqlx::query_as(sessions).fetch_all(db).await.expect("sessions")
}

#[actix_web::test]
async fn replaced_tls_files_are_read_by_new_connections_and_no_session_ends_at_sighup() {
    let server = Server::start().await;
    let folder = data_folder();
    let parameters = format!(
        "sslmode=verify-full&sslrootcert={}&sslcert={}&sslkey={}",
        server.file("ca.pem"),
        server.file("client.pem"),
        server.file("client.key")
    );
    let url = server.url("with_certificate", server.named, &parameters);
    let mut serve = serving(folder.path());
    serve.args(["--database-url", &url]);
    let mut process =
        Process::start(folder.path(), &mut serve).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    let db = server.db();
    let company = Company::create(&db, "Acme").await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    let before = sessions(&db).await;
    assert!(before.iter().all(|(_, serial)| *serial == before[0].1), "{before:?}");

    // Another authority and other certificates, for both ends. PostgreSQL accepts clients of the new authority only.
    let earlier = data_folder();
    for name in ["ca.pem", "client.pem", "client.key"] {
        std::fs::copy(server.file(name), earlier.path().join(name)).expect("a copy");
    }
    server.make_certificates();
    execute(&db, "select pg_reload_conf()").await;
    let earlier_parameters =
        parameters.replace(&server.files.path().display().to_string(), &earlier.path().display().to_string());
    eventually("the earlier files no longer work", || async {
        server.failure_at(&server.url("with_certificate", server.named, &earlier_parameters), &[]).is_some()
    })
    .await;
    kill(Pid::from_raw(process.pid().try_into().expect("a process id")), Signal::SIGHUP).expect("a signal");
    eventually("the service has reloaded", || async { process.log().contains("reloaded at SIGHUP") }).await;
    let pids = before.iter().map(|(pid, _)| *pid).collect::<Vec<_>>();
    let remaining = sessions(&db).await;
    assert!(pids.iter().any(|pid| remaining.iter().any(|(other, _)| other == pid)), "{before:?}, {remaining:?}");
    api.post("/tags", json!({"name": "before"})).await.data(201);

    execute(&db, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'with_certificate'").await;
    eventually("changes are made over new connections", || async {
        let changed = api.try_post("/tags", &json!({"name": "after"})).await;
        // 409: the change was made before, and its answer was lost.
        changed.is_some_and(|reply| [201, 409].contains(&reply.status.as_u16()))
    })
    .await;
    eventually("lists are served", || async { api.get("/tags").await.status == 200 }).await;
    let after = sessions(&db).await;
    assert!(!after.is_empty() && after.iter().all(|(_, serial)| *serial != before[0].1), "{before:?}, {after:?}");
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
    db.close().await;
    server.cluster.stop().await.expect("PostgreSQL stops");
}
