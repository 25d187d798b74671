//! Ids in paths, and filters and pages in queries. As with bodies, the code that reads them also documents them.

use std::future::{Ready, ready};
use std::num::IntErrorKind;
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use hotline_actors::FieldError;
use hotline_persistence::select::{PageRequest, Place, Position};
use hotline_persistence::{Id, SessionId, controls};
use serde_json::{Value, json};

use super::values::{CONTROLS_REFUSED, FromField};
use crate::web::response::cursor::Cursors;
use crate::web::response::error::{ApiError, ApiResult};
use crate::web::response::reply::PER_PAGE;

/// An id in a path.
pub trait PathValue: FromStr {
    /// Its schema in the API document.
    fn schema() -> Value;
}

impl<N> PathValue for Id<N> {
    fn schema() -> Value {
        json!({"type": "integer", "format": "int64", "example": 7})
    }
}

impl PathValue for SessionId {
    fn schema() -> Value {
        json!({"type": "string", "example": "ws_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP"})
    }
}

/// The ids of a path: one or two.
pub trait PathIds: Sized {
    /// Parses the ids in the order of the path.
    fn read<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self>;
    /// The schema of each id in the API document.
    fn schemas() -> Vec<Value>;
}

impl<T: PathValue> PathIds for T {
    fn read<'a>(mut values: impl Iterator<Item = &'a str>) -> Option<Self> {
        values.next()?.parse().ok()
    }

    fn schemas() -> Vec<Value> {
        vec![T::schema()]
    }
}

impl<A: PathValue, B: PathValue> PathIds for (A, B) {
    fn read<'a>(mut values: impl Iterator<Item = &'a str>) -> Option<Self> {
        Some((values.next()?.parse().ok()?, values.next()?.parse().ok()?))
    }

    fn schemas() -> Vec<Value> {
        vec![A::schema(), B::schema()]
    }
}

/// The id in a path, or its two ids as a pair. Text that is not an id gets the same `404` as an id that does not exist.
pub struct PathId<T>(pub T);

impl<T: PathIds> FromRequest for PathId<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let ids = T::read(request.match_info().iter().map(|(_, text)| text));
        ready(ids.map(PathId).ok_or_else(ApiError::not_found))
    }
}

/// The filters of a list.
pub trait Filter: Sized {
    /// Reads every filter; errors are collected in `query`.
    fn read(query: &mut Params) -> Self;
}

/// No filters.
impl Filter for () {
    fn read(_: &mut Params) -> Self {}
}

/// The query of a list: the page and the filters.
pub struct Query<F> {
    /// The page.
    pub page: PageRequest,
    /// The position after which a page by cursor begins, if the list is not in the order of ids; else `page` has it.
    pub after: Option<Position>,
    /// The filters.
    pub filter: F,
}

impl<F: Filter> FromRequest for Query<F> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::of(request))
    }
}

impl<F: Filter> Query<F> {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let per_page_max = request.app_data::<Data<PerPageMax>>().map_or(PER_PAGE, |max| max.0);
        let mut query = Params::of(request);
        let mut page = query.page(per_page_max);
        let filter = F::read(&mut query);
        page.descending |= query.descends_by_default && !query.has("order");
        let mut after = None;
        if let Some(cursor) = query.cursor() {
            let list = Cursors::list_of(request, &query.used, page.descending)?;
            page.place = Place::Cursor(None);
            if !cursor.is_empty() {
                match list.position(&cursor) {
                    Some(Position::Id(id)) => page.place = Place::Cursor(Some(id)),
                    Some(position) => after = Some(position),
                    None => query.refuse("cursor", "must be a cursor of this list, with the same filters and order"),
                }
            }
            // The response signs the next cursor for the same list.
            request.extensions_mut().insert(list);
        }
        query.finish()?;
        Ok(Self { page, after, filter })
    }
}

/// The query parameters of an endpoint that is not a list.
pub struct QueryParams<F>(pub F);

impl<F: Filter> FromRequest for QueryParams<F> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let mut query = Params::of(request);
        let params = F::read(&mut query);
        ready(query.finish().map(|()| Self(params)))
    }
}

