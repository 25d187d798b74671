//! Starts that are refused: one line names the cause, before a file is created or PostgreSQL is started.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;

use super::{failure, json, url};
use crate::process::{Process, command, data_folder, hotline, run};
use crate::support::template::prepared_folder;
use crate::support::{PATIENCE, TestDatabase, free_address, patience};

/// The line that every start logs, and the one that a start by root adds.
const LOGGED: [&str; 2] = ["serve: starting version=", "root: the service runs as root"];

/// Runs a command that must fail, and returns its message, which must be one line.
fn failure_line(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("hotline runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_logged = |line: &&str| LOGGED.iter().any(|logged| line.contains(logged));
    let stderr: String = stderr.split_inclusive('\n').filter(|line| !is_logged(line)).collect();
    assert!(!output.status.success() && output.stdout.is_empty(), "{command:?} succeeded");
    assert!(
        stderr.starts_with("hotline: ") && stderr.lines().count() == 1,
        "{command:?} did not print one line: {stderr}"
    );
    stderr
}

fn check_empty(folder: &Path) {
    let made: Vec<_> = std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path()).collect();
    assert!(made.is_empty(), "files were created: {made:?}");
}

#[actix_web::test]
async fn a_port_in_use_is_named_before_postgresql_is_started() {
    let folder = data_folder();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("address").to_string();
    let stderr = failure_line(command(folder.path(), &["serve", "--listen", &address]));
    assert!(stderr.contains("--listen") && stderr.contains(&address) && stderr.contains("another process"), "{stderr}");
    let stderr =
        failure_line(command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--metrics-listen", &address]));
    assert!(stderr.contains("--metrics-listen") && stderr.contains(&address), "{stderr}");
    check_empty(folder.path());
    // An address that no machine has (RFC 5737) has an error of its own.
    let stderr = failure_line(command(folder.path(), &["serve", "--listen", "192.0.2.1:8080"]));
    assert!(stderr.contains("no such address"), "{stderr}");
    check_empty(folder.path());
}

#[actix_web::test]
async fn an_option_that_cannot_work_is_named_before_anything_starts() {
    let folder = data_folder();
    for (options, words) in [
        (&["--journal-max-size", "10MiB"][..], &["--journal-max-size 10MiB", "128"][..]),
        (&["--journal-max-size", "1MiB", "--journal-segment-size", "1MiB"], &["--journal-max-size 1MiB", "2"]),
        (
            &["--database-url", "mysql://root:hidden@127.0.0.1/hotline"],
            &["--database-url", "`mysql://`", "postgres://"],
        ),
        (&["--database-url", "127.0.0.1:hidden"], &["--database-url", "postgres://"]),
    ] {
        let stderr = failure_line(command(folder.path(), &[&["serve"], options].concat()));
        assert!(words.iter().all(|word| stderr.contains(word)) && !stderr.contains("hidden"), "{options:?}: {stderr}");
        check_empty(folder.path());
    }
    let stderr = failure(folder.path(), &["serve", "--listen", "8080"]);
    assert!(stderr.contains("--listen") && stderr.contains(":8080"), "{stderr}");
    // The sweep of sessions subtracts this from the current date, so it is limited.
    for option in ["--session-idle-after", "--idle-after"] {
        let stderr = failure(folder.path(), &["serve", option, "36501d"]);
        assert!(stderr.contains(option) && stderr.contains("must be from 0 to 36500d"), "{stderr}");
        check_empty(folder.path());
    }
}

#[actix_web::test]
async fn a_password_in_a_mistyped_url_is_not_printed() {
    let folder = data_folder();
    for (option, url) in [
        ("--smtp-url", "smtp//desk:hidden@mail.example"),
        ("--smtp-url", "desk:hidden@mail.example:465"),
        ("--smtp-url", "smtps://desk:hidden@mail.example?tls=maybe"),
        ("--smtp-url", "smtps://desk:hid/den@mail.example"),
        ("--media-store", "https://key:hidden@files.example/bucket"),
        ("--public-url", "https://desk:hidden@desk.example/"),
        ("--otlp-endpoint", "https://desk:hid/den@desk.example"),
    ] {
        for arguments in [&["serve", option, url][..], &["doctor", "--json", option, url]] {
            let stderr = failure(folder.path(), arguments);
            assert!(stderr.contains(option), "{arguments:?}: {stderr}");
            assert!(!stderr.contains("hidden") && !stderr.contains("hid/den"), "{arguments:?}: {stderr}");
        }
        check_empty(folder.path());
    }
    // Without the name of its option, the URL is taken for a command.
    let stderr = failure(folder.path(), &["postgres://hotline:hidden@db", "check"]);
    assert!(!stderr.contains("hidden"), "{stderr}");
    let mut serve = command(folder.path(), &["serve"]);
    serve.env("HOTLINE_SMTP_URL", "smtp//desk:hidden@mail.example");
    let stderr = failure_line(serve);
    assert!(stderr.contains("--smtp-url must be smtps://") && !stderr.contains("hidden"), "{stderr}");
}

#[actix_web::test]
async fn an_error_about_an_unavailable_database_names_its_address_and_the_reason() {
    let folder = data_folder();
    let unused_address = free_address();
    let database = format!("postgres://hotline:hidden@{unused_address}/desk");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--start-wait", "0"];
    for arguments in [&serve[..], &["company", "list"], &["company", "create", "Acme"]] {
        let began = Instant::now();
        let stderr = failure_line(command(folder.path(), &[arguments, &["--database-url", &database]].concat()));
        for word in [&unused_address.to_string(), "database desk", "user hotline", "refused"] {
            assert!(stderr.contains(word), "{arguments:?}: {word} is missing in {stderr}");
        }
        assert!(!stderr.contains("hidden"), "{stderr}");
        assert!(began.elapsed() < patience(PATIENCE), "a refused connection took {:?}", began.elapsed());
    }
    // A server that runs but has no such database.
    let test_database = TestDatabase::create().await;
    let missing = url(&test_database).replace("postgres:///test_", "postgres:///nothing_");
    let stderr = failure_line(command(folder.path(), &["company", "list", "--database-url", &missing]));
    assert!(stderr.contains("does not exist") && stderr.contains(".s.PGSQL."), "{stderr}");
    test_database.drop().await;
}

#[actix_web::test]
async fn the_password_of_the_database_may_be_in_a_pgpass_file() {
    let folder = data_folder();
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("address").port();
    // A server that requests the password in clear text (AuthenticationCleartextPassword), and then disconnects.
    let password_server = std::thread::spawn(move || {
        let (stream, _) = server.accept().expect("a connection");
        // The body of a message, after a head whose last four bytes are the length.
        let message = |head_bytes: usize| {
            let mut head = vec![0; head_bytes];
            (&stream).read_exact(&mut head).expect("a message");
            let length = u32::from_be_bytes(head[head.len() - 4..].try_into().expect("a length"));
            let mut body = vec![0; length as usize - 4];
            (&stream).read_exact(&mut body).expect("a message");
            body
        };
        // The startup message has no type byte.
        message(4);
        (&stream).write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).expect("the request for the password");
        String::from_utf8(message(5)).expect("text").trim_end_matches('\0').to_owned()
    });
    let file = folder.path().join("pgpass");
    std::fs::write(&file, format!("127.0.0.1:{port}:desk:hotline:from-the-file\n")).expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("mode");
    let url = format!("postgres://hotline@127.0.0.1:{port}/desk?sslmode=disable");
    let mut list = command(folder.path(), &["company", "list", "--database-url", &url]);
    list.env("PGPASSFILE", &file);
    let stderr = failure_line(list);
    assert_eq!(password_server.join().expect("the server"), "from-the-file");
    assert!(!stderr.contains("from-the-file"), "{stderr}");
}

