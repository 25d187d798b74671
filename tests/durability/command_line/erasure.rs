//! `hotline contact erase`: nothing of a person is left, on a running service and on a stopped one.

use std::path::Path;

use hotline::exit_code::Exit;
use hotline_persistence::PgPool;
use hotline_postgres::{Cluster, ClusterOptions};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::{failure, json as run_json};
use crate::process::{Process, data_folder, run, serving, with_database};
use crate::support::form::Form;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Receiver, Reply, database, eventually};

/// A text in every record of the person, and in no other.
const MARK: &str = "Zeldaquux";

/// Lets webhooks be delivered to this machine.
const ALLOW_LOCAL: [&str; 2] = ["--webhook-allow-network", "127.0.0.0/8"];

/// A file whose content has the mark.
const FILE: &str = "Zeldaquux was here\n";

/// The number of both persons. The second may have it since the first is erased.
const NUMBER: &str = "5511900000001";

/// The ids of the person's contact, and of a card that names it.
struct Person {
    contact: Value,
    card: Value,
}

fn serve(folder: &Path) -> Process {
    Process::try_serve(folder, &ALLOW_LOCAL).unwrap_or_else(|log| panic!("hotline does not start: {log}"))
}

fn stop(mut process: Process) {
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

/// Every column that has the mark, with its table.
async fn marked_columns(db: &PgPool) -> Vec<String> {
    let columns: Vec<(String, String)> = sqlx::query_as(
        "select c.table_name::text, c.column_name::text from information_schema.columns c
         join information_schema.tables t using (table_schema, table_name)
         where c.table_schema = 'public' and t.table_type = 'BASE TABLE'
           and c.table_name not in (select relname from pg_class where relispartition)",
    )
    .fetch_all(db)
    .await
    .expect("the columns");
    assert!(columns.len() > 300, "few columns: {}", columns.len());
    let mut found = Vec::new();
    for (table, column) in columns {
        let statement = format!(
            r#"select count(*) from "{table}" where case when pg_typeof("{column}") = 'bytea'::regtype
                then encode("{column}"::text::bytea, 'escape') else "{column}"::text end ilike '%{MARK}%'"#
        );
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(db).await.expect("a count");
        if count > 0 {
            found.push(format!("{table}.{column}"));
        }
    }
    found
}

/// The files below a folder that have the mark.
fn marked_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(marked_files(&path));
        } else if std::fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(MARK)) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Creates a contact and a record of every kind that refers to contacts, among them an open ticket, an active session
/// and a pending scheduled message. `label` is in names and idempotency keys that must be unique.
async fn create_person(api: &Api, company: &Company, label: &str) -> Person {
    let field = json!({"name": format!("Nick {label}"), "application": "contact", "type": "text"});
    let field = api.post("/custom-fields", field).await.data(201)["key"].clone();
    let contact = json!({"name": format!("{MARK} One"), "number": NUMBER, "email": format!("{MARK}@example.com"),
        "customFields": [{"key": field, "value": MARK}]});
    let contact = Reply::of(api.keyed(Method::POST, "/contacts", label, contact.to_string())).await.data(201).clone();
    let id = &contact["id"];
    api.put(&format!("/contacts/{id}"), json!({"name": format!("{MARK} Two")})).await.data(200);
    let send = json!({"channelId": company.phone, "contactId": id, "type": "text", "body": format!("Hi {MARK}")});
    let sent = Reply::of(api.keyed(Method::POST, "/messages", &format!("m{label}"), send.to_string())).await;
    let job = format!("/messages/jobs/{}", sent.data(202)["jobId"].as_str().expect("id"));
    let ticket = api.get(&job).await.data(200)["ticketId"].clone();
    let note = json!({"body": format!("About {MARK}")});
    api.post(&format!("/tickets/{ticket}/notes"), note).await.data(201);
    let form = Form::default().text("type", "media").text("ticketId", &ticket).file(
        "zelda.txt",
        "text/plain",
        FILE.as_bytes(),
    );
    api.send_form(form).await.data(202);
    let body = json!({"channelId": company.webchat, "contactId": id, "page": {"title": MARK}});
    let session = api.post("/webchat/sessions", body).await.data(201)["id"].clone();
    let path = format!("/webchat/sessions/{}/messages", session.as_str().expect("id"));
    api.post(&path, json!({"body": format!("I am {MARK}")})).await.data(201);
    let later = json!({"channelId": company.phone, "contactId": id, "body": format!("Later {MARK}"),
        "sendAt": "2099-01-01T00:00:00Z"});
    api.post("/schedules", later).await.data(201);
    change_recipient(api, company, id, label).await;
    let list = api.post("/contact-lists", json!({"name": format!("All {label}")})).await.data(201)["id"].clone();
    api.post(&format!("/contact-lists/{list}/contacts"), json!({"contactIds": [id]})).await.data(200);
    let board = api.post("/crm/boards", json!({"name": format!("Sales {label}")})).await.data(201)["id"].clone();
    let stage = api.get(&format!("/crm/boards/{board}")).await.data(200)["lists"][0]["id"].clone();
    let card = json!({"boardId": board, "crmBoardListId": stage, "name": "Carport", "contactIds": [id]});
    let card = api.post("/crm/cards", card).await.data(201)["id"].clone();
    Person { contact: contact["id"].clone(), card }
}

