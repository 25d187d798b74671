//! Templates: lists show those of the channel's provider, and a send is checked against them.

use std::time::Duration;

use hotline::templates;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use super::visited;
use crate::steps::{NOBODY, channel, listed, sent, sql};
use crate::support::provider::Answer;
use crate::support::seed;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Provider, Reply, TestApp, keys};

/// An age that nothing reaches, however slow the test is.
const LONG: Duration = Duration::from_secs(3600);

/// A phone channel that is connected to a provider.
pub struct Phone {
    pub id: i64,
    pub account: String,
}

impl Phone {
    pub async fn connect(app: &TestApp, provider: &Provider) -> Self {
        let (account, company) = ("106540352242922", app.company.id);
        let row = seed::provided(&app.db, &keys(), company, ChannelType::Whatsapp, account, &provider.url).await;
        app.refreshed().await;
        Self { id: row.id.0, account: account.to_owned() }
    }

    pub fn templates_path(&self) -> String {
        format!("/channels/{}/templates", self.id)
    }
}

fn template(name: &str, language: &str, status: &str, components: Value) -> Value {
    json!({"id": "1", "name": name, "language": language, "category": "UTILITY", "status": status,
        "components": components})
}

/// An approved template with only a body.
pub fn plain(name: &str, language: &str, text: &str) -> Value {
    template(name, language, "APPROVED", json!([{"type": "BODY", "text": text}]))
}

fn order_shipped() -> Value {
    let components = json!([
        {"type": "HEADER", "format": "TEXT", "text": "Order {{1}}"},
        {"type": "BODY", "text": "Hi {{1}}, order {{2}} is on its way."},
        {"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Track", "url": "https://acme.example/{{1}}"}]},
    ]);
    template("order_shipped", "en_US", "APPROVED", components)
}

async fn send(app: &TestApp, channel: &Phone, template: Value) -> Reply {
    let body = json!({"channelId": channel.id, "number": "5511900000001", "contactName": "Maria Lima",
        "type": "template", "template": template});
    app.api.post("/messages", body).await
}

/// A service with a connected channel, whose provider has a few templates.
async fn connected(options: TestOptions) -> (OwnApp, Provider, Phone) {
    let app = OwnApp::start_with(options).await;
    let provider = Provider::start().await;
    let channel = Phone::connect(&app, &provider).await;
    provider.has_templates(
        &channel.account,
        vec![
            order_shipped(),
            plain("hello", "pt_BR", "Olá!"),
            plain("hello", "en_US", "Hello!"),
            template("waiting", "en_US", "PENDING", json!([{"type": "BODY", "text": "Soon"}])),
            plain("bye", "en_US", "Bye!"),
        ],
    );
    (app, provider, channel)
}

/// Options with which every use of templates fetches them; the cache serves only while the provider does not respond.
fn without_fresh_cache() -> TestOptions {
    let templates = templates::Options { fresh_for: Duration::ZERO, refetch_pause: Duration::ZERO };
    TestOptions { templates, ..TestOptions::default() }
}

#[actix_web::test]
async fn the_approved_templates_of_a_channel_are_listed_page_by_page() {
    let (app, provider, channel) = connected(TestOptions::default()).await;
    let reply = app.api.get(&channel.templates_path()).await;
    let names = |rows: &[Value]| {
        let name = |row: &Value| {
            format!("{} {}", row["name"].as_str().expect("name"), row["language"].as_str().expect("language"))
        };
        rows.iter().map(name).collect::<Vec<_>>()
    };
    let all = ["bye en_US", "hello en_US", "hello pt_BR", "order_shipped en_US"];
    assert_eq!(names(reply.data(200).as_array().expect("a list")), all);
    assert_eq!(reply.body["meta"], json!({"page": 1, "perPage": 100, "hasMore": false}));
    assert_eq!(
        reply.body["data"][0],
        json!({"name": "bye", "language": "en_US", "category": "UTILITY", "status": "APPROVED",
            "components": [{"type": "BODY", "text": "Bye!"}]})
    );
    for (query, expected, has_more) in [
        ("perPage=3", &all[..3], true),
        ("perPage=3&page=2", &all[3..], false),
        ("perPage=2&page=2", &all[2..], false),
        ("perPage=2&page=3", &all[..0], false),
        ("page=9223372036854775807", &all[..0], false),
        ("perPage=0&page=x", &all[..], false),
    ] {
        let reply = app.api.get(&format!("{}?{query}", channel.templates_path())).await;
        assert_eq!(names(reply.data(200).as_array().expect("a list")), expected, "{query}");
        assert_eq!(reply.body["meta"]["hasMore"], has_more, "{query}");
    }
    let with_unapproved = app.api.all(&format!("{}?all=true", channel.templates_path())).await;
    let unapproved = with_unapproved.iter().filter(|template| template["status"] != "APPROVED").count();
    assert_eq!((with_unapproved.len(), unapproved), (all.len() + 1, 1), "{with_unapproved:?}");
    let descending = app.api.get(&format!("{}?order=desc", channel.templates_path())).await;
    assert_eq!(names(descending.data(200).as_array().expect("a list"))[0], "order_shipped en_US");
    assert_eq!(app.api.get(&format!("{}?order=up", channel.templates_path())).await.invalid_fields(), ["order"]);
    assert_eq!(provider.template_reads(&channel.account), 1, "all these requests did not share one fetch");
    app.stop().await;
}