#[actix_web::test]
async fn a_listen_address_may_have_no_host_or_a_name() {
    let folder = data_folder();
    let database = TestDatabase::migrated().await;
    let url = url(&database);
    for (listen, host) in [(":0", "0.0.0.0:"), ("localhost:0", "127.0.0.1:")] {
        let mut serve = command(folder.path(), &["serve", "--listen", listen, "--database-url", &url]);
        let process = Process::start(folder.path(), &mut serve).unwrap_or_else(|log| panic!("{listen}: {log}"));
        assert!(process.address.to_string().starts_with(host), "{listen}: {}", process.address);
        process.kill();
    }
    database.drop().await;
}

#[actix_web::test]
async fn a_second_process_on_a_data_folder_is_refused_in_one_line() {
    let folder = prepared_folder();
    let process = Process::serve(folder.path());
    let address = process.address.to_string();
    // On another port, and on the first process's: only the folder matters.
    for listen in ["127.0.0.1:0", &address] {
        let stderr = failure_line(command(folder.path(), &["serve", "--listen", listen]));
        assert!(stderr.contains("in use by process") && stderr.contains(&process.pid().to_string()), "{stderr}");
    }
    process.kill();
    let database = TestDatabase::migrated().await;
    let url = url(&database);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--database-url", &url];
    let process = Process::start(folder.path(), &mut command(folder.path(), &serve)).expect("the first one");
    let stderr = failure_line(command(folder.path(), &serve));
    assert!(stderr.contains("journal") && stderr.contains("in use by another process"), "{stderr}");
    process.kill();
    database.drop().await;
}

