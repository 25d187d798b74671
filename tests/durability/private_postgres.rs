//! The private PostgreSQL keeps to the limits of the process that runs it.

use std::process::{Command, Stdio};

use crate::process::{Process, SERVE, with_database};
use crate::support::template::prepared_folder;

/// Address space in KiB: less than the shared buffers of a large machine would need.
const ADDRESS_SPACE_KIB: u64 = 1 << 20;

/// A setting, in MiB, of the server that `_process` runs. The process must live: otherwise `with_database` starts a
/// server with other settings.
async fn setting_mib(_process: &Process, folder: &std::path::Path, name: &'static str) -> i64 {
    with_database(folder, async |db| {
        let select = "select pg_size_bytes(current_setting($1)) / 1048576";
        sqlx::query_scalar(select).bind(name).fetch_one(db).await.expect("a setting")
    })
    .await
}

#[actix_web::test]
async fn under_an_address_space_limit_a_sixteenth_of_it_becomes_shared_buffers() {
    let folder = prepared_folder();
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_hotline")]);
    limited.args(SERVE).args(["--journal-segment-size", "1MiB", "--data-dir"]).arg(folder.path()).stdin(Stdio::null());
    let mut process = Process::start(folder.path(), &mut limited).expect("it serves");
    assert_eq!(setting_mib(&process, folder.path(), "shared_buffers").await, 64);
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

#[actix_web::test]
async fn the_memory_and_the_wal_are_limited_by_options() {
    let folder = prepared_folder();
    let options = ["--postgres-memory", "256MiB", "--postgres-disk", "128MiB"];
    let mut process = Process::try_serve(folder.path(), &options).expect("it serves");
    assert_eq!(setting_mib(&process, folder.path(), "shared_buffers").await, 64);
    assert_eq!(setting_mib(&process, folder.path(), "max_wal_size").await, 128);
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
    let url = ["--postgres-memory", "256MiB", "--database-url", "postgres://hotline@db.example/hotline"];
    let refused = Process::try_serve(folder.path(), &url).err().expect("refused: it has no private PostgreSQL");
    assert!(refused.contains("--postgres-memory limits the private PostgreSQL"), "{refused}");
}
