//! Streams and held answers of a company that moves to another process.

use hotline_persistence::cluster::lives;
use reqwest::Method;
use serde_json::json;

use super::stream::create_contact;
use super::{ids, newest, types};
use crate::members::{owner_of, start_second_service};
use crate::support::metrics::ScrapedMetrics;
use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp, Reader, eventually};

#[actix_web::test]
async fn a_company_that_moves_ends_its_streams_and_held_answers_and_no_reader_misses_an_event() {
    let options = TestOptions { member: true, metrics: true, ..TestOptions::default() };
    let app = OwnApp::start_with(options.clone()).await;
    let (second, _folder) = start_second_service(&app, &options).await;
    let apis = [app.api.clone(), Api::new(second.address, &app.company.key)];
    let owner = owner_of(app.company.id, [&app.service, &second]);
    let mut readers = Vec::new();
    for api in &apis {
        readers.push(Reader::open(api, "", None).await);
    }
    create_contact(&apis[0], "before").await;
    for reader in &mut readers {
        assert_eq!(types(&reader.take(1).await), ["contact.created"]);
    }
    let last = newest(&apis[0]).await;
    let held = apis.clone().map(|api| {
        let path = format!("/events?after={last}&wait=30&types=contact.deleted");
        tokio::spawn(async move { api.get(&path).await })
    });
    let news = owner.app.engine.store().events.clone().expect("events are kept");
    eventually("every reader waits", || async { news.listener_count() == readers.len() + held.len() }).await;

    let membership = owner.app.engine.store().membership().expect("a member").clone();
    lives::drain(&app.db, membership.life).await.expect("it is drained");
    eventually("the drained process serves no slot", || async { membership.placement.count_here() == 0 }).await;
    let metrics = ScrapedMetrics::of(owner.metrics_listener.as_ref().expect("metrics").address).await;
    assert_eq!(
        metrics.value("hotline_cluster_slot_moves_total{end=\"canceled\"}"),
        0.0,
        "waiting readers delayed the move"
    );
    for held in held {
        let held = held.await.expect("an answer");
        assert_eq!(held.data(200), &json!([]));
        assert_eq!(held.body["meta"], json!({"lastId": last, "hasMore": false, "oldestId": null, "gap": false}));
    }
    for reader in &mut readers {
        assert!(reader.next().await.is_none(), "a stream stayed open after the move");
    }
    create_contact(&apis[0], "after").await;
    for api in &apis {
        let mut again = Reader::open(api, "", Some(last)).await;
        assert_eq!(ids(&again.take(1).await), [last + 1]);
        let held = api.request(Method::GET, &format!("/events?after={last}&wait=30"));
        let held = crate::support::Reply::of(held).await;
        assert_eq!(held.data(200)[0]["data"]["name"], "after");
    }
    second.stop().await.expect("a clean stop");
    app.stop().await;
}
