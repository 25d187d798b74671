use std::borrow::Cow;

use hotline_persistence::tables::tags::TagId;
use serde_json::json;

use super::*;
use crate::web::request::values::Name;

struct Order {
    lines: Vec<Name>,
}

impl Input for Order {
    fn name() -> Cow<'static, str> {
        "Order".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let title = fields.required::<Name>("title");
        let lines = fields.objects("lines", 3, |fields| fields.required("name"));
        title?;
        Some(Self { lines: lines.unwrap_or_default() })
    }
}

#[test]
fn every_failing_field_is_named_with_its_path() {
    let body = json!({"title": " ", "lines": [{"name": "a"}, {"name": 7}, 8]});
    let error =
        Fields::parse::<Order>(&body, body.to_string().as_bytes()).map(|order| order.lines.len()).expect_err("refused");
    let fields: Vec<&str> = error
        .details
        .as_deref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|detail| detail["field"].as_str())
        .collect();
    assert_eq!(fields, ["title", "lines[1].name", "lines[2]"]);
}

#[test]
fn a_form_writes_everything_as_text() {
    struct Parts {
        id: TagId,
        flag: bool,
        title: Name,
        inner: Option<Name>,
        lines: Vec<Name>,
    }
    impl Input for Parts {
        fn name() -> Cow<'static, str> {
            "Parts".into()
        }

        fn read(fields: &mut Fields<'_>) -> Option<Self> {
            let (id, flag, title) = (fields.required("id"), fields.required("flag"), fields.required("title"));
            let inner = fields.object("inner", |inner| inner.required("name"));
            let lines = fields.list("lines", 3).unwrap_or_default();
            Some(Self { id: id?, flag: flag?, title: title?, inner, lines })
        }
    }
    let form = |inner: &str, title: &str| {
        let texts = json!({"id": "7", "flag": "true", "title": title, "inner": inner, "lines": "[\"a\", \"b\"]"});
        Fields::parse_form::<Parts>(texts.as_object().expect("an object"))
    };
    // A text field stays text, even if it looks like JSON.
    let parts = form(r#"{"name": "x"}"#, "{\"a\": 1}").expect("accepted");
    assert_eq!((parts.id, parts.flag, parts.title.0.as_str()), (TagId::new(7), true, "{\"a\": 1}"));
    assert_eq!((parts.inner.map(|name| name.0).as_deref(), parts.lines.len()), (Some("x"), 2));
    let error = form("x", "").map(|parts| parts.lines.len()).expect_err("refused");
    assert_eq!(error.message, "title must not be blank; inner must be an object");
    let error = form(r#"{"name": 7}"#, "a").map(|parts| parts.lines.len()).expect_err("refused");
    assert_eq!(error.message, "inner.name must be a string");
}

#[test]
fn what_is_read_is_what_is_documented() {
    let schema = Fields::describe::<Order>();
    assert_eq!(schema["required"], json!(["title"]));
    assert_eq!(schema["properties"]["lines"]["items"]["required"], json!(["name"]));
}
