//! Metrics during an outage of the database.

use hotline::service::Service;
use hotline_postgres::{Cluster, ClusterOptions};
use serde_json::json;

use crate::support::metrics::ScrapedMetrics;
use crate::support::service::TestOptions;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, eventually};

#[actix_web::test]
async fn unwritten_changes_are_counted_during_an_outage_of_the_database() {
    let folder = prepared_folder();
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let options = TestOptions { metrics: true, ..TestOptions::default() };
    let service = Service::start(options.settings(&folder, cluster.connect_options())).await.expect("start");
    let address = service.metrics_listener.as_ref().expect("metrics are served").address;
    let api = Api::new(service.address, &company.key);
    let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hello"});
    api.post("/messages", send.clone()).await.data(202);
    std::fs::write(folder.path().join("backup.json"), r#"{"completedAt": "2026-01-02T03:04:05Z"}"#).expect("a file");
    eventually("the service is ready, and its disks are measured", || async {
        let metrics = ScrapedMetrics::of(address).await;
        metrics.value("hotline_ready") == 1.0
            && metrics.get("hotline_disk_free_bytes{folder=\"journal\"}").is_some_and(|free| free > 0.0)
            && metrics.get("hotline_disk_free_bytes{folder=\"media\"}").is_some_and(|free| free > 0.0)
    })
    .await;
    let metrics = ScrapedMetrics::of(address).await;
    assert!(metrics.value("hotline_http_connections") >= 1.0);
    assert!(metrics.value("hotline_http_connections_limit") >= metrics.value("hotline_http_connections"));
    assert!(metrics.value("process_open_fds") < metrics.value("process_max_fds"));
    for name in ["process_cpu_seconds_total", "process_start_time_seconds", "process_resident_memory_bytes"] {
        assert!(metrics.value(name) > 0.0, "{name}");
    }
    assert_eq!(metrics.value("hotline_http_connections_refused_total"), 0.0);
    assert_eq!(metrics.value("hotline_changes_refused_total"), 0.0);
    assert_eq!(metrics.value("hotline_condition{condition=\"database\"}"), 0.0);
    assert!(metrics.get("hotline_database_connection_timeouts_total").is_some());
    eventually("the last backup is known", || async {
        ScrapedMetrics::of(address).await.get("hotline_backup_completed_timestamp_seconds") == Some(1_767_323_045.0)
    })
    .await;
    eventually("the message is written", || async {
        let metrics = ScrapedMetrics::of(address).await;
        metrics.value("hotline_flush_pending_entries") == 0.0 && metrics.value("hotline_database_up") == 1.0
    })
    .await;

    cluster.stop().await.expect("PostgreSQL stops");
    for _ in 0..3 {
        api.post("/messages", send.clone()).await.data(202);
    }
    let outage = ScrapedMetrics::of(address).await;
    assert_eq!(outage.value("hotline_database_up"), 0.0);
    assert_eq!(outage.value("hotline_flush_pending_entries"), 3.0);
    eventually("the outage is reported, and the service stays ready", || async {
        let metrics = ScrapedMetrics::of(address).await;
        metrics.value("hotline_condition{condition=\"database\"}") == 1.0 && metrics.value("hotline_ready") == 1.0
    })
    .await;
    let lag = outage.value("hotline_flush_lag_seconds");
    assert!(lag > 0.0, "{lag}");
    eventually("the lag grows, and flushes fail", || async {
        let metrics = ScrapedMetrics::of(address).await;
        metrics.value("hotline_flush_lag_seconds") > lag + 1.0 && metrics.value("hotline_flush_failures_total") >= 1.0
    })
    .await;
    // Nothing was written meanwhile.
    let written = outage.value("hotline_changes_written_total");
    assert_eq!(ScrapedMetrics::of(address).await.value("hotline_changes_written_total"), written);

    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    eventually("everything is written", || async {
        let metrics = ScrapedMetrics::of(address).await;
        metrics.value("hotline_flush_pending_entries") == 0.0
            && metrics.value("hotline_flush_lag_seconds") == 0.0
            && metrics.value("hotline_database_up") == 1.0
            && metrics.value("hotline_changes_written_total") > written
    })
    .await;
    service.stop().await.expect("a clean stop");
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}
