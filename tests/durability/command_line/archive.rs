//! `hotline export` and `hotline import`: a company is the same after its move to another installation.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hotline::exit_code::Exit;
use hotline_persistence::archive::{COMPANY, OMITTED, TABLES};
use hotline_postgres::{Cluster, ClusterOptions};
use reqwest::Method;
use serde_json::{Value, json};

use super::{failure, json as run_json};
use crate::process::{Process, data_folder, run, serving, with_database};
use crate::support::form::Form;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, TestDatabase, database, eventually};

/// The lists of the API, each compared between both installations.
const LISTS: [&str; 21] = [
    "/contacts",
    "/tickets",
    "/messages",
    "/channels",
    "/queues",
    "/users",
    "/profiles",
    "/tags",
    "/wrapup-categories",
    "/wrapup-types",
    "/custom-fields",
    "/global-variables",
    "/quick-messages",
    "/schedules",
    "/contact-lists",
    "/campaigns",
    "/products",
    "/product-categories",
    "/crm/boards",
    "/crm/cards",
    "/webhooks",
];

/// The fields that differ in another installation, at any depth.
const INSTALLATION_FIELDS: [&str; 5] = ["url", "lastError", "disabledReason", "active", "integration"];

fn stop(mut process: Process) {
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

/// A file that is stored in several parts.
fn large_file() -> Vec<u8> {
    b"a file\n".repeat(1 << 20)
}

/// Creates a record for each of the lists.
async fn create_records(api: &Api, company: &Company) {
    let create = async |path: &str, body: Value| api.post(path, body).await.data(201)["id"].clone();
    let tag = create("/tags", json!({"name": "vip"})).await;
    let field = api.post("/custom-fields", json!({"name": "Size", "application": "contact", "type": "text"})).await;
    let key = field.data(201)["key"].clone();
    let contact = json!({"name": "Maria \"é\" 😀", "number": "5511900000001", "email": "maria@example.com", "tagIds": [tag],
        "customFields": [{"key": key, "value": "42"}]});
    let contact = create("/contacts", contact).await;
    let send =
        json!({"channelId": company.webchat, "contactId": contact, "type": "text", "body": "Hi\n\"there\" \\ é"});
    let session = json!({"channelId": company.webchat, "contactId": contact});
    let session = api.post("/webchat/sessions", session).await.data(201)["id"].clone();
    let question = json!({"body": "Is anybody there?"});
    let path = format!("/webchat/sessions/{}/messages", session.as_str().expect("id"));
    let ticket = api.post(&path, question).await.data(201)["ticketId"].clone();
    api.post("/messages", send).await.data(202);
    let form =
        Form::default().text("type", "media").text("ticketId", &ticket).file("a.txt", "text/plain", &large_file());
    api.send_form(form).await.data(202);
    api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "Call back"})).await.data(201);
    let close = json!({"wrapupTypeId": company.solved, "wrapupNote": "well"});
    api.post(&format!("/tickets/{ticket}/close"), close).await.data(200);
    create("/quick-messages", json!({"shortcut": "hi", "message": "Hello {{name}}"})).await;
    create("/global-variables", json!({"key": "shop", "value": "Acme"})).await;
    let later =
        json!({"channelId": company.phone, "contactId": contact, "body": "Later", "sendAt": "2099-01-01T00:00:00Z"});
    create("/schedules", later).await;
    let list = create("/contact-lists", json!({"name": "All"})).await;
    api.post(&format!("/contact-lists/{list}/contacts"), json!({"contactIds": [contact]})).await.data(200);
    let campaign = json!({"name": "Sale", "contactListId": list, "channelId": company.phone,
        "scheduledAt": "2099-01-01T00:00:00Z", "message": "Hello {{name}}"});
    create("/campaigns", campaign).await;
    let category = create("/product-categories", json!({"name": "Panels"})).await;
    let product = json!({"name": "Panel", "sku": "P-1", "price": 1234567890123.4567_f64, "categoryId": category});
    let product = create("/products", product).await;
    let board = create("/crm/boards", json!({"name": "Sales", "monthlyGoal": 25000.5})).await;
    let stage = api.get(&format!("/crm/boards/{board}")).await.data(200)["lists"][0]["id"].clone();
    let card = json!({"boardId": board, "crmBoardListId": stage, "name": "Carport", "contactIds": [contact],
        "products": [{"productId": product, "name": "Panel", "unitPrice": 0.1, "quantity": 3}]});
    create("/crm/cards", card).await;
    create("/webhooks", json!({"url": "https://example.com/hook"})).await;
}

