//! A page of a list as it is sent: by number, or by cursor and then as long as it may be.

use std::io::{self, Write};

use actix_web::body::BoxBody;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, Responder};
use hotline_persistence::select::{self, PageRequest, Position};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{RESOURCE_BYTES, Reply, respond_with, without_spare, write};
use crate::web::cursor::ListRead;
use crate::web::params::PER_PAGE;
use crate::web::schema::{self, Schemas};
use crate::web::{ApiError, ApiResult};

/// A page of a list.
pub struct Page<T> {
    page: PageRequest,
    rows: Vec<T>,
    has_more: bool,
    positions: Vec<Position>,
    end: Option<Position>,
    /// Signs the next cursor; `None` for a page by number.
    list: Option<ListRead>,
}

impl<T> Page<T> {
    /// A page of rows, each converted by `show`.
    pub fn of<R>(page: PageRequest, listed: select::Page<R>, show: impl FnMut(R) -> T) -> Self {
        let select::Page { rows, has_more, positions, end } = listed;
        Self { page, rows: rows.into_iter().map(show).collect(), has_more, positions, end, list: None }
    }

    /// A page of rows that are all in memory, in the order of pages by number. `position` is unique, and orders pages by
    /// cursor, which begin after `after`.
    pub fn among<P: Ord + Into<Position>>(
        page: PageRequest,
        after: Option<P>,
        mut rows: Vec<T>,
        position: impl Fn(&T) -> P,
    ) -> Self {
        if page.is_by_cursor() {
            rows.sort_by_key(&position);
        }
        if page.descending {
            rows.reverse();
        }
        if let Some(after) = after {
            rows.retain(|row| if page.descending { position(row) < after } else { position(row) > after });
        }
        let (before, size) = (usize::try_from(page.offset()), usize::try_from(page.size));
        rows.drain(..before.unwrap_or(usize::MAX).min(rows.len()));
        let size = size.unwrap_or(usize::MAX);
        let has_more = rows.len() > size;
        rows.truncate(size);
        let positions = rows.iter().map(|row| position(row).into()).collect();
        Self { page, rows, has_more, positions, end: None, list: None }
    }

    /// Ends the page at [`PAGE_BYTES_MAX`]: for readers who go on from the last row they have. Returns how many rows are
    /// left. A page by number is not ended, since the next one begins where its number says.
    ///
    /// # Errors
    /// As for [`Reply::body`].
    pub fn end_by_bytes(&mut self) -> ApiResult<usize>
    where
        T: Serialize,
    {
        let fitting = fitting(&self.rows)?;
        if fitting < self.rows.len() {
            self.has_more = true;
            self.rows.truncate(fitting);
            self.positions.truncate(fitting);
            self.end = None;
        }
        Ok(fitting)
    }

    /// All rows as one page, however many.
    pub fn whole(rows: Vec<T>) -> Self {
        let size = PER_PAGE.max(i64::try_from(rows.len()).unwrap_or(i64::MAX));
        Self::of(PageRequest::first(size), select::Page::of(rows, false), |row| row)
    }
}

/// Maximum size of a page that ends by its bytes, unless its first row alone is larger.
pub const PAGE_BYTES_MAX: usize = 1 << 20;

/// How many rows fit in a page that ends at [`PAGE_BYTES_MAX`]: at least one, if there is any.
///
/// # Errors
/// As for [`Reply::body`].
pub fn fitting<T: Serialize>(rows: &[T]) -> ApiResult<usize> {
    let mut written = Counting(0);
    for (index, row) in rows.iter().enumerate() {
        serde_json::to_writer(&mut written, row).map_err(ApiError::internal)?;
        if written.0 > PAGE_BYTES_MAX {
            return Ok(index.max(1));
        }
    }
    Ok(rows.len())
}

/// Counts what is written to it.
struct Counting(usize);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Serialize)]
struct Rows<'a, T> {
    data: &'a [T],
    meta: Meta,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", untagged)]
enum Meta {
    #[serde(rename_all = "camelCase")]
    Numbered { page: i64, per_page: i64, has_more: bool },
    #[serde(rename_all = "camelCase")]
    Continued { per_page: i64, has_more: bool, next_cursor: Option<String> },
}

impl<T: Serialize + ToSchema + 'static> Reply for Page<T> {
    const STATUS: u16 = 200;

    fn body(&self) -> ApiResult<Vec<u8>> {
        let per_page = self.page.size;
        let Some(page) = self.page.number() else { return self.continued() };
        let meta = Meta::Numbered { page, per_page, has_more: self.has_more };
        write(&Rows { data: &self.rows, meta }, self.rows.len())
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        let row = schema::of::<T>(schemas);
        let properties = json!({"data": {"type": "array", "items": row}, "meta": schema::reference("PageMeta")});
        Some(schema::envelope::<T>(schemas, "List", &properties, "A page of a list."))
    }
}

impl<T: Serialize> Page<T> {
    /// The body of a page by cursor, as far as it may be long.
    fn continued(&self) -> ApiResult<Vec<u8>> {
        let mut body = Vec::with_capacity(RESOURCE_BYTES.saturating_mul(self.rows.len().max(1)));
        body.extend_from_slice(b"{\"data\":[");
        let (mut shown, mut bytes) = (0, 0);
        for row in &self.rows {
            let before = body.len();
            if shown > 0 {
                body.push(b',');
            }
            let begun = body.len();
            serde_json::to_writer(&mut body, row).map_err(ApiError::internal)?;
            bytes += body.len() - begun;
            // As `fitting` counts.
            if shown > 0 && bytes > PAGE_BYTES_MAX {
                body.truncate(before);
                break;
            }
            shown += 1;
        }
        let is_whole = shown == self.rows.len();
        let last = shown.checked_sub(1).and_then(|last| self.positions.get(last));
        let end = if is_whole { self.end.as_ref().or(last) } else { last };
        let has_more = self.has_more || !is_whole;
        let next_cursor = self.list.as_ref().zip(end).filter(|_| has_more).map(|(list, end)| list.cursor(end));
        let meta = Meta::Continued { per_page: self.page.size, has_more, next_cursor };
        body.extend_from_slice(b"],\"meta\":");
        serde_json::to_writer(&mut body, &meta).map_err(ApiError::internal)?;
        body.push(b'}');
        Ok(without_spare(body))
    }
}

impl<T: Serialize + ToSchema + 'static> Responder for Page<T> {
    type Body = BoxBody;

    fn respond_to(mut self, request: &HttpRequest) -> HttpResponse {
        self.list = request.extensions().get::<ListRead>().cloned();
        respond_with(&self)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_by_its_bytes_and_has_one_row_at_least() {
        let row = |bytes: usize| "x".repeat(bytes - 2);
        let fits = |rows: &[String]| fitting(rows).expect("JSON");
        assert_eq!(fits(&[]), 0);
        assert_eq!(fits(&[row(PAGE_BYTES_MAX + 1), row(10)]), 1, "larger alone");
        assert_eq!(fits(&[row(PAGE_BYTES_MAX / 2), row(PAGE_BYTES_MAX / 2), row(10)]), 2);
        assert_eq!(fits(&[row(10), row(PAGE_BYTES_MAX), row(10)]), 1, "the first that does not fit ends it");
        assert_eq!(fits(&[row(10), row(10)]), 2);
    }
}