/// Schedules a message to the person, and changes it to another contact.
async fn change_recipient(api: &Api, company: &Company, person: &Value, label: &str) {
    let other = api.post("/contacts", json!({"name": format!("Other {label}")})).await.data(201)["id"].clone();
    let body = json!({"channelId": company.webchat, "contactId": person, "body": "Later",
        "sendAt": "2099-01-01T00:00:00Z"});
    let schedule = api.post("/schedules", body).await.data(201)["id"].clone();
    api.put(&format!("/schedules/{schedule}"), json!({"contactId": other})).await.data(200);
}

/// Adds recorded responses and refused rows, more than are read at once. One in a hundred mentions the person.
async fn add_copies(folder: &Path, company: &Company, person: &Person) {
    let copy = json!({"contactId": person.contact, "body": MARK});
    with_database(folder, async |db| {
        for statement in [
            "insert into idempotency_keys (company_id, key, fingerprint, status, body, created_at)
             select $1, decode(md5(k::text), 'hex'), decode(md5(k::text), 'hex'), 200,
                 case when k % 100 = 0 then $2::jsonb::text else '{}' end, now()
             from generate_series(1, 1200) k",
            "insert into rejected_changes (company_id, kind, change, reason)
             select $1, 'message', case when k % 100 = 0 then $2::jsonb else '{}' end, 'a test'
             from generate_series(1, 1200) k",
        ] {
            sqlx::query(statement).bind(company.id).bind(&copy).execute(db).await.expect("copies");
        }
    })
    .await;
}

/// Fails unless nothing of the person is left in tables, files and events, and all other records are as they were.
async fn check_erased(folder: &Path, api: &Api, person: &Person) {
    let left = with_database(folder, marked_columns).await;
    assert_eq!(left, [""; 0]);
    assert_eq!(marked_files(&folder.join("media")), [""; 0]);
    let events = api.get("/events?limit=1000").await;
    assert!(!events.body.to_string().contains(MARK), "{}", events.body);
    let ids: Vec<i64> =
        events.data(200).as_array().expect("events").iter().map(|event| event["id"].as_i64().expect("id")).collect();
    assert_eq!(ids, (1..=ids.len() as i64).collect::<Vec<_>>(), "events are missing");
    api.get(&format!("/contacts/{}", person.contact)).await.error(404, "ERR_API_NOT_FOUND");
    let card = api.get(&format!("/crm/cards/{}", person.card)).await.data(200).clone();
    assert_eq!((&card["name"], &card["contacts"]), (&json!("Carport"), &json!([])));
}

