//! `hotline retention`.

use serde_json::json;

use super::{failure, json as run_json};
use crate::process::{Process, run, with_database};
use crate::retention::{OLD_DAYS, create_conversations, removed_count};
use crate::support::template::prepared_folder;
use crate::support::{Company, eventually};

#[actix_web::test]
async fn a_retention_is_listed_and_applied_by_the_running_service() {
    let folder = prepared_folder();
    let mut process = Process::serve(folder.path());
    let company = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        create_conversations(db, &company, 3).await;
        company
    })
    .await;
    let id = company.id.to_string();
    assert_eq!(run_json(folder.path(), &["retention", "list"]), json!({"retentions": []}));
    // Longer than the age of any conversation.
    let longer = (OLD_DAYS + 30).to_string();
    // In the syntax of earlier releases.
    let mut shown = run_json(folder.path(), &["retention", "set", &id, "--days", &longer]);
    shown["lastRunAt"].take();
    let expected = json!({"company": company.id, "name": "Acme", "days": OLD_DAYS + 30, "pending": 0, "deleted": 0,
        "lastRunAt": null});
    assert_eq!(shown, expected);
    // A retention that is set on a stopped service takes effect once it runs.
    process.terminate();
    assert!(process.wait().success());
    let set = run_json(folder.path(), &["retention", "set", "--company", &id, "--after", "30d"]);
    assert_eq!((&set["days"], &set["pending"]), (&json!(30), &json!(3)));
    let mut process = Process::serve(folder.path());
    let are_removed = || async {
        let listed = run_json(folder.path(), &["retention", "list"])["retentions"][0].clone();
        listed["deleted"] == 3 && listed["pending"] == 0 && listed["lastRunAt"].is_string()
    };
    eventually("all conversations are removed", are_removed).await;
    assert_eq!(with_database(folder.path(), async |db| removed_count(db).await).await, 3);
    let is_logged = || async { process.log().contains("removed conversations past their retention") };
    eventually("the removal is logged", is_logged).await;

    let off = run_json(folder.path(), &["retention", "delete", "--company", &id]);
    assert_eq!((&off["days"], &off["deleted"]), (&json!(null), &json!(3)));
    let table = String::from_utf8(run(folder.path(), &["retention", "list"]).stdout).expect("text");
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["company", "name", "days", "pending", "deleted", "lastRunAt"]);
    assert_eq!(lines[1][..5], [&id, "Acme", "-", "0", "3"]);

    let single = run_json(folder.path(), &["retention", "show", "--company", &id]);
    assert_eq!((&single["days"], &single["deleted"]), (&json!(null), &json!(3)));
    assert!(failure(folder.path(), &["retention", "show", "--company", "999999"]).contains("has no retention"));

    assert!(failure(folder.path(), &["retention", "set", &id, "--days", "29"]).contains("30..="));
    for (after, reason) in [("29d", "must be from 30d"), ("721h", "whole days"), ("a year", "for example")] {
        let error = failure(folder.path(), &["retention", "set", "--company", &id, "--after", after]);
        assert!(error.contains(reason), "{after}: {error}");
    }
    for arguments in [&["set", "--company", "999999", "--after", "30d"][..], &["delete", "--company", "999999"]] {
        let stderr = failure(folder.path(), &[&["retention"], arguments].concat());
        assert!(stderr.contains("no such company"), "{stderr}");
    }
    process.terminate();
    assert!(process.wait().success());
}
