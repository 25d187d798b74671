//! The columns that a row's type reads.

use std::rc::Rc;

use syn::visit::{self, Visit};
use syn::{Attribute, Field, ReturnType, Type};

use super::evaluator::{Evaluator, Frame};
use super::sources::{Function, Sources, segments};

/// What attributes say about a field or type.
#[derive(Default)]
struct Options {
    rename: Option<String>,
    is_flattened: bool,
    /// Not read, or not required.
    is_optional: bool,
    /// It is not read column by column.
    is_read_otherwise: bool,
}

impl Options {
    fn of(attributes: &[Attribute]) -> Self {
        let mut options = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("sqlx")) {
            let parsed = attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") {
                    options.rename = Some(meta.value()?.parse::<syn::LitStr>()?.value());
                } else if meta.path.is_ident("flatten") {
                    options.is_flattened = true;
                } else if meta.path.is_ident("default") || meta.path.is_ident("skip") {
                    options.is_optional = true;
                } else if meta.path.is_ident("transparent") || meta.path.is_ident("rename_all") {
                    options.is_read_otherwise = true;
                }
                if meta.input.peek(syn::Token![=]) {
                    meta.value()?.parse::<syn::Expr>()?;
                } else if meta.input.peek(syn::token::Paren) {
                    let content;
                    syn::parenthesized!(content in meta.input);
                    content.parse::<proc_macro2::TokenStream>()?;
                }
                Ok(())
            });
            parsed.expect("an attribute of sqlx");
        }
        options
    }
}

/// The columns that a type reads, if it reads them one by one.
pub fn columns_of(sources: &Sources<'_>, kind: &str) -> Option<Vec<String>> {
    let (module, item) = sources.structs.get(kind)?;
    if !derives_from_row(&item.attrs) || Options::of(&item.attrs).is_read_otherwise {
        return None;
    }
    let mut columns = Vec::new();
    for field in &item.fields {
        let options = Options::of(&field.attrs);
        if options.is_flattened {
            // A field of a generic type is not checked.
            let kind = sources.type_path(module, Some(kind), &field.ty);
            columns.extend(kind.and_then(|kind| columns_of(sources, &kind)).unwrap_or_default());
        } else if !options.is_optional {
            columns.push(column_of(field, options)?);
        }
    }
    Some(columns)
}

fn column_of(field: &Field, options: Options) -> Option<String> {
    let name = field.ident.as_ref()?.to_string();
    Some(options.rename.unwrap_or_else(|| name.trim_start_matches("r#").to_owned()))
}

fn derives_from_row(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("derive")).any(|attribute| {
        let mut is_derived = false;
        let parsed = attribute.parse_nested_meta(|meta| {
            is_derived |= segments(&meta.path).last().is_some_and(|word| word == "FromRow");
            Ok(())
        });
        parsed.is_ok() && is_derived
    })
}

/// The row type that the types name, if they name exactly one.
pub fn row_type<'a>(evaluator: &mut Evaluator<'a>, kinds: &[&Type], frame: &Rc<Frame<'a>>) -> Option<String> {
    let mut found = Vec::new();
    for kind in kinds {
        let mut named = NamedTypes::default();
        named.visit_type(kind);
        for path in named.0 {
            let known = path.get_ident().and_then(|name| evaluator.generic(&name.to_string(), frame));
            found.push(known.unwrap_or_else(|| evaluator.sources.resolve(&frame.module, &segments(path))));
        }
    }
    found.retain(|kind| evaluator.sources.structs.get(kind).is_some_and(|(_, item)| derives_from_row(&item.attrs)));
    found.sort();
    found.dedup();
    (found.len() == 1).then(|| found.remove(0))
}

/// The type that a function returns.
pub fn returned_type<'f>(function: &'f Function<'_>) -> Option<&'f Type> {
    match &function.signature.output {
        ReturnType::Type(_, kind) => Some(kind),
        ReturnType::Default => None,
    }
}

/// The paths of types that a type consists of.
#[derive(Default)]
struct NamedTypes<'t>(Vec<&'t syn::Path>);

impl<'t> Visit<'t> for NamedTypes<'t> {
    fn visit_type_path(&mut self, kind: &'t syn::TypePath) {
        self.0.push(&kind.path);
        visit::visit_type_path(self, kind);
    }
}
