//! Whether this service stores events.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};

use crate::app::App;
use crate::openapi::{Operation, OperationPart};
use crate::web::ApiError;
use crate::web::response::schema::Schemas;

/// Extractor for handlers that need events: `404` if the service stores none.
pub struct EventsEnabled;

impl FromRequest for EventsEnabled {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let app = request.app_data::<Data<App>>();
        let are_stored = app.is_some_and(|app| app.engine.store().events.is_some());
        ready(if are_stored { Ok(Self) } else { Err(ApiError::not_found()) })
    }
}

impl OperationPart for EventsEnabled {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.errors.push(404);
    }
}