/// Whether the query contains a page number. Such a page must not be truncated, since the next page skips a fixed
/// number of rows.
pub fn has_page_number(request: &HttpRequest) -> bool {
    form_urlencoded::parse(request.query_string().as_bytes()).any(|(name, _)| name == "page")
}

/// The maximum page size, from the settings.
#[derive(Clone, Copy, Debug)]
pub struct PerPageMax(pub i64);

/// The description of `cursor` in the API document.
const CURSOR: &str = "Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the \
    previous page. Records are ordered by id. Each record that matches throughout is returned exactly once, even if others are \
    added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore` says whether there are more. Use \
    the same list, filters and order";

/// The description of `cursor` for a list with `sort`.
const SORTED_CURSOR: &str = "Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of \
    the previous page. In the order of ids, each record that matches throughout is returned exactly once, even if others are \
    added or deleted meanwhile; with another `sort`, one whose place changes meanwhile may be missed or repeated. A page may \
    have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list, filters and order";

/// The parameters of a query. Unknown parameters are ignored; errors in known ones are collected.
pub struct Params {
    pairs: Vec<(String, String)>,
    errors: Vec<FieldError>,
    /// The filters that were given and read.
    used: Vec<(String, String)>,
    /// Whether the list is in descending order unless `order` is given.
    descends_by_default: bool,
    /// Collects the documentation while the parameters are described.
    documented: Option<Vec<(String, Value)>>,
}

impl Params {
    fn of(request: &HttpRequest) -> Self {
        let pairs = form_urlencoded::parse(request.query_string().as_bytes()).into_owned().collect();
        Self { pairs, errors: Vec::new(), used: Vec::new(), descends_by_default: false, documented: None }
    }

    /// The parameters of a list, each with its schema.
    pub fn describe_list<F: Filter>() -> Vec<(String, Value)> {
        Self::describe_with(|query| {
            query.page(PER_PAGE);
            F::read(query);
        })
    }

    /// The parameters of an endpoint that is not a list.
    pub fn describe<F: Filter>() -> Vec<(String, Value)> {
        Self::describe_with(|query| drop(F::read(query)))
    }

    fn describe_with(read: impl FnOnce(&mut Self)) -> Vec<(String, Value)> {
        let documented = Some(Vec::new());
        let (pairs, errors, used) = (Vec::new(), Vec::new(), Vec::new());
        let mut query = Self { pairs, errors, used, descends_by_default: false, documented };
        read(&mut query);
        query.documented.unwrap_or_default()
    }

