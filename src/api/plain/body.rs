//! The bodies of a plain noun: one declaration of its fields covers `POST` and `PUT`.

use std::borrow::Cow;
use std::marker::PhantomData;

use hotline_persistence::table::Columns;
use serde_json::Value;

use super::{Plain, with_article};
use crate::web::request::values::FromField;
use crate::web::{Fields, Input, Patch};

/// Reads the fields of a body into columns of the same names.
pub struct BodyColumns<'f, 'a> {
    fields: &'f mut Fields<'a>,
    is_new: bool,
    columns: Columns,
    /// Of a change: fields that cannot change, with the values in the body.
    fixed: Columns,
}

/// Why a fixed field is refused.
pub const FIXED: &str = "cannot be changed";

impl<'f, 'a> BodyColumns<'f, 'a> {
    /// Reads the body of a `POST`.
    pub fn new(fields: &'f mut Fields<'a>) -> Self {
        Self { fields, is_new: true, columns: Columns::default(), fixed: Columns::default() }
    }

    /// Reads the body of a `PUT`.
    pub fn change(fields: &'f mut Fields<'a>) -> Self {
        Self { fields, is_new: false, columns: Columns::default(), fixed: Columns::default() }
    }

    /// The columns of a noun from a `POST`.
    pub fn of_new<T: Plain>(fields: &'f mut Fields<'a>) -> Columns {
        let mut body = Self::new(fields);
        T::fields(&mut body);
        body.columns
    }

    /// The columns of a noun without fixed fields from a `PUT`.
    pub fn of_change<T: Plain>(fields: &'f mut Fields<'a>) -> Columns {
        let mut body = Self::change(fields);
        T::fields(&mut body);
        body.columns
    }

    /// A field that every record has: `POST` requires it, and `PUT` cannot clear it.
    pub fn required<V: FromField + Into<Value>>(&mut self, field: &'static str) {
        let value = if self.is_new { self.fields.required::<V>(field) } else { self.fields.non_null(field) };
        self.set(field, value);
    }

    /// A field with a default in the table: `POST` may omit it, and `PUT` cannot clear it.
    pub fn defaulted<V: FromField + Into<Value>>(&mut self, field: &'static str) {
        let value = if self.is_new { self.fields.optional::<V>(field) } else { self.fields.non_null(field) };
        self.set(field, value);
    }

    /// A nullable field: `null` and blank text clear it.
    pub fn nullable<V: FromField + Into<Value>>(&mut self, field: &'static str) {
        match self.fields.patch::<V>(field) {
            Patch::Absent => {}
            Patch::Null => self.columns.set(field, Value::Null),
            Patch::Value(value) => self.columns.set(field, value),
        }
    }

    /// A field that is set only once: `POST` requires it, and `PUT` accepts only its current value.
    pub fn fixed<V: FromField + Into<Value>>(&mut self, field: &'static str) {
        if self.is_new {
            let value = self.fields.required::<V>(field);
            self.set(field, value);
        } else {
            self.derived::<V>(field);
        }
    }

    /// A fixed field that `POST` does not take: `PUT` accepts only its current value.
    pub fn derived<V: FromField + Into<Value>>(&mut self, field: &'static str) {
        if !self.is_new
            && let Some(value) = self.fields.non_null::<V>(field)
        {
            self.fixed.set_field(field, value);
        }
    }

    /// The fields themselves, for a field that is not a column.
    pub fn fields(&mut self) -> &mut Fields<'a> {
        self.fields
    }

    /// The columns read so far.
    pub fn finish(self) -> Columns {
        self.columns
    }

    fn set(&mut self, field: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.columns.set(field, value);
        }
    }
}

/// The body of `POST`.
pub struct New<T> {
    /// The columns in the body.
    pub columns: Columns,
    noun: PhantomData<fn() -> T>,
}

impl<T: Plain> Input for New<T> {
    fn name() -> Cow<'static, str> {
        format!("{}Create", T::name()).into()
    }

    fn text() -> Option<String> {
        Some(format!("A new {}.", T::NOUN))
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { columns: BodyColumns::of_new::<T>(fields), noun: PhantomData })
    }
}

/// The body of `PUT`.
pub struct Change<T> {
    /// The columns in the body.
    pub columns: Columns,
    /// Fields that cannot change, with the values in the body.
    pub fixed: Columns,
    noun: PhantomData<fn() -> T>,
}

impl<T: Plain> Input for Change<T> {
    fn name() -> Cow<'static, str> {
        format!("{}Update", T::name()).into()
    }

    fn text() -> Option<String> {
        Some(format!("Changes to {}.", with_article("a", T::NOUN)))
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut body = BodyColumns::change(fields);
        T::fields(&mut body);
        Some(Self { columns: body.columns, fixed: body.fixed, noun: PhantomData })
    }
}