fn check_report(report: &Value, person: &Person) {
    assert_eq!((&report["contactId"], &report["existed"]), (&person.contact, &json!(true)));
    for (noun, least) in [
        ("contacts", 1),
        ("tickets", 2),
        ("messages", 4),
        ("files", 1),
        ("webchatSessions", 1),
        ("scheduledMessages", 1),
        ("cardLinks", 1),
        ("events", 5),
        ("responses", 13),
        ("rejectedChanges", 12),
    ] {
        let count = report["removed"][noun].as_i64().unwrap_or_default();
        assert!(count >= least, "{noun}: {report}");
    }
    assert_eq!(report["kept"]["cards"], json!([person.card]));
    for place in ["auditLog", "reports", "journal", "backups", "receivers"] {
        assert!(report["kept"][place].is_string(), "{report}");
    }
}

#[actix_web::test]
async fn nothing_of_an_erased_person_is_left_on_a_running_service_and_on_a_stopped_one() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = with_database(path, async |db| Company::create(db, "Acme").await).await;
    let process = serve(path);
    let api = Api::new(process.address, &company.key);
    let receiver = Receiver::start().await;
    let hook = api.post("/webhooks", json!({"url": receiver.url()})).await.data(201)["id"].clone();
    let company_id = company.id.to_string();
    for (arguments, reason) in [
        (vec!["contact", "erase", "1", "--company", "999"], "no such company"),
        (vec!["contact", "erase", "1"], "--company"),
    ] {
        let stderr = failure(path, &arguments);
        assert!(stderr.contains(reason), "{stderr}");
    }

    let first = create_person(&api, &company, "first").await;
    add_copies(path, &company, &first).await;
    eventually("deliveries were made", || async { receiver.count() > 5 }).await;
    eventually("the live rows are in the tables", || async {
        with_database(path, marked_columns).await.iter().any(|column| column == "messages.body")
    })
    .await;
    eventually("the change of a recipient has its event", || async {
        let changes = api.get("/events?types=schedule.updated").await;
        changes.data(200)[0]["previous"]["contact"]["name"] == format!("{MARK} Two")
    })
    .await;
    assert_eq!(marked_files(&path.join("media")).len(), 1);
    let report = run_json(path, &["contact", "erase", &first.contact.to_string(), "--company", &company_id]);
    check_report(&report, &first);
    check_erased(path, &api, &first).await;
    // Everything else works: the other records, the webhook, the same number as another person.
    assert_eq!(api.get(&format!("/webhooks/{hook}")).await.data(200)["active"], true);
    let open_tickets = api.get("/tickets?status=open").await.data(200).clone();
    assert_eq!(open_tickets, json!([]));

    let second = create_person(&api, &company, "second").await;
    add_copies(path, &company, &second).await;
    // A kill leaves entries in the journal, which are written to the tables before the erasure.
    process.kill();
    let report = run_json(path, &["contact", "erase", &second.contact.to_string(), "--company", &company_id]);
    check_report(&report, &second);
    let process = serve(path);
    check_erased(path, &Api::new(process.address, &company.key), &second).await;
    // A second erasure finds nothing.
    let report = run_json(path, &["contact", "erase", &second.contact.to_string(), "--company", &company_id]);
    assert_eq!((&report["existed"], &report["removed"]["events"]), (&json!(false), &json!(0)), "{report}");
    let audited = with_database(path, async |db| {
        let entries =
            "select count(*) from audit_log where action = 'eraseContact' and status = 200 and company_id = $1
             and target_name is null";
        sqlx::query_scalar::<_, i64>(entries).bind(company.id).fetch_one(db).await.expect("entries")
    });
    assert_eq!(audited.await, 3);
    stop(process);
}

