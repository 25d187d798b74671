//! A page of a list as it is sent. A page by number is complete; a page by cursor is limited in bytes.

use std::borrow::Borrow;
use std::io::{self, Write};

use actix_web::body::BoxBody;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, Responder, ResponseError};
use hotline_persistence::select::{self, PageRequest, Position};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{RESOURCE_BYTES, Reply, SPARE_BYTES_MAX, respond, shrink_to_fit};
use crate::web::response::cursor::ListRead;
use crate::web::response::error::{ApiError, ApiResult};
use crate::web::response::schema::{self, Schemas};

/// The default page size, and the default maximum page size.
pub const PER_PAGE: i64 = 100;

/// A page of results.
pub struct Page<T> {
    page: PageRequest,
    rows: Vec<T>,
    has_more: bool,
    /// The position of each row.
    positions: Vec<Position>,
    /// As in [`select::Page::end`]; also `None` for a page that was truncated or built by [`Page::of_complete_list`].
    end: Option<Position>,
    /// Signs the next cursor; `None` for a page by number.
    list: Option<ListRead>,
}

impl<T> Page<T> {
    /// A page of rows, each converted by `convert`.
    pub fn of<R>(page: PageRequest, selected_page: select::Page<R>, convert: impl FnMut(R) -> T) -> Self {
        let select::Page { rows, has_more, positions, end } = selected_page;
        Self { page, rows: rows.into_iter().map(convert).collect(), has_more, positions, end, list: None }
    }

    /// A page of `rows`, which is a complete list in the order of its pages by number. Pages by cursor are in the order
    /// of `position`, which is unique for each row, and begin after `after`.
    pub fn of_complete_list<P: Ord + Into<Position>>(
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
        let offset = usize::try_from(page.offset()).unwrap_or(usize::MAX);
        rows.drain(..offset.min(rows.len()));
        let size = usize::try_from(page.size).unwrap_or(usize::MAX);
        let has_more = rows.len() > size;
        rows.truncate(size);
        let positions = rows.iter().map(|row| position(row).into()).collect();
        Self { page, rows, has_more, positions, end: None, list: None }
    }

    /// Truncates the page to [`PAGE_BYTES_MAX`], for readers that continue from its last row. Returns how many rows
    /// remain. A page by number must not be truncated, since the next page skips a fixed number of rows.
    ///
    /// # Errors
    /// As for [`Reply::body`].
    pub fn truncate_to_bytes_max(&mut self) -> ApiResult<usize>
    where
        T: Serialize,
    {
        let count = count_fitting_rows(&self.rows)?;
        if count < self.rows.len() {
            self.has_more = true;
            self.rows.truncate(count);
            self.positions.truncate(count);
            self.end = None;
        }
        Ok(count)
    }

    /// All rows of a list as its only page, however many.
    pub fn whole(rows: Vec<T>) -> Self {
        let size = PER_PAGE.max(i64::try_from(rows.len()).unwrap_or(i64::MAX));
        Self::of(PageRequest::first(size), select::Page::of(rows, false), |row| row)
    }
}

/// Maximum bytes of the rows of a page that is limited in bytes, unless its first row alone is larger.
pub const PAGE_BYTES_MAX: usize = 1 << 20;

/// How many rows fit in [`PAGE_BYTES_MAX`]: at least one, if there is any.
///
/// # Errors
/// As for [`Reply::body`].
fn count_fitting_rows<T: Serialize>(rows: &[T]) -> ApiResult<usize> {
    let mut counter = ByteCounter(0);
    for (index, row) in rows.iter().enumerate() {
        serde_json::to_writer(&mut counter, row).map_err(ApiError::internal)?;
        if counter.0 > PAGE_BYTES_MAX {
            return Ok(index.max(1));
        }
    }
    Ok(rows.len())
}

/// Counts the bytes written to it.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", untagged)]
enum Meta {
    #[serde(rename_all = "camelCase")]
    ByNumber { page: i64, per_page: i64, has_more: bool },
    #[serde(rename_all = "camelCase")]
    ByCursor { per_page: i64, has_more: bool, next_cursor: Option<String> },
}

impl<T: Serialize + ToSchema + 'static> Reply for Page<T> {
    const STATUS: u16 = 200;

    fn body(&self) -> ApiResult<Vec<u8>> {
        self.write_body(self.rows.iter())
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        let row = schema::of::<T>(schemas);
        let properties = json!({"data": {"type": "array", "items": row}, "meta": schema::reference("PageMeta")});
        Some(schema::envelope::<T>(schemas, "List", &properties, "A page of results."))
    }
}

impl<T: Serialize> Page<T> {
    /// The body with these rows, which are those of the page, borrowed or taken out of it. A page by cursor ends at
    /// [`PAGE_BYTES_MAX`].
    fn write_body<R: Borrow<T>>(&self, rows: impl ExactSizeIterator<Item = R>) -> ApiResult<Vec<u8>> {
        let count = rows.len();
        let bytes_max = if self.page.is_by_cursor() { PAGE_BYTES_MAX } else { usize::MAX };
        let mut body = Vec::with_capacity(RESOURCE_BYTES.saturating_mul(count.max(1)));
        body.extend_from_slice(b"{\"data\":[");
        let (mut written, mut row_bytes) = (0, 0);
        for row in rows {
            reserve_rows(&mut body, written, count, bytes_max);
            let previous_length = body.len();
            if written > 0 {
                body.push(b',');
            }
            let row_start = body.len();
            let row: &T = row.borrow();
            serde_json::to_writer(&mut body, row).map_err(ApiError::internal)?;
            row_bytes += body.len() - row_start;
            // The same limit as in `count_fitting_rows`.
            if written > 0 && row_bytes > bytes_max {
                body.truncate(previous_length);
                break;
            }
            written += 1;
        }
        body.extend_from_slice(b"],\"meta\":");
        serde_json::to_writer(&mut body, &self.meta(written, count)).map_err(ApiError::internal)?;
        body.push(b'}');
        Ok(shrink_to_fit(body))
    }