/// Every record of every list, without the fields that differ in another installation.
async fn listed(api: &Api) -> BTreeMap<&'static str, Vec<Value>> {
    let mut all = BTreeMap::new();
    for list in LISTS {
        let mut rows = api.all(list).await;
        rows.iter_mut().for_each(remove_installation_fields);
        all.insert(list, rows);
    }
    all
}

/// Removes the fields that differ in another installation.
fn remove_installation_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            INSTALLATION_FIELDS.iter().for_each(|name| drop(fields.remove(*name)));
            fields.values_mut().for_each(remove_installation_fields);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_installation_fields),
        _ => {}
    }
}

/// Replaces a text in a file of the export, and the file's checksum in the manifest if `updates_manifest`.
fn change(folder: &Path, file: &str, from: &str, to: &str, updates_manifest: bool) {
    use sha2::Digest;
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).expect("a file").replacen(from, to, 1);
    std::fs::write(&path, &text).expect("written");
    if updates_manifest {
        let path = folder.join("manifest.json");
        let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
        let entry = &mut manifest["nouns"][file.strip_suffix(".jsonl").expect("a noun")];
        entry["bytes"] = text.len().into();
        entry["sha256"] = hex::encode(sha2::Sha256::digest(text.as_bytes())).into();
        std::fs::write(&path, manifest.to_string()).expect("written");
    }
}

/// Number of files below a folder.
fn file_count(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { file_count(&entry.path()) } else { 1 }).sum()
}

fn copy_folder(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(status.success());
}

