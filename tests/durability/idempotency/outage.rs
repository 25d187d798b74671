//! Idempotency keys while the database is away.

use hotline::service::Service;
use hotline_postgres::{Cluster, ClusterOptions};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::service::TestOptions;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, eventually};

async fn send(api: &Api, path: &str, key: &str, body: &Value) -> Reply {
    Reply::of(api.keyed(Method::POST, path, key, body.to_string())).await
}

#[track_caller]
fn assert_replayed(first: &Reply, again: &Reply) {
    assert!(again.is_replay(), "{} {}", again.status, again.body);
    assert_eq!((again.status, &again.bytes), (first.status, &first.bytes));
}

#[actix_web::test]
async fn while_postgres_is_stopped_a_live_change_under_a_new_key_happens_once_and_a_key_used_before_is_refused() {
    let folder = prepared_folder();
    let start = || Cluster::start(ClusterOptions::for_tests(folder.path()));
    let cluster = start().await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let settings = TestOptions::default().settings(&folder, cluster.connect_options());
    let service = Service::start(settings.clone()).await.expect("the service starts");
    let api = Api::new(service.address, &company.key);

    let opening = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "before"});
    let before = send(&api, "/messages", "before", &opening).await;
    before.data(202);
    service.stop().await.expect("a clean stop");
    // After a start only the table knows what was answered.
    let service = Service::start(settings.clone()).await.expect("the service starts again");
    let api = Api::new(service.address, &company.key);
    let hot = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hot"});
    api.post("/messages", hot).await.data(202);

    cluster.stop().await.expect("PostgreSQL stops");
    let body = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "meanwhile"});
    let meanwhile = send(&api, "/messages", "meanwhile", &body).await;
    meanwhile.data(202);
    assert!(!meanwhile.is_replay());
    for _ in 0..3 {
        assert_replayed(&meanwhile, &send(&api, "/messages", "meanwhile", &body).await);
    }
    // A refusal is recorded like any other answer.
    let refused = send(&api, "/messages", "refused", &json!({"type": "text"})).await;
    refused.error(422, "ERR_API_VALIDATION");
    assert_replayed(&refused, &send(&api, "/messages", "refused", &json!({"type": "text"})).await);
    send(&api, "/messages", "meanwhile", &json!({"type": "text"})).await.error(409, "ERR_API_IDEMPOTENCY_CONFLICT");
    // What was answered before cannot be known now, and must not happen again.
    send(&api, "/messages", "before", &opening).await.error(503, "ERR_API_UNAVAILABLE");
    // A plain change needs the database; its key stays free.
    let tag = json!({"name": "a"});
    send(&api, "/tags", "tag", &tag).await.error(503, "ERR_API_UNAVAILABLE");

    let cluster = start().await.expect("PostgreSQL is back");
    eventually("lists are served again", || async { api.get("/tickets").await.status == 200 }).await;
    let tag_created = send(&api, "/tags", "tag", &tag).await;
    tag_created.data(201);
    assert!(!tag_created.is_replay());
    assert_replayed(&before, &send(&api, "/messages", "before", &opening).await);
    assert_replayed(&meanwhile, &send(&api, "/messages", "meanwhile", &body).await);
    assert_replayed(&tag_created, &send(&api, "/tags", "tag", &tag).await);
    service.stop().await.expect("a clean stop");

    let service = Service::start(settings).await.expect("the service starts a third time");
    let api = Api::new(service.address, &company.key);
    assert_replayed(&meanwhile, &send(&api, "/messages", "meanwhile", &body).await);
    assert_replayed(&refused, &send(&api, "/messages", "refused", &json!({"type": "text"})).await);
    let bodies: Vec<Value> = api.all("/messages").await.into_iter().map(|message| message["body"].clone()).collect();
    assert_eq!(bodies, ["before", "hot", "meanwhile"]);
    service.stop().await.expect("a clean stop");
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}
