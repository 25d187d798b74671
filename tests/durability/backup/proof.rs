//! A backup has every change that was acknowledged before the time up to which it is complete.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chrono::{DateTime, Utc};
use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use super::{Installation, Postgres, client, run_json, text};
use crate::support::{Api, Company, empty_folder, eventually};

/// How many write at the same time.
const WRITERS: usize = 8;

/// At least this many changes are acknowledged before each backup, and after the last one.
const CHANGES: usize = 150;

/// The acknowledged changes of a writer, in order, and when each was acknowledged.
#[derive(Default)]
struct Acknowledged {
    messages: Vec<(String, DateTime<Utc>)>,
    contacts: Vec<(String, DateTime<Utc>)>,
}

/// Writes until `is_over`: messages, which are live, and contacts, which are plain.
async fn write(api: &Api, company: &Company, writer: usize, is_over: &AtomicBool, total: &AtomicUsize) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    let number = format!("55119{writer:08}");
    for step in 0.. {
        if is_over.load(Ordering::Acquire) {
            break;
        }
        let body = format!("{writer}/{step:06}");
        if step % 4 == 3 {
            let contact = json!({"name": body, "number": format!("55118{:08}", writer * 100_000 + step)});
            api.post("/contacts", contact).await.data(201);
            acknowledged.contacts.push((body, Utc::now()));
        } else {
            let send = json!({"channelId": company.phone, "number": number, "type": "text", "body": body});
            api.post("/messages", send).await.data(202);
            acknowledged.messages.push((body, Utc::now()));
        }
        total.fetch_add(1, Ordering::Release);
    }
    acknowledged
}

/// Waits until [`CHANGES`] more changes are acknowledged.
async fn wait_for_changes(total: &AtomicUsize) {
    let target = total.load(Ordering::Acquire) + CHANGES;
    eventually("more changes are acknowledged", || async { total.load(Ordering::Acquire) >= target }).await;
}

fn complete_to(printed: &Value) -> DateTime<Utc> {
    printed["completeTo"].as_str().expect("a time").parse().expect("a time")
}

/// Restores into another installation, serves it, and compares it with what was acknowledged before `until`.
async fn check_restored(
    postgres: Postgres,
    backup: &str,
    until: DateTime<Utc>,
    company: &Company,
    all: &[Acknowledged],
) {
    let restored = Installation::empty(postgres).await;
    let printed = run_json(restored.command(&["restore", backup])).await;
    assert_eq!(complete_to(&printed), until);
    let logs = empty_folder();
    let mut process = restored.serve(logs.path());
    let api = client(&process, company).await;
    let shown = |rows: Vec<Value>, field: &str| -> BTreeSet<String> {
        rows.iter().filter_map(|row| row[field].as_str().map(str::to_owned)).collect()
    };
    let messages = shown(api.all("/messages").await, "body");
    let contacts = shown(api.all("/contacts").await, "name");
    let mut before = 0;
    for (writer, acknowledged) in all.iter().enumerate() {
        for (written, shown) in [(&acknowledged.messages, &messages), (&acknowledged.contacts, &contacts)] {
            for (body, at) in written.iter().filter(|(_, at)| *at < until) {
                assert!(shown.contains(body), "acknowledged at {at}, before {until}, and lost: {body}");
                before += 1;
            }
            // Of later changes, the backup has all up to some point, and none after it.
            let is_there: Vec<bool> = written.iter().map(|(body, _)| shown.contains(body)).collect();
            let first_lost = is_there.iter().position(|is_there| !is_there).unwrap_or(is_there.len());
            assert!(!is_there[first_lost..].contains(&true), "writer {writer}: a gap in the backup");
        }
    }
    assert!(before >= CHANGES, "hardly anything was acknowledged before: {before}");
    // The restored service takes changes.
    let send = json!({"channelId": company.phone, "number": "5511700000001", "type": "text", "body": "after"});
    api.post("/messages", send).await.data(202);
    assert!(shown(api.all("/messages").await, "body").contains("after"));
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
    let check = run_json(restored.command(&["check"])).await;
    assert!(
        check["checks"].as_array().is_some_and(|checks| checks.iter().all(|check| check["result"] != "problem")),
        "{check}"
    );
    restored.drop().await;
}

/// Makes two backups under load, restores both, and compares each with what was acknowledged.
async fn check_backups_under_load(postgres: Postgres) {
    let installation = Installation::new(postgres).await;
    let (logs, backups) = (empty_folder(), empty_folder());
    let process = installation.serve(logs.path());
    let company = installation.company().await;
    let api = client(&process, &company).await;
    let (is_over, total) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers = join_all((0..WRITERS).map(|writer| write(&api, &company, writer, &is_over, &total)));
    let backup = async {
        let mut made = Vec::new();
        for _ in 0..2 {
            wait_for_changes(&total).await;
            made.push(run_json(installation.command(&["backup", text(backups.path())])).await);
        }
        wait_for_changes(&total).await;
        is_over.store(true, Ordering::Release);
        made
    };
    let (acknowledged, made) = join(writers, backup).await;
    process.kill();
    if postgres == Postgres::Private {
        // Stops the private PostgreSQL, which outlives the kill.
        crate::process::with_database(installation.path(), async |_| ()).await;
    }
    installation.drop().await;

    assert!(complete_to(&made[0]) < complete_to(&made[1]));
    let first = super::backup_of(&made[0]);
    check_restored(postgres, text(&first), complete_to(&made[0]), &company, &acknowledged).await;
    // The newest backup of the folder.
    check_restored(postgres, text(backups.path()), complete_to(&made[1]), &company, &acknowledged).await;
}

#[actix_web::test]
async fn nothing_that_was_acknowledged_before_a_backup_is_lost_with_the_private_postgresql() {
    check_backups_under_load(Postgres::Private).await;
}

#[actix_web::test]
async fn nothing_that_was_acknowledged_before_a_backup_is_lost_with_an_external_postgresql() {
    check_backups_under_load(Postgres::External).await;
}
