//! Maps violated constraints to errors.

use super::columns::column_of;
use super::{Columns, Table};
use crate::error::{HolderQuery, TakenValue};
use crate::{CompanyId, Error};

/// A value that is unique within a company.
#[derive(Debug, PartialEq, Eq)]
pub struct Unique {
    constraint: &'static str,
    field: &'static str,
    comparison: Comparison,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Exact,
    CaseInsensitive,
    Appearance,
}

impl Unique {
    /// `constraint` is the name of the constraint, `field` the field with the value.
    pub const fn new(constraint: &'static str, field: &'static str) -> Self {
        Self { constraint, field, comparison: Comparison::Exact }
    }

    /// As [`Unique::new`], ignoring case.
    pub const fn ignoring_case(constraint: &'static str, field: &'static str) -> Self {
        Self { constraint, field, comparison: Comparison::CaseInsensitive }
    }

    /// As [`Unique::new`], for names that look the same.
    pub const fn by_appearance(constraint: &'static str, field: &'static str) -> Self {
        Self { constraint, field, comparison: Comparison::Appearance }
    }

    /// The field with the value.
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// The statement that finds the record with the value.
    fn holder(&self, table: &str, company: CompanyId, value: &str) -> HolderQuery {
        let column = column_of(self.field);
        let (column, operand) = match self.comparison {
            Comparison::Exact => (format!("\"{column}\""), "$2"),
            Comparison::CaseInsensitive => (format!("lower(\"{column}\")"), "lower($2)"),
            Comparison::Appearance => ("looks".to_owned(), "hotline_looks($2)"),
        };
        let statement = format!("select id from {table} where company_id = $1 and {column} = {operand}");
        HolderQuery { statement, company, value: value.to_owned() }
    }
}

pub(super) fn is_foreign_key(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_foreign_key_violation())
}

/// Maps a violated constraint to an error: `fields` names the field of each unique constraint.
pub fn map_constraint(fields: &'static [(&'static str, &'static str)]) -> impl Fn(Error) -> Error {
    move |error| match error {
        // A referenced record was deleted since it was checked.
        Error::Database(error) if is_foreign_key(&error) => Error::NotFound("record"),
        error => error.map_constraint(
            fields.iter().map(|(constraint, field)| (*constraint, Error::Taken(TakenValue::from(*field)))),
        ),
    }
}

/// As [`map_constraint`], for a written row: the error also finds the record that has the unique value.
pub(super) fn map_taken<T: Table>(company: CompanyId, columns: &Columns) -> impl Fn(Error) -> Error {
    move |error| {
        map_constraint(&[])(error).map_constraint(T::UNIQUE.iter().map(|unique| {
            let holder = columns.text(unique.field).map(|value| unique.holder(T::NAME, company, value));
            (unique.constraint, Error::Taken(TakenValue { field: unique.field, holder }))
        }))
    }
}
