//! The columns that a statement writes.

use serde_json::{Map, Value};

/// Columns and their new values. Other columns stay unchanged; in a new row they get the table's defaults.
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
    /// Sets the value of a field's column, or clears it with `null`.
    ///
    /// The name becomes part of a statement, so it must come from the code.
    pub fn set(&mut self, field: &'static str, value: impl Into<Value>) {
        self.0.insert(column_of(field), value.into());
    }

    /// Sets a value by the name of its API field, for a comparison with the API's representation of a record.
    pub fn set_field(&mut self, field: &'static str, value: impl Into<Value>) {
        self.0.insert(field.to_owned(), value.into());
    }

    /// The values set by [`Self::set_field`], with their fields.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(field, value)| (field.as_str(), value))
    }

    /// The text written to the column of a field; `None` also if the column is unchanged or cleared.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.0.get(&column_of(field))?.as_str()
    }

    /// The id written to the column of a field; `None` also if the column is unchanged or cleared.
    pub fn id(&self, field: &str) -> Option<i64> {
        self.0.get(&column_of(field))?.as_i64()
    }

    /// The texts of the list written to the column of a field.
    pub fn texts(&self, field: &str) -> Option<Vec<String>> {
        let texts = self.0.get(&column_of(field))?.as_array()?;
        Some(texts.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect())
    }

    /// Whether the column of a field is written, possibly with null.
    pub fn has(&self, field: &str) -> bool {
        self.0.contains_key(&column_of(field))
    }

    /// Whether `false` is written into the column of a field.
    pub fn is_false(&self, field: &str) -> bool {
        self.0.get(&column_of(field)) == Some(&Value::Bool(false))
    }

    /// Whether the column of a field is unchanged or cleared.
    pub fn is_none(&self, field: &str) -> bool {
        self.0.get(&column_of(field)).is_none_or(Value::is_null)
    }

    /// Merges `later` on top of these columns.
    pub fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// Whether no column is written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The column names, each preceded by a comma.
    pub(super) fn appended_names(&self) -> String {
        self.0.keys().map(|column| format!(", \"{column}\"")).collect()
    }

    /// The column names qualified with a table, each preceded by a comma.
    pub(super) fn appended_names_of(&self, table: &str) -> String {
        self.0.keys().map(|column| format!(", {table}.\"{column}\"")).collect()
    }

    /// The column names qualified with a table, separated by commas.
    pub(super) fn names_of(&self, table: &str) -> String {
        let names: Vec<String> = self.0.keys().map(|column| format!("{table}.\"{column}\"")).collect();
        names.join(", ")
    }

    /// The values as the JSON object that a statement binds: its keys are the column names.
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
    fn fields_map_to_snake_case_columns() {
        for (field, column) in [("name", "name"), ("wrapupRequired", "wrapup_required"), ("categoryId", "category_id")]
        {
            assert_eq!(column_of(field), column);
        }
        let columns = Columns::from([("categoryId", 7.into()), ("key", "a".into()), ("type", Value::Null)]);
        assert_eq!(columns.appended_names(), r#", "category_id", "key", "type""#);
        assert_eq!((columns.text("key"), columns.text("type"), columns.has("type")), (Some("a"), None, true));
    }
}
