//! The API only grows: the document of the last release is kept in `tests/fixtures/`, and a caller of that release is
//! served by this one.

mod comparison;

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::comparison::breaking_changes;

/// The document of a release, compressed, in the folder named after its version.
const DOCUMENT: &str = "openapi.json.gz";

/// `0.10.1` as numbers, so that it sorts after `0.9.0`.
fn version(folder: &Path) -> Option<Vec<u32>> {
    let name = folder.file_name()?.to_str()?;
    name.split('.').map(|part| part.parse().ok()).collect()
}

/// The document of the newest release that is kept.
fn released_document() -> Value {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folders = std::fs::read_dir(fixtures).expect("the fixtures").map(|entry| entry.expect("an entry").path());
    let releases = folders.filter(|folder| folder.join(DOCUMENT).is_file());
    let newest: PathBuf =
        releases.filter(|folder| version(folder).is_some()).max_by_key(|folder| version(folder)).expect("a release");
    let file = std::fs::File::open(newest.join(DOCUMENT)).expect("a document");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("compressed");
    serde_json::from_str(&text).expect("JSON")
}

/// The response of the stream of events.
const STREAMED: &str = "/paths/~1api~1v1~1events~1stream/get/responses/200";

/// Lists in requests that 0.1.0 documented as nullable: for `null` it left them unchanged, while the contract refuses
/// `null`.
const NULL_LISTS: [&str; 4] = [
    "/components/schemas/BoardUpdate/properties/crmBoardQueues/type",
    "/components/schemas/CardUpdate/properties/customFields/type",
    "/components/schemas/CardUpdate/properties/products/type",
    "/components/schemas/ContactUpdate/properties/customFields/type",
];

/// The record of an event that is sent to a webhook.
const SENT_RECORD: &str = "/post/requestBody/content/application~1json/schema/properties/data";

/// Corrects what the kept document states wrongly: the stream of events never was JSON, the contract never had the
/// nullable lists, and events of deleted messages and sessions always had their short form.
fn correct(released: &mut Value) {
    for list in NULL_LISTS {
        *at(released, list) = json!("array");
    }
    let content = &mut at(released, STREAMED)["content"];
    if !content["application/json"].is_null() {
        *content = json!({"text/event-stream": {"schema": {"type": "string"}}});
    }
    for event in at(released, "/webhooks").as_object_mut().expect("events").values_mut() {
        let record = at(event, SENT_RECORD);
        let short_form = match record["$ref"].as_str() {
            Some("#/components/schemas/Message" | "#/components/schemas/EventMessage") => "GoneMessage",
            Some("#/components/schemas/Session") => "GoneSession",
            _ => continue,
        };
        *record = json!({"oneOf": [record, {"$ref": format!("#/components/schemas/{short_form}")}]});
    }
}

#[test]
fn a_caller_of_the_last_release_is_served_by_this_one() {
    let mut released = released_document();
    correct(&mut released);
    let changes = breaking_changes(&released, &hotline::routes::document());
    assert!(
        changes.is_empty(),
        "the API of {} has changed; add instead:\n{}",
        released["info"]["version"],
        changes.join("\n")
    );
    let paths = released["paths"].as_object().expect("paths");
    assert!(paths.len() > 80, "{} paths are kept", paths.len());
}

/// The parts of the document that the cases change.
const CONTACTS: &str = "/paths/~1api~1v1~1contacts";
const SENT: &str = "/components/schemas/ContactCreate";
const RECEIVED: &str = "/components/schemas/Contact";

fn at<'a>(document: &'a mut Value, pointer: &str) -> &'a mut Value {
    document.pointer_mut(pointer).unwrap_or_else(|| panic!("nothing at {pointer}"))
}

fn remove(document: &mut Value, pointer: &str, name: &str) {
    let removed = at(document, pointer).as_object_mut().expect("an object").remove(name);
    assert!(removed.is_some(), "{pointer} has no {name}");
}

/// A change of the document.
type Change = fn(&mut Value);

