//! Reads a JSON object field by field, and collects everything that is wrong with it before saying so. The same code,
//! run without an object, says which fields there are: the API document is made of it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use hotline_actors::FieldError;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};

use super::bounds::JSON_BYTES_MAX;
use super::schema::{Shape, nullable, or_blank};
use super::values::FromField;
use super::{ApiError, ApiResult};

/// A body that is read field by field.
pub trait Input: Sized {
    /// What its schema is called in the API document.
    fn name() -> Cow<'static, str>;

    /// What is said of it unless there is more to say.
    fn text() -> Option<String> {
        None
    }

    /// Whether no body at all means an empty object.
    const MAY_BE_EMPTY: bool = false;

    /// Bytes of the body.
    const BYTES_MAX: usize = JSON_BYTES_MAX;

    /// Whether a `422` may say more than which fields are wrong.
    const MAY_BE_REFUSED: bool = false;

    /// Reads every field, then builds the value. `None` when a required field failed; the reason is in `fields`.
    ///
    /// Every field is asked for whatever the others hold: what is asked for is what is documented.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;

    /// Bodies that show what there is, by name; none where the fields' own examples do.
    fn examples() -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The same of bodies with files.
    fn form_examples() -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// A field that may be left alone, cleared, or set.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch<T> {
    /// Not in the body.
    Absent,
    /// `null`.
    Null,
    /// A value.
    Value(T),
}

impl<T> Patch<T> {
    /// None when absent, `Some(None)` when null.
    pub fn into_option(self) -> Option<Option<T>> {
        match self {
            Self::Absent => None,
            Self::Null => Some(None),
            Self::Value(value) => Some(Some(value)),
        }
    }

    /// With the value changed.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Absent => Patch::Absent,
            Self::Null => Patch::Null,
            Self::Value(value) => Patch::Value(change(value)),
        }
    }
}

/// The fields of one object, and what was wrong with those that were read.
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// The same as it was written, where numbers have all their digits.
    written: Option<&'a [u8]>,
    /// Its members as they were written, once one of them is looked for.
    members: OnceCell<HashMap<String, &'a RawValue>>,
    /// In a form, where every field is text: what of that text is a JSON object or list.
    nested: Option<&'a Map<String, Value>>,
    path: String,
    errors: Vec<FieldError>,
    /// What was asked for, when that is all that is wanted.
    shape: Option<Shape>,
}

impl<'a> Fields<'a> {
    fn of(object: &'a Map<String, Value>, written: Option<&'a [u8]>, path: String) -> Self {
        Self { object, written, members: OnceCell::new(), nested: None, path, errors: Vec::new(), shape: None }
    }

    /// Reads a whole body; `written` is the JSON it was read from.
    ///
    /// # Errors
    /// `422` with every field that is missing or not accepted.
    pub fn parse<T: Input>(body: &Value, written: &[u8]) -> ApiResult<T> {
        let Some(object) = body.as_object() else {
            let reason = "must be an object".to_owned();
            return Err(ApiError::validation(&[FieldError { field: "body".to_owned(), reason }]));
        };
        Fields::of(object, Some(written), String::new()).finish()
    }

    /// Reads a form, whose fields are text: objects and lists as JSON, anything else as a query would write it.
    ///
    /// # Errors
    /// `422` with every field that is missing or not accepted.
    pub fn parse_form<T: Input>(texts: &Map<String, Value>) -> ApiResult<T> {
        let nested = texts.iter().filter_map(|(name, text)| {
            let text = text.as_str().filter(|text| text.trim_start().starts_with(['{', '[']))?;
            Some((name.clone(), serde_json::from_str(text).ok()?))
        });
        let nested = nested.collect();
        Fields { nested: Some(&nested), ..Fields::of(texts, None, String::new()) }.finish()
    }

    fn finish<T: Input>(mut self) -> ApiResult<T> {
        match T::read(&mut self) {
            Some(input) if self.errors.is_empty() => Ok(input),
            _ => Err(ApiError::validation(&self.errors)),
        }
    }

    /// The schema of a body.
    pub fn describe<T: Input>() -> Value {
        describe(|fields| drop(T::read(fields)))
    }