#[actix_web::test]
async fn a_company_is_the_same_in_another_installation() {
    let (folder, other) = (prepared_folder(), prepared_folder());
    let (path, there) = (folder.path(), other.path());
    let company = with_database(path, async |db| Company::create(db, "Acme").await).await;
    let process = Process::serve(path);
    let api = Api::new(process.address, &company.key);
    create_records(&api, &company).await;
    let is_written = || async {
        with_database(path, async |db| {
            sqlx::query_scalar::<_, i64>("select count(*) from tickets where status = 'closed'")
                .fetch_one(db)
                .await
                .expect("a count")
        })
        .await
            > 0
    };
    eventually("the live rows are in the tables", is_written).await;
    let archive = folder.path().join("acme");
    let dir = archive.display().to_string();
    let id = company.id.to_string();
    // The folder may exist, and be open to others.
    std::fs::create_dir(&archive).expect("a folder");
    // Exported while the service runs.
    let exported = run_json(path, &["export", &dir, "--company", &id]);
    assert_eq!((&exported["files"], &exported["missingFiles"]), (&json!(1), &json!(0)), "{exported}");
    for entry in [&archive, &archive.join("files")].into_iter().flat_map(|dir| dir.read_dir().expect("a folder")) {
        let (path, mode) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?.mode()))).expect("an entry");
        assert_eq!(mode & 0o077, 0, "{} is open to others", path.display());
    }
    assert!(failure(path, &["export", &dir, "--company", &id]).contains("not empty"));
    assert!(failure(path, &["export", &format!("{dir}2"), "--company", "999"]).contains("no such company"));
    let before = listed(&api).await;
    let exported_text: String = std::fs::read_dir(&archive)
        .expect("a folder")
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| std::fs::read_to_string(entry.path()).expect("a text"))
        .collect();
    for secret in [company.key.as_str(), "$sealed", "passwordHash", "tokenHash", "\"secret\""] {
        assert!(!exported_text.contains(secret), "{secret} is exported");
    }
    stop(process);

    // Another installation, with a company of its own and the same ids.
    let neighbour = with_database(there, async |db| Company::create(db, "Neighbour").await).await;
    let running = Process::serve(there);
    assert!(failure(there, &["import", &dir]).contains("stop it"));
    stop(running);
    let changed = folder.path().join("changed");
    copy_folder(&archive, &changed);
    let file = std::fs::read_dir(changed.join("files")).expect("a folder").flatten().next().expect("a file").path();
    let mut content = large_file();
    *content.last_mut().expect("a byte") = b'!';
    std::fs::write(&file, content).expect("written");
    let output = run(there, &["import", &changed.display().to_string()]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(Exit::Data.code().into()), "{stderr}");
    assert!(
        stderr.contains("was changed after the export") && stderr.contains(&file.display().to_string()),
        "{stderr}"
    );
    assert_eq!(file_count(&there.join("media")), 0, "a file of a refused import is stored");
    let imported = run_json(there, &["import", &dir]);
    assert_eq!((&imported["files"], &imported["exportedFrom"]), (&json!(1), &json!(company.id)), "{imported}");
    let new = imported["companyId"].to_string();
    assert_ne!(new, neighbour.id.to_string());
    let token = run_json(there, &["token", "create", "crm", "--company", &new, "--all"])["key"].clone();
    let process = Process::serve(there);
    let moved = Api::new(process.address, token.as_str().expect("key"));
    let channels: BTreeMap<i64, i64> = {
        let ids = |rows: &[Value]| rows.iter().map(|row| row["id"].as_i64().expect("id")).collect::<Vec<_>>();
        ids(&before["/channels"]).into_iter().zip(ids(&moved.all("/channels").await)).collect()
    };
    assert!(
        channels.iter().all(|(here, there)| here != there),
        "the ids of the neighbour's channels are used: {channels:?}"
    );
    let after = listed(&moved).await;
    for list in LISTS.into_iter().filter(|list| !["/channels", "/webhooks"].contains(list)) {
        let with_new_channel_ids = |value: &Value| {
            let mut text = value.to_string();
            for (here, there) in &channels {
                text = text.replace(&format!("\"channelId\":{here},"), &format!("\"channelId\":{there},"));
                text =
                    text.replace(&format!("\"channel\":{{\"id\":{here},"), &format!("\"channel\":{{\"id\":{there},"));
                text = text.replace(
                    &format!("\"lastChannel\":{{\"id\":{here},"),
                    &format!("\"lastChannel\":{{\"id\":{there},"),
                );
            }
            text
        };
        let expected: Vec<String> = before[list].iter().map(with_new_channel_ids).collect();
        let found: Vec<String> = after[list].iter().map(Value::to_string).collect();
        assert_eq!(found, expected, "{list}");
        assert!(!found.is_empty(), "{list} has nothing to compare");
    }
    // The imported company works: the file is there, new records have new ids, and the neighbour is as it was.
    let media = moved.all("/messages").await.into_iter().find(|message| message["type"] == "media").expect("a file");
    let url = media["media"]["url"].as_str().expect("an address").to_owned();
    let file = moved.anonymous(Method::GET, &url).send().await.expect("an answer");
    assert!(file.bytes().await.expect("bytes").as_ref() == large_file(), "the content of the file differs");
    let contact =
        moved.post("/contacts", json!({"name": "New", "number": "5511900000009"})).await.data(201)["id"].clone();
    let ticket = json!({"channelId": moved.all("/channels").await[0]["id"], "contactId": contact});
    let ticket = moved.post("/tickets", ticket).await.data(201)["id"].as_i64().expect("id");
    assert!(before["/tickets"].iter().all(|before| before["id"].as_i64() < Some(ticket)));
    let neighbour_api = Api::new(process.address, &neighbour.key);
    assert_eq!(neighbour_api.all("/contacts").await.len(), 0);
    let channels = neighbour_api.all("/channels").await;
    assert!(channels.iter().all(|channel| channel["lastError"].is_null()), "{channels:?}");
    stop(process);
}

