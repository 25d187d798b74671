//! A full journal refuses changes instead of losing them, and readiness shows it in time.

use hotline::service::Service;
use hotline_persistence::journal;
use hotline_postgres::{Cluster, ClusterOptions};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::service::TestOptions;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, eventually};

/// The response of `/health/ready`: the code, the status, and the reasons.
async fn readiness(api: &Api) -> (u16, String, Vec<String>) {
    let ready = Reply::of(api.anonymous(Method::GET, "/health/ready")).await;
    let reasons = ready.body["reasons"].as_array().expect("reasons");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let reasons = reasons.iter().map(|reason| text(&reason["reason"])).collect();
    (ready.status.as_u16(), text(&ready.body["status"]), reasons)
}

fn has(reasons: &[String], wanted: &str) -> bool {
    reasons.iter().any(|reason| reason == wanted)
}

#[actix_web::test]
async fn a_full_journal_refuses_changes_serves_reads_and_recovers_by_itself() {
    let folder = prepared_folder();
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let options = TestOptions {
        journal: journal::Options { segment_bytes: 64 << 10, max_bytes: 512 << 10, ..journal::Options::default() },
        ..TestOptions::default()
    };
    let service = Service::start(options.settings(&folder, cluster.connect_options())).await.expect("start");
    let api = Api::new(service.address, &company.key);
    let send =
        |body: &str| json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": body});
    let job = api.post("/messages", send("0")).await.data(202)["jobId"].as_str().expect("job").to_owned();
    let ticket = api.get(&format!("/messages/jobs/{job}")).await.data(200)["ticketId"].clone();

    cluster.stop().await.expect("PostgreSQL stops");
    let filler = "x".repeat(4000);
    let mut accepted = vec!["0".to_owned()];
    let mut was_filling = false;
    let refused = loop {
        // Above 80 % it is degraded, and balancers still send requests here.
        let (code, status, reasons) = readiness(&api).await;
        was_filling |= (code, status.as_str()) == (200, "degraded") && has(&reasons, "journal_filling");
        let body = format!("{} {filler}", accepted.len());
        let reply = api.post("/messages", send(&body)).await;
        if reply.status != 202 {
            break reply;
        }
        accepted.push(body);
        assert!(accepted.len() < 1000, "512 KiB took more than 4 MB");
    };
    refused.error(503, "ERR_API_UNAVAILABLE");
    assert!(was_filling, "readiness gave no warning before it was full");
    eventually("balancers send requests elsewhere, and the reason is given", || async {
        let (code, status, reasons) = readiness(&api).await;
        (code, status.as_str()) == (503, "not ready") && has(&reasons, "journal")
    })
    .await;
    assert!(refused.headers.contains_key("retry-after"));
    api.post(&format!("/tickets/{ticket}/close"), json!({})).await.error(503, "ERR_API_UNAVAILABLE");
    // Reads continue, and show that the refused changes changed nothing.
    let shown = api.get(&format!("/tickets/{ticket}")).await;
    assert_eq!(shown.data(200)["status"], "open");
    assert_eq!(shown.data(200)["lastMessage"]["body"].as_str(), accepted.last().map(String::as_str));

    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    eventually("changes are taken again", || async {
        api.post(&format!("/tickets/{ticket}/transfer"), json!({"queueId": company.sales})).await.status == 200
    })
    .await;
    eventually("it is ready again", || async { readiness(&api).await == (200, "ready".to_owned(), Vec::new()) }).await;
    let stored = api.all(&format!("/tickets/{ticket}/messages")).await;
    let bodies: Vec<&str> = stored.iter().map(|message| message["body"].as_str().expect("body")).collect();
    assert_eq!(bodies, accepted);
    service.stop().await.expect("a clean stop");
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}
