//! The API document is up to date, complete and consistent.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::schema::{Schemas, types};

fn document() -> Value {
    hotline::routes::document()
}

/// Every operation with its path and method.
fn operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods");
        methods.iter().map(move |(method, operation)| (format!("{method} {path}"), operation))
    })
}

/// Calls `visit` with every object of a value and where it is.
fn walk(value: &Value, at: &str, visit: &mut impl FnMut(&str, &Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(at, object);
            object.iter().for_each(|(name, inner)| walk(inner, &format!("{at}/{name}"), visit));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, inner)| walk(inner, &format!("{at}/{index}"), visit));
        }
        _ => {}
    }
}

#[test]
fn openapi_json_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let written = std::fs::read_to_string(file).unwrap_or_default();
    assert!(written == format!("{:#}\n", document()), "openapi.json is out of date: run `make openapi`");
}

#[test]
fn the_panels_document_has_the_operations_of_the_api_and_its_own() {
    let (api, panel) = (document(), hotline::routes::panel_document());
    let of_api: BTreeSet<&str> = operations(&api)
        .filter(|(name, _)| name.contains(" /api/v1/"))
        .filter_map(|(_, operation)| operation["operationId"].as_str())
        .collect();
    let mut ids = BTreeSet::new();
    let mut unauthenticated = Vec::new();
    for (name, operation) in operations(&panel) {
        let id = operation["operationId"].as_str().expect("an id");
        assert!(ids.insert(id), "{name}: another operation has its id");
        assert!(name.contains(" /panel/api/v1/"), "{name}");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        assert!(operation["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        if operation["security"] == json!([]) {
            unauthenticated.push(id);
        } else {
            assert!(operation.get("security").is_none() && operation["responses"].get("401").is_some(), "{name}");
        }
    }
    unauthenticated.sort_unstable();
    assert_eq!(unauthenticated, ["getSignInOptions", "readLink", "requestReset", "signIn", "signOut", "useLink"]);
    let missing: Vec<_> = of_api.difference(&ids).collect();
    assert!(missing.is_empty(), "the panel lacks operations of the API: {missing:?}");
    // Every reference has a target.
    walk(&panel, "#", &mut |_, object| {
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            Schemas(&panel).target(reference);
        }
    });
}

#[test]
fn every_operation_says_what_a_caller_must_know() {
    let document = document();
    assert!(document["security"].as_array().is_some_and(|list| !list.is_empty()), "the document requires no token");
    let mut ids = BTreeSet::new();
    for (name, operation) in operations(&document) {
        let text = |field: &str| operation[field].as_str().unwrap_or_default();
        assert!(ids.insert(text("operationId").to_owned()), "{name}: another operation has its id");
        assert!(!text("operationId").is_empty() && !text("summary").is_empty(), "{name}");
        let successes = operation["responses"].as_object().expect("responses").keys();
        let successes = successes.filter(|status| status.starts_with('2') || *status == "101");
        assert_eq!(successes.count(), 1, "{name}");
        let tag = operation["tags"][0].as_str().unwrap_or_default();
        if TAGS_OUTSIDE_API.contains(&tag) && operation.get("x-permission").is_none() {
            // It takes a visitor's token or none, never a company's.
            let requirements = operation["security"].as_array().expect("a security of its own");
            let known = [json!([]), json!([{"visitor": []}]), json!([{"visitor": []}, {}])];
            assert!(known.contains(&operation["security"]), "{name}: {requirements:?}");
            let path = name.split(' ').nth(1).unwrap_or_default();
            assert!(!path.starts_with("/api/"), "{name} is an operation of the API that needs no token");
            continue;
        }
        // The security of the whole document applies.
        assert!(operation.get("security").is_none(), "{name} has a security of its own");
        let permission = &operation["x-permission"];
        let module = permission["module"].as_str().unwrap_or_default();
        assert!(hotline::web::admission::modules::MODULES.contains(&module), "{name}: {permission}");
        assert_eq!(permission["method"].as_str(), name.split(' ').next().map(str::to_uppercase).as_deref(), "{name}");
        for status in ["401", "403", "429", "500", "503"] {
            assert!(operation["responses"].get(status).is_some(), "{name} does not document {status}");
        }
    }
}

/// A schema, or the one it refers to.
fn resolve<'a>(schemas: Schemas<'a>, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => resolve(schemas, schemas.target(reference)),
        None => schema,
    }
}

