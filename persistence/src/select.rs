//! Lists: one statement built from literals and bound values, one row more than asked to know whether there is more.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{Encode, FromRow, PgExecutor, Postgres, QueryBuilder, Type};

use crate::document;
use crate::error::{TooDeep, with_timeout};
use crate::{CompanyId, Database, Result};

/// Which rows of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// From 1.
    pub number: i64,
    /// Rows on it.
    pub size: i64,
    /// Newest first.
    pub descending: bool,
}

impl PageRequest {
    /// Rows that lie before it.
    pub fn offset(&self) -> i64 {
        (self.number - 1).saturating_mul(self.size)
    }

    /// Whether so many rows lie before it that they are what takes its time.
    pub fn is_deep(&self) -> bool {
        self.offset() > DEEP
    }
}

/// Rows that are passed over to find a page. A million take a second; what lies deeper is found by a filter.
pub const DEPTH_MAX: i64 = 1_000_000;

/// Rows that are passed over in about the time a page takes to be shown.
const DEEP: i64 = 1_000;

/// The words of a search, each once, with the other way it may be stored: numbers are kept as their digits, however they
/// are written.
fn words(text: &str) -> Vec<Vec<String>> {
    let mut words: Vec<Vec<String>> = Vec::new();
    for word in text.split_whitespace() {
        let digits: String = word.chars().filter(char::is_ascii_digit).collect();
        let is_number = word.chars().all(|one| one.is_ascii_digit() || "+()-.".contains(one));
        let mut spellings = vec![word.to_owned()];
        if is_number && !digits.is_empty() && digits != word {
            spellings.push(digits);
        }
        if !words.contains(&spellings) {
            words.push(spellings);
        }
    }
    words
}

/// One page of a list.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Whether another page follows.
    pub has_more: bool,
}

/// A list being built. Text that is pushed is always a literal; values are always bound.
pub struct Select {
    query: QueryBuilder<Postgres>,
    /// Whether it may read many rows to show a few.
    is_heavy: bool,
    /// Whether the rows come in the order of the list by the way they are found.
    is_in_order: bool,
}

impl Select {
    /// Begins with everything up to the company: `from` is a `select … from …`, `company` the column that holds it.
    pub fn new(from: &str, column: &str, company: CompanyId) -> Self {
        Self::begun(QueryBuilder::new(from), column, company)
    }

    /// The same, for a `select` that binds values of its own.
    pub fn begun(mut query: QueryBuilder<Postgres>, column: &str, company: CompanyId) -> Self {
        query.push(" where ").push(column).push(" = ").push_bind(company);
        Self { query, is_heavy: false, is_in_order: false }
    }

    /// The way to the tables for this page of it: what may be long has a smaller share.
    pub fn weigh<'c, D: Database<'c>>(&self, db: D, page: PageRequest) -> D {
        if self.is_heavy || page.is_deep() { db.heavy() } else { db }
    }

    /// Notes that no index holds what is asked for in the order of the list.
    #[must_use]
    pub fn heavy_if(mut self, is_heavy: bool) -> Self {
        self.is_heavy |= is_heavy;
        self
    }

    /// Adds `column = value`, or nothing when the filter was not given.
    #[must_use]
    pub fn equals<'a, V>(mut self, column: &str, value: Option<V>) -> Self
    where
        V: Encode<'a, Postgres> + Type<Postgres> + Send + 'a,
    {
        self.compare(column, "=", value);
        self
    }

    /// Adds `column >= from and column <= to`, as far as they were given.
    #[must_use]
    pub fn between(mut self, column: &str, (from, to): (Option<DateTime<Utc>>, Option<DateTime<Utc>>)) -> Self {
        self.is_heavy |= from.is_some() || to.is_some();
        self.compare(column, ">=", from);
        self.compare(column, "<=", to);
        self
    }

