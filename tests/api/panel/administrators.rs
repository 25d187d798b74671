//! What administrators do: companies, channels, profiles and people.

use hotline::openapi::Access;
use hotline::web::response::schema::Schemas;
use hotline_persistence::tables::channels::{self, CHANNELS_MAX, ChannelSettings, ChannelType, NewChannel, Secret};
use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::{assert_timestamp, id};
use crate::support::process::keys_of;
use crate::support::{OwnApp, PASSWORD, Person, Reply, TestApp, empty_folder};

/// Ana, signed in, with the company's profile Administrator.
async fn administrator(app: &TestApp) -> Person {
    give_ana_profile(app, "Administrator").await;
    Person::user(app, app.company.ana, "ana@example.com").await
}

/// Gives Ana the profile with this name; returns its id.
async fn give_ana_profile(app: &TestApp, profile: &str) -> i64 {
    Person::give_profile(app, app.company.ana, profile).await
}

#[actix_web::test]
async fn a_supervisor_is_refused_every_operation_of_administrators() {
    let app = OwnApp::start().await;
    give_ana_profile(&app, "Supervisor").await;
    let supervisor = Person::user(&app, app.company.ana, "ana@example.com").await;
    let mut refused = 0;
    for operation in hotline::routes::panel_operations(&mut Schemas::new()) {
        let tag = operation.tag.unwrap_or_default();
        let is_for_everyone = ["", "session", "links", "account"].contains(&tag) || operation.id == "getOwnCompany";
        if is_for_everyone || operation.access != Access::Person {
            continue;
        }
        let parts = operation.path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
        let path = parts.collect::<Vec<&str>>().join("/");
        let method = Method::from_bytes(operation.method.as_bytes()).expect("a method");
        let body = json!({"name": "x", "permissions": {"tags": ["GET"]}, "type": "webchat"});
        Reply::of(supervisor.request(method, &path).json(&body)).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
        refused += 1;
    }
    assert!(refused >= 25, "{refused}");
    // A company's administrator does not administer the installation.
    let ana = administrator(&app).await;
    for path in ["/companies", "/companies/1", "/installation/figures", "/installation/audit-log"] {
        ana.get(path).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    }
    app.stop().await;
}