#[actix_web::test]
async fn an_export_with_more_records_than_a_company_may_have_is_refused() {
    let (folder, other) = (prepared_folder(), prepared_folder());
    let (path, there) = (folder.path(), other.path());
    let company = with_database(path, async |db| {
        let company = Company::create(db, "Acme").await;
        let fill = "insert into global_variables (company_id, key, value)
             select $1, 'key' || number, 'x' from generate_series(1, 1001) number";
        sqlx::query(fill).bind(company.id).execute(db).await.expect("variables");
        let fill =
            "insert into campaigns (company_id, name, contact_list_id, channel_id, scheduled_at, message, status)
             select $1, 'Campaign ' || number, 1, $2, '2099-01-01T00:00:00Z', 'hello',
                 case when number > 1001 then 'completed' else 'scheduled' end
             from generate_series(1, 1010) number";
        sqlx::query(fill).bind(company.id).bind(company.phone).execute(db).await.expect("campaigns");
        company
    })
    .await;
    let export = |name: &str| {
        let dir = folder.path().join(name).display().to_string();
        run_json(path, &["export", &dir, "--company", &company.id.to_string()]);
        dir
    };
    for (name, reason, one_less) in [
        (
            "variables",
            "globalVariables.jsonl: has 1001 records",
            "delete from global_variables where company_id = $1 and key = 'key1'",
        ),
        (
            "campaigns",
            "campaigns.jsonl: has more than 1000 unfinished campaigns",
            "update campaigns set status = 'canceled' where company_id = $1 and name = 'Campaign 1'",
        ),
    ] {
        let output = run(there, &["import", &export(name)]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(Exit::Data.code().into()), "{message}");
        assert!(message.contains(reason), "{message}");
        with_database(path, async |db| {
            sqlx::query(one_less).bind(company.id).execute(db).await.expect("one less");
        })
        .await;
    }
    let imported = run_json(there, &["import", &export("less")])["companyId"].clone();
    let companies = with_database(there, async |db| {
        sqlx::query_scalar::<_, i64>("select id from companies order by id").fetch_all(db).await.expect("companies")
    });
    assert_eq!(json!(companies.await), json!([imported]), "a refused import has left a company");
}

#[actix_web::test]
async fn changes_that_only_the_journal_has_are_not_left_out() {
    let (folder, data, elsewhere) = (prepared_folder(), data_folder(), data_folder());
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    db.close().await;
    let url = database::url(&cluster.connect_options());
    let other = TestDatabase::migrated().await;
    let other_url = database::url(&other.options);
    let serve = || {
        let process = Process::start(data.path(), serving(data.path()).args(["--database-url", &url]));
        process.unwrap_or_else(|log| panic!("not served: {log}"))
    };
    let process = serve();
    let api = Api::new(process.address, &company.key);
    let text = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hot"});
    api.post("/messages", text.clone()).await.data(202);
    cluster.stop().await.expect("PostgreSQL stops");
    api.post("/messages", text).await.data(202);
    stop(process);

    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    let (dir, id) = (data.path().join("acme").display().to_string(), company.id.to_string());
    let export = ["export", &dir, "--company", &id, "--database-url", &url];
    let output = run(data.path(), &export);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(Exit::Retry.code().into()), "{stderr}");
    assert!(stderr.contains("changes that the tables lack: start the service once"), "{stderr}");
    assert!(!data.path().join("acme").exists(), "a refused export has created its folder");
    let export_elsewhere = || {
        let output = run(elsewhere.path(), &export);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(Exit::Data.code().into()), "{stderr}");
        assert!(stderr.contains("is not the data folder of this database"), "{stderr}");
        assert!(!data.path().join("acme").exists(), "a refused export has created its folder");
    };
    // Another folder does not show that changes are missing: it has no journal, or that of another installation.
    export_elsewhere();
    Process::serve_with(elsewhere.path(), &[], &[("HOTLINE_DATABASE_URL", other_url.clone())]).kill();
    export_elsewhere();

    let process = serve();
    // Also while the service runs.
    export_elsewhere();
    let exported = run_json(data.path(), &export);
    assert_eq!(exported["lines"]["messages"], 2, "{exported}");
    // A change that a service acknowledged a moment before is exported, too.
    let api = Api::new(process.address, &company.key);
    let text = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "now"});
    api.post("/messages", text).await.data(202);
    let later = format!("{dir}2");
    let exported = run_json(data.path(), &["export", &later, "--company", &id, "--database-url", &url]);
    assert_eq!(exported["lines"]["messages"], 3, "{exported}");
    stop(process);
    cluster.stop().await.expect("PostgreSQL stops");
    other.drop().await;
}