    /// Makes what was built the first of two steps, a `select … from (select …` whose rows are gone through in the order
    /// of `column`; `then` closes it and finds the list's rows for each, laterally, up to conditions that may follow until
    /// [`Self::within`] orders them by the list's key, with which the order of `column` agrees.
    ///
    /// The rows as a whole are not said to be ordered. What is joined laterally is found for one row of the first step after
    /// the other, so they come in order. Told to order them, PostgreSQL sorts all there are before it shows a page, as soon
    /// as it expects fewer than lie before the page; and it expects few, whatever a company has.
    #[must_use]
    pub fn for_each_by(mut self, column: &'static str, page: PageRequest, then: &str) -> Self {
        // `offset 0` keeps PostgreSQL from joining first.
        self.order(column, page);
        self.query.push(" offset 0").push(then);
        self
    }

    /// Closes the second step: `key` orders its rows, and `then` closes it. What follows are conditions on what it found.
    #[must_use]
    pub fn within(mut self, key: &str, page: PageRequest, then: &str) -> Self {
        self.order(key, page);
        self.query.push(" offset 0").push(then).push(" where true");
        self.is_in_order = true;
        self
    }

    /// Takes the first rows of what was built, in the order of `key`, to be looked through: `then` closes it, and conditions
    /// on those rows follow.
    #[must_use]
    pub fn first(mut self, most: i64, key: &str, page: PageRequest, then: &str) -> Self {
        if !self.is_in_order {
            self.order(key, page);
        }
        self.query.push(" limit ").push_bind(most).push(then).push(" where true");
        self.is_in_order = true;
        self
    }

