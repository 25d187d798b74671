//! A page of a list as it is sent: by number, or by cursor and then as long as it may be.

use std::borrow::Borrow;
use std::io::{self, Write};

use actix_web::body::BoxBody;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, Responder, ResponseError};
use hotline_persistence::select::{self, PageRequest, Position};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{RESOURCE_BYTES, Reply, SPARE_BYTES_MAX, respond, without_spare};
use crate::web::cursor::ListRead;
use crate::web::params::PER_PAGE;
use crate::web::schema::{self, Schemas};
use crate::web::{ApiError, ApiResult};

/// A page of results.
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
        self.written(self.rows.iter())
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        let row = schema::of::<T>(schemas);
        let properties = json!({"data": {"type": "array", "items": row}, "meta": schema::reference("PageMeta")});
        Some(schema::envelope::<T>(schemas, "List", &properties, "A page of results."))
    }
}

impl<T: Serialize> Page<T> {
    /// The body, with these rows. A page by cursor ends where it is as long as it may be.
    fn written<R: Borrow<T>>(&self, rows: impl ExactSizeIterator<Item = R>) -> ApiResult<Vec<u8>> {
        let count = rows.len();
        let bytes_max = if self.page.is_by_cursor() { PAGE_BYTES_MAX } else { usize::MAX };
        let mut body = Vec::with_capacity(RESOURCE_BYTES.saturating_mul(count.max(1)));
        body.extend_from_slice(b"{\"data\":[");
        let (mut shown, mut bytes) = (0, 0);
        for row in rows {
            make_room(&mut body, (shown, count), bytes_max);
            let before = body.len();
            if shown > 0 {
                body.push(b',');
            }
            let begun = body.len();
            let shown_row: &T = row.borrow();
            serde_json::to_writer(&mut body, shown_row).map_err(ApiError::internal)?;
            bytes += body.len() - begun;
            // As `fitting` counts.
            if shown > 0 && bytes > bytes_max {
                body.truncate(before);
                break;
            }
            shown += 1;
        }
        body.extend_from_slice(b"],\"meta\":");
        serde_json::to_writer(&mut body, &self.meta(shown, count)).map_err(ApiError::internal)?;
        body.push(b'}');
        Ok(without_spare(body))
    }

    /// What a page says of itself that shows so many of its rows.
    fn meta(&self, shown: usize, count: usize) -> Meta {
        let per_page = self.page.size;
        if let Some(page) = self.page.number() {
            return Meta::Numbered { page, per_page, has_more: self.has_more };
        }
        let last = shown.checked_sub(1).and_then(|last| self.positions.get(last));
        let end = if shown == count { self.end.as_ref().or(last) } else { last };
        let has_more = self.has_more || shown < count;
        let next_cursor = self.list.as_ref().zip(end).filter(|_| has_more).map(|(list, end)| list.cursor(end));
        Meta::Continued { per_page, has_more, next_cursor }
    }
}

/// Makes room for the rows that are still to be written, if they are as long as those that are: a body that grows is copied, and
/// then it is in memory twice.
fn make_room(body: &mut Vec<u8>, (shown, count): (usize, usize), bytes_max: usize) {
    if shown == 0 || body.len() <= SPARE_BYTES_MAX {
        return;
    }
    let left = (body.len() / shown).saturating_mul(count - shown);
    // A sixteenth more: rows are seldom all alike.
    let left = left.saturating_add(left / 16).min(bytes_max.saturating_sub(body.len()));
    body.reserve(left);
}

impl<T: Serialize + ToSchema + 'static> Responder for Page<T> {
    type Body = BoxBody;

    fn respond_to(mut self, request: &HttpRequest) -> HttpResponse {
        self.list = request.extensions().get::<ListRead>().cloned();
        // A row is gone once it is written: a large page is in memory once.
        let rows = std::mem::take(&mut self.rows);
        match self.written(rows.into_iter()) {
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
    fn a_page_ends_by_its_bytes_and_has_one_row_at_least() {
        let row = |bytes: usize| "x".repeat(bytes - 2);
        let fits = |rows: &[String]| fitting(rows).expect("JSON");
        assert_eq!(fits(&[]), 0);
        assert_eq!(fits(&[row(PAGE_BYTES_MAX + 1), row(10)]), 1, "larger alone");
        assert_eq!(fits(&[row(PAGE_BYTES_MAX / 2), row(PAGE_BYTES_MAX / 2), row(10)]), 2);
        assert_eq!(fits(&[row(10), row(PAGE_BYTES_MAX), row(10)]), 1, "the first that does not fit ends it");
        assert_eq!(fits(&[row(10), row(10)]), 2);
    }
    #[test]
    fn a_page_by_number_is_whole_and_what_it_shows_does_not_depend_on_how_it_is_written() {
        let rows: Vec<String> = (0..100).map(|number| "x".repeat(number * 1000)).collect();
        let expected = json!({"data": rows, "meta": {"page": 1, "perPage": 100, "hasMore": false}});
        let page = Page::of(PageRequest::first(100), select::Page::of(rows, false), |row| row);
        let body = page.written(page.rows.iter()).expect("JSON");
        assert!(body.len() > PAGE_BYTES_MAX, "longer than a page by cursor");
        assert_eq!(serde_json::from_slice::<Value>(&body).expect("JSON"), expected);
        let mut page = page;
        let rows = std::mem::take(&mut page.rows);
        assert!(page.written(rows.into_iter()).expect("JSON") == body);
        let none = Page::<String>::whole(Vec::new());
        assert_eq!(
            none.written(none.rows.iter()).expect("JSON"),
            br#"{"data":[],"meta":{"page":1,"perPage":100,"hasMore":false}}"#
        );
    }

    #[test]
    fn a_body_of_equal_rows_grows_once() {
        let (rows, bytes) = (60, 60_000);
        let row = "x".repeat(bytes);
        let mut body = Vec::with_capacity(RESOURCE_BYTES * rows);
        let mut grown = 0;
        for shown in 0..rows {
            make_room(&mut body, (shown, rows), usize::MAX);
            let room = body.capacity();
            body.extend_from_slice(row.as_bytes());
            grown += usize::from(shown > 1 && body.capacity() != room);
        }
        assert_eq!(grown, 0, "there is room for all of them from the second on");
        assert!(body.capacity() < body.len() + body.len() / 8);
    }
}
