//! A database that was restored under a newer journal is not served.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::process::{Process, data_folder, with_database};
use crate::support::{Api, Company, eventually};

/// Runs statements in the database `postgres`, since they work only while nobody is connected to the service's.
async fn execute_in_postgres(folder: &Path, statements: &[&str]) {
    with_database(folder, async |db| {
        let options = db.connect_options().as_ref().clone().database("postgres");
        db.close().await;
        let mut connection = PgConnection::connect_with(&options).await.expect("the private PostgreSQL");
        for statement in statements {
            sqlx::query(AssertSqlSafe(*statement)).execute(&mut connection).await.expect(statement);
        }
    })
    .await;
}

/// The epoch of the last writer, the watermarks, and the number of messages.
async fn state(folder: &Path) -> (i64, Vec<(String, i64, i64)>, i64) {
    with_database(folder, async |db| {
        let epoch = sqlx::query_scalar("select epoch from ownership").fetch_one(db).await.expect("epoch");
        let watermarks = sqlx::query_as("select journal, seq, epoch from journal_watermark");
        let messages = sqlx::query_scalar("select count(*) from messages").fetch_one(db).await.expect("count");
        (epoch, watermarks.fetch_all(db).await.expect("watermarks"), messages)
    })
    .await
}

/// The files of the journal.
fn journal(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(folder.join("journal")).expect("the journal");
    files
        .map(|file| file.expect("a file").path())
        .map(|path| (path.clone(), std::fs::read(&path).expect("its bytes")))
        .collect()
}

async fn send(api: &Api, company: &Company, body: &str) {
    let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": body});
    let job = api.post("/messages", send).await.data(202)["jobId"].as_str().expect("a job").to_owned();
    api.get(&format!("/messages/jobs/{job}")).await.data(200);
}

async fn serve(folder: &Path, company: &Company) -> (Process, Api) {
    let process = Process::serve(folder);
    let api = Api::new(process.address, &company.key);
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    (process, api)
}

fn stop(mut process: Process) {
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

#[actix_web::test]
async fn a_database_restored_under_a_newer_journal_is_refused_with_both_numbers() {
    let folder = data_folder();
    let folder = folder.path();
    let company = with_database(folder, async |db| {
        hotline_persistence::pool::migrate(db).await.expect("migrate");
        Company::create(db, "Acme").await
    })
    .await;
    let (process, api) = serve(folder, &company).await;
    send(&api, &company, "before the backup").await;
    stop(process);
    execute_in_postgres(folder, &["create database backup template hotline"]).await;
    let (_, at_backup, _) = state(folder).await;

    let (process, api) = serve(folder, &company).await;
    for number in 0..5 {
        send(&api, &company, &format!("after the backup {number}")).await;
    }
    stop(process);
    let (_, now, _) = state(folder).await;
    let (journal_id, watermark, _) = at_backup[0].clone();
    let confirmed = now[0].1;
    assert!(confirmed > watermark, "{confirmed} is not above {watermark}");
    execute_in_postgres(folder, &["alter database hotline rename to newer", "alter database backup rename to hotline"])
        .await;

    let (before, kept) = (state(folder).await, journal(folder));
    for _ in 0..2 {
        let refused = Process::try_serve(folder, &[]).err().expect("an older database is not served");
        for text in [
            format!("up to {watermark},"),
            format!("up to {confirmed} were confirmed"),
            journal_id.clone(),
            "older than the journal".to_owned(),
            "move the journal folder away".to_owned(),
        ] {
            assert!(refused.contains(&text), "`{text}` is missing in {refused}");
        }
    }
    assert_eq!(state(folder).await, before, "a refused start changed the database");
    assert_eq!(journal(folder), kept, "a refused start changed the journal");

    // A database without a watermark of the journal is refused as well.
    let unknowing = [
        "create database unknowing template hotline",
        "alter database hotline rename to backup",
        "alter database unknowing rename to hotline",
    ];
    execute_in_postgres(folder, &unknowing).await;
    with_database(folder, async |db| {
        sqlx::query("delete from journal_watermark").execute(db).await.expect("delete");
    })
    .await;
    let refused = Process::try_serve(folder, &[]).err().expect("a foreign database is not served");
    assert!(refused.contains("up to 0,") && refused.contains(&format!("up to {confirmed} were")), "{refused}");

    // The database that belongs to the journal is served, with all messages.
    execute_in_postgres(folder, &["drop database hotline", "alter database newer rename to hotline"]).await;
    let (process, api) = serve(folder, &company).await;
    assert_eq!(api.all("/messages").await.len(), 6);
    stop(process);

    // To discard what came after the backup, the journal is moved away.
    execute_in_postgres(folder, &["alter database hotline rename to newer", "alter database backup rename to hotline"])
        .await;
    std::fs::rename(folder.join("journal"), folder.join("journal.newer")).expect("moved");
    let (process, api) = serve(folder, &company).await;
    assert_eq!(api.all("/messages").await.len(), 1);
    stop(process);
}