#[actix_web::test]
async fn an_unknown_variable_is_reported_with_the_nearest_known_one() {
    let folder = prepared_folder();
    json(folder.path(), &["company", "create", "Acme"]);
    let mut list = command(folder.path(), &["company", "list", "--json"]);
    list.env("HOTLINE_LISTN", "127.0.0.1:1")
        .env("HOTLINE_SERVICE_HOST", "10.0.0.1")
        .env("HOTLINE_RATE_PER_MINUTE", "1");
    let output = list.output().expect("hotline runs");
    assert!(output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("unknown environment variable HOTLINE_LISTN; did you mean HOTLINE_LISTEN?"), "{stderr}");
    assert!(!stderr.contains("HOTLINE_SERVICE_HOST") && !stderr.contains("RATE_PER_MINUTE"), "{stderr}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("HOTLINE_"), "a warning is on standard output");
}

#[actix_web::test]
async fn a_mistyped_data_folder_is_refused_and_not_created() {
    let folder = data_folder();
    let mistyped = folder.path().join("hotline-dta");
    let mut tried = BTreeSet::new();
    for arguments in [
        &["company", "list"][..],
        &["company", "update", "1", "--active=false"],
        &["company", "show", "1"],
        &["token", "list"],
        &["token", "show", "1"],
        &["token", "create", "x", "--company", "1", "--all"],
        &["token", "rotate", "1"],
        &["token", "revoke", "1"],
        &["channel", "list"],
        &["channel", "show", "1"],
        &["channel", "create", "x", "--company", "1", "--type", "webchat"],
        &["channel", "update", "1", "--name", "x"],
        &["channel", "rotate-identity-secret", "1"],
        &["profile", "list"],
        &["profile", "show", "1"],
        &["profile", "update", "1", "--name", "x"],
        &["profile", "delete", "1"],
        &["profile", "create", "x", "--company", "1"],
        &["webhook", "list"],
        &["webhook", "show", "1"],
        &["webhook", "create", "https://x.example", "--company", "1"],
        &["webhook", "update", "1", "--active=false"],
        &["webhook", "delete", "1"],
        &["webhook", "rotate-secret", "1"],
        &["webhook", "test", "1"],
        &["webhook", "deliveries", "1"],
        &["webhook", "replay", "1", "--after", "0"],
        &["report", "rebuild"],
        &["retention", "set", "--company", "1", "--after", "30d"],
        &["retention", "show", "--company", "1"],
        &["retention", "delete", "--company", "1"],
        &["retention", "list"],
        &["cluster", "status"],
        &["cluster", "drain", "node-1"],
        &["cluster", "check"],
        &["secret", "list"],
        &["secret", "rotate"],
        &["secret", "reencrypt"],
        &["secret", "delete", "0011223344556677"],
        &["secret", "abandon", "0011223344556677", "--yes"],
        &["contact", "erase", "1", "--company", "1"],
        &["admin", "list"],
        &["admin", "show", "ana@example.com"],
        &["admin", "delete", "ana@example.com"],
        &["admin", "reset-password", "ana@example.com"],
    ] {
        let stderr = failure_line(command(&mistyped, arguments));
        assert!(stderr.contains("hotline-dta") && stderr.contains("--data-dir"), "{arguments:?}: {stderr}");
        assert!(!mistyped.exists(), "{arguments:?} made the folder");
        tried.insert(format!("{} {}", arguments[0], arguments[1]));
    }
    // Every verb was tried, except those that may create the folder and those that do not read it.
    let command = hotline::cli::command();
    let verbs = command.get_subcommands().flat_map(|noun| {
        noun.get_subcommands().map(|verb| format!("{} {}", noun.get_name(), verb.get_name())).collect::<Vec<String>>()
    });
    let rest: Vec<String> = verbs.filter(|verb| !tried.contains(verb)).collect();
    assert_eq!(rest, ["company create", "admin create", "config check", "config print"]);
}

#[actix_web::test]
async fn a_folder_whose_database_is_elsewhere_gets_no_private_one() {
    let folder = data_folder();
    let database = TestDatabase::migrated().await;
    let url = url(&database);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--database-url", &url];
    let process = Process::start(folder.path(), &mut command(folder.path(), &serve));
    process.unwrap_or_else(|log| panic!("not served: {log}")).kill();
    for arguments in
        [&["company", "create", "Acme"][..], &["admin", "create", "ana@example.com"], &["company", "list"], &["check"]]
    {
        let stderr = failure_line(command(folder.path(), arguments));
        assert!(
            stderr.contains("database is elsewhere") && stderr.contains("--database-url"),
            "{arguments:?}: {stderr}"
        );
        assert!(!folder.path().join("postgres").exists(), "{arguments:?} made a private PostgreSQL");
    }
    database.drop().await;
}

#[actix_web::test]
async fn creating_a_token_without_a_scope_suggests_permissions_before_all() {
    let folder = data_folder();
    let stderr = failure(folder.path(), &["token", "create", "x", "--company", "1"]);
    let (small, all) = (stderr.find("--permission").expect("offered"), stderr.find("--all").expect("offered"));
    assert!(small < all, "{stderr}");
    check_empty(folder.path());
}

#[actix_web::test]
async fn a_newer_schema_is_served_if_it_allows_this_release_and_refused_otherwise() {
    let folder = data_folder();
    let database = TestDatabase::migrated().await;
    let url = url(&database);
    // A release after this one has migrated, and says that this one may still serve.
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9000, 'later', true, 'x', 0)";
    sqlx::query(newer).execute(&database.db).await.expect("a migration");
    let release = "update schema_needs set release = '9.1.0'";
    sqlx::query(release).execute(&database.db).await.expect("a release");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--database-url", &url];
    let process = Process::start(folder.path(), &mut command(folder.path(), &serve));
    process.unwrap_or_else(|log| panic!("not served: {log}")).kill();
    let stored: String =
        sqlx::query_scalar("select release from schema_needs").fetch_one(&database.db).await.expect("release");
    assert_eq!(stored, "9.1.0", "the older release has replaced the name of the newer one");
    // Now it says that this release may not serve.
    sqlx::query("update schema_needs set least = 9000").execute(&database.db).await.expect("the least");
    for arguments in [&serve[..3], &["company", "list"]] {
        let stderr = failure_line(command(folder.path(), &[arguments, &["--database-url", &url]].concat()));
        for word in ["9.1.0", "9000", "newer", "backup", env!("CARGO_PKG_VERSION")] {
            assert!(stderr.contains(word), "{arguments:?}: {word} is missing in {stderr}");
        }
    }
    database.drop().await;
}

