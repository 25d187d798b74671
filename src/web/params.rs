//! Ids in paths and filters in queries.

use std::future::{Ready, ready};
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use hotline_actors::FieldError;

use super::values::Accepted;
use super::{Answer, ApiError};

/// The id in a path. Text that is no id is the same `404` as an id nobody has.
pub struct PathId<T>(pub T);

impl<T: FromStr> FromRequest for PathId<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let id = request.match_info().iter().next().and_then(|(_, text)| text.parse().ok());
        ready(id.map(PathId).ok_or_else(ApiError::not_found))
    }
}

/// The parameters of a query: unknown ones are ignored, what is wrong with the others is collected.
pub struct Params {
    pairs: Vec<(String, String)>,
    errors: Vec<FieldError>,
}

impl FromRequest for Params {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self {
            pairs: form_urlencoded::parse(request.query_string().as_bytes()).into_owned().collect(),
            errors: Vec::new(),
        }))
    }
}

impl Params {
    /// The parameter as it was written; the last one counts.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A filter.
    pub fn filter<T: Accepted>(&mut self, name: &str) -> Option<T> {
        match T::from_text(self.text(name)?) {
            Ok(value) => Some(value),
            Err(reason) => {
                self.errors.push(FieldError { field: name.to_owned(), reason });
                None
            }
        }
    }

    /// A span of time, `<name>From` to `<name>To`.
    pub fn span(&mut self, name: &str) -> Span {
        (self.filter(&format!("{name}From")), self.filter(&format!("{name}To")))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// `422` with every filter that is not accepted.
    pub fn done(self) -> Answer<()> {
        if self.errors.is_empty() { Ok(()) } else { Err(ApiError::validation(&self.errors)) }
    }

    /// Notes that a filter is not accepted.
    pub fn refuse(&mut self, name: &str, reason: &str) {
        self.errors.push(FieldError { field: name.to_owned(), reason: reason.to_owned() });
    }
}

/// A span of time, either end open.
pub type Span = (Option<chrono::DateTime<chrono::Utc>>, Option<chrono::DateTime<chrono::Utc>>);
