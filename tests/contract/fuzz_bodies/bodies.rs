//! The bodies that the fuzz test sends: any JSON, and valid bodies with mutations.

use std::sync::atomic::{AtomicU32, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// Stands in a body for text that no JSON value can hold.
const PLACEHOLDER: &str = "@place@";

/// A mutation of a valid body.
#[derive(Clone, Debug)]
pub(super) enum Mutation {
    /// Puts this text, JSON or not, in the place of a value.
    Replace(Index, String),
    Remove(Index),
    /// Gives an object's field a second time.
    Repeat(Index, String),
    /// Wraps a value in this many lists.
    Nest(Index, usize),
    /// Cuts the text, or changes a byte of it.
    Cut(Index),
    Byte(Index, u8),
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(super) enum RequestBody {
    /// Any JSON at all.
    AnyJson(Value),
    /// A valid body, without the fields whose bits are set, and with these mutations.
    Mutated(u32, Vec<Mutation>),
}

/// Texts of values that are often handled wrongly.
fn edge_case_text() -> impl Strategy<Value = String> {
    let known = select(vec![
        "null",
        "true",
        "false",
        "[]",
        "{}",
        "[null]",
        "{\"id\":null}",
        "0",
        "-1",
        "1",
        "2",
        "3",
        "1.5",
        "-0.0",
        "1e308",
        "1e400",
        "-9223372036854775808",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "123456789012345678901234567890",
        "0.1e-400",
        "NaN",
        "01",
        "\"\"",
        "\" \"",
        "\"\\u0000\"",
        "\"a\\u0000b\"",
        "\"\\ud800\"",
        "\"\\ud83d\\ude00\"",
        "\"\u{202e}\u{feff}\u{200b}\"",
        "\"\\n\\r\\t\"",
        "\"'; drop table tickets; --\"",
        "\"{{name}}\"",
        "\"%00\"",
        "\"7\"",
        "\"null\"",
        "\"#ffffff\"",
        "\"a@b\"",
        "\"11987654321\"",
        "\"2026-02-30T00:00:00Z\"",
        "\"9999-12-31T23:59:59.999Z\"",
        "\"2026-01-31T12:00:00+23:59\"",
        "{\"a\":1,\"a\":2}",
        "[[[[[[]]]]]]",
        "'x'",
        "",
    ]);
    let long = (select(vec!["x", "é", "😀", " ", "9", "\\u0001"]), select(vec![64, 255, 256, 10_001, 65_537]));
    prop_oneof![
        6 => known.prop_map(str::to_owned),
        1 => long.prop_map(|(text, times)| format!("\"{}\"", text.repeat(times))),
        1 => (1usize..1200).prop_map(|items| format!("[{}]", vec!["1"; items].join(","))),
        2 => any::<String>().prop_map(|text| json!(text).to_string()),
        1 => any::<f64>().prop_map(|number| json!(number).to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            vec((any::<String>(), inner), 0..8).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

pub(super) fn request_body() -> impl Strategy<Value = RequestBody> {
    let mutation = prop_oneof![
        8 => (any::<Index>(), edge_case_text()).prop_map(|(at, text)| Mutation::Replace(at, text)),
        3 => any::<Index>().prop_map(Mutation::Remove),
        2 => (any::<Index>(), edge_case_text()).prop_map(|(at, text)| Mutation::Repeat(at, text)),
        1 => (any::<Index>(), select(vec![1, 2, 100, 127, 200, 50_000])).prop_map(|(at, times)| Mutation::Nest(at, times)),
        1 => any::<Index>().prop_map(Mutation::Cut),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
    ];
    let left_out = prop_oneof![2 => Just(0), 3 => any::<u32>()];
    let mutated =
        (left_out, vec(mutation, 0..4)).prop_map(|(left_out, mutations)| RequestBody::Mutated(left_out, mutations));
    prop_oneof![1 => any_json().prop_map(RequestBody::AnyJson), 6 => mutated]
}

/// The JSON pointers of all values of a body.
fn pointers(value: &Value) -> Vec<String> {
    fn visit(value: &Value, at: &str, pointers: &mut Vec<String>) {
        let mut inside = |name: &str, inner: &Value| {
            let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            pointers.push(place.clone());
            visit(inner, &place, pointers);
        };
        match value {
            Value::Object(object) => object.iter().for_each(|(name, inner)| inside(name, inner)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, inner)| inside(&index.to_string(), inner));
            }
            _ => {}
        }
    }
    let mut pointers = vec![String::new()];
    visit(value, "", &mut pointers);
    pointers
}

/// Fields whose values are unique in a company.
const UNIQUE: &[&str] = &["name", "shortcut", "key", "email", "sku"];

/// The body, with a number appended to each value that must be unique.
pub(super) fn with_unique_values(body: &Value) -> Value {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut body = body.clone();
    for (name, value) in body.as_object_mut().into_iter().flatten() {
        if let Value::String(text) = value
            && UNIQUE.contains(&name.as_str())
        {
            text.push_str(&number.to_string());
        }
    }
    body
}

impl RequestBody {
    /// The bytes of the body.
    pub(super) fn bytes(&self, valid: &Value) -> Vec<u8> {
        match self {
            Self::AnyJson(value) => value.to_string().into_bytes(),
            Self::Mutated(left_out, mutations) => {
                let mut value = valid.clone();
                if let Some(fields) = value.as_object_mut() {
                    let mut index = 0;
                    fields.retain(|_, _| {
                        index += 1;
                        left_out >> ((index - 1) % 32) & 1 == 0
                    });
                }
                let mut texts = Vec::new();
                let mut bytes = None;
                for mutation in mutations {
                    mutation.apply(&mut value, &mut texts);
                }
                for mutation in mutations {
                    let bytes = bytes.get_or_insert_with(|| render(&value, &texts));
                    mutation.damage(bytes);
                }
                bytes.unwrap_or_else(|| render(&value, &texts))
            }
        }
    }
}

fn placeholder(texts: &mut Vec<String>, text: String) -> Value {
    texts.push(text);
    json!(format!("{PLACEHOLDER}{}", texts.len() - 1))
}

/// The bytes of a body, with each text instead of its placeholder. Later texts are put in first, since they may
/// contain an earlier one's placeholder.
fn render(value: &Value, texts: &[String]) -> Vec<u8> {
    let mut whole = value.to_string();
    for (index, text) in texts.iter().enumerate().rev() {
        whole = whole.replace(&format!("\"{PLACEHOLDER}{index}\""), text);
    }
    whole.into_bytes()
}

impl Mutation {
    fn apply(&self, value: &mut Value, texts: &mut Vec<String>) {
        let pointers = pointers(value);
        let chosen = |at: &Index| at.get(&pointers).as_str();
        match self {
            Self::Replace(at, text) => {
                if let Some(found) = value.pointer_mut(chosen(at)) {
                    *found = placeholder(texts, text.clone());
                }
            }
            Self::Remove(at) => {
                let (parent, name) = chosen(at).rsplit_once('/').unwrap_or(("", ""));
                match value.pointer_mut(parent) {
                    Some(Value::Object(object)) => drop(object.remove(name)),
                    Some(Value::Array(items)) => drop(items.pop()),
                    _ => {}
                }
            }
            Self::Repeat(at, text) => {
                let (parent, name) = chosen(at).rsplit_once('/').unwrap_or(("", ""));
                if let Some(Value::Object(object)) = value.pointer_mut(parent)
                    && let Some(existing) = object.get(name)
                {
                    let twice = placeholder(texts, format!("{existing},{}:{text}", json!(name)));
                    object.insert(name.to_owned(), twice);
                }
            }
            Self::Nest(at, times) => {
                if let Some(found) = value.pointer_mut(chosen(at)) {
                    let nested = format!("{}{found}{}", "[".repeat(*times), "]".repeat(*times));
                    *found = placeholder(texts, nested);
                }
            }
            Self::Cut(_) | Self::Byte(..) => {}
        }
    }

    fn damage(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
            Self::Byte(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            _ => {}
        }
    }
}