#[actix_web::test]
async fn a_new_channel_prints_what_to_enter_at_the_site_or_the_provider() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = json(path, &["company", "create", "Acme"])["id"].to_string();
    let create = ["channel", "create", "x", "--company", &company, "--type"];
    let site = json(path, &[&create[..], &["webchat", "--public-url", "https://support.example"]].concat());
    let key = site["publicKey"].as_str().expect("key");
    let line = format!(r#"<script src="https://support.example/webchat/{key}/widget.js" async></script>"#);
    assert_eq!(site["embed"], line);
    let phone = json(path, &[&create[..], &["whatsapp"]].concat());
    let key = phone["publicKey"].as_str().expect("key");
    assert_eq!(phone["hookUrl"], format!("https://hotline.example/hooks/{key}"));
    let printed = String::from_utf8(run(path, &[&create[..], &["webchat"]].concat()).stdout).expect("text");
    assert!(printed.contains("<script src=\"https://hotline.example/webchat/ch_"), "{printed}");
    assert!(printed.contains("your service's address") && printed.contains("--allow-origin"), "{printed}");
    let printed = String::from_utf8(run(path, &[&create[..], &["messenger"]].concat()).stdout).expect("text");
    let words = ["/hooks/ch_", "callback URL", "verify token"];
    assert!(words.iter().all(|word| printed.contains(word)), "{printed}");
}

