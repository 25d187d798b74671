//! Which methods a path has, and what is answered to any other and to a path that is not served.

use actix_web::{HttpResponse, Resource, web};

use super::ApiError;

/// A path that is only read.
pub fn read_only(resource: Resource) -> Resource {
    with_methods(resource, "GET".to_owned())
}

/// A path that tells any other method which it has.
pub fn with_methods(resource: Resource, allow: String) -> Resource {
    resource.default_service(web::to(move || {
        let refused = ApiError::method_not_allowed(allow.clone());
        async move { Err::<HttpResponse, _>(refused) }
    }))
}

/// What is not served.
pub async fn no_such_route() -> Result<HttpResponse, ApiError> {
    Err(ApiError::no_such_route())
}
