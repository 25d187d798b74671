//! Processes that cannot reach each other, or that do not belong together, are noticed: in the log, in the metrics, by
//! `hotline cluster check`.

use serde_json::Value;

use super::{Node, TestCluster};
use crate::process::{Process, command, data_folder, serving};
use crate::support::metrics::ScrapedMetrics;
use crate::support::{eventually, free_address};

/// The fields of the process's log lines with this message.
fn lines(process: &Process, message: &str) -> Vec<Value> {
    let log = process.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["fields"]["message"] == message).map(|line| line["fields"].clone()).collect()
}

impl TestCluster {
    /// Serves with options that override the common ones.
    fn serve_with(&self, node: &Node, overriding: &[(&str, &str)]) -> Process {
        let mut options = self.options(node);
        for (name, value) in overriding {
            match options.iter().position(|option| option == name) {
                Some(at) => (*value).clone_into(&mut options[at + 1]),
                None => options.extend([(*name).to_owned(), (*value).to_owned()]),
            }
        }
        let mut command = serving(node.folder.path());
        command.args(options).env("RUST_LOG", "info");
        let served = Process::start(node.folder.path(), &mut command);
        served.unwrap_or_else(|log| panic!("{} does not start: {log}", node.name))
    }

    /// What `hotline cluster check` prints, and whether it found nothing.
    fn check(&self, node: &Node) -> (bool, Value) {
        let url = crate::support::database::url(&self.database.options);
        let checked = command(node.folder.path(), &["cluster", "check", "--json", "--database-url", &url]).output();
        let checked = checked.expect("hotline runs");
        (checked.status.success(), serde_json::from_slice(&checked.stdout).expect("JSON"))
    }
}

/// Whether a named check has this result.
fn has_result(checked: &Value, name: &str, ok: bool) -> bool {
    let mut checks = checked["checks"].as_array().expect("checks").iter();
    checks.any(|check| check["name"] == name && check["ok"] == ok)
}

const UNREACHABLE: &str = "process of the cluster cannot be reached; requests for its companies are answered 503";

#[actix_web::test]
async fn a_process_with_a_wrong_address_is_noticed_by_the_others_and_by_the_check() {
    let (cluster, one, two) = (TestCluster::new().await, Node::new("one"), Node::new("two"));
    let metrics = free_address().to_string();
    let first = cluster.serve_with(&one, &[("--metrics-listen", &metrics)]);
    cluster.wait_until_owned(&one, 1024..=1024).await;
    let elsewhere = free_address().to_string();
    let second = cluster.serve_with(&two, &[("--cluster-address", &elsewhere)]);
    eventually("the first reports the second", || async { !lines(&first, UNREACHABLE).is_empty() }).await;
    let reports = lines(&first, UNREACHABLE);
    assert_eq!((reports.len(), &reports[0]["subject"]), (1, &Value::from("two")), "{reports:?}");
    assert!(reports[0]["reason"].as_str().is_some_and(|reason| reason.contains(&elsewhere)), "{reports:?}");
    assert!(reports[0]["action"].as_str().is_some_and(|action| action.contains("--cluster-address")), "{reports:?}");
    let metrics = metrics.parse().expect("an address");
    eventually("the metrics show it", || async {
        ScrapedMetrics::of(metrics).await.get("hotline_cluster_peer_reachable{node=\"two\"}") == Some(0.0)
    })
    .await;
    eventually("the check fails", || async {
        let (is_ok, checked) = cluster.check(&one);
        let rows = checked["reaches"].as_array().expect("a table").clone();
        let reached = |from: &str, to: &str| {
            rows.iter().find(|row| row["from"] == from && row["to"] == to).map(|row| row["reached"] == true)
        };
        !is_ok
            && has_result(&checked, "peers", false)
            && reached("one", "two") == Some(false)
            && reached("two", "one") == Some(true)
    })
    .await;
    drop((first, second));
    cluster.database.drop().await;
}

#[actix_web::test]
async fn healthy_processes_reach_each_other_and_different_folders_and_equal_names_are_noticed() {
    let (cluster, one, two) = (TestCluster::new().await, Node::new("one"), Node::new("two"));
    let first = cluster.serve(&one);
    let second = cluster.serve(&two);
    eventually("the check succeeds", || async {
        let (is_ok, checked) = cluster.check(&one);
        let rows = checked["reaches"].as_array().expect("a table").clone();
        is_ok && rows.len() == 2 && rows.iter().all(|row| row["reached"] == true && row["ageMs"].is_u64())
    })
    .await;
    assert!(lines(&first, UNREACHABLE).is_empty() && lines(&second, UNREACHABLE).is_empty());

    let (other, three) = (data_folder(), Node::new("one"));
    let third = cluster.serve_with(&three, &[("--media-shared", other.path().to_str().expect("a path"))]);
    let folders = "processes of the cluster use different folders for message files";
    eventually("the folders are reported", || async { !lines(&third, folders).is_empty() }).await;
    let names = "processes of the cluster have the same name";
    eventually("the names are reported", || async { lines(&second, names).len() == 1 }).await;
    // The processes report every few seconds, and an old report counts as an unreachable process.
    eventually("the check has both, and all processes are reached", || async {
        let (is_ok, checked) = cluster.check(&one);
        let differs = has_result(&checked, "files", false) && has_result(&checked, "names", false);
        !is_ok && differs && has_result(&checked, "peers", true)
    })
    .await;
    drop((first, second, third));
    cluster.database.drop().await;
}
