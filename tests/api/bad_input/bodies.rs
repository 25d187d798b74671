//! Bodies that are refused, derived from the schema of every operation that takes one.

use serde_json::{Value, json};

use super::fields::{Field, fields, is_named, object};
use super::{ValidRequest, world};
use crate::front_door::samples::references;
use crate::front_door::table::name;
use crate::front_door::world::unused_id;
use crate::support::TestApp;

const JSON: Option<&str> = Some("application/json");

/// The path of a body with rows that fail one by one, each named in the answer: `contacts/import.rs` tests these.
const ROW_BY_ROW: &str = "/contacts/import";

/// By path, the fields that an empty object lacks, where `required` does not list all of them because some depend on
/// the rest of the body.
const FIELDS_MISSING: [(&str, &[&str]); 4] = [
    ("/campaigns", &["channelId", "contactListId", "message", "name", "scheduledAt"]),
    ("/messages", &["channelId", "type"]),
    ("/tickets/{ticketId}/transfer", &["queueId"]),
    ("/webchat/sessions/{sessionId}/messages", &["body"]),
];

/// The names of the fields that an empty object lacks.
fn missing_fields(request: &ValidRequest<'_>) -> Vec<String> {
    let special = FIELDS_MISSING.iter().find(|(path, _)| *path == request.operation.path);
    match special {
        Some((_, names)) => names.iter().map(|name| (*name).to_owned()).collect(),
        None => {
            let fields = fields(request.operation).into_iter();
            fields.filter(|field| field.is_required && !field.is_inner()).map(|field| field.to_string()).collect()
        }
    }
}

/// The fields that are tested one by one.
fn tested_fields(request: &ValidRequest<'_>) -> impl Iterator<Item = Field> {
    let is_row_by_row = request.operation.path == ROW_BY_ROW;
    fields(request.operation).into_iter().filter(move |field| !(is_row_by_row && field.is_inner()))
}

#[actix_web::test]
async fn every_operation_names_the_field_whose_value_it_refuses() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    let (mut count, mut wrong) = (0, Vec::new());
    for operation in world.operations.iter().filter(|operation| operation.body.is_some()) {
        let request = ValidRequest::of(&world, operation).await;
        for field in tested_fields(&request) {
            for value in field.wrong_types().into_iter().chain(field.refused_values()) {
                if operation.path == ROW_BY_ROW && value == json!([7]) {
                    continue;
                }
                let reply = request.send(&field.put(&request.body, Some(value.clone()))).await;
                let shown: String = value.to_string().chars().take(60).collect();
                count += 1;
                if reply.status != 422 {
                    wrong.push(format!("{request}: {field} = {shown}: {} {}", reply.status, reply.body));
                    continue;
                }
                let named = reply.invalid_fields();
                let others = named.iter().filter(|name| !is_named(&field, std::slice::from_ref(name))).count();
                if !is_named(&field, &named) || (others > 0 && !field.is_inner()) {
                    wrong.push(format!("{request}: {field} = {shown} names {named:?}"));
                }
            }
        }
        // The unchanged body is accepted, so each refusal was for the field.
        request.assert_accepted().await;
    }
    assert!(wrong.is_empty(), "{} of {count} values got a wrong answer:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 1300, "too few values were tried: {count}");
    app.stop().await;
}

#[actix_web::test]
async fn every_missing_field_is_named_at_once() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    let mut count = 0;
    for operation in world.operations.iter().filter(|operation| operation.body.is_some()) {
        let request = ValidRequest::of(&world, operation).await;
        for field in tested_fields(&request).filter(|field| field.is_required) {
            for value in [None, Some(Value::Null)] {
                let reply = request.send(&field.put(&request.body, value)).await;
                assert!(is_named(&field, &reply.invalid_fields()), "{request} without {field}: {}", reply.body);
                count += 1;
            }
        }
        let missing = missing_fields(&request);
        if !missing.is_empty() {
            let mut named = request.send(&json!({})).await.invalid_fields();
            named.sort();
            assert_eq!(named, missing, "{request}");
        }
        // Every wrong field is named at once, too.
        let outer: Vec<Field> = fields(operation).into_iter().filter(|field| !field.is_inner()).collect();
        let wrong = outer.iter().map(|field| (field.to_string(), field.wrong_types()[0].clone()));
        let named = request.send(&object(wrong)).await.invalid_fields();
        for field in &outer {
            assert!(is_named(field, &named), "{request}: {field} is not among {named:?}");
        }
    }
    assert!(count > 40, "too few fields are required: {count}");
    app.stop().await;
}

/// The body with this value in each nullable field that it lacks and `is_wanted` accepts, and how many there are.
fn with_absent_fields_set(
    request: &ValidRequest<'_>,
    value: &Value,
    is_wanted: impl Fn(&Field) -> bool,
) -> (Value, usize) {
    let fields = tested_fields(request).filter(|field| field.is_nullable && is_wanted(field));
    // Fields of the body keep their values, because others depend on them, as on the ticket a message is sent to.
    let absent = fields.filter(|field| !field.is_inner() && request.body.get(field.name()).is_none());
    absent.fold((request.body.clone(), 0), |(body, count), field| (field.put(&body, Some(value.clone())), count + 1))
}