    /// A field that must be there.
    pub fn required<T: FromField>(&mut self, name: &str) -> Option<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, T::schema(), true);
            return None;
        }
        match self.object.get(name) {
            None | Some(Value::Null) => {
                self.refuse(name, "is required");
                None
            }
            Some(value) => self.accept(name, value),
        }
    }

    /// A field that may be absent; `null` means the same, and so does a blank text.
    pub fn optional<T: FromField>(&mut self, name: &str) -> Option<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, clearable::<T>(), false);
            return None;
        }
        match self.object.get(name) {
            None | Some(Value::Null) => None,
            Some(value) if T::IS_TEXT && is_blank(value) => None,
            Some(value) => self.accept(name, value),
        }
    }

    /// A field that may be absent, but not `null`: what `PUT` changes and cannot clear.
    pub fn changed<T: FromField>(&mut self, name: &str) -> Option<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, T::schema(), false);
            return None;
        }
        match self.object.get(name) {
            None => None,
            Some(Value::Null) => {
                self.refuse(name, "must not be null");
                None
            }
            Some(value) => self.accept(name, value),
        }
    }

    /// A field whose absence and `null` mean different things. A blank text is `null`.
    pub fn patch<T: FromField>(&mut self, name: &str) -> Patch<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, clearable::<T>(), false);
            return Patch::Absent;
        }
        match self.object.get(name) {
            None => Patch::Absent,
            Some(Value::Null) => Patch::Null,
            Some(value) if T::IS_TEXT && is_blank(value) => Patch::Null,
            Some(value) => self.accept(name, value).map_or(Patch::Absent, Patch::Value),
        }
    }

    /// An object inside this one, read by `read`; absent and `null` are none.
    pub fn object<T>(&mut self, name: &str, read: impl FnOnce(&mut Fields<'_>) -> Option<T>) -> Option<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, nullable(describe(|fields| drop(read(fields)))), false);
            return None;
        }
        match self.structured(name) {
            None | Some(Value::Null) => None,
            Some(Value::Object(object)) => {
                let written = self.member(name).filter(|_| has_fraction(object.values()));
                let mut inner = Fields::of(object, written, format!("{}{name}.", self.path));
                let read = read(&mut inner);
                self.errors.append(&mut inner.errors);
                read
            }
            Some(_) => {
                self.refuse(name, "must be an object");
                None
            }
        }
    }

    /// A list of objects, each read by `read`, at most `items_max`; absent and `null` are none.
    pub fn objects<T>(
        &mut self,
        name: &str,
        items_max: usize,
        mut read: impl FnMut(&mut Fields<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        if let Some(shape) = &mut self.shape {
            let items = describe(|fields| drop(read(fields)));
            shape.property(name, nullable(json!({"type": "array", "items": items, "maxItems": items_max})), false);
            return None;
        }
        let items = self.items(name, items_max)?;
        let written = self.written_items(name, items);
        let mut all = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match item.as_object() {
                Some(object) => {
                    let written = written.get(index).map(|item| item.get().as_bytes());
                    let mut inner = Fields::of(object, written, format!("{}{name}[{index}].", self.path));
                    all.extend(read(&mut inner));
                    self.errors.append(&mut inner.errors);
                }
                None => self.refuse(&format!("{name}[{index}]"), "must be an object"),
            }
        }
        Some(all)
    }

    /// A list of objects that must be there, at most `items_max`, of which each is accepted or refused by itself: what is
    /// wrong with one is named with paths that begin in it.
    pub fn rows<T>(
        &mut self,
        name: &str,
        items_max: usize,
        mut read: impl FnMut(&mut Fields<'_>) -> Option<T>,
    ) -> Option<Vec<Result<T, Vec<FieldError>>>> {
        if let Some(shape) = &mut self.shape {
            let items = describe(|fields| drop(read(fields)));
            shape.property(name, json!({"type": "array", "items": items, "maxItems": items_max}), true);
            return None;
        }
        if !self.has(name) {
            self.refuse(name, "is required");
        }
        let items = self.items(name, items_max)?;
        let written = self.written_items(name, items);
        let row = |(index, item): (usize, &Value)| {
            let Some(object) = item.as_object() else {
                let reason = "must be an object".to_owned();
                return Err(vec![FieldError { field: format!("{name}[{index}]"), reason }]);
            };
            let written = written.get(index).map(|item| item.get().as_bytes());
            let mut inner = Fields::of(object, written, String::new());
            match read(&mut inner) {
                Some(row) if inner.errors.is_empty() => Ok(row),
                _ => Err(inner.errors),
            }
        };
        Some(items.iter().enumerate().map(row).collect())
    }

    /// A list of values, at most `items_max`; absent and `null` are none.
    pub fn list<T: FromField>(&mut self, name: &str, items_max: usize) -> Option<Vec<T>> {
        if let Some(shape) = &mut self.shape {
            let schema = json!({"type": "array", "items": T::schema(), "maxItems": items_max});
            shape.property(name, nullable(schema), false);
            return None;
        }
        let items = self.items(name, items_max)?;
        let mut all = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            all.extend(self.accept(&format!("{name}[{index}]"), item));
        }
        Some(all)
    }

    /// A list of values that may be absent, but not `null`: what `PUT` replaces and cannot clear but by an empty one.
    pub fn changed_list<T: FromField>(&mut self, name: &str, items_max: usize) -> Option<Vec<T>> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, json!({"type": "array", "items": T::schema(), "maxItems": items_max}), false);
            return None;
        }
        if self.object.get(name).is_some_and(Value::is_null) {
            self.refuse(name, "must not be null");
        }
        self.list(name, items_max)
    }

    fn items(&mut self, name: &str, items_max: usize) -> Option<&'a [Value]> {
        match self.structured(name) {
            None | Some(Value::Null) => None,
            Some(Value::Array(items)) if items.len() <= items_max => Some(items),
            Some(Value::Array(_)) => {
                self.refuse(name, format!("must have at most {items_max} items"));
                None
            }
            Some(_) => {
                self.refuse(name, "must be a list");
                None
            }
        }
    }

    /// Whether the field is in the body, with any value but `null`.
    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// Whether a text is in the body, and says something.
    pub fn has_text(&self, name: &str) -> bool {
        self.has(name) && !self.object.get(name).is_some_and(is_blank)
    }

    /// Notes that a field is not accepted.
    pub fn refuse(&mut self, name: &str, reason: impl Into<String>) {
        self.errors.push(FieldError { field: format!("{}{name}", self.path), reason: reason.into() });
    }

    /// A field that may be an object or a list.
    fn structured(&self, name: &str) -> Option<&'a Value> {
        let nested = self.nested.and_then(|nested| nested.get(name));
        nested.or_else(|| self.object.get(name))
    }

    /// A field as it was written.
    fn member(&self, name: &str) -> Option<&'a [u8]> {
        if self.nested.is_some() {
            return self.object.get(name).and_then(Value::as_str).map(str::as_bytes);
        }
        let written = self.written?;
        // Of a field that is there twice the last one counts here as there.
        let members = self.members.get_or_init(|| serde_json::from_slice(written).unwrap_or_default());
        members.get(name).map(|member| member.get().as_bytes())
    }

    /// The items of a list as they were written; none where a `Value` has all there is to know of them.
    fn written_items(&self, name: &str, items: &[Value]) -> Vec<&'a RawValue> {
        let written = has_fraction(items).then(|| self.member(name)).flatten();
        written.and_then(|written| serde_json::from_slice(written).ok()).unwrap_or_default()
    }

    /// The digits of a number.
    fn digits(&self, name: &str, number: &Number) -> Option<String> {
        // An integer has all of them in any case.
        if !number.is_f64() {
            return Some(number.to_string());
        }
        self.member(name).and_then(|written| str::from_utf8(written).ok()).map(str::to_owned)
    }

    fn accept<T: FromField>(&mut self, name: &str, value: &Value) -> Option<T> {
        let read = match (self.nested, value) {
            (_, Value::Number(number)) if T::IS_DECIMAL => {
                self.digits(name, number).map_or_else(|| T::from_json(value), |digits| T::from_text(&digits))
            }
            (Some(nested), Value::String(text)) => T::from_text(text).or_else(|reason| {
                // A text is taken as it is, whatever it looks like; only what cannot be one is read as JSON.
                nested.get(name).map_or(Err(reason), T::from_json)
            }),
            _ => T::from_json(value),
        };
        read.map_err(|reason| self.refuse(name, reason)).ok()
    }
}

