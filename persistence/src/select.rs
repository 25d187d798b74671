//! Lists: one statement built from literals and bound values, one row more than asked to know whether there is more.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{Encode, FromRow, PgExecutor, PgPool, Postgres, QueryBuilder, Type};

use crate::error::within;
use crate::{CompanyId, Result};

/// Which rows of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// From 1.
    pub number: i64,
    /// Rows on it.
    pub size: i64,
    /// Newest first.
    pub descending: bool,
}

/// One page of a list.
#[derive(Debug, Serialize)]
pub struct Listed<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Whether another page follows.
    pub has_more: bool,
}

/// A list being built. Text that is pushed is always a literal; values are always bound.
pub struct Select {
    query: QueryBuilder<Postgres>,
}

impl Select {
    /// Begins with everything up to the company: `from` is a `select … from …`, `company` the column that holds it.
    pub fn new(from: &str, column: &str, company: CompanyId) -> Self {
        Self::begun(QueryBuilder::new(from), column, company)
    }

    /// The same, for a `select` that binds values of its own.
    pub fn begun(mut query: QueryBuilder<Postgres>, column: &str, company: CompanyId) -> Self {
        query.push(" where ").push(column).push(" = ").push_bind(company);
        Self { query }
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
        self.compare(column, ">=", from);
        self.compare(column, "<=", to);
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
    pub fn related<'a, V>(mut self, query: &str, value: Option<V>) -> Self
    where
        V: Encode<'a, Postgres> + Type<Postgres> + Send + 'a,
    {
        if let Some(value) = value {
            self.query.push(" and exists (").push(query).push(" = ").push_bind(value).push(")");
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
    /// breaks. No field holds one, so a search that does finds nothing.
    #[must_use]
    pub fn contains(mut self, folded: &str, text: Option<&str>) -> Self {
        if text.is_some_and(|text| text.contains('\n')) {
            self.query.push(" and false");
        } else if let Some(text) = text {
            self.query.push(" and ").push(folded).push(" like hotline_pattern(");
            self.query.push_bind(text.to_owned()).push(")");
        }
        self
    }

    /// Adds the same search in several folded texts, for those that may hold line breaks: one of them must match.
    #[must_use]
    pub fn any_contains(mut self, folded: &[&str], text: Option<&str>) -> Self {
        if let Some(text) = text {
            for (index, folded) in folded.iter().enumerate() {
                self.query.push(if index == 0 { " and (" } else { " or " }).push(folded);
                self.query.push(" like hotline_pattern(").push_bind(text.to_owned()).push(")");
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
    pub async fn page<T>(mut self, db: &PgPool, key: &str, page: Page) -> Result<Listed<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        self.cut(key, page);
        within(self.rows(db, page)).await
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
        page: Page,
        then: &str,
    ) -> sqlx::Result<Listed<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        self.cut(key, page);
        self.query.push(then);
        self.order(key, page);
        self.rows(db, page).await
    }

    fn order(&mut self, key: &str, page: Page) {
        self.query.push(" order by ").push(key).push(if page.descending { " desc" } else { "" });
    }

    fn cut(&mut self, key: &str, page: Page) {
        self.order(key, page);
        self.query.push(" limit ").push_bind(page.size + 1);
        self.query.push(" offset ").push_bind((page.number - 1).saturating_mul(page.size));
    }

    async fn rows<'e, T>(mut self, db: impl PgExecutor<'e>, page: Page) -> sqlx::Result<Listed<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut rows: Vec<T> = self.query.build_query_as().fetch_all(db).await?;
        let has_more = rows.len() as i64 > page.size;
        rows.truncate(usize::try_from(page.size).unwrap_or(usize::MAX));
        Ok(Listed { rows, has_more })
    }
}
