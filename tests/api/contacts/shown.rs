//! Contacts as they are shown and found.

use serde_json::{Value, json};

use super::identities;
use crate::check_list::check_list;
use crate::steps::{NOBODY, assert_timestamp, id, listed, sent, sql};
use crate::support::{OwnApp, TestApp};

async fn insert_contact(
    app: &TestApp,
    name: &str,
    number: Option<&str>,
    email: Option<&str>,
    code: Option<&str>,
) -> i64 {
    sqlx::query_scalar(
        "insert into contacts (company_id, name, number, email, code) values ($1, $2, $3, $4, $5) returning id",
    )
    .bind(app.company.id)
    .bind(name)
    .bind(number)
    .bind(email)
    .bind(code)
    .fetch_one(&app.db)
    .await
    .expect("contact")
}

async fn apply_new_tag(app: &TestApp, contact: i64, name: &str) -> i64 {
    let tag: i64 =
        sqlx::query_scalar("insert into tags (company_id, name, color) values ($1, $2, '#ff0000') returning id")
            .bind(app.company.id)
            .bind(name)
            .fetch_one(&app.db)
            .await
            .expect("tag");
    sqlx::query("insert into contact_tags (company_id, contact_id, tag_id) values ($1, $2, $3)")
        .bind(app.company.id)
        .bind(contact)
        .bind(tag)
        .execute(&app.db)
        .await
        .expect("tagged");
    tag
}

#[actix_web::test]
async fn a_contact_shows_all_its_fields() {
    let app = TestApp::shared().await;
    let ana = insert_contact(&app, "Ana", Some("5511900000001"), Some("ana@example.com"), Some("C-1")).await;
    sql(
        &app,
        "update contacts set number_country = 'BR', origin = 'import', is_group = true, gclid = 'g' where id = $1",
        ana,
    )
    .await;
    let tag = apply_new_tag(&app, ana, "Customer").await;
    let field: i64 = sqlx::query_scalar(
        "insert into custom_fields (company_id, key, name, application, type, position)
         values ($1, 'shoe_size', 'Shoe size', 'contact', 'number', 1) returning id",
    )
    .bind(app.company.id)
    .fetch_one(&app.db)
    .await
    .expect("field");
    sqlx::query("insert into contact_custom_field_values values ($1, $2, $3, '42.5')")
        .bind(app.company.id)
        .bind(ana)
        .bind(field)
        .execute(&app.db)
        .await
        .expect("value");
    sent(&app.api, json!({"channelId": app.company.phone, "contactId": ana, "type": "text", "body": "x"})).await;

    let reply = app.api.get(&format!("/contacts/{ana}")).await;
    let shown = reply.data(200);
    assert_timestamp(&shown["createdAt"]);
    assert_timestamp(&shown["updatedAt"]);
    assert_eq!(
        shown,
        &json!({
            "id": ana, "name": "Ana", "number": "5511900000001", "numberCountry": "BR", "email": "ana@example.com",
            "code": "C-1", "cpfCnpj": null, "origin": "import", "profilePicUrl": null, "isGroup": true,
            "socialUsername": null, "lid": null, "sourceUrl": null, "sourceId": null, "headline": null,
            "mediaType": null, "mediaUrl": null, "utmSource": null, "utmMedium": null, "utmCampaign": null,
            "utmId": null, "fbclid": null, "gclid": "g", "ctwaClid": null, "verified": false, "marketingOptOut": false,
            "tags": [{"id": tag, "name": "Customer", "color": "#ff0000"}],
            "customFields": [
                {"key": "shoe_size", "value": "42.5", "customFieldId": field, "name": "Shoe size", "type": "number"},
            ],
            "lastChannel": {"id": app.company.phone, "name": "Phone", "type": "whatsapp"},
            "identities": identities(&json!("5511900000001")), "mergeSuggestions": [],
            "createdAt": shown["createdAt"], "updatedAt": shown["updatedAt"],
        })
    );
    assert_eq!(app.api.all("/contacts").await, std::slice::from_ref(shown));

    let bare = insert_contact(&app, "Bare", None, None, None).await;
    let bare = app.api.get(&format!("/contacts/{bare}")).await;
    let bare = bare.data(200);
    assert_eq!((&bare["tags"], &bare["customFields"], &bare["lastChannel"]), (&json!([]), &json!([]), &Value::Null));
    app.stop().await;
}

