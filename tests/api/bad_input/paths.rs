//! Paths with ids that are malformed or that no record has.

use super::world;
use crate::front_door::table::name;
use crate::front_door::world::World;
use crate::steps::NOBODY;
use crate::support::{Reply, TestApp};

/// Malformed ids, and ids that no record has, encoded for a URL.
const ABSENT_IDS: [&str; 29] = [
    "abc",
    "0",
    "-1",
    "99999999999999999999",
    "%00",
    "1%00",
    "1%2F2",
    "1.0",
    "1e3",
    "0x1",
    "%20",
    "%FF",
    "%C3%A9",
    "%25",
    "job_",
    "job_0",
    "job_01",
    "job_+1",
    "job_-1",
    "job_99999999999999999999",
    "job_abc",
    "..%2F1",
    "'",
    "ws_",
    "null",
    "%F0%9F%98%80",
    "9223372036854775807",
    "-9223372036854775808",
    "999999999",
];

#[actix_web::test]
async fn a_malformed_path_id_gets_the_404_of_an_id_that_no_record_has() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    let not_found = app.api.get(&format!("/tickets/{NOBODY}")).await.body;
    let long = "a".repeat(4000);
    let (mut count, mut wrong) = (0, Vec::new());
    for operation in &world.operations {
        for (index, _) in operation.path_names().enumerate() {
            let (mut targets, body) = world.body(operation, None).await;
            for id in ABSENT_IDS.into_iter().chain([long.as_str()]) {
                targets[index].1 = id.to_owned();
                let method = operation.method.parse().expect("a method");
                let mut request = app.api.request(method, &World::path(operation, &targets));
                if operation.body.is_some() {
                    request = request.json(&body);
                }
                let reply = Reply::of(request).await;
                if reply.status != 404 || reply.body != not_found || !reply.headers.contains_key("x-request-id") {
                    wrong.push(format!("{} with {id:.40}: {} {}", name(operation), reply.status, reply.body));
                }
                count += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 1000, "too few ids were tried: {count}");
    app.stop().await;
}