    /// The one value of what was built as a `select count(*) …`.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn count<'e>(mut self, db: impl PgExecutor<'e>) -> sqlx::Result<i64> {
        self.query.build_query_scalar().fetch_one(db).await
    }

    /// Adds `column >= value`.
    #[must_use]
    pub fn at_least(mut self, column: &str, value: Option<DateTime<Utc>>) -> Self {
        self.compare(column, ">=", value);
        self
    }

    /// Adds `column <= value`.
    #[must_use]
    pub fn at_most(mut self, column: &str, value: Option<DateTime<Utc>>) -> Self {
        self.compare(column, "<=", value);
        self
    }

    /// Adds that the column has this bit.
    #[must_use]
    pub fn has_bit(mut self, column: &str, bit: Option<i64>) -> Self {
        if let Some(bit) = bit {
            self.query.push(" and ").push(column).push(" & ").push_bind(bit).push(" <> 0");
        }
        self
    }

    /// Adds `column > value`.
    #[must_use]
    pub fn after(mut self, column: &str, value: Option<i64>) -> Self {
        self.compare(column, ">", value);
        self
    }

    /// Adds that a row of another table exists: `query` is a `select from … where …` that ends with the column to
    /// compare.
    #[must_use]
    pub fn related<'a, V>(self, query: &str, value: Option<V>) -> Self
    where
        V: Encode<'a, Postgres> + Type<Postgres> + Send + 'a,
    {
        self.only_by(&format!("exists ({query} ="), value, ")")
    }

    /// Adds a condition on other tables around a value.
    #[must_use]
    pub fn only_by<'a, V>(mut self, before: &str, value: Option<V>, after: &str) -> Self
    where
        V: Encode<'a, Postgres> + Type<Postgres> + Send + 'a,
    {
        if let Some(value) = value {
            self.is_heavy = true;
            self.query.push(" and ").push(before).push(" ").push_bind(value).push(after);
        }
        self
    }

    /// Adds a condition that needs no value.
    #[must_use]
    pub fn only(mut self, condition: Option<&str>) -> Self {
        if let Some(condition) = condition {
            self.query.push(" and ").push(condition);
        }
        self
    }

    /// Adds a search without regard to case and accents, in a folded text whose fields are kept apart by line
    /// breaks: it finds what holds every word, wherever.
    #[must_use]
    pub fn contains(self, folded: &str, text: Option<&str>) -> Self {
        self.any_contains(&[folded], text)
    }

    /// Adds the same search in several folded texts: each word must be in one of them.
    #[must_use]
    pub fn any_contains(mut self, folded: &[&str], text: Option<&str>) -> Self {
        self.is_heavy |= text.is_some();
        for spellings in text.into_iter().flat_map(words) {
            let mut joint = " and (";
            for folded in folded {
                for spelling in &spellings {
                    self.query.push(joint).push(folded);
                    self.query.push(" like hotline_pattern(").push_bind(spelling.clone()).push(")");
                    joint = " or ";
                }
            }
            self.query.push(")");
        }
        self
    }

    fn compare<'a, V>(&mut self, column: &str, operator: &str, value: Option<V>)
    where
        V: Encode<'a, Postgres> + Type<Postgres> + Send + 'a,
    {
        if let Some(value) = value {
            self.query.push(" and ").push(column).push(" ").push(operator).push(" ").push_bind(value);
        }
    }

    /// Runs the list, ordered by the unique column `key`.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn page<T>(mut self, db: impl Database<'_>, key: &str, page: PageRequest) -> Result<Page<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let db = self.weigh(db, page);
        self.cut(key, page);
        with_timeout(self.rows(db, page)).await
    }

    /// The same in the order of several columns, which are unique together.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn page_by<T>(mut self, db: impl Database<'_>, keys: &[&str], page: PageRequest) -> Result<Page<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let db = self.weigh(db, page);
        for (index, key) in keys.iter().enumerate() {
            self.query.push(if index == 0 { " order by " } else { ", " }).push(key);
            self.query.push(if page.descending { " desc" } else { "" });
        }
        self.bound(page);
        with_timeout(self.rows(db, page)).await
    }

    /// The same in two steps: what was built finds the page's rows, as `with page as (select …`, and `then` closes it
    /// and shows them.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn page_then<'e, T>(
        mut self,
        db: impl PgExecutor<'e>,
        key: &str,
        page: PageRequest,
        then: &str,
    ) -> sqlx::Result<Page<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        self.cut(key, page);
        self.query.push(then);
        self.order(key, page);
        self.rows(db, page).await
    }

    fn order(&mut self, key: &str, page: PageRequest) {
        self.query.push(" order by ").push(key).push(if page.descending { " desc" } else { "" });
    }

    fn cut(&mut self, key: &str, page: PageRequest) {
        if !self.is_in_order {
            self.order(key, page);
        }
        self.bound(page);
    }

    fn bound(&mut self, page: PageRequest) {
        // Of a page too deep one row is looked for at the bound: where there is none, the list has ended before it.
        let rows = if page.offset() > DEPTH_MAX { 1 } else { page.size + 1 };
        self.query.push(" limit ").push_bind(rows);
        self.query.push(" offset ").push_bind(page.offset().min(DEPTH_MAX));
    }

    async fn rows<'e, T>(mut self, db: impl PgExecutor<'e>, page: PageRequest) -> sqlx::Result<Page<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut found = self.query.build().fetch_all(db).await?;
        if page.offset() > DEPTH_MAX && !found.is_empty() {
            return Err(sqlx::Error::Configuration(TooDeep(DEPTH_MAX).into()));
        }
        let has_more = found.len() as i64 > page.size;
        found.truncate(usize::try_from(page.size).unwrap_or(usize::MAX));
        Ok(Page { rows: document::read_all(&found), has_more })
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_search_is_its_words_and_a_number_its_digits_as_well() {
        assert_eq!(words("  Lima\tmaria lima Lima\n"), [["Lima"], ["maria"], ["lima"]]);
        assert_eq!(words("+55 (11) 98765-4321"), [["+55", "55"], ["(11)", "11"], ["98765-4321", "987654321"]]);
        assert_eq!(words("a-1 4711 ()"), [vec!["a-1"], vec!["4711"], vec!["()"]]);
        assert!(words(" ").is_empty());
    }
}