/// A folder whose configuration file names a database.
struct Configured {
    folder: TempDir,
    database: TestDatabase,
}

impl Configured {
    async fn new() -> Self {
        let configured = Self { folder: data_folder(), database: TestDatabase::migrated().await };
        let options = format!("database_url = \"{}\"", url(&configured.database));
        std::fs::write(configured.file(), options).expect("written");
        configured
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("hotline.toml")
    }

    fn list(&self, arguments: &[&str]) -> Command {
        let mut command = hotline();
        command.args(["company", "list"]).args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn check_works(&self, arguments: &[&str]) {
        let mut command = self.list(arguments);
        assert!(command.output().expect("hotline runs").status.success(), "{command:?}");
    }

    fn check_refused(&self, word: &str) {
        let stderr = failure_line(self.list(&[]));
        assert!(stderr.contains("hotline.toml") && stderr.contains(word) && stderr.contains("--config"), "{stderr}");
        // A file that the command line names is read: naming it is consent.
        self.check_works(&["--config", "hotline.toml"]);
    }
}

#[actix_web::test]
async fn a_configuration_file_that_others_may_write_is_refused_unless_it_is_named() {
    let configured = Configured::new().await;
    let file = configured.file();
    configured.check_works(&[]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o646)).expect("mode");
    configured.check_refused("writable by other users (mode 0646)");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("mode");
    configured.check_works(&[]);
    configured.database.drop().await;
}

#[actix_web::test]
#[ignore = "needs root, to give a file to another user"]
async fn a_configuration_file_of_another_user_is_refused_as_root() {
    let configured = Configured::new().await;
    let file = configured.file();
    std::os::unix::fs::chown(&file, Some(12_345), None).expect("another owner");
    configured.check_refused("belongs to user 12345");
    // A link that belongs to another user, to a file of root.
    std::os::unix::fs::chown(&file, Some(0), None).expect("our own");
    let ours = configured.folder.path().join("ours.toml");
    std::fs::rename(&file, &ours).expect("moved");
    std::os::unix::fs::symlink(&ours, &file).expect("linked");
    configured.check_works(&[]);
    std::os::unix::fs::lchown(&file, Some(12_345), None).expect("another owner");
    configured.check_refused("belongs to user 12345");
    configured.database.drop().await;
}