/// Creates three contacts of one person, with recorded responses, and merges each into the next. Returns the id of the
/// last.
async fn create_merged(api: &Api, label: &str) -> Value {
    let mut stays = Value::Null;
    for number in ["5511900000001", "5511900000002", "5511900000003"] {
        let email = format!("{MARK}{number}@example.com");
        let contact = json!({"name": format!("{MARK} {number}"), "number": number, "email": email});
        let key = format!("{label}{number}");
        let contact = Reply::of(api.keyed(Method::POST, "/contacts", &key, contact.to_string())).await;
        let contact = contact.data(201)["id"].clone();
        if !stays.is_null() {
            let merge = json!({"fromContactId": stays});
            api.post_while_busy(&format!("/contacts/{contact}/merge"), &merge).await.data(200);
        }
        stays = contact;
    }
    stays
}

#[actix_web::test]
async fn the_contacts_that_were_merged_into_another_are_erased_with_it_also_after_it_was_deleted() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = with_database(path, async |db| Company::create(db, "Acme").await).await;
    let process = serve(path);
    let api = Api::new(process.address, &company.key);
    let company_id = company.id.to_string();
    for (label, is_deleted) in [("first", false), ("second", true)] {
        let contact = create_merged(&api, label).await;
        if is_deleted {
            assert_eq!(api.delete(&format!("/contacts/{contact}")).await.status, 204);
        }
        eventually("the copies are in the tables", || async {
            let marked = with_database(path, marked_columns).await;
            ["events.told", "idempotency_keys.body"].into_iter().all(|copy| marked.iter().any(|column| column == copy))
        })
        .await;
        // The report says that it is done only once the merged contacts are erased, too.
        let report = run_json(path, &["contact", "erase", &contact.to_string(), "--company", &company_id]);
        assert_eq!(report["existed"], json!(!is_deleted), "{label}: {report}");
        let left = with_database(path, marked_columns).await;
        assert_eq!(left, [""; 0], "{label}");
        // A redacted event still says which contact was merged.
        let merges = api.get("/events?types=contact.merged").await;
        let merges = merges.data(200).as_array().expect("events");
        assert!(!merges.is_empty() && merges.iter().all(|event| event["data"]["mergedFrom"].is_i64()), "{merges:?}");
    }
    stop(process);
}

#[actix_web::test]
async fn an_erasure_in_another_data_folder_is_refused_and_costs_no_acknowledged_change() {
    let (folder, data, elsewhere) = (prepared_folder(), data_folder(), data_folder());
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    db.close().await;
    let url = database::url(&cluster.connect_options());
    let serve = || {
        let process = Process::start(data.path(), serving(data.path()).args(["--database-url", &url]));
        process.unwrap_or_else(|log| panic!("not served: {log}"))
    };
    let process = serve();
    let api = Api::new(process.address, &company.key);
    let send = json!({"channelId": company.phone, "number": NUMBER, "type": "text", "body": "hot"});
    api.post("/messages", send.clone()).await.data(202);
    let contact = api.all("/contacts").await[0]["id"].clone();
    cluster.stop().await.expect("PostgreSQL stops");
    api.post("/messages", send).await.data(202);
    process.kill();

    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    let (contact, company_id) = (contact.to_string(), company.id.to_string());
    let erase = ["contact", "erase", &contact, "--company", &company_id, "--database-url", &url];
    let output = run(elsewhere.path(), &erase);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(Exit::Data.code().into()), "{stderr}");
    assert!(stderr.contains("is not the data folder of this database") && stderr.contains("--data-dir"), "{stderr}");
    assert!(!elsewhere.path().join("journal").exists(), "a refused erasure has begun a journal");

    let process = serve();
    assert!(process.replayed() > 0, "the journal had nothing that the tables lacked");
    let api = Api::new(process.address, &company.key);
    // The refused erasure is not carried out later either.
    api.get(&format!("/contacts/{contact}")).await.data(200);
    assert_eq!(api.all("/messages").await.len(), 2);
    // A running service erases from wherever it is asked.
    let report = run_json(elsewhere.path(), &erase);
    assert_eq!(report["existed"], json!(true), "{report}");
    api.get(&format!("/contacts/{contact}")).await.error(404, "ERR_API_NOT_FOUND");
    stop(process);
    cluster.stop().await.expect("PostgreSQL stops");
}