#[actix_web::test]
async fn administrators_of_the_installation_create_and_change_companies() {
    let app = OwnApp::start().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let body =
        json!({"name": " Café Ltd ", "ratePerMinute": 30, "timeZone": "America/Sao_Paulo", "stopWords": ["Párar"]});
    let made = admin.post("/companies", body).await;
    let company = made.data(201).clone();
    assert_timestamp(&company["createdAt"]);
    assert_eq!(
        company,
        json!({"id": company["id"], "name": "Café Ltd", "active": true, "apiEnabled": true, "ratePerMinute": 30,
            "timeZone": "America/Sao_Paulo", "stopWords": ["parar"], "secondFactorRequired": false,
            "createdAt": company["createdAt"], "updatedAt": company["updatedAt"]})
    );
    let path = format!("/companies/{}", company["id"]);
    assert_eq!(admin.get(&path).await.data(200), &company);
    // The company is there at once, with its profiles.
    let in_company = admin.in_company(hotline_persistence::CompanyId::new(id(&company)));
    assert_eq!(in_company.get("/profiles").await.data(200).as_array().map(Vec::len), Some(3));
    assert_eq!(in_company.get("/company").await.data(200), &company);
    let listed = |query: &'static str| {
        let admin = admin.clone();
        async move { admin.get(&format!("/companies{query}")).await }
    };
    assert_eq!(listed("").await.data(200).as_array().map(Vec::len), Some(2));
    let page = listed("?perPage=1&order=desc").await;
    assert_eq!((&page.data(200)[0]["id"], &page.body["meta"]["hasMore"]), (&company["id"], &json!(true)));
    assert_eq!(listed("?search=CAFE").await.data(200)[0]["id"], company["id"]);
    assert_eq!(listed("?search=nobody").await.data(200), &json!([]));
    assert_eq!(listed("?active=false").await.data(200), &json!([]));
    assert_eq!(listed("?page=1000000000").await.data(200), &json!([]));

    let changed =
        admin.put(&path, json!({"ratePerMinute": null, "apiEnabled": false, "name": "Café", "active": false})).await;
    let values =
        ["ratePerMinute", "apiEnabled", "name", "active", "timeZone"].map(|field| changed.data(200)[field].clone());
    assert_eq!(json!(values), json!([null, false, "Café", false, "America/Sao_Paulo"]));
    assert_eq!(listed("?active=false").await.data(200)[0]["id"], company["id"]);
    in_company.get("/company").await.error(403, "ERR_API_COMPANY_INACTIVE");
    for (body, fields) in [
        (json!({}), &["name"][..]),
        (json!({"name": "x", "timeZone": "Mars", "ratePerMinute": -1}), &["timeZone", "ratePerMinute"]),
        (json!({"name": "x", "stopWords": [" ", "ok"]}), &["stopWords[0]"]),
    ] {
        assert_eq!(admin.post("/companies", body).await.invalid_fields(), fields);
    }
    assert_eq!(admin.put(&path, json!({"active": null})).await.invalid_fields(), ["active"]);
    admin.get("/companies/999").await.error(404, "ERR_API_NOT_FOUND");
    admin.put("/companies/999", json!({"name": "x"})).await.error(404, "ERR_API_NOT_FOUND");

    // A company's administrator changes the company's own settings.
    let ana = administrator(&app).await;
    let own =
        ana.put("/company", json!({"timeZone": "Europe/Lisbon", "apiEnabled": false, "stopWords": ["stop"]})).await;
    assert_eq!((&own.data(200)["timeZone"], &own.data(200)["apiEnabled"]), (&json!("Europe/Lisbon"), &json!(true)));
    let refused = ana.put("/company", json!({"secondFactorRequired": true})).await;
    assert_eq!(refused.invalid_fields(), ["secondFactorRequired"]);

    let figures = admin.get("/installation/figures").await;
    let figures = figures.data(200)["figures"].as_array().expect("figures").clone();
    let requests = figures.iter().find(|figure| figure["name"] == "hotline_http_requests_total").expect("the requests");
    assert_eq!(requests["kind"], "counter");
    let creations =
        requests["samples"].as_array().expect("samples").iter().find(|sample| {
            sample["labels"]["route"] == "/panel/api/v1/companies" && sample["labels"]["status"] == "201"
        });
    assert_eq!(creations.expect("the created companies")["value"], json!(1.0));
    app.stop().await;
}

#[actix_web::test]
async fn an_update_of_a_company_with_its_current_values_moves_no_updated_at() {
    let app = OwnApp::start().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let ana = administrator(&app).await;
    let body = json!({"name": "Acme", "ratePerMinute": 30, "timeZone": "Europe/Lisbon", "stopWords": ["stop"]});
    let made = admin.post("/companies", body).await.data(201).clone();
    assert_eq!(made["updatedAt"], made["createdAt"]);
    let path = format!("/companies/{}", made["id"]);
    for (person, path) in [(&admin, path.as_str()), (&ana, "/company")] {
        let mut shown = person.get(path).await.data(200).clone();
        for body in [json!({}), shown.clone(), json!({"stopWords": shown["stopWords"]}), shown.clone()] {
            assert_eq!(person.put(path, body.clone()).await.data(200), &shown, "{path}: {body}");
        }
        for change in
            [json!({"name": "Other"}), json!({"stopWords": ["stop", "halt"]}), json!({"timeZone": "America/Lima"})]
        {
            let changed = person.put(path, change.clone()).await.data(200).clone();
            let (before, after) = (shown["updatedAt"].as_str(), changed["updatedAt"].as_str());
            assert!(after > before, "{path}: {change} leaves {before:?}");
            shown = changed;
        }
    }
    let unlimited = admin.put(&path, json!({"ratePerMinute": null})).await.data(200).clone();
    assert_eq!(unlimited["ratePerMinute"], Value::Null);
    assert_eq!(admin.put(&path, json!({"ratePerMinute": null})).await.data(200), &unlimited);
    app.stop().await;
}

