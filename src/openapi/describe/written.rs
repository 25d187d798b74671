//! Responses that a handler builds itself, with a separate description.

use std::marker::PhantomData;

use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, Responder};

use super::{Described, Operation};
use crate::web::ApiResult;
use crate::web::schema::Schemas;

/// The description of a response that a handler builds itself.
pub trait Describes: 'static {
    /// Adds it to the operation.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// A response that the handler builds itself, and that `D` describes.
pub struct Written<D> {
    response: HttpResponse,
    what: PhantomData<D>,
}

impl<D> From<HttpResponse> for Written<D> {
    fn from(response: HttpResponse) -> Self {
        Self { response, what: PhantomData }
    }
}

impl<D: 'static> Responder for Written<D> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        self.response
    }
}

impl<D: Describes> Described for Written<D> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        D::describe(operation, schemas);
    }
}

impl<D: Describes> Described for ApiResult<Written<D>> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        D::describe(operation, schemas);
    }
}
