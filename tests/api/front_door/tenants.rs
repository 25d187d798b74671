//! Another company's records do not exist for a company: not in a path, a body, a filter or a list.

use hotline::openapi::Operation;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::samples::references;
use super::table::name;
use super::world::{World, noun, unused_id};
use crate::support::{OwnApp, Reply, TestApp, eventually};

/// Two companies with the same kinds of records, which know nothing of each other.
struct TwoCompanies<'a> {
    own: World<'a>,
    other: World<'a>,
}

impl<'a> TwoCompanies<'a> {
    async fn create(app: &'a TestApp) -> Self {
        let (company, api) = app.another_company().await;
        let own = World::create(app, app.company.clone(), app.api.clone(), OWN).await;
        let other = World::create(app, company, api, FOREIGN).await;
        assert_eq!((own.stranger, other.stranger), (other.company.id.0, own.company.id.0));
        let two = Self { own, other };
        two.settle().await;
        two
    }

    /// Waits until deliveries have ended: the other company's records are the same twice in a row.
    async fn settle(&self) {
        eventually("nothing changes by itself", || async {
            self.other.shown(None).await == self.other.shown(None).await
        })
        .await;
    }

    fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.own.operations.iter()
    }
}

/// Asserts that a foreign id is refused exactly as an id that no record has.
#[track_caller]
fn assert_alike(foreign: &Reply, absent: &Reply, what: &str) {
    assert_eq!(foreign.status, StatusCode::NOT_FOUND, "{what}: {}", foreign.body);
    let code = foreign.body["error"]["code"].as_str().expect("code");
    assert!(["ERR_API_NOT_FOUND", "ERR_API_CONTACT_NOT_FOUND"].contains(&code), "{what}: {code}");
    assert_eq!(foreign.bytes, absent.bytes, "{what}: the response differs from that of an id that no one has");
}

#[track_caller]
fn assert_done(reply: &Reply, what: &str, body: &Value) {
    let hint = "tests/api/front_door/world.rs must say what it needs";
    assert!(reply.status.is_success(), "{what} with {body}: {} {}; {hint}", reply.status, reply.body);
}

#[actix_web::test]
async fn an_id_of_another_company_in_a_path_looks_like_one_that_does_not_exist() {
    let app = OwnApp::start().await;
    let two = TwoCompanies::create(&app).await;
    let before = two.other.shown(None).await;
    let mut checked = 0;
    for operation in two.operations() {
        for (index, parameter) in operation.path_names().enumerate() {
            let what = format!("{} of {parameter}", name(operation));
            let noun = noun(&operation.path, parameter);
            let (mut targets, body) = two.own.body(operation, None).await;
            let own = std::mem::replace(&mut targets[index].1, two.other.id(&noun).to_owned());
            let foreign = two.own.ask(operation, &targets, &body).await;
            targets[index].1 = unused_id(parameter).to_owned();
            let absent = two.own.ask(operation, &targets, &body).await;
            assert_alike(&foreign, &absent, &what);
            assert_eq!(foreign.body["error"]["code"], "ERR_API_NOT_FOUND", "{what}");
            for (path, shown) in two.other.shown(Some(&noun)).await {
                assert_eq!(shown, before[&path], "{what} changed {path} of the other company");
            }
            // With the company's own id, the same request succeeds.
            targets[index].1 = own;
            assert_done(&two.own.ask(operation, &targets, &body).await, &what, &body);
            checked += 1;
        }
    }
    assert!(checked >= 15, "hardly any path has an id");
    assert_eq!(two.other.shown(None).await, before);
    app.stop().await;
}