#[actix_web::test]
async fn every_filter_finds_its_contacts_and_no_others() {
    let app = TestApp::shared().await;
    let (other, other_api) = app.another_company().await;
    sent(&other_api, json!({"channelId": other.phone, "number": "5511900000001", "type": "text", "body": "x"})).await;

    let ana = insert_contact(&app, "Ana", Some("5511900000001"), Some("Ana@Example.com"), Some("C-1")).await;
    let ben = insert_contact(&app, "Ben", Some("5511900000002"), None, None).await;
    let group = insert_contact(&app, "Group", None, Some("group@example.com"), None).await;
    let eva = insert_contact(&app, "Eva", None, None, None).await;
    sql(&app, "update contacts set is_group = true where id = $1", group).await;
    sql(&app, "update contacts set origin = 'import' where id = $1", eva).await;
    let customer = apply_new_tag(&app, ben, "Customer").await;
    sent(&app.api, json!({"channelId": app.company.phone, "contactId": ben, "type": "text", "body": "x"})).await;

    for (query, expected) in [
        (String::new(), vec![ana, ben, group, eva]),
        ("number=5511900000001".to_owned(), vec![ana]),
        ("number=%2B55%20(11)%2090000-0001".to_owned(), vec![ana]),
        ("number=551190000000".to_owned(), vec![]),
        ("email=ana@example.COM".to_owned(), vec![ana]),
        ("email=na@example.com".to_owned(), vec![]),
        (format!("tagId={customer}"), vec![ben]),
        (format!("channelId={}", app.company.phone), vec![ben]),
        (format!("channelId={}", app.company.webchat), vec![]),
        ("origin=import".to_owned(), vec![eva]),
        ("isGroup=true".to_owned(), vec![group]),
        ("isGroup=false".to_owned(), vec![ana, ben, eva]),
        (format!("tagId={customer}&isGroup=true"), vec![]),
    ] {
        assert_eq!(listed(&app.api, &format!("/contacts?{query}")).await, expected, "{query}");
    }
    check_list(&app, "/contacts", &[ana, ben, group, eva], &["created", "updated"]).await;
    check_list(&app, "/contacts?isGroup=false", &[ana, ben, eva], &["created", "updated"]).await;
    check_list(&app, "/contacts?search=%C3%89", &[ana, ben, group, eva], &["created", "updated"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_search_looks_at_name_number_email_and_code() {
    let app = TestApp::shared().await;
    let jose = insert_contact(&app, "José Ção", Some("5511900000001"), Some("zeze@example.com"), Some("X_1%")).await;
    let ana = insert_contact(&app, "Ana", Some("5511900000002"), None, Some("x-2")).await;
    let strasse = insert_contact(&app, "Straße Øre", None, Some("ÉVA@example.com"), None).await;
    let find = async |text: &str| {
        let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        listed(&app.api, &format!("/contacts?search={encoded}")).await
    };
    for (text, expected) in [
        ("JOSE", vec![jose]),
        ("josé", vec![jose]),
        ("cao", vec![jose]),
        ("0000002", vec![ana]),
        ("example", vec![jose, strasse]),
        ("eva@", vec![strasse]),
        ("X", vec![jose, ana, strasse]),
        ("x_", vec![jose]),
        ("1%", vec![jose]),
        ("%", vec![jose]),
        ("_", vec![jose]),
        ("x-", vec![ana]),
        ("ore", vec![strasse]),
        ("'; drop table contacts; --", vec![]),
        ("", vec![jose, ana, strasse]),
    ] {
        assert_eq!(find(text).await, expected, "{text}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_name_is_shown_as_it_was_written_and_found_in_every_spelling() {
    let app = TestApp::shared().await;
    let name = "Jose\u{301} Lima";
    let created = app.api.post("/contacts", json!({"name": format!(" {name}\u{200b}")})).await.data(201).clone();
    assert_eq!(created["name"], name);
    for search in ["jose", "JOS\u{c9}", name] {
        let encoded: String = form_urlencoded::byte_serialize(search.as_bytes()).collect();
        assert_eq!(listed(&app.api, &format!("/contacts?search={encoded}")).await, [id(&created)], "{search}");
    }
    app.stop().await;
}

/// Enough contacts for pages far down the list, and for a channel that many have used.
const CONTACTS: i64 = 30_000;

#[actix_web::test]
async fn every_page_of_a_search_is_right_whether_many_or_few_contacts_match() {
    let app = OwnApp::start().await;
    let (other, _) = app.another_company().await;
    // Ids of two companies are mixed, a block of them is missing, and the newest contacts never used the channel.
    for statement in [
        "insert into contacts (company_id, name, origin, created_at, updated_at)
         select case when n % 4 = 0 then $2 else $1 end,
             'Everybody' || case when n % 2 = 0 then ' Half' else '' end || case when n % 50 = 0 then ' Seldom' else '' end
                 || case when n <= 1500 then ' Early' else '' end,
             (array['site', 'shop'])[1 + n % 2], '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 minute', now()
         from generate_series(1, $3) n",
        "insert into contact_last_channels (company_id, contact_id, channel_id, at)
         select company_id, id, (select min(id) from channels where company_id = $1), now()
         from contacts where company_id = $1 and id % 3 > 0 and id <= $3 - 4000 and $2::bigint is not null",
        "delete from contacts where (company_id = $1 or company_id = $2) and id between 3000 and 6000 and $3::bigint > 0",
    ] {
        let rows = sqlx::query(statement).bind(app.company.id).bind(other.id).bind(CONTACTS);
        rows.execute(&app.db).await.expect("rows");
    }
    let channel: i64 = sqlx::query_scalar("select min(id) from channels where company_id = $1")
        .bind(app.company.id)
        .fetch_one(&app.db)
        .await
        .expect("a channel");
    let on_channel = format!("id % 3 > 0 and id <= {}", CONTACTS - 4000);
    for (query, condition) in [
        ("search=everybody".to_owned(), "true".to_owned()),
        ("search=half".to_owned(), "name like '% Half%'".to_owned()),
        ("search=every+half&origin=site".to_owned(), "name like '% Half%' and origin = 'site'".to_owned()),
        ("search=every&createdFrom=2026-01-05T00:00:00Z".to_owned(), "created_at >= '2026-01-05T00:00:00Z'".to_owned()),
        (
            "search=half&createdTo=2026-01-12T00:00:00Z".to_owned(),
            "name like '% Half%' and created_at <= '2026-01-12T00:00:00Z'".to_owned(),
        ),
        ("search=seldom".to_owned(), "name like '% Seldom%'".to_owned()),
        ("search=early".to_owned(), "name like '% Early%'".to_owned()),
        (format!("search=everybody&channelId={channel}"), on_channel.clone()),
        (format!("search=half&channelId={channel}&origin=site"), format!("name like '% Half%' and {on_channel}")),
        (format!("search=early&channelId={channel}"), format!("name like '% Early%' and {on_channel}")),
        (
            format!("channelId={channel}&createdFrom=2026-01-05T00:00:00Z"),
            format!("created_at >= '2026-01-05T00:00:00Z' and {on_channel}"),
        ),
        (
            format!("channelId={channel}&updatedFrom=2026-01-01T00:00:00Z&origin=shop"),
            format!("origin = 'shop' and {on_channel}"),
        ),
        (format!("search=half&isGroup=false&channelId={channel}"), format!("name like '% Half%' and {on_channel}")),
        (
            format!("channelId={channel}&createdTo=2026-01-02T00:00:00Z"),
            format!("created_at <= '2026-01-02T00:00:00Z' and {on_channel}"),
        ),
    ] {
        for order in ["asc", "desc"] {
            let expected: Vec<i64> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
                "select id from contacts where company_id = $1 and {condition} order by id {order}"
            )))
            .bind(app.company.id)
            .fetch_all(&app.db)
            .await
            .expect("contacts");
            // The last pages lie beyond the rows that are searched in the order of the list.
            for (size, page) in [(13, 1), (100, 12), (100, 25), (100, 60), (7, 400), (100, 150), (100, 170)] {
                let path = format!("/contacts?{query}&order={order}&perPage={size}&page={page}");
                let reply = app.api.get_while_busy(&path).await;
                let found = reply.data(200).as_array().expect("a list");
                let found: Vec<i64> = found.iter().map(|contact| contact["id"].as_i64().expect("an id")).collect();
                let begin = expected.len().min((page - 1) * size);
                assert_eq!(found, expected[begin..expected.len().min(begin + size)], "{path}");
                assert_eq!(reply.body["meta"]["hasMore"], json!(expected.len() > begin + size), "{path}");
            }
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_of_another_company_looks_like_one_that_does_not_exist() {
    let app = TestApp::shared().await;
    let (other, other_api) = app.another_company().await;
    let theirs =
        sent(&other_api, json!({"channelId": other.phone, "number": "5511900000001", "type": "text", "body": "x"}))
            .await;
    let not_found = app.api.get(&format!("/contacts/{NOBODY}")).await;
    not_found.error(404, "ERR_API_NOT_FOUND");
    let foreign = app.api.get(&format!("/contacts/{}", theirs["contactId"])).await;
    assert_eq!((foreign.status, foreign.body), (not_found.status, not_found.body));
    assert_eq!(listed(&app.api, "/contacts").await, [0; 0]);
    assert_eq!(id(other_api.get(&format!("/contacts/{}", theirs["contactId"])).await.data(200)), theirs["contactId"]);
    app.stop().await;
}
