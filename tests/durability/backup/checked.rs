//! `hotline check` finds what is wrong, and changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Installation, Postgres, client, finish, names, run_json};
use crate::process::with_database;
use crate::support::form::Form;
use crate::support::{empty_folder, eventually};

/// Runs `hotline check`. Returns its exit code, and the name, the result and the text of each check that is not `ok`.
async fn findings(installation: &Installation) -> (Option<i32>, Vec<(String, String, String)>) {
    let output = finish({
        let mut command = installation.command(&["check"]);
        command.arg("--json");
        command
    })
    .await;
    let printed: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = printed["checks"].as_array().expect("checks").iter();
    let lines = lines.map(|line| (text(&line["check"]), text(&line["result"]), text(&line["found"])));
    (output.status.code(), lines.filter(|(_, result, _)| result != "ok").collect())
}

async fn assert_problem(installation: &Installation, check: &str, words: &[&str]) {
    let (code, found) = findings(installation).await;
    assert_eq!(code, Some(1), "{found:?}");
    let problem = found.iter().find(|(name, result, _)| name == check && result == "problem");
    let (_, _, found_text) = problem.unwrap_or_else(|| panic!("no problem found by {check}: {found:?}"));
    for word in words {
        assert!(found_text.contains(word), "{word} is missing in {found_text}");
    }
}

fn first_file(folder: &Path) -> PathBuf {
    let mut path = folder.to_owned();
    while path.is_dir() {
        let names = names(&path);
        let name = names.iter().find(|name| *name != "incoming").expect("a file");
        path.push(name);
    }
    path
}

#[actix_web::test]
async fn a_check_of_an_intact_installation_succeeds_while_it_runs_and_while_it_is_stopped() {
    let installation = Installation::new(Postgres::Private).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let mut process = installation.serve(logs.path());
    let company = installation.company().await;
    let api = client(&process, &company).await;
    let form = Form::default().text("type", "media").text("channelId", company.phone).text("number", "5511900000001");
    api.send_form(form.file("a.png", "image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01"))
        .await
        .data(202);
    eventually("only the missing backup is found", || async { findings(&installation).await.1.len() == 1 }).await;
    let (code, found) = findings(&installation).await;
    assert_eq!((code, found[0].0.as_str()), (Some(0), "backup"), "{found:?}");
    run_json(installation.command(&["backup", super::text(backups.path())])).await;
    assert_eq!(findings(&installation).await, (Some(0), vec![]));
    process.terminate();
    assert!(process.wait().success());
    let names_before = names(installation.path());
    assert_eq!(findings(&installation).await, (Some(0), vec![]));
    assert_eq!(names(installation.path()), names_before);
}

#[actix_web::test]
async fn a_check_names_what_is_missing_or_damaged() {
    let installation = Installation::new(Postgres::Private).await;
    let path = installation.path().to_owned();
    let logs = empty_folder();
    let mut process = installation.serve(logs.path());
    let company = installation.company().await;
    let api = client(&process, &company).await;
    let form = Form::default().text("type", "media").text("channelId", company.phone).text("number", "5511900000001");
    api.send_form(form.file("a.png", "image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01"))
        .await
        .data(202);
    let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hello"});
    api.post("/messages", send).await.data(202);
    assert_eq!(api.all("/messages").await.len(), 2);
    process.terminate();
    assert!(process.wait().success());
    with_database(&path, async |db| {
        let file = first_file(&path.join("media"));
        let elsewhere = path.join("elsewhere");
        fs::rename(&file, &elsewhere).expect("moved");
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        assert_problem(&installation, "files", &["1 of 1", name]).await;
        fs::rename(&elsewhere, &file).expect("moved");

        fs::rename(path.join("secrets.key"), &elsewhere).expect("moved");
        assert_problem(&installation, "keys", &["missing"]).await;
        fs::rename(&elsewhere, path.join("secrets.key")).expect("moved");

        let rejected = "insert into rejected_changes (company_id, kind, row_id, change, reason)
             values ($1, 'message', 1, '{}', 'a test')";
        sqlx::query(rejected).bind(company.id).execute(db).await.expect("a row");
        assert_problem(&installation, "rejected rows", &["1 message"]).await;
        sqlx::query("delete from rejected_changes").execute(db).await.expect("deleted");

        let event = "insert into ticket_events (company_id, id, ticket_id, type, source, created_at)
             values ($1, 999999999, 999999999, 'opened', 'api', now())";
        sqlx::query(event).bind(company.id).execute(db).await.expect("a row");
        assert_problem(&installation, "references", &["ticket_events.ticket_id", "1 row"]).await;
        sqlx::query("delete from ticket_events where id = 999999999").execute(db).await.expect("deleted");

        // As after the restore of an older database.
        sqlx::query("update journal_watermark set seq = seq - 1").execute(db).await.expect("an older one");
        assert_problem(&installation, "watermark", &["were confirmed"]).await;
        sqlx::query("update journal_watermark set seq = seq + 1").execute(db).await.expect("as before");

        let journal = path.join("journal");
        let segment = names(&journal).into_iter().find(|name| name.ends_with(".journal")).expect("a segment");
        let segment = journal.join(segment);
        let intact = fs::read(&segment).expect("a segment");
        let mut damaged = intact.clone();
        damaged[20] ^= 1;
        fs::write(&segment, damaged).expect("written");
        assert_problem(&installation, "journal", &["damaged at byte 0", file_name(&segment)]).await;
        fs::write(&segment, intact).expect("written");

        let (code, found) = findings(&installation).await;
        assert_eq!((code, found.len()), (Some(0), 1), "{found:?}");
    })
    .await;
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a name")
}