#[actix_web::test]
async fn an_id_of_another_company_in_a_body_looks_like_one_that_does_not_exist() {
    let app = OwnApp::start().await;
    let two = TwoCompanies::create(&app).await;
    let before = two.other.shown(None).await;
    let mut checked = 0;
    for operation in two.operations() {
        for field in references(operation) {
            let what = format!("{field} of {}", name(operation));
            let (targets, body) = two.own.body(operation, Some(&field)).await;
            let ask = async |id: Value| two.own.ask(operation, &targets, &field.insert_into(&body, &id)).await;
            if field.to_string() == "orderedIds" {
                // The list must hold the company's own ids, which a foreign one is not.
                let id: i64 = two.other.id(&field.noun).parse().expect("a number");
                ask(json!(id)).await.error(422, "ERR_API_VALIDATION");
            } else if operation.path == "/contacts/import" {
                // Rows fail one by one.
                let foreign: i64 = two.other.id(&field.noun).parse().expect("a number");
                let (foreign, absent) = (ask(json!(foreign)).await, ask(json!(999_999_999)).await);
                assert_eq!(foreign.data(200)["errors"].as_array().map(Vec::len), Some(1), "{what}: {}", foreign.body);
                assert_eq!(
                    foreign.bytes, absent.bytes,
                    "{what}: the response differs from that of an id that no one has"
                );
            } else {
                let foreign: i64 = two.other.id(&field.noun).parse().expect("a number");
                assert_alike(&ask(json!(foreign)).await, &ask(json!(999_999_999)).await, &what);
            }
            for (path, shown) in two.other.shown(Some(&field.noun)).await {
                assert_eq!(shown, before[&path], "{what} changed {path} of the other company");
            }
            assert_done(&two.own.ask(operation, &targets, &body).await, &what, &body);
            checked += 1;
        }
    }
    assert!(checked >= 12, "hardly any body has an id");
    assert_eq!(two.other.shown(None).await, before);
    app.stop().await;
}

#[actix_web::test]
async fn an_id_of_another_company_in_a_filter_looks_like_one_that_does_not_exist() {
    let app = OwnApp::start().await;
    let two = TwoCompanies::create(&app).await;
    let mut checked = 0;
    for operation in two.operations() {
        for (filter, _) in operation.query.iter().filter(|(filter, _)| filter.ends_with("Id")) {
            let what = format!("{filter} of {}", name(operation));
            let noun = noun(&operation.path, filter);
            let targets = two.own.targets(operation).await;
            let ask = async |id: &str| {
                let filtered = Operation { path: format!("{}?{filter}={id}", operation.path), ..operation.clone() };
                two.own.ask(&filtered, &targets, &Value::Null).await
            };
            assert_alike(&ask(two.other.id(&noun)).await, &ask(unused_id(filter)).await, &what);
            assert_done(&ask(two.own.id(&noun)).await, &what, &Value::Null);
            checked += 1;
        }
    }
    assert!(checked >= 9, "hardly any list has a filter by an id");
    app.stop().await;
}

/// Words in the two companies' texts. Long, because random ids contain any short word now and then.
const OWN: &str = "Homegrown";
const FOREIGN: &str = "Foreign";

#[actix_web::test]
async fn what_a_company_writes_is_its_own_whatever_company_the_body_names() {
    let app = OwnApp::start().await;
    let two = TwoCompanies::create(&app).await;
    let before = two.other.shown(None).await;
    for operation in two.operations().filter(|operation| operation.method != "GET") {
        let (targets, body) = two.own.body(operation, None).await;
        assert!(operation.body.is_none() || body["companyId"] == two.other.company.id.0, "{body}");
        assert_done(&two.own.ask(operation, &targets, &body).await, &name(operation), &body);
    }
    assert_eq!(two.other.shown(None).await, before, "another company's records changed");
    // Every record has the word of the company that wrote it, and is shown to no other.
    for (world, mark, other_mark) in [(&two.own, OWN, FOREIGN), (&two.other, FOREIGN, OWN)] {
        let shown = world.shown(None).await;
        let with_mark = shown.values().filter(|body| body.to_string().contains(mark)).count();
        assert!(with_mark >= 10, "{mark} hardly shows: {with_mark} of {}", shown.len());
        for (path, body) in shown {
            assert!(!body.to_string().contains(other_mark), "{path} shows what {other_mark} wrote: {body}");
            let is_record = path.contains('{') || body["data"].as_array().is_none();
            assert!(is_record || body["data"] != json!([]), "{path} shows nothing");
        }
    }
    app.stop().await;
}
