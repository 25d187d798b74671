//! Stopping, starting, and refusing to start.

use std::sync::Arc;

use futures_util::future::{join, join_all};

use crate::load::{Conversation, LoadProgress};
use crate::process::{Process, data_folder, run, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, eventually};

#[actix_web::test]
async fn sigterm_under_load_flushes_everything_and_the_next_start_replays_nothing() {
    let folder = prepared_folder();
    let mut process = Process::serve(folder.path());
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async {
        api.get("/channels").await.body["data"].as_array().is_some_and(|rows| rows.len() == 2)
    })
    .await;
    let mut conversations = Vec::new();
    for number in 0..6 {
        conversations.push(Conversation::begin(&api, &company, &format!("visitor-{number}")).await);
    }
    let talk = conversations.iter_mut().map(|conversation| {
        let (api, company) = (&api, &company);
        async move { conversation.run(api, company, Arc::new(LoadProgress::default())).await }
    });
    let stopped = async {
        // In the middle of the load: a hundred messages are there, and more are on their way.
        eventually("the load runs", || async { api.get("/messages").await.body["meta"]["hasMore"] == true }).await;
        process.terminate();
    };
    join(stopped, join_all(talk)).await;
    assert_eq!(process.wait().code(), Some(0));
    assert!(process.log().contains("stopped; all changes are written"), "{}", process.log());

    let process = Process::serve(folder.path());
    assert_eq!(process.replayed(), 0, "something was left in the journal");
    assert!(
        !process.log().contains("creation was interrupted"),
        "the log has an interrupted creation: {}",
        process.log()
    );
    let api = Api::new(process.address, &company.key);
    for conversation in &conversations {
        conversation.check(&api).await;
    }
    process.kill();
}

#[actix_web::test]
async fn a_service_with_a_damaged_journal_refuses_to_start_and_names_file_and_offset() {
    let folder = prepared_folder();
    let process = Process::serve(folder.path());
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    for number in 0..5 {
        Conversation::begin(&api, &company, &format!("visitor-{number}")).await;
    }
    process.kill();

    let segment = std::fs::read_dir(folder.path().join("journal"))
        .expect("journal")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "journal"))
        .min()
        .expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("segment");
    // In the first group, after the segment's header; later groups were synced after it, so it is not a torn tail.
    let offset = 200;
    bytes[offset] ^= 0x01;
    std::fs::write(&segment, &bytes).expect("segment");

    let output = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(65), "it started on a damaged journal, or names another kind of failure");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    let file = segment.file_name().and_then(|name| name.to_str()).expect("name");
    assert!(printed.contains(file), "the file is not named: {printed}");
    assert!(printed.contains("offset") || printed.contains("byte"), "the offset is not named: {printed}");
    assert_eq!(std::fs::read(&segment).expect("segment"), bytes, "the damaged file was changed");
}

#[actix_web::test]
async fn a_second_service_on_the_same_database_refuses_to_start() {
    let (folder, other) = (prepared_folder(), data_folder());
    let process = Process::serve(folder.path());
    let url = with_database(folder.path(), async |db| {
        let options = db.connect_options();
        let socket = options.get_socket().expect("a socket").display().to_string();
        format!("postgres:///hotline?host={socket}&user=hotline")
    })
    .await;
    let printed = Process::try_serve(other.path(), &["--database-url", &url]).err().expect("it started");
    for word in ["another Hotline process serves this database", "hotline writer ", "pg_terminate_backend("] {
        assert!(printed.contains(word), "{word} is missing in {printed}");
    }
    process.kill();
}

/// Until autovacuum has analyzed the tables of a first import, their lists are planned as if they were empty.
#[actix_web::test]
async fn the_private_postgresql_runs_autovacuum_every_five_seconds() {
    let folder = prepared_folder();
    let process = Process::serve(folder.path());
    let shown = with_database(folder.path(), async |db| {
        let shown = "select current_setting('autovacuum'), current_setting('autovacuum_naptime')";
        sqlx::query_as::<_, (String, String)>(shown).fetch_one(db).await.expect("the settings")
    })
    .await;
    assert_eq!(shown, ("on".to_owned(), "5s".to_owned()));
    process.kill();
}
