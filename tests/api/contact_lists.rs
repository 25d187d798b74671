//! Contact lists and their contacts.

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::plain::{check_created_once, check_refused};
use crate::steps::{NOBODY, assert_timestamp, id, listed, restarted};
use crate::support::{OwnApp, Reply, TestApp, eventually};

async fn create_list(app: &TestApp, name: &str) -> i64 {
    id(app.api.post("/contact-lists", json!({"name": name})).await.data(201))
}

/// A list as the list of all lists shows it.
async fn shown(app: &TestApp, list: i64) -> Value {
    let all = app.api.all("/contact-lists").await;
    all.into_iter().find(|row| id(row) == list).expect("the list is there")
}

async fn add_contacts(app: &TestApp, list: i64, body: Value) -> Value {
    app.api.post(&format!("/contact-lists/{list}/contacts"), body).await.data(200).clone()
}

async fn members(app: &TestApp, list: i64) -> Vec<i64> {
    listed(&app.api, &format!("/contact-lists/{list}/contacts")).await
}

#[actix_web::test]
async fn a_list_is_made_listed_and_deleted() {
    let app = TestApp::shared().await;
    let reply = app.api.post("/contact-lists", json!({"name": " Newsletter ", "id": 1, "contactsCount": 7})).await;
    let made = reply.data(201);
    assert_timestamp(&made["createdAt"]);
    let expected = json!({
        "id": made["id"], "name": "Newsletter", "contactsCount": 0,
        "createdAt": made["createdAt"], "updatedAt": made["createdAt"],
    });
    assert_eq!(reply.body, json!({"data": expected}));
    let mut all = vec![id(made)];
    // Two lists may have the same name.
    for name in ["Newsletter", "Promoção", "x"] {
        all.push(create_list(&app, name).await);
    }
    check_list(&app, "/contact-lists", &all, &["created", "updated"]).await;
    for (search, wanted) in [("NEWS", &all[..2]), ("promocao", &all[2..3]), ("nothing", &[]), ("", &all[..])] {
        assert_eq!(listed(&app.api, &format!("/contact-lists?search={search}")).await, wanted, "{search}");
    }
    let bad = [
        json!({}),
        json!({"name": ""}),
        json!({"name": null}),
        json!({"name": 7}),
        json!({"name": "a\nb"}),
        json!({"name": "x".repeat(256)}),
    ];
    check_refused(&app, Method::POST, "/contact-lists", bad.map(|body| (body, &["name"][..])).into()).await;
    check_created_once(&app, "/contact-lists", &json!({"name": "once"}), &json!({"name": "twice"})).await;

    let path = format!("/contact-lists/{}", all[0]);
    let deleted = app.api.delete(&path).await;
    assert_eq!((deleted.status.as_u16(), deleted.bytes.len()), (204, 0));
    app.api.delete(&path).await.error(404, "ERR_API_NOT_FOUND");
    app.api.get(&format!("{path}/contacts")).await.error(404, "ERR_API_NOT_FOUND");
    app.api.post(&format!("{path}/contacts"), json!({"contactIds": []})).await.error(404, "ERR_API_NOT_FOUND");
    assert!(!listed(&app.api, "/contact-lists").await.contains(&all[0]));
    app.stop().await;
}

