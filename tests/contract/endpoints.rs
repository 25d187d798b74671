//! The endpoints that are served are those which the API promises (`endpoints.tsv`, `beyond.tsv`).

use std::collections::BTreeMap;

use hotline::openapi::Operation;
use hotline::web::response::schema::Schemas;
use reqwest::Method;

use crate::support::{Reply, TestApp};

/// The endpoints of the contract: method, path, module, status and summary, separated by tabs.
const LIST: &str = include_str!("endpoints.tsv");

/// The endpoints beyond the contract, in the same columns.
const BEYOND: &str = include_str!("beyond.tsv");

/// What follows the method and the path in a line of the list.
#[derive(Debug, PartialEq)]
struct Promised {
    module: String,
    status: u16,
}

type Endpoints = BTreeMap<(String, String), Promised>;

fn promised() -> Endpoints {
    let lines = LIST.lines().skip(1).chain(BEYOND.lines().skip(1)).map(|line| {
        let [method, path, module, status, _summary] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("this line does not have five columns: {line}")
        };
        let promised = Promised { module: module.to_owned(), status: status.parse().expect("a status") };
        ((method.to_owned(), path.to_owned()), promised)
    });
    lines.collect()
}

fn operations() -> Vec<Operation> {
    hotline::routes::operations(&mut Schemas::new())
}

#[test]
fn the_list_names_every_endpoint_once() {
    let lines = |list: &str| list.lines().skip(1).filter(|line| !line.is_empty()).count();
    assert_eq!(lines(LIST), 150, "endpoints.tsv does not have the 150 endpoints of the contract");
    assert_eq!(promised().len(), 150 + lines(BEYOND), "an endpoint is listed twice");
}

#[test]
fn what_is_served_is_in_the_list_with_its_module_and_status() {
    let mut missing = promised();
    let mut wrong = Vec::new();
    for operation in operations() {
        let endpoint = (operation.method.to_owned(), operation.path.clone());
        let served =
            Promised { module: operation.module().unwrap_or_default().to_owned(), status: operation.success.0 };
        match missing.remove(&endpoint) {
            Some(promised) if promised == served => {}
            Some(promised) => wrong.push(format!("{endpoint:?} is {served:?}, not {promised:?}")),
            None => wrong.push(format!("{endpoint:?} is served twice, or not in the list")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(missing.is_empty(), "listed, but not served: {:?}", missing.keys());
}

#[actix_web::test]
async fn every_path_of_the_document_has_its_methods_and_no_other() {
    let app = TestApp::shared().await;
    let mut paths: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for operation in operations() {
        paths.entry(operation.path.clone()).or_default().push(operation.method);
    }
    for (path, mut methods) in paths {
        let path = path.replace(['{', '}'], "");
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.sort_unstable();
        let mut others = vec![Method::PATCH, Method::OPTIONS, Method::from_bytes(b"QUERY").expect("a method")];
        let any = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
        others.extend(any.into_iter().filter(|method| !methods.contains(&method.as_str())));
        for other in others {
            let reply = Reply::of(app.api.request(other.clone(), &path)).await;
            reply.error(405, "ERR_API_METHOD_NOT_ALLOWED");
            let mut allowed: Vec<&str> = reply.headers["allow"].to_str().expect("text").split(", ").collect();
            allowed.sort_unstable();
            assert_eq!(allowed, methods, "{other} {path}");
        }
    }
    app.stop().await;
}