#[actix_web::test]
async fn other_channels_have_none_and_other_companies_channels_are_not_found() {
    let app = TestApp::shared().await;
    let (other, _) = app.another_company().await;
    let social = channel(&app, "Social", ChannelType::Instagram).await;
    // This company's phone channel is not connected to a provider.
    for id in [social, app.company.webchat.0, app.company.phone.0] {
        let reply = app.api.get(&format!("/channels/{id}/templates")).await;
        assert_eq!(reply.data(200), &json!([]));
        assert_eq!(reply.body["meta"]["hasMore"], false);
    }
    for id in [other.phone.0, NOBODY] {
        app.api.get(&format!("/channels/{id}/templates")).await.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_template_is_built_from_parameters_and_its_text_is_stored_as_well() {
    let (app, provider, channel) = connected(TestOptions::default()).await;
    let body = json!({"channelId": channel.id, "number": "5511900000001", "contactName": "Maria Lima",
        "type": "template", "template": {"name": "order_shipped", "parameters": {
            "header": ["4711"], "body": ["{{firstName}}", "4711"], "buttons": ["track/4711"]}}});
    let message = sent(&app.api, body).await;
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let components = json!([
        {"type": "header", "parameters": text("4711")},
        {"type": "body", "parameters": [{"type": "text", "text": "Maria"}, {"type": "text", "text": "4711"}]},
        {"type": "button", "sub_type": "url", "index": "0", "parameters": text("track/4711")},
    ]);
    let built = json!({"name": "order_shipped", "language": {"code": "en_US"}, "components": components});
    assert_eq!((&message["type"], &message["template"]), (&json!("template"), &built));
    assert_eq!(message["body"], "Hi Maria, order 4711 is on its way.");
    assert_eq!((&message["media"], &message["interactive"]), (&Value::Null, &Value::Null));
    assert_eq!(provider.template_reads(&channel.account), 1);

    // The caller may also send the built template.
    send(&app, &channel, built.clone()).await.data(202);
    let messages = app.api.all("/messages?type=template").await;
    assert_eq!((messages.len(), &messages[1]["template"]), (2, &built));
    app.stop().await;
}

#[actix_web::test]
async fn a_template_that_the_channel_does_not_have_is_refused_with_its_invalid_fields() {
    let (app, _provider, channel) = connected(TestOptions::default()).await;
    for (template, expected) in [
        (json!({"name": "unknown"}), vec!["template.name"]),
        (json!({"name": "waiting"}), vec!["template.name"]),
        (json!({"name": "hello"}), vec!["template.language"]),
        (json!({"name": "hello", "language": "fr"}), vec!["template.language"]),
        (json!({"name": "bye", "parameters": {"body": ["one too many"]}}), vec!["template.parameters.body"]),
        (
            json!({"name": "order_shipped"}),
            vec!["template.parameters.header", "template.parameters.body", "template.parameters.buttons"],
        ),
        (
            json!({"name": "order_shipped", "components": []}),
            vec!["template.components", "template.components", "template.components"],
        ),
        // These are invalid whatever templates the channel has.
        (json!({}), vec!["template.name"]),
        (json!({"name": " ", "language": 7}), vec!["template.name", "template.language"]),
        (json!({"name": "bye", "parameters": {"body": "Maria"}}), vec!["template.parameters.body"]),
        (
            json!({"name": "bye", "parameters": {"body": [1, ""]}}),
            vec!["template.parameters.body[0]", "template.parameters.body[1]"],
        ),
        (json!({"name": "bye", "parameters": []}), vec!["template.parameters"]),
        (json!({"name": "bye", "components": {}}), vec!["template.components"]),
        (json!({"name": "bye", "components": [7]}), vec!["template.components[0]"]),
        (json!({"name": "bye", "parameters": {}, "components": []}), vec!["template.components"]),
        (json!({"name": "bye", "parameters": {"body": ["\u{0}"]}}), vec!["template.parameters.body[0]"]),
        (json!({"name": "bye", "parameters": {"body": ["a\nb"]}}), vec!["template.parameters.body[0]"]),
        (json!("bye"), vec!["template"]),
        (Value::Null, vec!["template"]),
    ] {
        assert_eq!(send(&app, &channel, template.clone()).await.invalid_fields(), expected, "{template}");
    }
    assert_eq!(listed(&app.api, "/contacts").await, [0; 0], "a refused send created a contact");
    assert_eq!(listed(&app.api, "/messages").await, [0; 0], "a refused send created a message");
    app.stop().await;
}

#[actix_web::test]
async fn a_webchat_has_no_templates() {
    let app = TestApp::shared().await;
    let (_, _, open) = visited(&app, "visitor").await;
    let body = json!({"ticketId": open, "type": "template", "template": {"name": "hello"}});
    assert_eq!(app.api.post("/messages", body).await.invalid_fields(), ["template.name"]);
    app.stop().await;
}

#[actix_web::test]
async fn the_recipient_is_checked_before_the_template() {
    let (app, provider, channel) = connected(TestOptions::default()).await;
    let (_, visitor) = app.session("visitor").await;
    let send_to = async |field: &str, recipient: Value| {
        let mut body = json!({"channelId": channel.id, "type": "template", "template": {"name": "unknown"}});
        body[field] = recipient;
        app.api.post("/messages", body).await
    };
    send_to("contactId", json!(NOBODY)).await.error(404, "ERR_API_CONTACT_NOT_FOUND");
    send_to("contactId", json!(visitor)).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    send_to("ticketId", json!(NOBODY)).await.error(404, "ERR_API_NOT_FOUND");
    send_to("contactName", json!("Maria")).await.error(400, "ERR_API_CONTACT_NOT_IDENTIFIED");
    assert_eq!(provider.template_reads(&channel.account), 0);
    app.stop().await;
}

#[actix_web::test]
async fn one_fetch_serves_many_sends_even_those_with_an_unknown_name() {
    // Neither the templates nor a miss become too old, however slow this test is.
    let templates = templates::Options { fresh_for: LONG, refetch_pause: LONG };
    let (app, provider, channel) = connected(TestOptions { templates, ..TestOptions::default() }).await;
    for _ in 0..3 {
        send(&app, &channel, json!({"name": "bye"})).await.data(202);
        assert_eq!(send(&app, &channel, json!({"name": "unknown"})).await.invalid_fields(), ["template.name"]);
    }
    assert_eq!(provider.template_reads(&channel.account), 1);
    app.stop().await;
}

#[actix_web::test]
async fn an_unknown_template_is_fetched_again() {
    let (app, provider, channel) = connected(without_pause_after_misses()).await;
    assert_eq!(send(&app, &channel, json!({"name": "new"})).await.invalid_fields(), ["template.name"]);
    provider.has_templates(&channel.account, vec![plain("new", "en_US", "New!"), plain("bye", "en_US", "Bye!")]);
    send(&app, &channel, json!({"name": "new"})).await.data(202);
    let reads = provider.template_reads(&channel.account);
    send(&app, &channel, json!({"name": "bye"})).await.data(202);
    assert_eq!(provider.template_reads(&channel.account), reads, "a cached template was fetched again");
    app.stop().await;
}

/// Options with which each send with an unknown template fetches the templates again.
fn without_pause_after_misses() -> TestOptions {
    let templates = templates::Options { refetch_pause: Duration::ZERO, ..templates::Options::default() };
    TestOptions { templates, ..TestOptions::default() }
}

#[actix_web::test]
async fn cached_templates_are_used_while_the_provider_fails() {
    let (app, provider, channel) = connected(without_fresh_cache()).await;
    provider.only_token(&channel.account, "another token");
    app.api.get(&channel.templates_path()).await.error(503, "ERR_API_UNAVAILABLE");
    send(&app, &channel, json!({"name": "bye"})).await.error(503, "ERR_API_UNAVAILABLE");
    assert_eq!(listed(&app.api, "/contacts").await, [0; 0], "a refused send created a contact");

    // The failed fetch delays the next one of its channel only, so another channel fetches at once.
    provider.only_token(&channel.account, seed::ACCESS_TOKEN);
    let cached = Phone::connect(&app, &provider).await;
    send(&app, &cached, json!({"name": "bye"})).await.data(202);
    provider.only_token(&channel.account, "another token");
    send(&app, &cached, json!({"name": "bye"})).await.data(202);
    assert_eq!(app.api.get(&cached.templates_path()).await.data(200).as_array().map(Vec::len), Some(4));
    app.stop().await;
}

#[actix_web::test]
async fn a_list_of_templates_that_cannot_be_read_is_not_shown_as_empty() {
    let (app, provider, channel) = connected(without_fresh_cache()).await;
    // Longer than any provider's response that Hotline reads.
    provider.has_templates(&channel.account, vec![plain("bye", "en_US", &"x".repeat(5 << 20))]);
    app.api.get(&channel.templates_path()).await.error(503, "ERR_API_UNAVAILABLE");
    send(&app, &channel, json!({"name": "bye"})).await.error(503, "ERR_API_UNAVAILABLE");
    app.stop().await;
}

const IN_ERROR: &str = "update channels set status = 'error', updated_at = now() where id = $1";
const DISCONNECTED: &str = "update channels set status = 'disconnected', settings = settings - 'accessToken',
    updated_at = now() where id = $1";

#[actix_web::test]
async fn a_channel_that_is_not_connected_accepts_templates_which_wait() {
    let (app, provider, channel) = connected(without_fresh_cache()).await;
    provider.only_token(&channel.account, "another token");
    for (change, code) in [(IN_ERROR, "channel_error"), (DISCONNECTED, "channel_disconnected")] {
        sql(&app, change, channel.id).await;
        app.refreshed().await;
        let components = json!([{"type": "body", "parameters": [{"type": "text", "text": "Maria"}]}]);
        for template in [
            json!({"name": "bye", "language": {"code": "en_US"}}),
            json!({"name": "order_shipped", "language": {"code": "en_US"}, "components": components}),
        ] {
            let accepted = send(&app, &channel, template.clone()).await;
            let job = format!("/messages/jobs/{}", accepted.data(202)["jobId"].as_str().expect("a job"));
            let job = app.api.get(&job).await.data(200).clone();
            assert_eq!((&job["status"], &job["waitingFor"]["code"]), (&json!("queued"), &json!(code)));
            let message = app.api.get(&format!("/messages/{}", job["messageId"])).await;
            assert_eq!(message.data(200)["template"], template);
        }
        for (template, field) in [
            (json!({"name": "bye"}), "template.language"),
            (json!({"name": "bye", "language": "en_US", "parameters": {"body": ["x"]}}), "template.parameters"),
            (json!({"name": "bye", "language": "en_US", "components": [{}]}), "template.components[0].type"),
        ] {
            assert_eq!(send(&app, &channel, template.clone()).await.invalid_fields(), [field], "{template}");
        }
    }

    // With cached templates, a send is checked against them.
    provider.only_token(&channel.account, seed::ACCESS_TOKEN);
    let cached = Phone::connect(&app, &provider).await;
    send(&app, &cached, json!({"name": "bye"})).await.data(202);
    provider.only_token(&channel.account, "another token");
    for change in [IN_ERROR, DISCONNECTED] {
        sql(&app, change, cached.id).await;
        app.refreshed().await;
        send(&app, &cached, json!({"name": "bye"})).await.data(202);
        let unknown = json!({"name": "unknown", "language": "en_US"});
        assert_eq!(send(&app, &cached, unknown).await.invalid_fields(), ["template.name"]);
    }
    app.stop().await;
}

#[actix_web::test]
async fn the_provider_receives_the_stored_template() {
    let (app, provider, channel) = connected(TestOptions::default()).await;
    provider.always(&channel.account, Answer::Accept);
    send(&app, &channel, json!({"name": "hello", "language": "pt_BR"})).await.data(202);
    let accepted = provider.accepts(&channel.account, 1).await;
    assert_eq!(accepted[0].to, "5511900000001");
    assert_eq!(
        (&accepted[0].body["type"], &accepted[0].body["template"]),
        (&json!("template"), &json!({"name": "hello", "language": {"code": "pt_BR"}}))
    );
    app.stop().await;
}