#[test]
fn a_list_can_be_filtered_by_the_timestamps_of_its_rows() {
    let document = hotline::routes::panel_document();
    let schemas = Schemas(&document);
    let (mut lists, mut missing) = (0, Vec::new());
    for (name, operation) in operations(&document) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters: BTreeSet<&str> = parameters.filter_map(|each| each["name"].as_str()).collect();
        if !parameters.contains("page") {
            continue;
        }
        let page = resolve(schemas, &operation["responses"]["200"]["content"]["application/json"]["schema"]);
        let row = resolve(schemas, &resolve(schemas, &page["properties"]["data"])["items"]);
        let fields = row["properties"].as_object().unwrap_or_else(|| panic!("{name}: no rows: {page}"));
        lists += 1;
        for span in ["created", "updated"].into_iter().filter(|span| fields.contains_key(&format!("{span}At"))) {
            for filter in [format!("{span}From"), format!("{span}To")] {
                if !parameters.contains(filter.as_str()) {
                    missing.push(format!("{name} has no {filter}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(lists > 30, "only {lists} lists are found");
}

/// The tags of what is served outside the API.
const TAGS_OUTSIDE_API: [&str; 3] = ["visitors", "hooks", "health"];

#[test]
fn operations_that_take_an_idempotency_key_or_a_cursor_are_marked() {
    let document = document();
    let (mut keyed, mut paged) = (0, 0);
    for (name, operation) in operations(&document) {
        let has = |parameter: &str| {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            parameters.clone().any(|each| each["name"] == parameter)
        };
        assert_eq!(operation["x-idempotency-key"] == true, has("Idempotency-Key"), "{name}");
        let pagination = json!({"parameter": "cursor", "next": "meta.nextCursor"});
        assert_eq!(operation["x-pagination"] == pagination, has("cursor"), "{name}");
        keyed += usize::from(has("Idempotency-Key"));
        paged += usize::from(has("cursor"));
    }
    assert!(keyed > 50 && paged > 20, "{keyed} {paged}");
    let list = &document["paths"]["/api/v1/tags"]["get"]["responses"]["200"]["description"];
    assert_eq!(list, "A page of tags.");
    let removed = &document["paths"]["/api/v1/tags/{tagId}"]["delete"]["responses"]["204"]["description"];
    assert_eq!(removed, "The tag is deleted.");
}

#[test]
fn what_is_served_outside_the_api_is_in_the_document() {
    let document = document();
    let tags: BTreeSet<&str> =
        document["tags"].as_array().expect("tags").iter().filter_map(|tag| tag["name"].as_str()).collect();
    let listed: Vec<String> = operations(&document)
        .filter(|(_, operation)| TAGS_OUTSIDE_API.iter().any(|tag| operation["tags"][0] == *tag))
        .map(|(name, _)| name)
        .collect();
    assert!(TAGS_OUTSIDE_API.iter().all(|tag| tags.contains(tag)), "{tags:?}");
    assert_eq!(listed.len(), 16, "{listed:?}");
    // Every path that the metrics know is in a document, except the documents themselves and files.
    let paths = document["paths"].as_object().expect("paths");
    let panel = hotline::routes::panel_document();
    let of_panel = panel["paths"].as_object().expect("paths");
    let is_missing = |path: &String| !paths.contains_key(path) && !of_panel.contains_key(path);
    let missing: Vec<String> = hotline::routes::paths().into_iter().filter(is_missing).collect();
    let files =
        ["/api/v1/openapi.json", "/panel/api/v1/openapi.json", "/docs", "/docs/{file}", "/media/{company}/{id}"];
    assert_eq!(missing, [&files[..], &hotline::panel::pages::PATHS].concat());
}

#[test]
fn every_id_of_a_path_is_a_parameter() {
    let document = document();
    for (name, operation) in operations(&document) {
        let in_path: Vec<&str> = name.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
        let documented: Vec<&str> = of_path
            .inspect(|parameter| assert_eq!(parameter["required"], true, "{name}"))
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        assert_eq!(documented, in_path, "{name}");
        let named: BTreeSet<_> = parameters.iter().map(|parameter| parameter["name"].as_str()).collect();
        assert_eq!(named.len(), parameters.len(), "{name} has a parameter twice");
    }
}

#[test]
fn every_reference_has_a_target_and_every_schema_a_reference() {
    let document = document();
    let mut used = BTreeSet::new();
    walk(&document, "#", &mut |_, object| {
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            Schemas(&document).target(reference);
            used.insert(reference.to_owned());
        }
    });
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    for name in schemas.keys() {
        assert!(used.contains(&format!("#/components/schemas/{name}")), "nothing refers to {name}");
    }
}

#[test]
fn every_example_is_valid() {
    let document = document();
    let schemas = Schemas(&document);
    let mut examples = 0;
    walk(&document, "#", &mut |at, object| {
        let Some(example) = object.get("example") else { return };
        // The example of a parameter or a content is beside its schema, and any other within it.
        let schema = object.get("schema").cloned().unwrap_or_else(|| Value::Object(object.clone()));
        let errors = schemas.errors(&schema, example);
        assert!(errors.is_empty(), "{at}: {errors:?}");
        examples += 1;
    });
    assert!(examples > 100, "only {examples} examples were found");
}

/// Whether a reader sees what a value looks like: an example, words to choose from, or `true` and `false`.
fn is_shown(schemas: Schemas<'_>, schema: &Value) -> bool {
    if schema.get("example").is_some() || schema.get("enum").is_some() {
        return true;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return is_shown(schemas, schemas.target(reference));
    }
    for list in ["oneOf", "anyOf", "allOf"] {
        if let Some(branches) = schema.get(list).and_then(Value::as_array) {
            return branches.iter().all(|one| one["type"] == "null" || is_shown(schemas, one));
        }
    }
    if let Some(items) = schema.get("items") {
        return is_shown(schemas, items);
    }
    // Each property of an object is checked by itself.
    !types(&schema["type"]).into_iter().any(|word| ["string", "number", "integer"].contains(&word))
}

#[test]
fn every_field_shows_what_it_looks_like() {
    let document = document();
    let mut without_example = Vec::new();
    walk(&document, "#", &mut |at, object| {
        for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if !is_shown(Schemas(&document), property) {
                without_example.push(format!("{at}/{name}"));
            }
        }
        if object.get("in").is_some_and(|place| place == "query" || place == "path")
            && !is_shown(Schemas(&document), &object["schema"])
        {
            without_example.push(at.to_owned());
        }
    });
    assert!(without_example.is_empty(), "these have no example:\n{}", without_example.join("\n"));
}

#[test]
fn every_schema_says_what_it_is() {
    let document = document();
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        let text = schema["description"].as_str().unwrap_or_default();
        assert!(!text.is_empty() && !text.contains("as shown"), "{name}: {text:?} tells a reader nothing");
    }
}

/// Names that mean something else in most languages of generated clients.
const RESERVED: [&str; 5] = ["Error", "File", "Event", "ValidationError", "Response"];

#[test]
fn client_generators_find_valid_names_and_no_combined_schemas() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    for name in schemas.keys() {
        assert!(!RESERVED.contains(&name.as_str()), "{name} is a reserved name");
        assert!(name.chars().all(|character| character.is_ascii_alphanumeric()), "{name} is not a valid type name");
    }
    for (name, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        let is_name = id.starts_with(|first: char| first.is_ascii_lowercase())
            && id.chars().all(|character| character.is_ascii_alphanumeric());
        assert!(is_name, "{name}: {id:?} is not a valid function name");
        for content in operation["requestBody"]["content"].as_object().into_iter().flat_map(Map::values) {
            assert!(content["schema"].get("$ref").is_some(), "{name}: its body has no name");
        }
    }
    walk(&document, "#", &mut |at, object| {
        let words = object.get("enum").and_then(Value::as_array);
        assert!(words.is_none_or(|words| !words.contains(&Value::Null)), "{at}: null is a value of an enum");
        assert!(!object.contains_key("allOf"), "{at} combines schemas by allOf");
    });
}

#[test]
fn the_enum_has_exactly_the_error_codes_in_the_sources() {
    fn find_codes(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                find_codes(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                let codes = text.split("ERR_API_").skip(1).map(|rest| {
                    let end = rest.find(|character: char| character != '_' && !character.is_ascii_uppercase());
                    format!("ERR_API_{}", &rest[..end.unwrap_or(rest.len())])
                });
                found.extend(codes.filter(|code| code != "ERR_API_"));
            }
        }
    }
    let mut used = BTreeSet::new();
    find_codes(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut used);
    let document = document();
    let listed = &document["components"]["schemas"]["ApiError"]["properties"]["error"]["properties"]["code"]["enum"];
    let listed: BTreeSet<String> =
        listed.as_array().expect("words").iter().filter_map(|code| code.as_str().map(str::to_owned)).collect();
    assert_eq!(listed, used);
}