    /// The raw parameter. If it is given several times, it is ambiguous, so it is refused.
    fn text(&self, name: &str) -> Result<Option<&str>, &'static str> {
        let mut values = self.pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (_, Some(_)) => Err("must be given once"),
            (value, None) => Ok(value),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(key, _)| key == name)
    }

    /// An optional filter.
    pub fn filter<T: FromField>(&mut self, name: &str) -> Option<T> {
        if let Some(documented) = &mut self.documented {
            documented.push((name.to_owned(), T::schema()));
            return None;
        }
        let result = match self.text(name) {
            Ok(None) => return None,
            Ok(Some(value)) if controls::contains_refused(value) => Err(CONTROLS_REFUSED.to_owned()),
            Ok(Some(text)) => {
                let (text, result) = (text.to_owned(), T::from_text(text));
                self.used.push((name.to_owned(), text));
                result
            }
            Err(reason) => Err(reason.to_owned()),
        };
        match result {
            Ok(value) => Some(value),
            Err(reason) => {
                self.refuse(name, &reason);
                None
            }
        }
    }

    /// A filter with a default value.
    pub fn filter_or<T: FromField + Into<Value> + Clone>(&mut self, name: &str, default: T) -> T {
        let value = self.filter(name);
        if let Some([.., (_, schema)]) = self.documented.as_deref_mut() {
            schema["default"] = default.clone().into();
        }
        value.unwrap_or(default)
    }

    /// The `sort` parameter: the list's order. The description is for the API document.
    pub fn sort<T: FromField + Default + Into<Value>>(&mut self, description: &str) -> T {
        let sort = self.filter("sort");
        for (name, schema) in self.documented.iter_mut().flatten() {
            match name.as_str() {
                "sort" => {
                    schema["default"] = T::default().into();
                    schema["description"] = json!(description);
                }
                "order" => schema["description"] = json!("The default is `asc`, unless `sort` has another"),
                "cursor" => schema["description"] = json!(SORTED_CURSOR),
                _ => {}
            }
        }
        sort.unwrap_or_default()
    }

    /// Makes the order descending, unless `order` is given.
    pub const fn descend_by_default(&mut self) {
        self.descends_by_default = true;
    }

    /// A time span, `<name>From` to `<name>To`.
    pub fn span(&mut self, name: &str) -> Span {
        let span = (self.filter(&format!("{name}From")), self.filter(&format!("{name}To")));
        if let Some([.., (_, from), (_, to)]) = self.documented.as_deref_mut() {
            from["description"] = json!(format!("{name} at or after this time"));
            to["description"] = json!(format!("{name} at or before this time"));
        }
        span
    }

    /// Records that a filter is invalid.
    pub fn refuse(&mut self, name: &str, reason: &str) {
        self.errors.push(FieldError { field: name.to_owned(), reason: reason.to_owned() });
    }

    /// Reads `page`, `perPage` and `order`. An invalid page is not an error: it counts as the first one.
    fn page(&mut self, per_page_max: i64) -> PageRequest {
        if let Some(documented) = &mut self.documented {
            let integer =
                |text: &str, example: i64| json!({"type": "integer", "description": text, "example": example});
            let text =
                "The page number, from 1; invalid values count as 1. Pages far beyond a million rows may be slow";
            documented.push(("page".to_owned(), integer(text, 1)));
            documented.push(("perPage".to_owned(), integer("Page size; invalid values count as 100", 100)));
            let order = json!({"type": "string", "enum": ["asc", "desc"], "default": "asc"});
            documented.push(("order".to_owned(), order));
            documented.push(("cursor".to_owned(), json!({"type": "string", "description": CURSOR, "example": ""})));
        }
        // A page or a page size that is given twice is invalid, so it counts as the default.
        let text = |name| self.text(name).ok().flatten();
        let number = text("page").and_then(|text| text.parse().ok()).filter(|number| *number >= 1).unwrap_or(1);
        let size = text("perPage").and_then(parse_page_size);
        let descending = match self.text("order") {
            Ok(None | Some("asc")) => false,
            Ok(Some("desc")) => true,
            Ok(Some(_)) => {
                self.refuse("order", "must be one of asc, desc");
                false
            }
            Err(reason) => {
                self.refuse("order", reason);
                false
            }
        };
        let place = Place::Number(number);
        PageRequest { place, size: size.unwrap_or(PER_PAGE).min(per_page_max), descending }
    }

    /// The cursor, empty for the first page; `None` for a page by number.
    fn cursor(&mut self) -> Option<String> {
        let value = self.text("cursor").map(|text| text.map(|text| text.trim().to_owned()));
        let has_page = self.has("page");
        match value {
            Ok(Some(_)) if has_page => self.refuse("cursor", "must not be given together with page"),
            Ok(value) => return value,
            Err(reason) => self.refuse("cursor", reason),
        }
        None
    }

    fn finish(self) -> ApiResult<()> {
        if self.errors.is_empty() { Ok(()) } else { Err(ApiError::validation(&self.errors)) }
    }
}

/// A page size: a whole number from 1. If it is too large for an integer, it counts as the largest; `None` if it is
/// invalid.
fn parse_page_size(text: &str) -> Option<i64> {
    match text.parse::<i64>() {
        Ok(size) => Some(size).filter(|size| *size >= 1),
        Err(error) => (*error.kind() == IntErrorKind::PosOverflow).then_some(i64::MAX),
    }
}

/// A time span; either end may be open.
pub type Span = (Option<chrono::DateTime<chrono::Utc>>, Option<chrono::DateTime<chrono::Utc>>);
