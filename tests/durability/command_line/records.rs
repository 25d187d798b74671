//! `show`, `update` and `delete` of records that the command line creates.

use serde_json::{Value, json};

use super::{failure, json as run_json};
use crate::process::{command, run, with_database};
use crate::support::template::prepared_folder;

#[actix_web::test]
async fn a_record_is_shown_as_it_is_listed() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = run_json(path, &["company", "create", "Acme"])["id"].to_string();
    run_json(path, &["token", "create", "crm", "--company", &company, "--permission", "tickets:GET"]);
    run_json(path, &["channel", "create", "Website", "--company", &company, "--type", "webchat"]);
    run_json(path, &["webhook", "create", "https://example.com/hotline", "--company", &company]);
    for (noun, plural) in [
        ("company", "companies"),
        ("token", "tokens"),
        ("channel", "channels"),
        ("profile", "profiles"),
        ("webhook", "webhooks"),
    ] {
        let listed = run_json(path, &[noun, "list"])[plural][0].clone();
        let mut record = run_json(path, &[noun, "show", &listed["id"].to_string()]);
        let fields = record.as_object_mut().expect("an object");
        let embed = fields.remove("embed");
        assert_eq!(embed.is_some(), noun == "channel", "{noun}");
        assert_eq!(record, listed, "{noun}");
        assert!(failure(path, &[noun, "show", "999"]).contains("no such"), "{noun}");
    }
    let record = run_json(path, &["channel", "show", "1", "--public-url", "https://support.example"]);
    let key = record["publicKey"].as_str().expect("key");
    let embed = format!(r#"<script src="https://support.example/webchat/{key}/widget.js" async></script>"#);
    assert_eq!(record["embed"], embed);
    let text = String::from_utf8(run(path, &["channel", "show", "1"]).stdout).expect("text");
    assert!(text.contains("widget.js") && text.contains("your service's address"), "{text}");
    // A global option may also come before the subcommand.
    let mut list = command(path, &["company"]);
    list.args(["--json", "list"]);
    let output = list.output().expect("hotline runs");
    let listed: Value = serde_json::from_slice(&output.stdout).expect("json");
    assert_eq!(listed["companies"][0]["name"], "Acme");
}

#[actix_web::test]
async fn a_profile_whose_id_two_companies_have_is_named_with_its_company() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = run_json(path, &["company", "create", "Acme"])["id"].to_string();
    let other = run_json(path, &["company", "create", "Other"])["id"].to_string();
    let id = run_json(path, &["profile", "create", "Sales", "--company", &company])["id"].to_string();
    with_database(path, async |db| {
        // As an import does, which keeps the ids of an archive.
        let copy = "insert into profiles (company_id, id, name) overriding system value values ($1, $2, 'Imported')";
        let [other, id] = [&other, &id].map(|text| text.parse::<i64>().expect("an id"));
        sqlx::query(copy).bind(other).bind(id).execute(db).await.expect("a profile");
    })
    .await;
    let show = |company: &str| run_json(path, &["profile", "show", &id, "--company", company])["name"].clone();
    for arguments in [&["show", &id][..], &["update", &id, "--all"], &["delete", &id]] {
        let refused = failure(path, &[&["profile"], arguments].concat());
        assert!(refused.contains("both have a profile") && refused.contains("--company"), "{refused}");
    }
    run_json(path, &["profile", "update", &id, "--name", "Shop", "--company", &other]);
    assert_eq!((show(&company), show(&other)), (json!("Sales"), json!("Shop")));
    run_json(path, &["profile", "delete", &id, "--company", &other]);
    // Only one is left, which needs no company.
    assert_eq!(run_json(path, &["profile", "show", &id])["name"], "Sales");
}