#[actix_web::test]
async fn contacts_are_put_into_a_list_once_and_taken_out() {
    let app = TestApp::shared().await;
    let mut contacts = Vec::new();
    for number in 1..=5 {
        contacts.push(app.contact(&format!("551190000000{number}")).await.0);
    }
    let tag = app.api.post("/tags", json!({"name": "VIP"})).await.data(201)["id"].clone();
    for contact in &contacts[2..5] {
        assert_eq!(
            Reply::of(app.api.request(Method::PUT, &format!("/contacts/{contact}/tags/{tag}"))).await.status,
            204
        );
    }
    let (one, other) = (create_list(&app, "One").await, create_list(&app, "Other").await);
    let [a, b, c] = [contacts[0], contacts[1], contacts[2]];
    for (body, added, there) in [
        (json!({"contactIds": [a, b, a]}), 2, 0),
        (json!({"contactIds": [b, c]}), 1, 1),
        (json!({"tagId": tag}), 2, 1),
        (json!({"tagId": tag, "contactIds": [a, c]}), 0, 4),
        (json!({"contactIds": []}), 0, 0),
        (json!({"contactIds": null, "tagId": tag}), 0, 3),
    ] {
        assert_eq!(
            add_contacts(&app, one, body.clone()).await,
            json!({"added": added, "alreadyThere": there}),
            "{body}"
        );
    }
    add_contacts(&app, other, json!({"contactIds": [c]})).await;
    assert_eq!(members(&app, one).await, contacts);
    assert_eq!(shown(&app, one).await["contactsCount"], 5);
    // Contacts are shown in a list as everywhere else.
    let shown_there = app.api.all(&format!("/contact-lists/{other}/contacts")).await;
    assert_eq!(&shown_there[0], app.api.get(&format!("/contacts/{c}")).await.data(200));
    check_list(&app, &format!("/contact-lists/{one}/contacts"), &contacts, &["created", "updated"]).await;
    let found = app.api.all(&format!("/contact-lists/{one}/contacts?search=0000002")).await;
    assert_eq!(found.iter().map(|contact| &contact["id"]).collect::<Vec<_>>(), [b]);
    assert!(
        app.api.all(&format!("/contact-lists/{other}/contacts?search=0000002")).await.is_empty(),
        "the search found contacts outside the list"
    );

    let member = format!("/contact-lists/{one}/contacts/{b}");
    for _ in 0..2 {
        assert_eq!(app.api.delete(&member).await.status, 204);
    }
    assert_eq!(members(&app, one).await, [a, c, contacts[3], contacts[4]]);
    // A deleted contact leaves every list.
    assert_eq!(app.api.delete(&format!("/contacts/{c}")).await.status, 204);
    assert_eq!((members(&app, one).await.len(), members(&app, other).await.len()), (3, 0));
    assert_eq!(
        (&shown(&app, one).await["contactsCount"], &shown(&app, other).await["contactsCount"]),
        (&json!(3), &json!(0))
    );
    // The contacts of a deleted list stay.
    assert_eq!(app.api.delete(&format!("/contact-lists/{one}")).await.status, 204);
    app.api.get(&format!("/contacts/{a}")).await.data(200);

    // A retry adds nothing, and gets the answer to the first request.
    let path = format!("/contact-lists/{other}/contacts");
    let add = || Reply::of(app.api.keyed(Method::POST, &path, "add", json!({"contactIds": [a, b]}).to_string()));
    let (first, retry) = (add().await, add().await);
    assert_eq!((first.data(200), retry.is_replay()), (&json!({"added": 2, "alreadyThere": 0}), true));
    assert_eq!(first.bytes, retry.bytes);
    app.stop().await;
}

#[actix_web::test]
async fn a_refused_addition_to_a_list_changes_nothing() {
    let app = TestApp::shared().await;
    let contact = app.contact("5511900000001").await.0;
    let one = create_list(&app, "One").await;
    let path = format!("/contact-lists/{one}/contacts");
    for (body, fields) in [
        (json!({}), &["contactIds"][..]),
        (json!({"contactIds": null, "tagId": null}), &["contactIds"]),
        (json!({"contactIds": "x", "tagId": "y"}), &["contactIds", "tagId"]),
        (json!({"contactIds": [contact, "x", 1.5]}), &["contactIds[1]", "contactIds[2]"]),
        (json!({"contactIds": vec![contact; 1001]}), &["contactIds"]),
    ] {
        assert_eq!(app.api.post(&path, body.clone()).await.invalid_fields(), fields, "{body:.80}");
    }
    for body in [json!({"contactIds": [contact, NOBODY]}), json!({"contactIds": [contact], "tagId": NOBODY})] {
        app.api.post(&path, body).await.error(404, "ERR_API_NOT_FOUND");
    }
    for path in [
        format!("/contact-lists/{NOBODY}/contacts/{contact}"),
        format!("/contact-lists/{one}/contacts/{NOBODY}"),
        format!("/contact-lists/x/contacts/{contact}"),
    ] {
        app.api.delete(&path).await.error(404, "ERR_API_NOT_FOUND");
    }
    assert_eq!(members(&app, one).await, [0; 0]);
    assert_eq!(shown(&app, one).await["contactsCount"], 0);
    app.stop().await;
}

