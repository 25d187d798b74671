//! SIGHUP, a second signal, a closed terminal, and a container's first process.

use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Starting, signal_postgres};
use crate::process::{binary, children, command};
use crate::support::template::prepared_folder;
use crate::support::{eventually, free_address};

#[actix_web::test]
async fn sighup_reads_the_log_filter_and_the_keys_again() {
    let folder = prepared_folder();
    let config = folder.path().join("hotline.toml");
    std::fs::write(&config, "log_filter = \"warn\"\n").expect("a file");
    let mut process = Starting::serve(folder.path(), &["--config", config.to_str().expect("a path")]);
    process.wait_until_ready().await;
    assert!(!process.log().contains("INFO"), "{}", process.log());

    std::fs::write(&config, "log_filter = \"info,hotline=debug\"\n").expect("a file");
    process.signal(Signal::SIGHUP);
    eventually("it has read the file", || async { process.log().contains("reloaded at SIGHUP") }).await;
    assert!(process.log().contains("keys=1"), "{}", process.log());
    process.get("/health/live").await.expect("an answer");
    eventually("it logs by the new filter", || async { process.log().contains("DEBUG") }).await;

    std::fs::write(&config, "log_filter = \"a=b=c\"\n").expect("a file");
    process.signal(Signal::SIGHUP);
    eventually("it says what is wrong", || async { process.log().contains("keeping the previous one") }).await;
    assert!(process.log().contains("directive 1 (`a=b=c`)"), "{}", process.log());

    // The key of another installation: after the next start, stored secrets could not be opened with it.
    std::fs::write(folder.path().join("secrets.key"), format!("{}\n", "17".repeat(32))).expect("a file");
    process.signal(Signal::SIGHUP);
    eventually("it keeps its keys", || async { process.log().contains("keeping the previous keys") }).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}

#[actix_web::test]
async fn a_service_whose_terminal_is_closed_continues() {
    let folder = prepared_folder();
    let address = free_address();
    let mut command = command(folder.path(), &["serve", "--log-filter", "debug", "--listen", &address.to_string()]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("hotline runs");
    // From here on, the service fails to write any line.
    drop((child.stdout.take(), child.stderr.take()));
    let mut process = Starting { child, address, log: "/dev/null".into() };
    process.wait_until_ready().await;
    process.signal(Signal::SIGHUP);
    for _ in 0..3 {
        let (status, _) = process.get("/health/ready").await.expect("an answer");
        assert_eq!(status, 200);
    }
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0));
}

#[actix_web::test]
async fn a_second_signal_ends_a_stop_at_once() {
    let folder = prepared_folder();
    let mut process = Starting::serve(folder.path(), &[]);
    process.wait_until_ready().await;
    // The stop waits for PostgreSQL.
    signal_postgres(folder.path(), Signal::SIGSTOP);
    process.signal(Signal::SIGTERM);
    eventually("it stops", || async { process.log().contains("a second signal ends the process") }).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(128 + 15), "{}", process.log());
    // The next start adopts the running PostgreSQL, and stops it as usual.
    signal_postgres(folder.path(), Signal::SIGCONT);
    let mut process = Starting::serve(folder.path(), &[]);
    process.wait_until_ready().await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}

// Only root may create a namespace of process ids (`unshare --pid`). The service is its first process, like a
// container's: the kernel gives such a process only the signals that it handles.
#[actix_web::test]
#[ignore = "needs root, to create a PID namespace"]
async fn the_first_process_of_a_container_stops_at_sigterm_as_root() {
    let folder = prepared_folder();
    let address = free_address();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).arg(binary());
    command.args(["serve", "--listen", &address.to_string(), "--data-dir"]).arg(folder.path());
    let mut process = Starting::start(folder.path(), command, address);
    process.wait_until_ready().await;
    let unshare = Pid::from_raw(process.child.id().try_into().expect("a process id"));
    let first = children(unshare).into_iter().next().expect("the first process");
    kill(first, Signal::SIGTERM).expect("a signal");
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    assert!(process.log().contains("all changes are written"), "{}", process.log());
}

#[actix_web::test]
async fn an_invalid_log_filter_is_refused_and_its_directive_named() {
    let folder = prepared_folder();
    let mut serve = command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--log", "json"]);
    let output = serve.env("RUST_LOG", "info,a=b=c").output().expect("hotline runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("RUST_LOG: directive 2 (`a=b=c`)"), "{text}");
}
