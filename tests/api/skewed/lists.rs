//! Every list with each of its filters.

use reqwest::Method;
use serde_json::{Value, json};

use super::seed::run;
use super::{Caller, World};
use crate::front_door::world::noun;
use crate::support::Person;

impl Caller {
    /// The id for a parameter that names one of the caller's records.
    fn id(&self, name: &str) -> Option<i64> {
        Some(match name {
            "contactId" => self.contact,
            "ticketId" => self.ticket,
            "tagId" => self.tag,
            "contactListId" => self.list,
            "queueId" => self.company.support.0,
            "userId" => self.company.ana.0,
            "channelId" => self.company.phone.0,
            "wrapupTypeId" => self.company.solved.0,
            _ => return None,
        })
    }

    /// Values for a filter: some that the company has, and some that it does not have.
    fn values(&self, name: &str, schema: &Value) -> Vec<String> {
        if let Some(words) = schema["enum"].as_array() {
            return words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        let base = self.company.id.0 * 10_000_000;
        match (name, schema["type"].as_str(), schema["format"].as_str()) {
            (_, Some("boolean"), _) => vec!["true".to_owned(), "false".to_owned()],
            (_, _, Some("date-time")) => vec!["2000-01-01T00:00:00Z".to_owned(), "2100-01-01T00:00:00Z".to_owned()],
            ("search", ..) => ["some", "some 1", "nobody is called this"].map(str::to_owned).to_vec(),
            ("number", ..) => vec![(base + 1).to_string(), "5511900000000".to_owned()],
            ("email", ..) => vec!["c1@x.example".to_owned(), "nobody@x.example".to_owned()],
            ("code", ..) => vec!["C-1".to_owned(), "nobody".to_owned()],
            ("origin", ..) => vec!["api".to_owned(), "elsewhere".to_owned()],
            ("action", ..) => vec!["createToken".to_owned(), "nothing".to_owned()],
            ("after", ..) => vec!["0".to_owned(), "1".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// The queries of a list: pages and orders, and one for each value of each filter.
fn queries(caller: &Caller, path: &str, parameters: &[Value], ids: &[(&str, i64)]) -> Vec<String> {
    let mut queries = vec![String::new(), "&order=desc".to_owned(), "&page=3".to_owned(), "&cursor=".to_owned()];
    for parameter in parameters.iter().filter(|parameter| parameter["in"] == "query") {
        let name = parameter["name"].as_str().expect("a name");
        if ["page", "perPage", "order", "cursor"].contains(&name) {
            continue;
        }
        let noun = noun(path, name);
        let own = ids.iter().find(|(known, _)| *known == noun).map(|(_, id)| *id);
        let values = match caller.id(&noun).or(own) {
            Some(id) => vec![id.to_string()],
            None => caller.values(name, &parameter["schema"]),
        };
        assert!(!values.is_empty(), "{path} has a filter {name} that this test has no value for");
        queries.extend(values.into_iter().map(|value| {
            let mut query = form_urlencoded::Serializer::new(String::from("&"));
            query.append_pair(name, &value);
            if name == "sort" {
                query.append_pair("status", "open");
            }
            query.finish()
        }));
    }
    queries
}

#[actix_web::test]
async fn a_list_reads_what_its_company_has_and_nothing_of_others() {
    let (mut world, callers) = World::make().await;
    let document = hotline::routes::document();
    let mut lists = 0;
    for caller in &callers {
        let db = &world.app.db;
        let select_id = async |statement: &'static str| -> i64 {
            sqlx::query_scalar(statement).bind(caller.company.id).fetch_one(db).await.expect("an id")
        };
        let ids = [
            ("profileId", select_id("select max(id) from profiles where company_id = $1").await),
            ("wrapupCategoryId", select_id("select max(id) from wrapup_categories where company_id = $1").await),
            ("productCategoryId", select_id("select max(id) from product_categories where company_id = $1").await),
            ("campaignId", select_id("select max(id) from campaigns where company_id = $1").await),
            ("webhookId", select_id("select max(id) from webhooks where company_id = $1").await),
            ("boardId", select_id("select max(id) from boards where company_id = $1").await),
            ("listId", select_id("select max(id) from board_lists where company_id = $1").await),
            ("statusId", select_id("select max(id) from card_statuses where company_id = $1").await),
            ("businessId", select_id("select max(id) from businesses where company_id = $1").await),
            ("originId", select_id("select max(id) from card_origins where company_id = $1").await),
        ];
        let body = json!({"channelId": caller.company.webchat, "visitor": {"name": "Visitor"}});
        let session = caller.api.post("/webchat/sessions", body).await.data(201)["id"].as_str().expect("id").to_owned();
        for (path, item) in document["paths"].as_object().expect("paths") {
            let Some(path) = path.strip_prefix("/api/v1") else { continue };
            let Some(parameters) = item["get"]["parameters"].as_array() else { continue };
            if !parameters.iter().any(|parameter| parameter["name"] == "page") {
                continue;
            }
            // Templates are read from a provider.
            if path.ends_with("/templates") {
                continue;
            }
            let mut filled = path.replace("{sessionId}", &session);
            for parameter in parameters.iter().filter(|parameter| parameter["in"] == "path") {
                let name = parameter["name"].as_str().expect("a name");
                let own = ids.iter().find(|(known, _)| *known == name).map(|(_, id)| *id);
                if let Some(id) = caller.id(name).or(own) {
                    filled = filled.replace(&format!("{{{name}}}"), &id.to_string());
                }
            }
            assert!(!filled.contains('{'), "{filled} has an id that this test does not know");
            lists += 1;
            for query in queries(caller, &filled, parameters, &ids) {
                let path = format!("{filled}?perPage=5{query}");
                world.judge(caller, Method::GET, &path, None, caller.reads_max).await;
            }
        }
    }
    assert!(lists >= 2 * 15, "the document has {lists} lists");
    // The events have no pages: each request reads those after an id.
    for caller in &callers {
        for query in
            ["", "?after=3&limit=1", "?limit=1000", "?types=card.won", "?after=2&types=message.received,note.added"]
        {
            let reply = world.judge(caller, Method::GET, &format!("/events{query}"), None, caller.reads_max).await;
            let data = reply.data(200).as_array().expect("events");
            assert!(
                query.contains("card.won") || data.iter().any(|event| event["data"]["body"] == "Some text"),
                "{query}"
            );
        }
    }
    world.assert_and_stop().await;
}

#[actix_web::test]
async fn a_list_that_only_the_panel_has_reads_what_its_company_has_and_nothing_of_others() {
    let (mut world, callers) = World::make().await;
    let db = world.app.db.clone();
    for statement in [
        "insert into audit_log (company_id, actor_kind, actor_id, actor_name, action)
             select company_id, 'user', 1, 'Some', case when k % 3 = 0 then 'createToken' else 'updateUser' end
             from (select company_id, row_number() over (partition by company_id order by id) as k from contacts) c",
        "insert into tokens (company_id, name, prefix, hash, permissions, revoked_at)
             select company_id, 'Some ' || k, 'sk_live_', sha256((company_id || ' ' || k)::bytea), '{}', now()
             from (select company_id, row_number() over (partition by company_id order by id) as k from contacts) c
             where k <= 600",
    ] {
        run(&db, statement).await;
    }
    let (admin, _) = Person::admin(&world.app, "root@example.com").await;
    let public = hotline::routes::document();
    let document = hotline::routes::panel_document();
    let mut lists = Vec::new();
    for caller in &callers {
        let person = admin.in_company(caller.company.id);
        for (full_path, item) in document["paths"].as_object().expect("paths") {
            let Some(path) = full_path.strip_prefix("/panel/api/v1") else { continue };
            let is_public = !public["paths"][format!("/api/v1{path}")]["get"].is_null();
            let Some(parameters) = item["get"]["parameters"].as_array().filter(|_| !is_public) else { continue };
            // The list of companies belongs to the installation, and has a row for each company.
            if !parameters.iter().any(|parameter| parameter["name"] == "page") || path == "/companies" {
                continue;
            }
            lists.push(path.to_owned());
            for query in queries(caller, path, parameters, &[]) {
                let path = format!("{path}?perPage=5{query}");
                let request = person.request(Method::GET, &path);
                world.judge_request(caller, (Method::GET, &path), request, caller.reads_max).await;
            }
        }
    }
    lists.sort_unstable();
    lists.dedup();
    assert_eq!(lists, ["/account/sessions", "/audit-log", "/installation/audit-log", "/tokens"]);
    world.assert_and_stop().await;
}