/// Changes that a caller of the release would notice.
const BREAKING: &[(&str, Change)] = &[
    ("a removed path", |new| remove(new, "/paths", "/api/v1/contacts")),
    ("a removed method", |new| remove(new, CONTACTS, "post")),
    ("a removed status", |new| remove(new, &format!("{CONTACTS}/post/responses"), "201")),
    ("a removed header of a response", |new| {
        remove(new, &format!("{CONTACTS}/post/responses/201/headers"), "X-Request-Id");
    }),
    ("a removed parameter", |new| {
        at(new, &format!("{CONTACTS}/get/parameters")).as_array_mut().expect("a list").remove(0);
    }),
    ("a required parameter", |new| at(new, &format!("{CONTACTS}/get/parameters/0"))["required"] = json!(true)),
    ("a new required parameter", |new| {
        let added = json!({"in": "query", "name": "reason", "required": true, "schema": {"type": "string"}});
        at(new, &format!("{CONTACTS}/get/parameters")).as_array_mut().expect("a list").push(added);
    }),
    ("another type of a parameter", |new| {
        *at(new, &format!("{CONTACTS}/get/parameters/0/schema/type")) = json!("boolean");
    }),
    ("a removed kind of body", |new| {
        remove(new, &format!("{CONTACTS}/post/requestBody/content"), "application/json");
    }),
    ("a removed field of a request", |new| remove(new, &format!("{SENT}/properties"), "code")),
    ("a new required field of a request", |new| {
        at(new, &format!("{SENT}/properties"))["reason"] = json!({"type": "string"});
        at(new, SENT)["required"] = json!(["reason"]);
    }),
    ("a required field of a request", |new| at(new, SENT)["required"] = json!(["code"])),
    ("a field that no longer takes null", |new| *at(new, &format!("{SENT}/properties/code/type")) = json!("string")),
    ("a shorter text in a request", |new| *at(new, &format!("{SENT}/properties/code/maxLength")) = json!(10)),
    ("a pattern of a request", |new| *at(new, &format!("{SENT}/properties/code/pattern")) = json!("^x$")),
    ("a removed field of a response", |new| remove(new, &format!("{RECEIVED}/properties"), "name")),
    ("a field that may be missing", |new| at(new, RECEIVED)["required"] = json!([])),
    ("another type of a field", |new| *at(new, &format!("{RECEIVED}/properties/isGroup/type")) = json!("string")),
    ("a field that may be null", |new| {
        *at(new, &format!("{RECEIVED}/properties/isGroup/type")) = json!(["boolean", "null"]);
    }),
    ("a removed value", |new| *at(new, "/components/schemas/TicketStatus/enum") = json!(["open"])),
    ("another format", |new| *at(new, "/components/schemas/Timestamp/format") = json!("date")),
    ("a removed event", |new| remove(new, "/webhooks", "contact.created")),
];

/// Changes that a caller would not notice.
const ADDITIVE: &[(&str, Change)] = &[
    ("a new path", |new| {
        let path = at(new, CONTACTS).clone();
        at(new, "/paths")["/api/v1/people"] = path;
    }),
    ("a new optional parameter", |new| {
        let added = json!({"in": "query", "name": "reason", "schema": {"type": "string"}});
        at(new, &format!("{CONTACTS}/get/parameters")).as_array_mut().expect("a list").push(added);
    }),
    ("a new optional field of a request", |new| {
        at(new, &format!("{SENT}/properties"))["reason"] = json!({"type": "string"});
    }),
    ("a new field of a response", |new| {
        at(new, &format!("{RECEIVED}/properties"))["reason"] = json!({"type": "string"});
        at(new, RECEIVED)["required"].as_array_mut().expect("a list").push(json!("reason"));
    }),
    ("a new value", |new| {
        at(new, "/components/schemas/TicketStatus/enum").as_array_mut().expect("a list").push(json!("paused"));
    }),
    ("a new status", |new| {
        let response = json!({"$ref": "#/components/responses/Conflict"});
        at(new, &format!("{CONTACTS}/get/responses"))["425"] = response;
    }),
    ("a longer text in a request", |new| *at(new, &format!("{SENT}/properties/code/maxLength")) = json!(1000)),
    ("another description", |new| at(new, CONTACTS)["get"]["description"] = json!("Lists them.")),
    ("a schema in place of its reference", |new| {
        let schema = at(new, "/components/schemas/Timestamp").clone();
        *at(new, &format!("{RECEIVED}/properties/createdAt")) = schema;
    }),
];

#[test]
fn breaking_changes_are_found_and_additive_ones_are_not() {
    let old = released_document();
    assert_eq!(breaking_changes(&old, &old), Vec::<String>::new());
    for (what, change) in BREAKING {
        let mut new = old.clone();
        change(&mut new);
        assert!(!breaking_changes(&old, &new).is_empty(), "{what} is not found");
    }
    for (what, change) in ADDITIVE {
        let mut new = old.clone();
        change(&mut new);
        assert_eq!(breaking_changes(&old, &new), Vec::<String>::new(), "{what}");
    }
}
