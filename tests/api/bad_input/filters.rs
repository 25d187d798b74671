//! Query parameters that are refused, derived from the schemas of all operations.

use hotline::openapi::Operation;
use serde_json::Value;

use super::{checked, world};
use crate::front_door::table::name;
use crate::front_door::world::World;
use crate::steps::NOBODY;
use crate::support::TestApp;

/// Parameters that are never refused: a number out of range becomes the nearest valid one.
const FORGIVING: [&str; 2] = ["page", "perPage"];

/// Values that a parameter of this name refuses, although its schema does not say so.
const SPECIAL: [(&str, &[&str]); 2] =
    [("number", &["abc", "", "1234567", "1234567890123456"]), ("email", &["abc", "", "@", "a%40b%40c"])];

/// Values that the parameter refuses, encoded for a URL.
fn refused_values(name: &str, schema: &Value) -> Vec<String> {
    let by_type: &[&str] = match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("integer"), _) => &["abc", "", "1.5", "1e3", "%00", "1,2", "null", "%FF"],
        (Some("boolean"), _) => &["maybe", "", "1", "yes", "%00"],
        (_, Some("date-time")) => {
            &["yesterday", "", "2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "%00", "99999-01-01T00:00:00Z"]
        }
        _ if schema.get("enum").is_some() => &["bogus", "", "%00", "Open;", "open,closed", "%FF"],
        _ => &["%00", "a%00b"],
    };
    let mut bad: Vec<String> = by_type.iter().map(|value| (*value).to_owned()).collect();
    if let Some(max_length) = schema["maxLength"].as_u64().and_then(|length| usize::try_from(length).ok()) {
        bad.push("x".repeat(max_length + 1));
    }
    let special = SPECIAL.iter().find(|(special_name, _)| *special_name == name);
    bad.extend(special.into_iter().flat_map(|(_, values)| values.iter().map(|value| (*value).to_owned())));
    bad
}

/// Every operation with query parameters, and a path to it.
async fn operations_with_query<'a>(world: &'a World<'_>) -> Vec<(&'a Operation, String)> {
    let mut operations = Vec::new();
    for operation in world.operations.iter().filter(|operation| !operation.query.is_empty()) {
        let targets = world.targets(operation).await;
        operations.push((operation, World::path(operation, &targets)));
    }
    assert!(operations.len() >= 19, "too few operations are found: {}", operations.len());
    operations
}

#[actix_web::test]
async fn every_operation_names_the_parameter_whose_value_it_refuses() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    let mut count = 0;
    for (operation, path) in operations_with_query(&world).await {
        let filters: Vec<(&str, Vec<String>)> = operation
            .query
            .iter()
            .filter(|(name, _)| !FORGIVING.contains(&name.as_str()))
            .map(|(name, schema)| (name.as_str(), refused_values(name, schema)))
            .collect();
        for (filter, values) in &filters {
            for value in values {
                let reply = checked(world.api.get(&format!("{path}?{filter}={value}")).await);
                assert_eq!(reply.invalid_fields(), [*filter], "{path}?{filter}={value}");
                count += 1;
            }
            let twice = format!("{path}?{filter}={0}&{filter}={0}", values[0]);
            assert_eq!(checked(world.api.get(&twice).await).invalid_fields(), [*filter], "{twice}");
        }
        let all: Vec<String> = filters.iter().map(|(filter, values)| format!("{filter}={}", values[0])).collect();
        let mut named = checked(world.api.get(&format!("{path}?{}", all.join("&"))).await).invalid_fields();
        named.sort();
        let mut expected: Vec<&str> = filters.iter().map(|(filter, _)| *filter).collect();
        expected.sort_unstable();
        assert_eq!(named, expected, "{}", name(operation));
        for odd in ["%", "%zz", "&&&", "=", "a=b=c", "%00=%00", "page=%00&perPage=%FF", "status"] {
            let reply = checked(world.api.get(&format!("{path}?{odd}")).await);
            assert!([200, 422].contains(&reply.status.as_u16()), "{path}?{odd}: {}", reply.body);
        }
    }
    assert!(count > 400, "too few values were tried: {count}");
    app.stop().await;
}

#[actix_web::test]
async fn an_id_that_no_record_has_gets_the_same_404_in_every_filter() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    let not_found = world.api.get(&format!("/tickets/{NOBODY}")).await.body;
    let mut count = 0;
    for (operation, path) in operations_with_query(&world).await {
        for (filter, _) in operation.query.iter().filter(|(filter, _)| filter.ends_with("Id")) {
            let in_range = [NOBODY, 0, -1, i64::MAX, i64::MIN].map(|id| id.to_string());
            for absent in in_range.iter().map(String::as_str).chain(["99999999999999999999", "-99999999999999999999"]) {
                let reply = checked(world.api.get(&format!("{path}?{filter}={absent}")).await);
                reply.error(404, "ERR_API_NOT_FOUND");
                assert_eq!(reply.body, not_found, "{path}?{filter}={absent}");
                count += 1;
            }
        }
    }
    assert!(count > 60, "too few ids were tried: {count}");
    app.stop().await;
}
