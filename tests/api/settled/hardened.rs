//! Headers that every answer carries.

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};

use crate::support::service::TestOptions;
use crate::support::{OwnApp, TestApp};

const STRICT: &str = "strict-transport-security";

/// Requests for each operation and page, and for paths that do not exist.
fn requests(app: &TestApp) -> Vec<(String, RequestBuilder)> {
    let mut requests = Vec::new();
    for document in [hotline::routes::document(), hotline::routes::panel_document()] {
        for (path, methods) in document["paths"].as_object().expect("paths") {
            let parts = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
            let path = parts.collect::<Vec<_>>().join("/");
            for method in methods.as_object().expect("methods").keys() {
                if path.ends_with("/stream") || path.ends_with("/socket") {
                    continue;
                }
                let method: Method = method.to_uppercase().parse().expect("a method");
                requests.push((format!("{method} {path}"), app.api.anonymous(method, &path)));
            }
        }
    }
    for path in [
        "/panel",
        "/panel/",
        "/panel/assets/panel.js",
        "/webchat/none/widget.js",
        "/nowhere",
        "/api/v1/nowhere",
        "/api/v1/tags/",
    ] {
        requests.push((format!("GET {path}"), app.api.anonymous(Method::GET, path)));
        requests.push((format!("PATCH {path}"), app.api.anonymous(Method::PATCH, path)));
    }
    for path in ["/tags", "/contacts", "/nowhere", "/reports/tickets", "/tags/1", "/tags/x"] {
        requests.push((format!("GET {path} with a token"), app.api.request(Method::GET, path)));
    }
    requests
}

fn has_nosniff(headers: &HeaderMap) -> bool {
    headers.get_all("x-content-type-options").iter().map(|value| value.as_bytes()).eq([b"nosniff".as_slice()])
}

#[actix_web::test]
async fn every_answer_forbids_type_sniffing_and_an_https_answer_requires_https() {
    // The tests' own address counts as a trusted proxy.
    let trusted_proxies = vec!["127.0.0.1/32".parse().expect("a range")];
    let app = OwnApp::start_with(TestOptions { trusted_proxies, ..TestOptions::default() }).await;
    for (scheme, strict) in [("https", Some("max-age=31536000")), ("http", None)] {
        let requests = requests(&app);
        assert!(requests.len() > 300, "only {} requests", requests.len());
        for (name, request) in requests {
            let answer = request.header("x-forwarded-proto", scheme).send().await.expect("an answer");
            let headers = answer.headers();
            assert!(has_nosniff(headers), "{name}: {headers:?}");
            assert_eq!(headers.get(STRICT).and_then(|value| value.to_str().ok()), strict, "{name} over {scheme}");
        }
    }
    app.stop().await;
    // The header of a caller that is not a trusted proxy is ignored.
    let app = TestApp::shared().await;
    let request = app.api.request(Method::GET, "/tags").header("x-forwarded-proto", "https");
    let answer = request.send().await.expect("an answer");
    assert!(has_nosniff(answer.headers()) && !answer.headers().contains_key(STRICT), "{:?}", answer.headers());
    app.stop().await;
}
