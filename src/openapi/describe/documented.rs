//! Responses that a handler builds itself, with a separate description.

use std::marker::PhantomData;

use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, Responder};

use super::{Operation, OperationPart};
use crate::web::ApiResult;
use crate::web::response::schema::Schemas;

/// The description of a response that a handler builds itself.
pub trait ResponseDescription: 'static {
    /// Adds the description to the operation.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// A response that the handler builds itself, with the description `D`.
pub struct DocumentedResponse<D> {
    response: HttpResponse,
    description: PhantomData<D>,
}

impl<D> From<HttpResponse> for DocumentedResponse<D> {
    fn from(response: HttpResponse) -> Self {
        Self { response, description: PhantomData }
    }
}

impl<D: 'static> Responder for DocumentedResponse<D> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        self.response
    }
}

impl<D: ResponseDescription> OperationPart for DocumentedResponse<D> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        D::describe(operation, schemas);
    }
}

impl<D: ResponseDescription> OperationPart for ApiResult<DocumentedResponse<D>> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        D::describe(operation, schemas);
    }
}