#[actix_web::test]
async fn lists_of_the_panel_are_filtered_by_time_and_by_each_word() {
    let app = OwnApp::start().await;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let in_company = admin.in_company(app.company.id);
    let company = admin.post("/companies", json!({"name": "Northern Café Ltd"})).await.data(201)["id"].clone();
    let token = json!({"name": "Northern Shop", "permissions": {"tags": ["GET"]}});
    let token = in_company.post("/tokens", token).await.data(201)["token"]["id"].clone();
    for (person, path, spans) in [
        (&admin, "/companies", &["created", "updated"][..]),
        (&in_company, "/tokens", &["created", "updated"]),
        (&admin, "/account/sessions", &["created"]),
    ] {
        let row = person.get(path).await.data(200)[0].clone();
        for span in spans {
            let listed = async |query: String| person.get(&format!("{path}?{query}")).await.data(200).clone();
            let time = row[format!("{span}At")].as_str().expect("a time");
            for empty in [format!("{span}From=2999-01-01T00:00:00Z"), format!("{span}To=2000-01-01T00:00:00Z")] {
                assert_eq!(listed(empty.clone()).await, json!([]), "{path}: {empty}");
            }
            let found = listed(format!("{span}From={time}&{span}To={time}")).await;
            let is_found = found.as_array().expect("rows").iter().any(|other| other["id"] == row["id"]);
            assert!(is_found, "{path}: {span}: {found}");
            let refused = person.get(&format!("{path}?{span}From=yesterday")).await;
            assert_eq!(refused.invalid_fields(), [format!("{span}From")], "{path}");
        }
    }
    for (person, path, id) in [
        (&admin, "/companies?search=ltd%20CAFE%20northern", company),
        (&in_company, "/tokens?search=shop%20northern", token),
    ] {
        let found = person.get(path).await.data(200).clone();
        assert_eq!(found.as_array().map(Vec::len), Some(1), "{path}: {found}");
        assert_eq!(found[0]["id"], id, "{path}");
    }
    assert_eq!(admin.get("/companies?search=northern%20southern").await.data(200), &json!([]));
    app.stop().await;
}