/// Whether there is a number of which a `Value` may not hold every digit.
fn has_fraction<'v>(values: impl IntoIterator<Item = &'v Value>) -> bool {
    values.into_iter().any(|value| match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => has_fraction(items),
        Value::Object(object) => has_fraction(object.values()),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    })
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// The schema of a value that may be left out.
fn clearable<T: FromField>() -> Value {
    let schema = nullable(T::schema());
    if T::IS_TEXT { or_blank(schema) } else { schema }
}

fn describe(read: impl FnOnce(&mut Fields<'_>)) -> Value {
    let nothing = Map::new();
    let mut fields = Fields { shape: Some(Shape::default()), ..Fields::of(&nothing, None, String::new()) };
    read(&mut fields);
    fields.shape.unwrap_or_default().into_schema()
}

#[cfg(test)]
mod tests {
    use hotline_persistence::tables::tags::TagId;

    use super::*;
    use crate::web::values::Name;

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
        let refused = Fields::parse::<Order>(&body, body.to_string().as_bytes())
            .map(|order| order.lines.len())
            .expect_err("refused");
        let fields: Vec<&str> = refused
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
        // A text that looks like JSON is a text all the same.
        let parts = form(r#"{"name": "x"}"#, "{\"a\": 1}").expect("accepted");
        assert_eq!((parts.id, parts.flag, parts.title.0.as_str()), (TagId::new(7), true, "{\"a\": 1}"));
        assert_eq!((parts.inner.map(|name| name.0).as_deref(), parts.lines.len()), (Some("x"), 2));
        let refused = form("x", "").map(|parts| parts.lines.len()).expect_err("refused");
        assert_eq!(refused.message, "title must not be blank; inner must be an object");
        let refused = form(r#"{"name": 7}"#, "a").map(|parts| parts.lines.len()).expect_err("refused");
        assert_eq!(refused.message, "inner.name must be a string");
    }

    #[test]
    fn what_is_read_is_what_is_documented() {
        let schema = Fields::describe::<Order>();
        assert_eq!(schema["required"], json!(["title"]));
        assert_eq!(schema["properties"]["lines"]["items"]["required"], json!(["name"]));
    }
}
