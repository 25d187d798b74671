//! An answer that the handler writes itself, which says beside it what it is.

use std::marker::PhantomData;

use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, Responder};

use super::{Described, Operation};
use crate::web::ApiResult;
use crate::web::schema::Schemas;

/// What an answer that the handler writes itself is.
pub trait Describes: 'static {
    /// Adds what it means to the operation.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// An answer that the handler writes itself, and the document describes as `D` does.
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
