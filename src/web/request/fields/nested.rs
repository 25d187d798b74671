//! Objects and lists inside a body. Errors in them are reported with their path.

use hotline_actors::FieldError;
use serde_json::{Value, json};

use super::{Fields, describe, has_float};
use crate::web::request::values::FromField;
use crate::web::response::schema::nullable;

impl<'a> Fields<'a> {
    /// An object inside this one, parsed by `read`; absent and `null` give `None`.
    pub fn object<T>(&mut self, name: &str, read: impl FnOnce(&mut Fields<'_>) -> Option<T>) -> Option<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, nullable(describe(|fields| drop(read(fields)))), false);
            return None;
        }
        match self.structured(name) {
            None | Some(Value::Null) => None,
            Some(Value::Object(object)) => {
                let source = self.member(name).filter(|_| has_float(object.values()));
                let mut inner = Fields::of(object, source, format!("{}{name}.", self.path));
                let value = read(&mut inner);
                self.errors.append(&mut inner.errors);
                value
            }
            Some(_) => {
                self.refuse(name, "must be an object");
                None
            }
        }
    }

    /// A list of at most `items_max` objects, each parsed by `read`; absent and `null` give `None`.
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
        let sources = self.source_items(name, items);
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match item.as_object() {
                Some(object) => {
                    let source = sources.get(index).map(|item| item.get().as_bytes());
                    let mut inner = Fields::of(object, source, format!("{}{name}[{index}].", self.path));
                    values.extend(read(&mut inner));
                    self.errors.append(&mut inner.errors);
                }
                None => self.refuse(&format!("{name}[{index}]"), "must be an object"),
            }
        }
        Some(values)
    }

    /// A required list of at most `items_max` objects, each accepted or refused on its own. The errors of an item name
    /// its fields without the path of the list. An item that is not an object is named by the list and its index.
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
        let sources = self.source_items(name, items);
        let read_row = |(index, item): (usize, &Value)| {
            let Some(object) = item.as_object() else {
                let reason = "must be an object".to_owned();
                return Err(vec![FieldError { field: format!("{name}[{index}]"), reason }]);
            };
            let source = sources.get(index).map(|item| item.get().as_bytes());
            let mut inner = Fields::of(object, source, String::new());
            match read(&mut inner) {
                Some(row) if inner.errors.is_empty() => Ok(row),
                _ => Err(inner.errors),
            }
        };
        Some(items.iter().enumerate().map(read_row).collect())
    }

    /// A list of at most `items_max` values; absent and `null` give `None`.
    pub fn list<T: FromField>(&mut self, name: &str, items_max: usize) -> Option<Vec<T>> {
        if let Some(shape) = &mut self.shape {
            let schema = json!({"type": "array", "items": T::schema(), "maxItems": items_max});
            shape.property(name, nullable(schema), false);
            return None;
        }
        let items = self.items(name, items_max)?;
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            values.extend(self.accept(&format!("{name}[{index}]"), item));
        }
        Some(values)
    }

    /// An optional list of values that must not be `null`: `PUT` replaces it, and clears it only with an empty list.
    pub fn changed_list<T: FromField>(&mut self, name: &str, items_max: usize) -> Option<Vec<T>> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, json!({"type": "array", "items": T::schema(), "maxItems": items_max}), false);
            return None;
        }
        if self.is_null(name) {
            self.refuse(name, "must not be null");
        }
        self.list(name, items_max)
    }

    /// An optional list of objects that must not be `null`, like [`Self::changed_list`].
    pub fn changed_objects<T>(
        &mut self,
        name: &str,
        items_max: usize,
        mut read: impl FnMut(&mut Fields<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        if let Some(shape) = &mut self.shape {
            let items = describe(|fields| drop(read(fields)));
            shape.property(name, json!({"type": "array", "items": items, "maxItems": items_max}), false);
            return None;
        }
        if self.is_null(name) {
            self.refuse(name, "must not be null");
        }
        self.objects(name, items_max, read)
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
}
