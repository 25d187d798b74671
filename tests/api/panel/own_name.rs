//! In whose name a person acts: their own, and never a contact's.

use std::collections::BTreeMap;

use hotline::web::admission::modules::module_of;
use reqwest::Method;
use serde_json::{Value, json};

use super::administrator;
use crate::steps::id;
use crate::support::{OwnApp, Person, Reply};

#[actix_web::test]
async fn no_person_writes_as_a_contact() {
    let app = OwnApp::start().await;
    let (session, contact) = app.session("visitor").await;
    let ana = administrator(&app).await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let mut tried = 0;
    for operation in hotline::routes::panel_operations(&mut BTreeMap::new()) {
        let path = operation.path.replace("{sessionId}", &session.to_string());
        if operation.method == "GET" || module_of(&format!("/panel/api/v1{path}")) != Some("webchat") {
            continue;
        }
        let method: Method = operation.method.parse().expect("a method");
        let body = json!({"channelId": app.company.webchat, "contactId": contact, "body": "I agree to pay 10,000"});
        for person in [&ana, &admin] {
            let request = person.request(method.clone(), &path).json(&body);
            Reply::of(request).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
            let keyed = person.request(method.clone(), &path).header("idempotency-key", "k-1").json(&body);
            Reply::of(keyed).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
        }
        tried += 1;
    }
    assert!(tried >= 3, "{tried}");
    assert_eq!(app.api.all("/messages").await, Vec::<Value>::new());
    // People read what visitors see, and the company's server writes as before.
    for end in ["", "/messages"] {
        ana.get(&format!("/webchat/sessions/{session}{end}")).await.data(200);
    }
    app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await.data(201);
    let messages = app.api.all("/messages").await;
    assert_eq!((messages.len(), &messages[0]["direction"]), (1, &json!("inbound")));
    app.stop().await;
}

#[actix_web::test]
async fn a_record_names_the_person_who_created_it() {
    let app = OwnApp::start().await;
    let ana = administrator(&app).await;
    let company = &app.company;
    let board = ana.post("/crm/boards", json!({"name": "Solar"})).await.data(201).clone();
    assert_eq!(board["createdByUserId"], json!(company.ana));
    assert_eq!(
        app.api.get(&format!("/crm/boards/{}", board["id"])).await.data(200)["createdByUserId"],
        json!(company.ana)
    );
    // A token is not a user, and no caller can name another creator.
    let by_token = app.api.post("/crm/boards", json!({"name": "Wind", "createdByUserId": company.ben})).await;
    assert_eq!(by_token.data(201)["createdByUserId"], Value::Null);
    let by_ana = ana.post("/crm/boards", json!({"name": "Water", "createdByUserId": company.ben})).await;
    assert_eq!(by_ana.data(201)["createdByUserId"], json!(company.ana));

    let contact = id(ana.post("/contacts", json!({"name": "Maria", "number": "5511987654321"})).await.data(201));
    let later = chrono::Utc::now() + chrono::TimeDelta::days(1);
    let schedule = json!({"contactId": contact, "channelId": company.phone, "body": "x", "sendAt": later.to_rfc3339()});
    assert_eq!(ana.post("/schedules", schedule).await.data(201)["userCreated"]["id"], json!(company.ana));
    let card = ana.post("/crm/cards", json!({"boardId": board["id"], "name": "Roof"})).await.data(201).clone();
    assert_eq!(card["creationSource"], "user");
    let ticket =
        ana.post("/tickets", json!({"channelId": company.phone, "contactId": contact})).await.data(201).clone();
    assert_eq!(ticket["creationSource"], "user");
    // Every column for a record's creator is filled when a person creates the record.
    let columns: Vec<(String, String)> = sqlx::query_as(
        "select table_name::text, column_name::text from information_schema.columns
         where table_schema = 'public' and column_name in ('created_by_user_id', 'created_by')",
    )
    .fetch_all(&app.db)
    .await
    .expect("the columns");
    let mut tables: Vec<&str> = columns.iter().map(|(table, _)| table.as_str()).collect();
    tables.sort_unstable();
    assert_eq!(tables, ["boards", "cards"], "another table has a creator column: test it here");
    let creator: Option<i64> =
        sqlx::query_scalar("select created_by_user_id from cards where company_id = $1 and id = $2")
            .bind(company.id)
            .bind(id(&card))
            .fetch_one(&app.db)
            .await
            .expect("the card");
    assert_eq!(creator, Some(company.ana.0));
    app.stop().await;
}