#[actix_web::test]
async fn what_the_other_installation_may_still_send_is_not_sent() {
    let (folder, other) = (prepared_folder(), prepared_folder());
    let (path, there) = (folder.path(), other.path());
    let company = with_database(path, async |db| Company::create(db, "Acme").await).await;
    let process = Process::serve(path);
    let api = Api::new(process.address, &company.key);
    create_records(&api, &company).await;
    // A campaign's message waits until its channel is connected.
    let waiting = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "Hello Maria"});
    let job = api.post("/messages", waiting).await.data(202)["jobId"].as_str().expect("a job").to_owned();
    let message = api.get(&format!("/messages/jobs/{job}")).await.data(200)["messageId"].as_i64().expect("a message");
    stop(process);
    with_database(path, async |db| {
        for statement in [
            "insert into campaign_recipients (company_id, campaign_id, contact_id, message_id)
             select k.company_id, k.id, m.contact_id, m.id from campaigns k, messages m where m.id = $1",
            "update campaigns set status = 'processing' where $1 > 0",
            r#"update messages set revisions = '{"sending": {"id": 1, "emoji": "x"}, "edits": []}'
               where id = (select min(id) from messages where id < $1)"#,
        ] {
            sqlx::query(statement).bind(message).execute(db).await.expect("what was under way");
        }
    })
    .await;
    let dir = folder.path().join("acme").display().to_string();
    run_json(path, &["export", &dir, "--company", &company.id.to_string()]);
    let new = run_json(there, &["import", &dir])["companyId"].to_string();
    with_database(there, async |db| {
        let count = "select (count(*), count(*) filter (where revisions ? 'sending'))::text from messages
            where revisions is not null";
        let counted: String = sqlx::query_scalar(count).fetch_one(db).await.expect("a count");
        assert_eq!(counted, "(1,0)", "a reaction is no longer to be sent");
    })
    .await;
    let token = run_json(there, &["token", "create", "crm", "--company", &new, "--all"])["key"].clone();
    run_json(there, &["company", "update", &new, "--active"]);
    let process = Process::serve(there);
    let moved = Api::new(process.address, token.as_str().expect("key"));
    let campaigns = moved.all("/campaigns").await;
    assert_eq!(
        (&campaigns[0]["status"], &campaigns[0]["counts"]["failed"]),
        (&json!("paused"), &json!(1)),
        "{campaigns:?}"
    );
    let recipients = moved.all(&format!("/campaigns/{}/recipients", campaigns[0]["id"])).await;
    assert_eq!(recipients[0]["status"], "failed");
    moved.post(&format!("/campaigns/{}/resume", campaigns[0]["id"]), json!({})).await.data(200);
    let path = format!("/campaigns/{}", campaigns[0]["id"]);
    eventually("the campaign is completed", || async { moved.get(&path).await.data(200)["status"] == "completed" })
        .await;
    stop(process);
}

#[actix_web::test]
async fn a_channel_is_given_an_id_that_no_other_channel_of_the_export_has() {
    let (folder, other) = (prepared_folder(), prepared_folder());
    let company = with_database(folder.path(), async |db| Company::create(db, "Acme").await).await;
    let dir = folder.path().join("acme");
    run_json(folder.path(), &["export", &dir.display().to_string(), "--company", &company.id.to_string()]);
    // The other installation has one channel, with the first id of the export. Its next free id is the export's second.
    with_database(other.path(), async |db| {
        let there = Company::create(db, "Other").await;
        let delete = sqlx::query("delete from channels where id = $1").bind(there.phone.max(there.webchat));
        delete.execute(db).await.expect("deleted");
        let reset = "select setval(pg_get_serial_sequence('channels', 'id'), (select max(id) from channels))";
        sqlx::query(reset).execute(db).await.expect("reset");
    })
    .await;
    run_json(other.path(), &["import", &dir.display().to_string()]);
    let ids = with_database(other.path(), async |db| {
        sqlx::query_scalar::<_, i64>("select id from channels order by id").fetch_all(db).await.expect("channels")
    })
    .await;
    assert_eq!(ids, [1, 2, 3]);
}

