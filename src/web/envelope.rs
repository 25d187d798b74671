//! `data` around every success.

use hotline_persistence::select::{Listed, Page};
use serde::Serialize;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;

#[derive(Serialize)]
struct Data<T> {
    data: T,
}

#[derive(Serialize)]
struct Rows<T> {
    data: Vec<T>,
    meta: Meta,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    page: i64,
    per_page: i64,
    has_more: bool,
}

/// A resource.
pub fn data(status: StatusCode, resource: impl Serialize) -> HttpResponse {
    HttpResponse::build(status).json(Data { data: resource })
}

/// A page of a list, each row shown by `show`.
pub fn listed<T, V: Serialize>(page: Page, listed: Listed<T>, show: impl FnMut(T) -> V) -> HttpResponse {
    let meta = Meta { page: page.number, per_page: page.size, has_more: listed.has_more };
    HttpResponse::Ok().json(Rows { data: listed.rows.into_iter().map(show).collect(), meta })
}
