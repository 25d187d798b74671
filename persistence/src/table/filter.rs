//! Conditions of a list.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::columns::column_of;
use super::{Table, exists_in};
use crate::select::Select;
use crate::{CompanyId, Database, Error, Result};

/// From one time to another, both inclusive and optional.
pub type Span = (Option<DateTime<Utc>>, Option<DateTime<Utc>>);

/// The conditions of a list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Words to search for.
    pub search: Option<String>,
    /// Only rows created in this span.
    pub created: Span,
    /// Only rows last changed in this span.
    pub updated: Span,
    conditions: Vec<Condition>,
    /// Records that the filter refers to: table, noun and id.
    references: Vec<(&'static str, &'static str, i64)>,
}

#[derive(Clone, Debug)]
enum Condition {
    /// A column has this value.
    Equals(String, Value),
    /// A related row exists in another table: a `select from … where …` that ends with the column to compare with this
    /// id.
    Related(&'static str, i64),
}

impl Filter {
    /// Keeps rows with a value in the column of a field: a text, number or boolean.
    ///
    /// The name becomes part of a statement, so it must come from the code.
    pub fn equals(&mut self, field: &'static str, value: impl Into<Value>) {
        self.conditions.push(Condition::Equals(column_of(field), value.into()));
    }

    /// Keeps rows that refer to a record of another table by the column of a field.
    pub fn refers_to<T: Table>(&mut self, field: &'static str, id: i64) {
        self.references.push((T::NAME, T::NOUN, id));
        self.equals(field, id);
    }

    /// Keeps rows that are related to a record of another table: `query` is a `select from … where …` that ends with
    /// the column that holds its id.
    pub fn has_related<T: Table>(&mut self, query: &'static str, id: i64) {
        self.references.push((T::NAME, T::NOUN, id));
        self.conditions.push(Condition::Related(query, id));
    }

    /// Like [`Filter::has_related`], for a record that is known to exist.
    pub fn has_related_existing(&mut self, query: &'static str, id: i64) {
        self.conditions.push(Condition::Related(query, id));
    }

    /// Checks that all referenced records exist in the company.
    pub(super) async fn check_references(&self, db: impl Database<'_>, company: CompanyId) -> Result<()> {
        for (table, noun, id) in &self.references {
            if !exists_in(db, table, company, *id).await? {
                return Err(Error::NotFound(noun));
            }
        }
        Ok(())
    }

    pub(super) fn apply(&self, mut list: Select) -> Select {
        for condition in &self.conditions {
            list = match condition {
                Condition::Equals(column, Value::Bool(truth)) => list.equals(column, Some(*truth)),
                Condition::Equals(column, Value::Number(number)) => list.equals(column, number.as_i64()),
                Condition::Equals(column, value) => list.equals(column, value.as_str().map(str::to_owned)),
                Condition::Related(query, id) => list.has_related(query, Some(*id)),
            };
        }
        list.between("created_at", self.created).between("updated_at", self.updated)
    }
}
