//! The filters of a plain noun's list.

use std::marker::PhantomData;

use hotline_persistence::Id;
use hotline_persistence::table::{self, Table};
use serde_json::Value;

use super::Plain;
use crate::web::request::values::{FromField, Search};
use crate::web::{Filter, Params};

/// Reads the filters of a list.
pub struct Filters<'q> {
    params: &'q mut Params,
    filter: table::Filter,
}

impl Filters<'_> {
    /// Reads `search`, the list's own filters with `read_own`, and the spans of creation and update times.
    pub fn read(params: &mut Params, read_own: impl FnOnce(&mut Filters<'_>)) -> table::Filter {
        let mut filter = table::Filter::default();
        filter.search = params.filter::<Search>("search").map(|text| text.0);
        let mut filters = Filters { params, filter };
        read_own(&mut filters);
        let Filters { params, mut filter } = filters;
        filter.created = params.span("created");
        filter.updated = params.span("updated");
        filter
    }

    /// Keeps rows with the parameter's value in the column of the same name.
    pub fn equals<V: FromField + Into<Value>>(&mut self, field: &'static str) {
        if let Some(value) = self.params.filter::<V>(field) {
            self.filter.equals(field, value);
        }
    }

    /// Like `equals`, with a value for requests without the parameter.
    pub fn equals_or<V: FromField + Into<Value> + Clone>(&mut self, field: &'static str, default: V) {
        let value = self.params.filter_or(field, default);
        self.filter.equals(field, value);
    }

    /// Keeps rows that refer to a record of another noun in the column of the same name; `404` when the company has no
    /// such record.
    pub fn refers<T: Table>(&mut self, field: &'static str) {
        if let Some(id) = self.params.filter::<Id<T>>(field) {
            self.filter.refers_to::<T>(field, id.0);
        }
    }

    /// Keeps rows that another table links to a record. `query` is a `select from … where …` of that table, which ends
    /// with the column of the record's id: ` = <id>` is appended. `404` when the company has no such record.
    pub fn related<T: Table>(&mut self, field: &'static str, query: &'static str) {
        if let Some(id) = self.params.filter::<Id<T>>(field) {
            self.filter.has_related::<T>(query, id.0);
        }
    }
}

/// The filters of the list of a plain noun.
pub struct PlainFilter<T> {
    pub(in crate::api) filter: table::Filter,
    noun: PhantomData<fn() -> T>,
}

impl<T: Plain> Filter for PlainFilter<T> {
    fn read(query: &mut Params) -> Self {
        Self { filter: Filters::read(query, T::filters), noun: PhantomData }
    }
}

/// The filters of a list that has none of its own: a search and time spans.
pub struct ListFilter(pub table::Filter);

impl Filter for ListFilter {
    fn read(query: &mut Params) -> Self {
        Self(Filters::read(query, |_| ()))
    }
}