#[actix_web::test]
async fn channels_are_set_up_and_their_secrets_are_never_shown() {
    let app = OwnApp::start().await;
    let (other, _) = app.another_company().await;
    let ana = administrator(&app).await;
    let body = json!({"type": "whatsapp", "name": "Phone 2", "number": "+55 11 98765-4321", "phoneNumberId": "106",
        "accessToken": "hidden-one", "queueId": app.company.support});
    let made = ana.post("/channels", body).await;
    let channel = made.data(201).clone();
    let key = channel["publicKey"].as_str().expect("a key").to_owned();
    let base = format!("http://{}", app.address);
    assert_eq!(
        channel,
        json!({"id": channel["id"], "name": "Phone 2", "type": "whatsapp", "status": "disconnected", "lastError": null,
            "quality": null, "messagingLimit": null, "number": "5511987654321", "queue": {"id": app.company.support, "name": "Support"}, "publicKey": key,
            "embed": null, "hookUrl": format!("{base}/hooks/{key}"),
            "settings": {"phoneNumberId": "106", "businessAccountId": null, "pageId": null, "providerUrl": null,
                "sendsPerSecond": null, "recipientIntervalMs": null, "recipientBurst": null, "allowedOrigins": [],
                "color": null, "title": null, "greeting": null, "position": null, "preChatFields": [], "requireIdentity": false},
            "secrets": {"accessToken": true, "appSecret": false, "verifyToken": false, "identitySecrets": 0},
            "createdAt": channel["createdAt"], "updatedAt": channel["createdAt"]})
    );
    let path = format!("/channels/{}/setup", channel["id"]);
    let changed =
        ana.put(&path, json!({"appSecret": "hidden-two", "verifyToken": "hidden-three", "sendsPerSecond": 20})).await;
    assert_eq!(
        (&changed.data(200)["status"], &changed.data(200)["settings"]["sendsPerSecond"]),
        (&json!("connected"), &json!(20))
    );
    assert_eq!(changed.data(200)["secrets"]["verifyToken"], true);
    assert!(!changed.body.to_string().contains("hidden"));
    let stored: i64 = sqlx::query_scalar("select count(*) from channels where strpos(settings::text, 'hidden') > 0")
        .fetch_one(&app.db)
        .await
        .expect("a count");
    assert_eq!(stored, 0);
    // An error stays until the token is renewed.
    sqlx::query("update channels set status = 'error', last_error = 'expired' where id = $1")
        .bind(id(&channel))
        .execute(&app.db)
        .await
        .expect("a change");
    assert_eq!(ana.put(&path, json!({"appSecret": "hidden-four"})).await.data(200)["status"], "error");
    let renewed = ana.put(&path, json!({"accessToken": "hidden-five"})).await;
    assert_eq!((&renewed.data(200)["status"], &renewed.data(200)["lastError"]), (&json!("connected"), &Value::Null));
    assert_eq!(ana.put(&path, json!({"verifyToken": null, "queueId": null})).await.data(200)["status"], "disconnected");

    let site = json!({"type": "webchat", "name": "Site", "allowedOrigins": ["https://Shop.example/", "https://shop.example"],
        "color": "#0F766e", "title": "Acme", "greeting": "Hi", "position": "left", "preChatFields": ["name", "name"], "requireIdentity": true});
    let site = ana.post("/channels", site).await;
    let settings = &site.data(201)["settings"];
    assert_eq!(
        (
            &settings["allowedOrigins"],
            &settings["color"],
            &settings["position"],
            &settings["preChatFields"],
            &settings["requireIdentity"]
        ),
        (&json!(["https://shop.example"]), &json!("#0f766e"), &json!("left"), &json!(["name"]), &json!(true))
    );
    let key = site.data(201)["publicKey"].as_str().expect("a key");
    assert_eq!(site.data(201)["embed"], format!(r#"<script src="{base}/webchat/{key}/widget.js" async></script>"#));
    // The widget is served at once.
    let widget = app.api.anonymous(Method::GET, &format!("/webchat/{key}/widget.js")).send().await.expect("an answer");
    assert!(
        widget.status() == 200 && !widget.text().await.expect("a script").contains("no webchat has the public key")
    );
    let site_path = format!("/channels/{}", site.data(201)["id"]);
    let first = ana.post(&format!("{site_path}/identity-secret"), json!({})).await;
    let second = ana.post(&format!("{site_path}/identity-secret"), json!({})).await;
    assert!(first.data(200)["identitySecret"].as_str().is_some_and(|secret| secret.starts_with("ids_")));
    assert_eq!(second.data(200)["identitySecrets"], 2);
    let third = ana.post(&format!("{site_path}/identity-secret"), json!({"revokePrevious": true})).await;
    assert_eq!(third.data(200)["identitySecrets"], 1);
    ana.post(&format!("/channels/{}/identity-secret", channel["id"]), json!({})).await.error(409, "ERR_API_CONFLICT");

    for (body, fields) in [
        (json!({}), &["type", "name"][..]),
        (json!({"type": "sms", "name": "x"}), &["type"]),
        (json!({"type": "webchat", "name": "x", "accessToken": "y", "pageId": "7"}), &["pageId", "accessToken"]),
        (
            json!({"type": "messenger", "name": "x", "pageId": "a b", "providerUrl": "x", "recipientBurst": 0}),
            &["pageId", "providerUrl", "recipientBurst"],
        ),
        (
            json!({"type": "webchat", "name": "x", "allowedOrigins": ["*"], "color": "red", "position": "top"}),
            &["allowedOrigins[0]", "color", "position"],
        ),
    ] {
        assert_eq!(ana.post("/channels", body).await.invalid_fields(), fields);
    }
    assert_eq!(ana.put(&format!("{site_path}/setup"), json!({"appSecret": "x"})).await.invalid_fields(), ["appSecret"]);
    ana.post("/channels", json!({"type": "webchat", "name": "x", "queueId": other.support}))
        .await
        .error(404, "ERR_API_NOT_FOUND");
    for (method, end) in [(Method::GET, "setup"), (Method::PUT, "setup"), (Method::POST, "identity-secret")] {
        let theirs = format!("/channels/{}/{end}", other.webchat);
        Reply::of(ana.request(method, &theirs).json(&json!({"name": "x"}))).await.error(404, "ERR_API_NOT_FOUND");
    }
    app.stop().await;
}

#[actix_web::test]
async fn the_number_of_a_companys_channels_is_limited() {
    let app = OwnApp::start().await;
    let ana = administrator(&app).await;
    let fill = "insert into channels (company_id, name, type, status, public_key)
         select $1, 'Site ' || number, 'webchat', 'connected', 'ch_' || number from generate_series(1, $2) number";
    let count = "select count(*) from channels where company_id = $1";
    let existing: i64 = sqlx::query_scalar(count).bind(app.company.id).fetch_one(&app.db).await.expect("a count");
    sqlx::query(fill).bind(app.company.id).bind(CHANNELS_MAX - 1 - existing).execute(&app.db).await.expect("channels");
    let last = ana.post("/channels", json!({"type": "webchat", "name": "Last"})).await.data(201).clone();
    let refused = ana.post("/channels", json!({"type": "webchat", "name": "More"})).await;
    let details = refused.error(409, "ERR_API_CONFLICT");
    assert_eq!((&details["reason"], &details["by"]), (&json!("limit"), &json!([{"type": "channel", "count": 1000}])));
    // Those that exist can still be changed.
    ana.put(&format!("/channels/{}/setup", last["id"]), json!({"name": "Changed"})).await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn a_channel_of_another_company_is_neither_locked_nor_opened() {
    let app = OwnApp::start().await;
    let ana = administrator(&app).await;
    let (other, _) = app.another_company().await;
    // The service does not have the key of this channel's secret.
    let folder = empty_folder();
    let settings = ChannelSettings { access_token: Some(Secret("hidden".to_owned())), ..ChannelSettings::default() };
    let new = NewChannel { name: "Phone 2", kind: ChannelType::Whatsapp, number: None, queue_id: None, settings };
    let sealed = channels::insert(&app.db, &keys_of(folder.path()), other.id, new).await.expect("a channel").id;
    // Another transaction has locked this channel.
    let mut holder = app.db.begin().await.expect("a transaction");
    let lock = sqlx::query("select from channels where company_id = $1 and id = $2 for update");
    lock.bind(other.id).bind(other.webchat).execute(&mut *holder).await.expect("a lock");
    for channel in [sealed, other.webchat] {
        for (method, end) in [(Method::PUT, "setup"), (Method::POST, "identity-secret")] {
            let theirs = format!("/channels/{channel}/{end}");
            Reply::of(ana.request(method, &theirs).json(&json!({"name": "x"}))).await.error(404, "ERR_API_NOT_FOUND");
        }
    }
    holder.rollback().await.expect("a rollback");
    app.stop().await;
}

#[actix_web::test]
async fn profiles_are_changed_and_one_always_administers() {
    let app = OwnApp::start().await;
    let ana = administrator(&app).await;
    let made = ana
        .post("/profiles", json!({"name": "Night", "permissions": {"tickets": ["GET"]}, "seesAllCards": true}))
        .await;
    let profile = made.data(201).clone();
    assert_eq!(
        profile,
        json!({"id": profile["id"], "name": "Night", "permissions": {"tickets": ["GET"]}, "seesAllCards": true, "administers": false,
            "users": 0, "createdAt": profile["createdAt"], "updatedAt": profile["createdAt"]})
    );
    let path = format!("/profiles/{}", profile["id"]);
    assert_eq!(ana.get(&format!("{path}/setup")).await.data(200), &profile);
    assert_eq!(ana.get(&path).await.data(200).get("administers"), None, "the public API shows `administers`");
    let taken = ana.post("/profiles", json!({"name": "Night", "permissions": {}})).await;
    assert_eq!(taken.error(409, "ERR_API_CONFLICT"), &json!({"field": "name", "id": profile["id"]}));
    assert_eq!(
        ana.post("/profiles", json!({"permissions": {"x": []}})).await.invalid_fields(),
        ["name", "permissions"]
    );

    // A change of a profile's permissions applies from the next request on.
    app.api.put(&format!("/users/{}", app.company.ben), json!({"profileId": profile["id"]})).await.data(200);
    let ben = Person::user(&app, app.company.ben, "ben@example.com").await;
    ben.get("/tags").await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    let changed = ana.put(&path, json!({"permissions": {"tags": ["GET"]}, "name": "Day"})).await;
    assert_eq!((&changed.data(200)["users"], &changed.data(200)["name"]), (&json!(1), &json!("Day")));
    ben.get("/tags").await.data(200);
    ben.get("/tickets").await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    let refused = ana.delete(&path).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["by"], json!([{"type": "user", "count": 1}]));
    app.api.put(&format!("/users/{}", app.company.ben), json!({"profileId": null})).await.data(200);
    assert_eq!(ana.delete(&path).await.status, 204);
    ana.delete(&path).await.error(404, "ERR_API_NOT_FOUND");

    let own = give_ana_profile(&app, "Administrator").await;
    let last = ana.put(&format!("/profiles/{own}"), json!({"administers": false})).await;
    assert_eq!(last.error(409, "ERR_API_CONFLICT")["reason"], "last_administering_profile");
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    assert_eq!(admin.get(&format!("/profiles/{own}/setup")).await.data(200)["administers"], true);
    let (other, _) = app.another_company().await;
    admin
        .in_company(other.id)
        .put(&format!("/profiles/{own}"), json!({"name": "x"}))
        .await
        .error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

#[actix_web::test]
async fn the_right_to_change_users_gives_nobody_further_rights() {
    let app = OwnApp::start().await;
    let (ana, ben) = (app.company.ana, app.company.ben);
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let admin = admin.in_company(app.company.id);
    let all = admin.get("/profiles").await;
    let profile_id = |name: &str| {
        all.data(200).as_array().expect("profiles").iter().find(|row| row["name"] == name).expect("a profile")["id"]
            .clone()
    };
    let leader_profile =
        json!({"name": "Leader", "permissions": {"users": ["GET", "POST", "PUT", "DELETE"], "tags": ["GET"]}});
    let leader_profile = admin.post("/profiles", leader_profile).await.data(201)["id"].clone();
    let small_profile =
        admin.post("/profiles", json!({"name": "Small", "permissions": {"tags": ["GET"]}})).await.data(201)["id"]
            .clone();
    admin.put(&format!("/users/{ben}"), json!({"profileId": profile_id("Administrator")})).await.data(200);
    admin.put(&format!("/users/{ana}"), json!({"profileId": leader_profile})).await.data(200);
    let leader = Person::user(&app, ana, "ana@example.com").await;
    let own = format!("/users/{ana}");
    for profile in [profile_id("Administrator"), profile_id("Supervisor"), profile_id("Agent")] {
        leader.put(&own, json!({"profileId": profile})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
        let new = json!({"name": "x", "email": "x@example.com", "password": PASSWORD, "profileId": profile});
        leader.post("/users", new).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    }
    // A user without a profile has that of an agent.
    for no_profile in [json!({}), json!({"profileId": null})] {
        let mut new = json!({"name": "x", "email": "x@example.com", "password": PASSWORD});
        new.as_object_mut().expect("a body").extend(no_profile.as_object().cloned().unwrap_or_default());
        leader.post("/users", new).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    }
    leader.put(&own, json!({"profileId": null})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    // Setting the password of a user who may do more would have the same effect.
    let theirs = format!("/users/{ben}");
    leader.put(&theirs, json!({"password": PASSWORD})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    leader.delete(&theirs).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    let new = json!({"name": "x", "email": "x@example.com", "password": PASSWORD, "profileId": small_profile});
    let made = leader.post("/users", new).await;
    let path = format!("/users/{}", made.data(201)["id"]);
    leader.put(&path, json!({"password": PASSWORD, "profileId": leader_profile})).await.data(200);
    leader.put(&path, json!({"profileId": null})).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    assert_eq!(leader.delete(&path).await.status, 204);
    leader.put("/users/999", json!({"name": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    // An administrator may give an administering profile.
    admin.put(&own, json!({"profileId": profile_id("Administrator")})).await.data(200);
    app.stop().await;
}

#[actix_web::test]
async fn people_are_invited_and_let_in_again() {
    let app = OwnApp::start().await;
    let ana = administrator(&app).await;
    let carl = app.api.post("/users", json!({"name": "Carl", "email": "carl@example.com"})).await;
    let carl = id(carl.data(201));
    let made = ana.post(&format!("/users/{carl}/invitation"), json!({})).await;
    let (url, token) =
        (made.data(200)["url"].as_str().expect("an address"), made.data(200)["token"].as_str().expect("a token"));
    assert_eq!(url, format!("http://{}/panel/welcome#{token}", app.address));
    assert_timestamp(&made.data(200)["expiresAt"]);
    let anonymous = Person::nobody(&app);
    assert_eq!(anonymous.post("/links/read", json!({"token": token})).await.data(200)["kind"], "invitation");
    assert_eq!(anonymous.post("/links/use", json!({"token": token, "password": PASSWORD})).await.status, 204);
    let mut carls_browser = Person::nobody(&app);
    carls_browser.sign_in("carl@example.com", json!({})).await.data(200);
    let reset = ana.post(&format!("/users/{carl}/password-reset"), json!({})).await;
    carls_browser.get("/session").await.data(200);
    let body = json!({"token": reset.data(200)["token"], "password": "another battery"});
    assert_eq!(anonymous.post("/links/use", body).await.status, 204);
    carls_browser.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");

    carls_browser.sign_in("carl@example.com", json!({"password": "another battery"})).await.data(200);
    assert_eq!(ana.post(&format!("/users/{carl}/second-factor/remove"), json!({})).await.status, 204);
    carls_browser.get("/session").await.error(401, "ERR_API_UNAUTHORIZED");
    // An inactive user's link would let no one in.
    app.api.put(&format!("/users/{carl}"), json!({"active": false})).await.data(200);
    for end in ["invitation", "password-reset"] {
        let refused = ana.post(&format!("/users/{carl}/{end}"), json!({})).await;
        assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "inactive");
    }
    let (other, _) = app.another_company().await;
    for end in ["invitation", "password-reset", "second-factor/remove"] {
        for user in [other.ana.0, 999_999] {
            ana.post(&format!("/users/{user}/{end}"), json!({})).await.error(404, "ERR_API_NOT_FOUND");
        }
    }
    app.stop().await;
}
