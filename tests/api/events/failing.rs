//! Steps of a deletion that fail: no reader notices, and the company's other deletions have their turn.

use std::time::Duration;

use hotline_actors::EngineOptions;
use serde_json::{Value, json};

use crate::support::metrics::ScrapedMetrics;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, eventually};

/// Deleted records whose steps fail: one more than a company's turn takes.
const FAILING: usize = 21;

/// Contacts with a tag: more than a step takes.
const CONTACTS: usize = 60;

#[actix_web::test]
async fn deletions_whose_steps_fail_delay_no_other_and_finish_once_their_steps_succeed() {
    let engine = EngineOptions { sweep_every: Duration::from_millis(20), ..TestOptions::default().engine };
    let app = OwnApp::start_with(TestOptions { metrics: true, engine, ..TestOptions::default() }).await;
    let (api, db) = (&app.api, &app.db);
    let tag = async |name: String| api.post("/tags", json!({"name": name})).await.data(201)["id"].clone();
    let mut failing = Vec::new();
    for nth in 0..FAILING {
        failing.push(tag(format!("Failing {nth}")).await);
    }
    let healthy = tag("Sound".to_owned()).await;
    let row = |nth: usize| json!({"name": format!("Contact {nth}"), "tagIds": [healthy]});
    let rows: Vec<Value> = (0..CONTACTS).map(row).collect();
    assert_eq!(api.post("/contacts/import", json!({"contacts": rows})).await.data(200)["errors"], json!([]));
    let tagged = api.post("/contacts", json!({"name": "Tagged", "tagIds": failing})).await.data(201).clone();
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
         create trigger refuse before delete on contact_tags for each row when (old.tag_id <> {healthy})
             execute function refuse()"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(refuse)).execute(db).await.expect("the trigger that fails their steps");

    for tag in &failing {
        assert_eq!(api.delete(&format!("/tags/{tag}")).await.status, 204);
    }
    assert_eq!(api.get(&format!("/contacts/{}", tagged["id"])).await.data(200)["tags"], json!([]));
    assert_eq!(api.delete(&format!("/tags/{healthy}")).await.status, 204);
    let count_rows =
        async |query: &'static str| -> i64 { sqlx::query_scalar(query).fetch_one(db).await.expect("a count") };
    let cascades_left = "select count(*) from cascades";
    eventually("only the failing deletions are left", || async {
        count_rows(cascades_left).await == i64::try_from(FAILING).expect("few")
    })
    .await;
    let links = count_rows("select count(*) from contact_tags").await;
    assert_eq!(links, i64::try_from(FAILING).expect("few"), "not exactly the links of the failing tags are left");
    let metrics = ScrapedMetrics::of(app.service.metrics_listener.as_ref().expect("metrics are served").address).await;
    assert!(metrics.value("hotline_cascade_failures_total") >= f64::from(u32::try_from(FAILING).expect("few")));

    sqlx::query("drop trigger refuse on contact_tags").execute(db).await.expect("the trigger is dropped");
    eventually("all are done", || async { count_rows(cascades_left).await == 0 }).await;
    assert_eq!(count_rows("select count(*) from contact_tags").await, 0);
    app.stop().await;
}
