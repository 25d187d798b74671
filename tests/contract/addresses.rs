//! Every address that somebody outside the installation can give, and every client that could call one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The fields of bodies that hold an address, and why none of them leads this service into an internal network.
const ADDRESS_FIELDS: &[(&str, &str)] = &[
    ("allowedOrigins", "compared with the `Origin` of a browser, never called"),
    ("mediaUrl", "kept as text of a referral, never called"),
    ("profilePicUrl", "shown to people, never called"),
    ("providerUrl", "set by administrators of the installation, and called through src/outbound"),
    ("sourceUrl", "kept as text of a referral, never called"),
    ("url", "of a webhook: called through src/outbound; of a visitor's page: never called"),
];

/// The files that create HTTP clients, and whose addresses these call.
const CLIENTS: &[(&str, &str)] = &[
    ("src/cli/doctor/machine.rs", "the operator's: the addresses that serve listens on"),
    ("src/cli/health.rs", "the operator's: --url, or the address that serve listens on"),
    ("src/cluster/tests/mod.rs", "a test"),
    ("src/outbound/mod.rs", "anybody's, guarded"),
    ("src/providers/graph.rs", "the operator's: --provider-url, and what the command line gave a channel"),
    ("src/telemetry/otlp.rs", "the operator's: --otlp-endpoint"),
];

/// Collects the properties of a schema and of all that it refers to.
fn collect_properties<'a>(
    document: &'a Value,
    schema: &'a Value,
    seen: &mut BTreeSet<&'a str>,
    found: &mut BTreeMap<&'a str, &'a Value>,
) {
    match schema {
        Value::Object(object) => {
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                if seen.insert(reference) {
                    let target = document.pointer(reference.trim_start_matches('#')).expect("a schema");
                    collect_properties(document, target, seen, found);
                }
                return;
            }
            if let Some(Value::Object(named)) = object.get("properties") {
                found.extend(named.iter().map(|(name, property)| (name.as_str(), property)));
            }
            object.values().for_each(|inner| collect_properties(document, inner, seen, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| collect_properties(document, inner, seen, found)),
        _ => {}
    }
}

fn is_address(name: &str, property: &Value) -> bool {
    let name = name.to_ascii_lowercase();
    let is_named = ["url", "uri", "origin", "host", "endpoint", "link", "callback", "server"]
        .iter()
        .any(|word| name.contains(word));
    let is_typed = property["format"] == "uri";
    // The origin of a card is a label, and an id is not an address.
    is_typed || is_named && !name.ends_with("id") && name != "origin"
}

#[test]
fn every_address_that_a_body_can_give_is_known() {
    let mut given = BTreeSet::new();
    let documents = [hotline::routes::document(), hotline::routes::panel_document()];
    for document in &documents {
        let paths = document["paths"].as_object().expect("paths");
        let mut found = BTreeMap::new();
        for operation in paths.values().flat_map(|methods| methods.as_object().expect("methods").values()) {
            collect_properties(document, &operation["requestBody"], &mut BTreeSet::new(), &mut found);
        }
        assert!(found.len() > 50, "{found:?}");
        given.extend(
            found.iter().filter(|(name, property)| is_address(name, property)).map(|(name, _)| (*name).to_owned()),
        );
    }
    let known: BTreeSet<String> = ADDRESS_FIELDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(given, known, "add a new address to ADDRESS_FIELDS, with what is done with it");
}

fn collect_sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect_sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_http_client_is_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    ["src", "actors/src", "persistence/src"].iter().for_each(|folder| collect_sources(&root.join(folder), &mut files));
    let makes_client = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).expect("a file");
        ["tls::client()", "tls::http1_client()", "reqwest::get("].iter().any(|call| text.contains(call))
    };
    let made: BTreeSet<String> = files
        .iter()
        .filter(|file| makes_client(file))
        .map(|file| file.strip_prefix(root).expect("below it").to_string_lossy().into_owned())
        .collect();
    let known: BTreeSet<String> = CLIENTS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(made, known, "add a new client to CLIENTS, with whose addresses it calls");
}