#[test]
fn what_is_always_sent_is_required() {
    let document = document();
    let mut optional = BTreeSet::new();
    let bodies: BTreeSet<&str> = operations(&document)
        .flat_map(|(_, operation)| operation["requestBody"]["content"].as_object().into_iter().flat_map(Map::values))
        .filter_map(|content| content["schema"]["$ref"].as_str()?.rsplit('/').next())
        .collect();
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        if bodies.contains(name.as_str()) {
            continue;
        }
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        for field in schema["properties"].as_object().into_iter().flat_map(Map::keys) {
            if !required.iter().any(|name| name == field) {
                optional.insert(format!("{name}.{field}"));
            }
        }
    }
    let sometimes_left_out = [
        // Only for a row of a list.
        "ChosenOption.description",
        // Only if a contact wrote the message.
        "EventMessage.contact",
        "EventMessage.reply",
        "EventMessage.ticket",
        // Only the field of the content's kind.
        "MessageContent.contacts",
        "MessageContent.form",
        "MessageContent.forwarded",
        "MessageContent.frequentlyForwarded",
        "MessageContent.location",
        "MessageContent.order",
        "MessageContent.product",
        "MessageContent.referral",
        "MessageContent.reply",
        "MessageContent.story",
        // One in lists paged by cursor, the other in lists paged by number.
        "PageMeta.nextCursor",
        "PageMeta.page",
        // Sent once, in the response that opens the session.
        "Session.token",
        "VisitorSession.token",
    ];
    assert_eq!(optional, BTreeSet::from(sometimes_left_out.map(str::to_owned)));
}
