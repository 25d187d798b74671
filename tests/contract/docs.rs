//! The API document as it is served: as JSON for programs, and as pages for people.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Response};

use crate::support::{Reply, TestApp};

/// An HTTP client that has no token and follows no redirects.
struct Browser {
    client: Client,
    base: String,
}

impl Browser {
    fn of(app: &TestApp) -> Self {
        let client = hotline::tls::client().redirect(Policy::none()).build().expect("client");
        Self { client, base: format!("http://{}", app.address) }
    }

    async fn get(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.base)).send().await.expect("the service answers")
    }

    /// The text of a file. Fails unless it exists and has this content type.
    async fn file(&self, path: &str, kind: &str) -> String {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        let content_type = response.headers()[CONTENT_TYPE].to_str().expect("text").to_owned();
        assert!(content_type.starts_with(kind), "{path} is {content_type}");
        let text = response.text().await.expect("text");
        assert!(!text.is_empty(), "{path} is empty");
        text
    }
}

#[actix_web::test]
async fn the_document_is_served_unchanged_without_a_token() {
    let app = TestApp::shared().await;
    let reply = Reply::of(app.api.anonymous(Method::GET, "/api/v1/openapi.json")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers[CONTENT_TYPE], "application/json");
    assert!(reply.body == hotline::routes::document(), "the served document is not the generated one");
    app.stop().await;
}

#[actix_web::test]
async fn the_documentation_page_loads_nothing_from_other_hosts() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app);
    let redirect = browser.get("/docs").await;
    assert_eq!((redirect.status().as_u16(), &redirect.headers()["location"]), (308, &"/docs/".parse().expect("value")));

    let page = browser.file("/docs/", "text/html").await;
    let loaded: Vec<&str> = ["src=\"", "href=\""]
        .iter()
        .flat_map(|attribute| page.split(attribute).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(loaded.len() >= 4, "{loaded:?}");
    for link in &loaded {
        assert!(!link.contains("//"), "{link} is on another host");
        let file = format!("/docs/{}", link.trim_start_matches("./"));
        let (_, suffix) = file.rsplit_once('.').expect("a suffix");
        match suffix {
            "css" => drop(browser.file(&file, "text/css").await),
            "js" => drop(browser.file(&file, "text/javascript").await),
            "png" => assert_eq!(browser.get(&file).await.headers()[CONTENT_TYPE], "image/png"),
            other => panic!("the page loads a .{other}"),
        }
    }
    let initializer = browser.file("/docs/swagger-initializer.js", "text/javascript").await;
    assert!(initializer.contains(hotline::openapi::PATH), "{initializer}");
    assert!(initializer.contains(r#""validatorUrl": "none""#), "the page would call a validator: {initializer}");
    assert!(!initializer.contains("://"), "the page would call another host: {initializer}");
    app.stop().await;
}

#[actix_web::test]
async fn unknown_files_of_the_documentation_are_not_found() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app);
    for path in ["/docs/nothing", "/docs/nothing.js", "/docs/index.html/x", "/docs/..%2Fopenapi.json", "/docs/%00"] {
        assert_eq!(browser.get(path).await.status(), 404, "{path}");
    }
    app.stop().await;
}
