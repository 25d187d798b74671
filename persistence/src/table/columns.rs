//! What is written of a row.

use serde_json::{Map, Value};

/// Columns and what is written into them. Those that are not named stay as they are; of a new row they have the table's
/// defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns(Map<String, Value>);

impl<const COUNT: usize> From<[(&'static str, Value); COUNT]> for Columns {
    fn from(fields: [(&'static str, Value); COUNT]) -> Self {
        let mut columns = Self::default();
        fields.into_iter().for_each(|(field, value)| columns.set(field, value));
        columns
    }
}

impl Columns {
    /// Writes a value into the column of a field, or clears it with `null`.
    ///
    /// The name becomes part of a statement: it is one of the code's own.
    pub fn set(&mut self, field: &'static str, value: impl Into<Value>) {
        self.0.insert(column_of(field), value.into());
    }

    /// The text that is written into the column of a field; none as well when it is left alone or cleared.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.0.get(&column_of(field))?.as_str()
    }

    /// The id that is written into the column of a field; none as well when it is left alone or cleared.
    pub fn id(&self, field: &str) -> Option<i64> {
        self.0.get(&column_of(field))?.as_i64()
    }

    /// The texts of the list that is written into the column of a field.
    pub fn texts(&self, field: &str) -> Option<Vec<String>> {
        let texts = self.0.get(&column_of(field))?.as_array()?;
        Some(texts.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect())
    }

    /// Whether the column of a field is written, be it with nothing.
    pub fn has(&self, field: &str) -> bool {
        self.0.contains_key(&column_of(field))
    }

    /// Whether `false` is written into the column of a field.
    pub fn is_false(&self, field: &str) -> bool {
        self.0.get(&column_of(field)) == Some(&Value::Bool(false))
    }

    /// Whether the column of a field is left alone or cleared.
    pub fn is_none(&self, field: &str) -> bool {
        self.0.get(&column_of(field)).is_none_or(Value::is_null)
    }

    /// Writes what `later` writes, as if it came after.
    pub fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The columns as they follow another one in a statement.
    pub(super) fn names(&self) -> String {
        self.0.keys().map(|column| format!(", \"{column}\"")).collect()
    }

    /// As the statements take it.
    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

/// The column of a field of the API: `categoryId` is `category_id`.
pub(super) fn column_of(field: &str) -> String {
    let mut column = String::with_capacity(field.len() + 4);
    for character in field.chars() {
        if character.is_ascii_uppercase() {
            column.push('_');
        }
        column.push(character.to_ascii_lowercase());
    }
    column
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_the_column_of_its_name() {
        for (field, column) in [("name", "name"), ("wrapupRequired", "wrapup_required"), ("categoryId", "category_id")]
        {
            assert_eq!(column_of(field), column);
        }
        let columns = Columns::from([("categoryId", 7.into()), ("key", "a".into()), ("type", Value::Null)]);
        assert_eq!(columns.names(), r#", "category_id", "key", "type""#);
        assert_eq!((columns.text("key"), columns.text("type"), columns.has("type")), (Some("a"), None, true));
    }
}
