//! The contributions of extractors and response types to an operation.

use actix_web::HttpRequest;
use actix_web::web::{Data, Payload};
use serde_json::json;

use super::form::{form_name, form_schema};
use super::{Access, COMPANY_ERRORS, Operation, OperationPart};
use crate::web::admission::idempotency::{self, Idempotency};
use crate::web::request::bounds::JSON_BYTES_MAX;
use crate::web::request::form::BodyWithFiles;
use crate::web::request::form::FILES_MAX;
use crate::web::request::if_match::IfMatch;
use crate::web::request::params::QueryParams;
use crate::web::request::params::{Filter, Params, PathIds};
use crate::web::response::reply::Reply;
use crate::web::response::schema::Schemas;
use crate::web::{ApiResult, Body, Caller, Fields, Input, PathId, Query};

impl OperationPart for Caller {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.access = Access::Company;
        operation.errors.extend(COMPANY_ERRORS);
    }
}

/// The handler reads the body itself.
impl OperationPart for Payload {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// Optional extractors add nothing.
impl<T> OperationPart for Option<T> {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl OperationPart for HttpRequest {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl<T: 'static> OperationPart for Data<T> {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl OperationPart for Idempotency {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        debug_assert!(
            operation.method.parse().is_ok_and(|method| idempotency::applies_to(&method)),
            "{} has a method without idempotency keys",
            operation.path
        );
        operation.is_idempotent = true;
        operation.records_idempotency_key = true;
        operation.errors.extend([400, 408, 409, 413]);
    }
}

impl OperationPart for IfMatch {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.parameters.push(json!({
            "name": "If-Match",
            "in": "header",
            "description": "The `ETag` of an earlier read. The change is made only if the record has not changed since.",
            "schema": {"type": "string"},
            "example": "\"2026-01-31T12:00:00.000Z\"",
        }));
        operation.errors.push(412);
    }
}

impl<T: PathIds> OperationPart for PathId<T> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.path_ids = T::schemas();
        operation.errors.push(404);
    }
}

impl<F: Filter> OperationPart for Query<F> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.set_query(Params::describe_list::<F>());
    }
}

impl<F: Filter> OperationPart for QueryParams<F> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.set_query(Params::describe::<F>());
    }
}

impl<T: Input> OperationPart for Body<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let mut schema = Fields::describe::<T>();
        if let Some(text) = T::text() {
            schema["description"] = json!(text);
        }
        schemas.insert(T::name().into_owned(), schema.clone());
        operation.body = Some((T::name(), schema));
        operation.may_be_refused = T::MAY_BE_REFUSED;
        operation.examples = T::examples();
        operation.body_is_optional = T::MAY_BE_EMPTY;
        operation.body_bytes_max = (T::BYTES_MAX != JSON_BYTES_MAX).then_some(T::BYTES_MAX);
        operation.errors.extend([400, 404, 408, 409, 413, 415, 422]);
    }
}

impl<T: Input> OperationPart for BodyWithFiles<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Body::<T>::describe(operation, schemas);
        operation.form_examples = T::form_examples();
        operation.takes_files = true;
        schemas.insert(form_name(&T::name()), form_schema(Fields::describe::<T>(), FILES_MAX));
    }
}

impl<T: Reply> OperationPart for ApiResult<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.success = (T::STATUS, T::schema(schemas));
        operation.is_table = T::IS_TABLE;
        operation.has_etag = T::HAS_ETAG;
    }
}

// The arguments of a handler are a tuple of extractors.
macro_rules! signature {
    ($($part:ident)*) => {
        impl<$($part: OperationPart),*> OperationPart for ($($part,)*) {
            #[allow(unused_variables)]
            fn describe(operation: &mut Operation, schemas: &mut Schemas) {
                $($part::describe(operation, schemas);)*
            }
        }
    };
}

signature! {}
signature! { A }
signature! { A B }
signature! { A B C }
signature! { A B C D }
signature! { A B C D E }
signature! { A B C D E F }