#[actix_web::test]
async fn a_damaged_or_hostile_export_is_refused_with_its_file_and_line() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = with_database(path, async |db| Company::create(db, "Acme").await).await;
    let dir = folder.path().join("acme");
    run_json(path, &["export", &dir.display().to_string(), "--company", &company.id.to_string()]);
    let count = async || {
        with_database(path, async |db| {
            sqlx::query_scalar::<_, i64>("select count(*) from companies").fetch_one(db).await.expect("a count")
        })
        .await
    };
    let before = count().await;
    for (number, (file, from, to, updates_manifest, reason)) in [
        ("queues.jsonl", "Support", "Sup", false, "queues.jsonl: was changed"),
        ("queues.jsonl", "{", "[", true, "queues.jsonl: line 1 is not a JSON object"),
        ("queues.jsonl", "\"color\"", "\"colour\"", true, "line 1 has the unknown field `colour`"),
        ("queues.jsonl", "\"id\" : ", "\"id\" : -", true, "line 1 the field `id` is not a valid id"),
        (
            "company.jsonl",
            "\"createdAt\" : \"2",
            "\"createdAt\" : \"infinity 2",
            true,
            "line 1 the field `createdAt` is not a valid time",
        ),
        ("queues.jsonl", "\"manual\"", "\"unknown\"", true, "queues.jsonl: line 1 is refused"),
        ("queues.jsonl", "Sales", "Support", true, "queues.jsonl: line 2 is refused"),
        ("queues.jsonl", "Sales", "Sa\\u0001les", true, "line 2 the field `name` must not contain"),
        ("channels.jsonl", "\"whatsapp\"", "\"fax\"", true, "channels.jsonl: line 1 the field `type`"),
        ("company.jsonl", "}", "}\n{}", true, "company.jsonl: line 2"),
        (
            "manifest.json",
            "\"tags\"",
            "\"badges\": {\"lines\": 0, \"bytes\": 0, \"sha256\": \"\"}, \"tags\"",
            false,
            "unknown noun `badges`",
        ),
        ("queues.jsonl", "}\n", "}\n\n", true, "queues.jsonl: line 2 is not a JSON object"),
        ("manifest.json", "hotline-company", "other", false, "manifest.json: has the format"),
        ("manifest.json", "\"version\": 1", "\"version\": 9", false, "newer one"),
    ]
    .into_iter()
    .enumerate()
    {
        let broken = folder.path().join(format!("broken{number}"));
        copy_folder(&dir, &broken);
        change(&broken, file, from, to, updates_manifest);
        let stderr = failure(path, &["import", &broken.display().to_string()]);
        assert!(stderr.contains(reason), "{file}, {from}: {stderr}");
    }
    let linked = folder.path().join("linked");
    copy_folder(&dir, &linked);
    std::fs::remove_file(linked.join("tags.jsonl")).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", linked.join("tags.jsonl")).expect("a link");
    let stderr = failure(path, &["import", &linked.display().to_string()]);
    assert!(stderr.contains("tags.jsonl"), "{stderr}");
    assert_eq!(count().await, before, "a refused import has left a company");
}

#[actix_web::test]
async fn every_table_of_a_company_is_archived_or_named_as_one_that_is_not() {
    let database = TestDatabase::migrated().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.columns
         where table_schema = 'public' and column_name = 'company_id'
             and table_name not in (select relname from pg_class where relispartition)",
    )
    .fetch_all(&database.db)
    .await
    .expect("the tables");
    let found: BTreeSet<&str> = tables.iter().map(String::as_str).chain([COMPANY.name]).collect();
    let known: BTreeSet<&str> = TABLES
        .iter()
        .chain([&COMPANY])
        .map(|table| table.name)
        .chain(OMITTED.iter().map(|(table, _)| *table))
        .collect();
    assert_eq!(found, known);
    for table in TABLES {
        let names = hotline_persistence::archive::field_names(&database.db, table).await.expect("columns");
        assert!(!names.is_empty() && !names.contains(&"companyId".to_owned()), "{table:?}: {names:?}");
    }
    database.drop().await;
}