#[actix_web::test]
async fn null_and_blank_text_count_as_absent_in_optional_fields() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    let (mut nulls, mut blanks) = (0, 0);
    for operation in world.operations.iter().filter(|operation| operation.body.is_some()) {
        let request = ValidRequest::of(&world, operation).await;
        let (body, count) = with_absent_fields_set(&request, &Value::Null, |_| true);
        let reply = request.send(&body).await;
        assert_eq!(reply.status.as_u16(), operation.success.0, "{request} {body}: {}", reply.body);
        nulls += count;

        let request = ValidRequest::of(&world, operation).await;
        // A text with a minimum length cannot be blank: every character of a password counts.
        let is_blank = |field: &Field| field.is_text() && field.schema.get("minLength").is_none();
        let (body, count) = with_absent_fields_set(&request, &json!(" \t\n"), |field| {
            is_blank(field) && field.schema["type"] == json!(["string"])
        });
        let reply = request.send(&body).await;
        assert_eq!(reply.status.as_u16(), operation.success.0, "{request} {body}: {}", reply.body);
        blanks += count;
    }
    assert!(nulls > 80 && blanks > 40, "too few fields were set: {nulls} to null, {blanks} to blank text");
    app.stop().await;
}

#[actix_web::test]
async fn an_id_that_no_record_has_gets_the_same_404_however_large_it_is() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    let mut count = 0;
    for operation in &world.operations {
        for field in references(operation) {
            // `orderedIds` must hold every id, and the rows of an import are refused one by one.
            if field.to_string() == "orderedIds" || operation.path == ROW_BY_ROW {
                continue;
            }
            let (targets, body) = world.body(operation, Some(&field)).await;
            let ask = async |id: Value| world.ask(operation, &targets, &field.insert_into(&body, &id)).await;
            let absent = ask(json!(unused_id("ticketId").parse::<i64>().expect("a number"))).await;
            assert_eq!(absent.status, 404, "{field} of {}: {}", name(operation), absent.body);
            let in_range = [i64::MAX, 0, -1, i64::MIN].map(|id| json!(id));
            let out_of_range = [json!(9_223_372_036_854_775_808_u64), json!(1e30), json!(-1e30), json!(f64::MAX)];
            for id in in_range.into_iter().chain(out_of_range) {
                let reply = ask(id.clone()).await;
                assert_eq!(reply.bytes, absent.bytes, "{field} of {}: {id}", name(operation));
                count += 1;
            }
        }
    }
    assert!(count > 100, "too few ids were tried: {count}");
    app.stop().await;
}

#[actix_web::test]
async fn unknown_fields_are_ignored() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    for operation in world.operations.iter().filter(|operation| operation.body.is_some()) {
        let mut request = ValidRequest::of(&world, operation).await;
        for (name, value) in
            [("companyId", json!(world.stranger)), ("id", json!("x")), ("unknown\u{0}", json!({"a": [null]}))]
        {
            request.body[name] = value;
        }
        request.assert_accepted().await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_body_that_is_not_a_json_object_is_refused() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    let nested = "[".repeat(100_000);
    let broken: [&[u8]; 9] = [
        b"{",
        b"{\"body\":",
        b"{'a': 1}",
        b"hello",
        b"{} {}",
        b"\xff\xfe",
        b"{\"body\": \"\\ud800\"}",
        b"{\"body\": NaN}",
        nested.as_bytes(),
    ];
    for operation in world.operations.iter().filter(|operation| operation.body.is_some()) {
        let request = ValidRequest::of(&world, operation).await;
        for bytes in broken {
            request.send_raw(JSON, bytes.to_vec()).await.error(400, "ERR_API_BAD_REQUEST");
        }
        if !operation.body_is_optional {
            request.send_raw(JSON, "").await.error(400, "ERR_API_BAD_REQUEST");
            request.send_raw(None, "").await.error(400, "ERR_API_BAD_REQUEST");
        }
        for other in ["[]", "\"text\"", "7", "null", "true", "[{}]"] {
            let reply = request.send_raw(JSON, other).await;
            assert_eq!(reply.invalid_fields().len(), 1, "{request}: {other}");
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/xml", "json", "application/jsonp"]
        {
            let reply = request.send_raw(Some(kind), request.body.to_string()).await;
            reply.error(415, "ERR_API_UNSUPPORTED_MEDIA_TYPE");
        }
        request.assert_accepted().await;
    }
    app.stop().await;
}

/// Maximum bytes of a body, unless the operation says otherwise.
const MEBIBYTE: usize = 1 << 20;

#[actix_web::test]
async fn a_body_that_is_too_large_gets_a_413() {
    let app = TestApp::shared().await;
    let world = world(&app).await;
    for operation in world.operations.iter().filter(|operation| operation.body.is_some()) {
        let request = ValidRequest::of(&world, operation).await;
        let bytes_max = operation.body_bytes_max.unwrap_or(MEBIBYTE);
        for size in [bytes_max + 1, bytes_max + MEBIBYTE] {
            let mut body = request.body.clone();
            body["filler"] = json!("");
            let body = body.to_string();
            let filler = "x".repeat(size - body.len());
            let body = body.replace(r#""filler":"""#, &format!(r#""filler":"{filler}""#));
            assert_eq!(body.len(), size);
            request.send_raw(JSON, body).await.error(413, "ERR_API_PAYLOAD_TOO_LARGE");
        }
    }
    app.stop().await;
}
