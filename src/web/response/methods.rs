//! The allowed methods of a path, and the responses to other methods and to unknown paths.

use actix_web::{HttpResponse, Resource, web};

use super::error::ApiError;

/// A path that allows only `GET`.
pub fn read_only(resource: Resource) -> Resource {
    with_methods(resource, "GET".to_owned())
}

/// Answers methods other than the routed ones with `405`. `allow` lists the allowed methods.
pub fn with_methods(resource: Resource, allow: String) -> Resource {
    resource.default_service(web::to(move || {
        let error = ApiError::method_not_allowed(allow.clone());
        async move { Err::<HttpResponse, _>(error) }
    }))
}

/// The response to an unknown path.
pub async fn no_such_route() -> Result<HttpResponse, ApiError> {
    Err(ApiError::no_such_route())
}
