//! The commands of `docs/operate/backup.md`, in the order of the page, on an installation of each kind.

use std::fs;
use std::path::Path;
use std::process::Command;

use hotline_persistence::key::new_key;

use super::{Installation, Postgres, client, finish};
use crate::process::{Process, binary, hotline};
use crate::support::{TestDatabase, empty_folder};

/// The commands of the page, one on each line.
fn commands() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operate/backup.md");
    let page = fs::read_to_string(page).expect("the page");
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

#[actix_web::test]
async fn the_steps_of_the_page_make_a_backup_and_two_installations_from_it() {
    let installation = Installation::new(Postgres::Private).await;
    let logs = empty_folder();
    let process = installation.serve(logs.path());
    let company = installation.company().await;
    client(&process, &company).await;
    // The commands run in a folder of their own, which is not the data folder.
    let working_folder = crate::process::data_folder();
    let shared = TestDatabase::create().await;
    let socket = shared.options.get_socket().expect("a socket").display().to_string();
    let database = new_key("test_").to_lowercase();
    let path = format!("{}:{}", binary().parent().expect("a folder").display(), std::env::var("PATH").expect("a path"));
    let set_environment = |command: &mut Command| {
        command.current_dir(working_folder.path()).env("HOTLINE_DATA_DIR", installation.path()).env("PATH", &path);
        command.env("PGHOST", &socket).env("PGUSER", shared.options.get_username());
    };
    let (mut run, mut served) = (0, 0);
    for line in commands() {
        let line = line.replace("hotline_restored", &database);
        if let Some(options) = line.strip_prefix("hotline serve ") {
            let mut command = hotline();
            set_environment(&mut command);
            command.args(["serve", "--listen", "127.0.0.1:0", "--log", "json"]).args(options.split(' '));
            let mut process =
                Process::start(working_folder.path(), &mut command).unwrap_or_else(|log| panic!("{line}: {log}"));
            client(&process, &company).await;
            process.terminate();
            assert!(process.wait().success(), "{line}");
            served += 1;
            continue;
        }
        let mut command = Command::new("sh");
        set_environment(&mut command);
        command.args(["-e", "-c", &line]);
        let output = finish(command).await;
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        run += 1;
    }
    assert!(run >= 6 && served == 2, "few commands are found: {run}, {served}");
    process.kill();
    let drop = sqlx::AssertSqlSafe(format!("drop database {database} with (force)"));
    sqlx::query(drop).execute(&shared.db).await.expect("dropped");
    shared.drop().await;
}