#[actix_web::test]
async fn thousands_of_contacts_with_a_tag_are_put_into_a_list_by_one_call() {
    const CONTACTS: i64 = 6_000;
    let app = OwnApp::start().await;
    let tag = id(app.api.post("/tags", json!({"name": "All"})).await.data(201));
    let made = "with made as (
            insert into contacts (company_id, name) select $1, 'Contact ' || k from generate_series(1, $3) k returning id)
        insert into contact_tags (company_id, contact_id, tag_id) select $1, id, $2 from made";
    let made = sqlx::query(made).bind(app.company.id).bind(tag).bind(CONTACTS);
    made.execute(&app.db).await.expect("contacts");
    let everybody = create_list(&app, "Everybody").await;
    let began = Instant::now();
    assert_eq!(
        add_contacts(&app, everybody, json!({"tagId": tag})).await,
        json!({"added": CONTACTS, "alreadyThere": 0})
    );
    println!("{CONTACTS} contacts were put into a list within {:?}", began.elapsed());
    assert_eq!(
        add_contacts(&app, everybody, json!({"tagId": tag})).await,
        json!({"added": 0, "alreadyThere": CONTACTS})
    );
    assert_eq!(shown(&app, everybody).await["contactsCount"], CONTACTS);
    let page = app.api.get(&format!("/contact-lists/{everybody}/contacts?perPage=2&order=desc")).await;
    assert_eq!((page.data(200).as_array().map(Vec::len), &page.body["meta"]["hasMore"]), (Some(2), &json!(true)));
    app.stop().await;
}

/// How many contacts each large list has.
const MANY: i64 = 40_000;

/// The most contacts that one statement takes out of a list.
const TAKEN_OUT_MAX: i64 = 5_000;

/// Fills a list without creating its contacts, which would take much longer.
async fn fill(app: &TestApp, list: i64) {
    let mut connection = app.db.acquire().await.expect("a connection");
    for statement in [
        "set session_replication_role = replica".to_owned(),
        format!(
            "insert into contact_list_contacts select {}, {list}, k from generate_series(1, {MANY}) k",
            app.company.id
        ),
        "reset session_replication_role".to_owned(),
    ] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut *connection).await.expect("filled");
    }
}

async fn count_members(app: &TestApp, list: i64) -> i64 {
    let count = sqlx::query_scalar("select count(*) from contact_list_contacts where contact_list_id = $1");
    count.bind(list).fetch_one(&app.db).await.expect("count")
}

#[actix_web::test]
async fn a_large_list_is_gone_at_once_and_emptied_in_small_steps_across_a_restart_but_not_in_a_closed_company() {
    let app = OwnApp::start().await;
    let db = &app.db;
    sqlx::raw_sql(
        "create table steps (contacts bigint);
         create function note_step() returns trigger language plpgsql as $$
         begin insert into steps select count(*) from gone; return null; end $$;
         create trigger note_step after delete on contact_list_contacts
             referencing old table as gone for each statement execute function note_step()",
    )
    .execute(db)
    .await
    .expect("steps are noted");
    let (first, second, kept) =
        (create_list(&app, "First").await, create_list(&app, "Second").await, create_list(&app, "Kept").await);
    let contact = app.contact("5511900000001").await;
    add_contacts(&app, kept, json!({"contactIds": [contact]})).await;
    fill(&app, first).await;
    fill(&app, second).await;

    // While the company is closed (no work on it may begin), its deleted lists are not emptied.
    let log = &app.service.app.engine.store().log;
    let closed = log.ownership().close(app.company.id).await.expect("no request is under way");
    sqlx::query("delete from contact_lists where id = $1").bind(first).execute(db).await.expect("deleted elsewhere");
    let (other, their_api) = app.another_company().await;
    let theirs = id(their_api.post("/contact-lists", json!({"name": "Theirs"})).await.data(201));
    their_api.delete(&format!("/contact-lists/{theirs}")).await;
    let count_removals = async |company: i64| -> i64 {
        let count = sqlx::query_scalar("select count(*) from removals where company_id = $1");
        count.bind(company).fetch_one(db).await.expect("count")
    };
    eventually("another company's list is emptied", || async { count_removals(other.id.0).await == 0 }).await;
    assert_eq!(
        (count_members(&app, first).await, count_removals(app.company.id.0).await),
        (MANY, 1),
        "a list of a closed company was emptied"
    );
    drop(closed);

    assert_eq!(app.api.delete(&format!("/contact-lists/{second}")).await.status.as_u16(), 204);
    assert_eq!(listed(&app.api, "/contact-lists").await, [kept]);
    // What is left when the service stops is removed after its next start.
    let app = restarted(app).await;
    eventually("both are empty", || async {
        count_members(&app, first).await + count_members(&app, second).await == 0
    })
    .await;
    let steps: (i64, i64) = sqlx::query_as("select max(contacts), sum(contacts)::bigint from steps")
        .fetch_one(&app.db)
        .await
        .expect("steps");
    assert_eq!(steps, (TAKEN_OUT_MAX, 2 * MANY));
    eventually("nothing is left to do", || async {
        let count = sqlx::query_scalar("select count(*) from removals").fetch_one(&app.db);
        let count: i64 = count.await.expect("count");
        count == 0
    })
    .await;
    assert_eq!(members(&app, kept).await, [contact.0]);
    app.stop().await;
}