#[actix_web::test]
async fn a_profile_is_updated_and_deleted_unless_it_is_needed() {
    let folder = prepared_folder();
    let path = folder.path();
    let company = run_json(path, &["company", "create", "Acme"])["id"].to_string();
    let profile = run_json(path, &["profile", "create", "Sales", "--company", &company, "--permission", "crm:GET"]);
    let id = profile["id"].to_string();
    let updated = run_json(
        path,
        &["profile", "update", &id, "--name", "Shop", "--permission", "tickets:GET", "--sees-all-cards"],
    );
    assert_eq!((&updated["name"], &updated["seesAllCards"]), (&json!("Shop"), &json!(true)));
    assert_eq!(updated["permissions"], json!({"tickets": ["GET"]}));
    let updated = run_json(path, &["profile", "update", &id, "--sees-all-cards=false"]);
    assert_eq!((&updated["name"], &updated["seesAllCards"]), (&json!("Shop"), &json!(false)));
    assert_eq!(updated["permissions"], json!({"tickets": ["GET"]}), "permissions that are not given stay");
    assert!(failure(path, &["profile", "update", &id]).contains("required"));
    assert!(failure(path, &["profile", "update", &id, "--name", "Agent"]).contains("name"));
    assert!(failure(path, &["profile", "update", "999", "--name", "x"]).contains("no such profile"));

    let company_id: i64 = company.parse().expect("id");
    with_database(path, async |db| {
        let user = "insert into users (company_id, name, email, profile_id) values ($1, 'Ana', 'ana@example.com', $2)";
        let profile_id = profile["id"].as_i64();
        sqlx::query(user).bind(company_id).bind(profile_id).execute(db).await.expect("a user");
    })
    .await;
    assert!(failure(path, &["profile", "delete", &id]).contains("assigned to users"));
    with_database(path, async |db| sqlx::query("delete from users").execute(db).await.expect("deleted")).await;
    assert_eq!(run_json(path, &["profile", "delete", &id]), json!({"id": profile["id"], "deleted": true}));
    assert!(failure(path, &["profile", "show", &id]).contains("no such profile"));
    // A company must keep a profile that administers it, as its first profile does.
    let listed = run_json(path, &["profile", "list", "--company", &company])["profiles"].clone();
    assert_eq!(listed[0]["administers"], true);
    let last = failure(path, &["profile", "delete", &listed[0]["id"].to_string()]);
    assert!(last.contains("at least one profile that administers it"), "{last}");
    assert_eq!(run_json(path, &["profile", "list", "--company", &company])["profiles"], listed);
}

#[actix_web::test]
async fn administrators_are_listed_shown_and_deleted_except_the_last() {
    let folder = prepared_folder();
    let path = folder.path();
    assert_eq!(run_json(path, &["company", "create", "Acme"])["name"], "Acme");
    assert_eq!(run_json(path, &["admin", "list"]), json!({"admins": []}));
    let ana = run_json(path, &["admin", "create", "ana@example.com"])["id"].clone();
    run_json(path, &["admin", "create", "ben@example.com"]);
    with_database(path, async |db| {
        for statement in [
            "insert into person_sessions (company_id, person_id, hash, state, expires_at)
             select 0, id, '\\x01', 'open', now() + interval '1 day' from admins where email = 'ana@example.com'",
            "insert into second_factors (company_id, person_id, secret, confirmed_at)
             select 0, id, 'v1.x.y', now() from admins where email = 'ana@example.com'",
        ] {
            sqlx::query(statement).execute(db).await.expect("a row");
        }
    })
    .await;
    let listed = run_json(path, &["admin", "list"])["admins"].clone();
    assert_eq!((&listed[0]["email"], &listed[1]["email"]), (&json!("ana@example.com"), &json!("ben@example.com")));
    assert_eq!((&listed[0]["secondFactor"], &listed[1]["secondFactor"]), (&json!(true), &json!(false)));
    assert!(listed[0]["lastSeenAt"].is_string() && listed[1]["lastSeenAt"].is_null(), "{listed}");
    assert_eq!(run_json(path, &["admin", "show", "ANA@example.com"]), listed[0]);
    assert!(failure(path, &["admin", "show", "eva@example.com"]).contains("no such administrator"));

    assert!(failure(path, &["admin", "delete", "eva@example.com"]).contains("no such administrator"));
    assert_eq!(run_json(path, &["admin", "delete", "Ana@example.com"]), json!({"id": ana, "deleted": true}));
    let rows: (i64, i64) = with_database(path, async |db| {
        let counts = "select (select count(*) from person_sessions), (select count(*) from second_factors)";
        sqlx::query_as(counts).fetch_one(db).await.expect("counts")
    })
    .await;
    assert_eq!(rows, (0, 0));
    assert!(failure(path, &["admin", "delete", "ben@example.com"]).contains("last administrator"));
    assert_eq!(run_json(path, &["admin", "list"])["admins"].as_array().map(Vec::len), Some(1));
    let audited: Vec<(String, Option<i16>)> = with_database(path, async |db| {
        let log = "select action, status from audit_log where company_id = 0 and action = 'deleteAdmin' order by id";
        sqlx::query_as(log).fetch_all(db).await.expect("a log")
    })
    .await;
    let statuses: Vec<Option<i16>> = audited.into_iter().map(|(_, status)| status).collect();
    assert_eq!(statuses, [Some(400), Some(200), Some(400)]);

    // These are two administrators: PostgreSQL's lower case of `Σ` is `σ`, also at the end of a word.
    let first = run_json(path, &["admin", "create", "νικος@example.com"])["id"].clone();
    let second = run_json(path, &["admin", "create", "ΝΙΚΟΣ@example.com"])["id"].clone();
    for (email, deleted) in [("ΝΙΚΟΣ@Example.com", second), ("νικος@example.com", first)] {
        assert_eq!(run_json(path, &["admin", "delete", email]), json!({"id": deleted, "deleted": true}));
    }
}