    /// The metadata of a page of which `written` of `count` rows are written.
    fn meta(&self, written: usize, count: usize) -> Meta {
        let per_page = self.page.size;
        if let Some(page) = self.page.number() {
            return Meta::ByNumber { page, per_page, has_more: self.has_more };
        }
        let last = written.checked_sub(1).and_then(|index| self.positions.get(index));
        let end = if written == count { self.end.as_ref().or(last) } else { last };
        let has_more = self.has_more || written < count;
        let next_cursor = self.list.as_ref().zip(end).filter(|_| has_more).map(|(list, end)| list.cursor(end));
        Meta::ByCursor { per_page, has_more, next_cursor }
    }
}

/// Reserves memory for the remaining rows, assuming that they are as long as the `written` ones of `count`: a body is
/// copied when its capacity grows, and is in memory twice meanwhile.
fn reserve_rows(body: &mut Vec<u8>, written: usize, count: usize, bytes_max: usize) {
    if written == 0 || body.len() <= SPARE_BYTES_MAX {
        return;
    }
    let rest = (body.len() / written).saturating_mul(count - written);
    // A sixteenth more, because the remaining rows may be somewhat longer.
    let rest = rest.saturating_add(rest / 16).min(bytes_max.saturating_sub(body.len()));
    body.reserve(rest);
}

impl<T: Serialize + ToSchema + 'static> Responder for Page<T> {
    type Body = BoxBody;

    fn respond_to(mut self, request: &HttpRequest) -> HttpResponse {
        self.list = request.extensions().get::<ListRead>().cloned();
        // Each row is dropped once it is written, so that a large page is in memory once.
        let rows = std::mem::take(&mut self.rows);
        match self.write_body(rows.into_iter()) {
            Ok(body) => respond(<Self as Reply>::STATUS, body),
            Err(error) => error.error_response(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn a_page_is_limited_in_bytes_but_has_at_least_one_row() {
        let row = |bytes: usize| "x".repeat(bytes - 2);
        let fitting_rows = |rows: &[String]| count_fitting_rows(rows).expect("JSON");
        assert_eq!(fitting_rows(&[]), 0);
        assert_eq!(fitting_rows(&[row(PAGE_BYTES_MAX + 1), row(10)]), 1, "the first row is always included");
        assert_eq!(fitting_rows(&[row(PAGE_BYTES_MAX / 2), row(PAGE_BYTES_MAX / 2), row(10)]), 2);
        assert_eq!(fitting_rows(&[row(10), row(PAGE_BYTES_MAX), row(10)]), 1, "nothing after a row that is too large");
        assert_eq!(fitting_rows(&[row(10), row(10)]), 2);
    }

    #[test]
    fn a_page_by_number_is_complete_whether_its_rows_are_borrowed_or_owned() {
        let rows: Vec<String> = (0..100).map(|number| "x".repeat(number * 1000)).collect();
        let expected = json!({"data": rows, "meta": {"page": 1, "perPage": 100, "hasMore": false}});
        let page = Page::of(PageRequest::first(100), select::Page::of(rows, false), |row| row);
        let body = page.write_body(page.rows.iter()).expect("JSON");
        assert!(body.len() > PAGE_BYTES_MAX, "a page by number may be longer than a page by cursor");
        assert_eq!(serde_json::from_slice::<Value>(&body).expect("JSON"), expected);
        let mut page = page;
        let rows = std::mem::take(&mut page.rows);
        assert!(page.write_body(rows.into_iter()).expect("JSON") == body);
        let empty_page = Page::<String>::whole(Vec::new());
        assert_eq!(
            empty_page.write_body(empty_page.rows.iter()).expect("JSON"),
            br#"{"data":[],"meta":{"page":1,"perPage":100,"hasMore":false}}"#
        );
    }

    #[test]
    fn no_row_after_the_second_reallocates_a_body_of_equal_rows() {
        // A body of one row is longer than `SPARE_BYTES_MAX`, so the second row reserves the capacity for all.
        let (rows, bytes) = (60, SPARE_BYTES_MAX + 1);
        let row = "x".repeat(bytes);
        let mut body = Vec::with_capacity(RESOURCE_BYTES * rows);
        let mut reallocations = 0;
        for written in 0..rows {
            let capacity = body.capacity();
            reserve_rows(&mut body, written, rows, usize::MAX);
            body.extend_from_slice(row.as_bytes());
            reallocations += usize::from(written > 1 && body.capacity() != capacity);
        }
        assert_eq!(reallocations, 0, "`reserve_rows` has reserved the capacity for all of them");
        assert!(body.capacity() < body.len() + body.len() / 8);
    }
}
