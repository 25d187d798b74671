//! Builds the statement of a list from literals and bound values. It fetches one row more than requested, to find out
//! whether there are more.

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{Encode, FromRow, PgExecutor, Postgres, QueryBuilder, Row, Type};

use crate::document;
use crate::error::with_timeout;
pub use crate::page::{Page, PageRequest, Place, Position, TimePosition};
use crate::{CompanyId, Database, Result};

/// The distinct words of a search, each with the spellings that match it: numbers are stored as mere digits.
fn words(text: &str) -> Vec<Vec<String>> {
    let mut words: Vec<Vec<String>> = Vec::new();
    for word in text.split_whitespace() {
        let digits: String = word.chars().filter(char::is_ascii_digit).collect();
        let is_number = word.chars().all(|character| character.is_ascii_digit() || "+()-.".contains(character));
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

/// A list being built. Pushed text is always a literal; values are always bound.
pub struct Select {
    query: QueryBuilder<Postgres>,
    /// Whether the list may read many rows to return a few.
    is_heavy: bool,
    /// Whether the statement already returns its rows in the list's order, and starts after the cursor.
    is_in_order: bool,
}

impl Select {
    /// Starts the statement, up to the condition on the company: `from` is a `select … from …`, `column` the column
    /// with the company's id.
    pub fn new(from: &str, column: &str, company: CompanyId) -> Self {
        Self::with_query(QueryBuilder::new(from), column, company)
    }

    /// As [`Self::new`], for a `select` that binds its own values.
    pub fn with_query(mut query: QueryBuilder<Postgres>, column: &str, company: CompanyId) -> Self {
        query.push(" where ").push(column).push(" = ").push_bind(company);
        Self { query, is_heavy: false, is_in_order: false }
    }

    /// As [`Self::new`], for a table of the installation: its rows belong to no company.
    pub fn of_installation(from: &str) -> Self {
        let mut query = QueryBuilder::new(from);
        query.push(" where true");
        Self { query, is_heavy: false, is_in_order: false }
    }

    /// Returns the database access for this page; for a heavy one, the access with the smaller share of connections.
    pub fn weigh<'c, D: Database<'c>>(&self, db: D, page: PageRequest) -> D {
        if self.is_heavy || page.is_deep() { db.heavy() } else { db }
    }

    /// Marks the list as heavy if `is_heavy`: no index provides the requested rows in the list's order.
    #[must_use]
    pub fn mark_heavy_if(mut self, is_heavy: bool) -> Self {
        self.is_heavy |= is_heavy;
        self
    }

    /// Adds `column = value` if the filter is set.
    #[must_use]
    pub fn equals<'a, V>(mut self, column: &str, value: Option<V>) -> Self
    where
        V: Encode<'a, Postgres> + Type<Postgres> + Send + 'a,
    {
        self.compare(column, "=", value);
        self
    }

    /// Adds the condition that the column has this text in any case, if the filter is set. PostgreSQL folds both: its
    /// lower case differs from Rust's.
    #[must_use]
    pub fn equals_ignoring_case(mut self, column: &str, text: Option<&str>) -> Self {
        if let Some(text) = text {
            self.query.push(" and lower(").push(column).push(") = lower(").push_bind(text.to_owned()).push(")");
        }
        self
    }

    /// Adds `column >= from and column <= to`, each only if its bound is set.
    #[must_use]
    pub fn between(mut self, column: &str, (from, to): (Option<DateTime<Utc>>, Option<DateTime<Utc>>)) -> Self {
        self.is_heavy |= from.is_some() || to.is_some();
        self.compare(column, ">=", from);
        self.compare(column, "<=", to);
        self
    }

    /// Ends the outer of two nested scans. The statement so far is a `select … from (select …` of groups of rows,
    /// such as ranges of ids, which are scanned in the order of `column`. `closing` closes it and joins each group's
    /// rows laterally. Conditions on the rows may follow, then [`Self::order_within_group`]. The order of the list's
    /// key must agree with that of `column`.
    ///
    /// The whole result is not ordered explicitly. The lateral join visits the groups one after the other, so its
    /// result is already in order. With an explicit order PostgreSQL would read and sort all rows for each page,
    /// because it expects so few rows that this seems cheap.
    #[must_use]
    pub fn order_groups_by(mut self, column: &'static str, page: PageRequest, closing: &str) -> Self {
        // `offset 0` keeps PostgreSQL from joining first.
        self.order(column, page);
        self.query.push(" offset 0").push(closing);
        self
    }

    /// Ends the inner scan, or a single subquery: orders its rows by `key`, and closes it with `closing`. Conditions on
    /// the found rows follow.
    #[must_use]
    pub fn order_within_group(mut self, key: &str, page: PageRequest, closing: &str) -> Self {
        self.start_after_cursor(key, page);
        self.order(key, page);
        self.query.push(" offset 0").push(closing).push(" where true");
        self.is_in_order = true;
        self
    }

    /// Limits the subquery built so far to its first `limit` rows in the order of `key`, and closes it with `closing`.
    /// Conditions follow and filter only those rows.
    #[must_use]
    pub fn limit_to_first(mut self, limit: i64, key: &str, page: PageRequest, closing: &str) -> Self {
        if !self.is_in_order {
            self.start_after_cursor(key, page);
            self.order(key, page);
        }
        self.query.push(" limit ").push_bind(limit).push(closing).push(" where true");
        self.is_in_order = true;
        self
    }

    /// Limits the subquery built so far to `limit` rows in any order, and closes it with `closing`.
    #[must_use]
    pub fn at_most_rows(mut self, limit: i64, closing: &str) -> Self {
        self.query.push(" limit ").push_bind(limit).push(closing);
        self
    }

    /// Leaves out the rows up to a position in the order of `time`, then `id`.
    #[must_use]
    pub fn after_time(mut self, time: &str, id: &str, (at, after): (DateTime<Utc>, i64), descending: bool) -> Self {
        self.query.push(" and (").push(time).push(", ").push(id).push(if descending { ") < (" } else { ") > (" });
        self.query.push_bind(at).push(", ").push_bind(after).push(")");
        self
    }

    /// Leaves out the rows up to a position in the order of `id`.
    #[must_use]
    pub fn after_id(mut self, id: &str, after: i64, descending: bool) -> Self {
        self.compare(id, if descending { "<" } else { ">" }, Some(after));
        self
    }

    /// Ends a subquery that was begun with a parenthesis: only its first `limit` rows in this order. The caller then
    /// pushes the statement around it.
    pub fn into_subquery(mut self, order: &str, limit: i64) -> QueryBuilder<Postgres> {
        self.query.push(" order by ").push(order).push(" limit ").push_bind(limit).push(")");
        self.query
    }

    /// The single value of a `select count(*) …`.
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

    /// Adds the condition that the column has this bit set.
    #[must_use]
    pub fn has_bit(mut self, column: &str, bit: Option<i64>) -> Self {
        if let Some(bit) = bit {
            self.query.push(" and ").push(column).push(" & ").push_bind(bit).push(" <> 0");
        }
        self
    }

    /// Adds `column >= value` for a number.
    #[must_use]
    pub fn number_at_least(mut self, column: &str, value: Option<i64>) -> Self {
        self.compare(column, ">=", value);
        self
    }

    /// Adds `column <= value` for a number.
    #[must_use]
    pub fn number_at_most(mut self, column: &str, value: Option<i64>) -> Self {
        self.compare(column, "<=", value);
        self
    }

    /// Adds `column > value`.
    #[must_use]
    pub fn after(mut self, column: &str, value: Option<i64>) -> Self {
        self.compare(column, ">", value);
        self
    }

    /// Adds the condition that a row of another table exists: `query` is a `select from … where …` that ends with the
    /// column to compare.
    #[must_use]
    pub fn has_related<'a, V>(self, query: &str, value: Option<V>) -> Self
    where
        V: Encode<'a, Postgres> + Type<Postgres> + Send + 'a,
    {
        self.only_by(&format!("exists ({query} ="), value, ")")
    }

    /// Adds a condition on other tables, if the value is set: `before`, the value, then `after`.
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

    /// Adds a condition without a value.
    #[must_use]
    pub fn only(mut self, condition: Option<&str>) -> Self {
        if let Some(condition) = condition {
            self.query.push(" and ").push(condition);
        }
        self
    }

    /// Adds a search that ignores case and accents, in a folded text whose fields are separated by line breaks: it
    /// finds rows that contain every word, in any place.
    #[must_use]
    pub fn contains(self, folded: &str, text: Option<&str>) -> Self {
        self.any_contains(&[folded], text)
    }

    /// As [`Self::contains`], in several folded texts: each word must occur in one of them.
    #[must_use]
    pub fn any_contains(mut self, folded: &[&str], text: Option<&str>) -> Self {
        self.is_heavy |= text.is_some();
        for spellings in text.into_iter().flat_map(words) {
            let mut separator = " and (";
            for folded_text in folded {
                for spelling in &spellings {
                    self.query.push(separator).push(folded_text);
                    self.query.push(" like hotline_pattern(").push_bind(spelling.clone()).push(")");
                    separator = " or ";
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
    pub async fn page<T>(mut self, db: impl Database<'_>, key: &str, page: PageRequest) -> Result<Page<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let db = self.weigh(db, page);
        self.paginate(key, page);
        with_timeout(self.fetch_page(db, key, page)).await
    }

    /// As [`Self::page`], ordered by several columns that are unique together. A page by cursor is ordered by `id`.
    pub async fn page_by<T>(mut self, db: impl Database<'_>, keys: &[&str], page: PageRequest) -> Result<Page<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        if page.is_by_cursor() {
            return self.page(db, "id", page).await;
        }
        let db = self.weigh(db, page);
        for (index, key) in keys.iter().enumerate() {
            self.query.push(if index == 0 { " order by " } else { ", " }).push(key);
            self.query.push(if page.descending { " desc" } else { "" });
        }
        self.limit(page);
        with_timeout(self.fetch_page(db, "id", page)).await
    }

    /// As [`Self::page`], where the list so far is an open subquery that finds the page's rows, such as `with page as
    /// (select …`; `closing` closes it and selects from it.
    pub async fn page_of_subquery<'e, T>(
        mut self,
        db: impl PgExecutor<'e>,
        key: &str,
        page: PageRequest,
        closing: &str,
    ) -> sqlx::Result<Page<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        self.paginate(key, page);
        self.query.push(closing);
        self.order(key, page);
        self.fetch_page(db, key, page).await
    }

    /// Leaves out the rows up to the page's cursor. A page by number leaves out none here: it uses an offset.
    fn start_after_cursor(&mut self, key: &str, page: PageRequest) {
        self.compare(key, if page.descending { "<" } else { ">" }, page.after());
    }

    fn order(&mut self, key: &str, page: PageRequest) {
        self.query.push(" order by ").push(key).push(if page.descending { " desc" } else { "" });
    }

    fn paginate(&mut self, key: &str, page: PageRequest) {
        if !self.is_in_order {
            self.start_after_cursor(key, page);
            self.order(key, page);
        }
        self.limit(page);
    }

    fn limit(&mut self, page: PageRequest) {
        self.query.push(" limit ").push_bind(page.size + 1);
        self.query.push(" offset ").push_bind(page.offset());
    }

    async fn fetch_page<'e, T>(mut self, db: impl PgExecutor<'e>, key: &str, page: PageRequest) -> sqlx::Result<Page<T>>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut page_rows = self.query.build().fetch_all(db).await?;
        let has_more = page_rows.len() as i64 > page.size;
        page_rows.truncate(usize::try_from(page.size).unwrap_or(usize::MAX));
        if !page.is_by_cursor() {
            return Ok(Page::of(document::read_yielding(page_rows).await, has_more));
        }
        let column_without_table = key.rsplit('.').next().unwrap_or(key);
        let position = |row: &PgRow| row.try_get(column_without_table).map(Position::Id);
        let mut positions = page_rows.iter().map(position).collect::<sqlx::Result<Vec<_>>>()?;
        let end = positions.last().cloned();
        let rows: Vec<Option<T>> = document::read_each(page_rows).await;
        // Unreadable rows are left out, with their positions.
        let mut readable_flags = rows.iter().map(Option::is_some);
        positions.retain(|_| readable_flags.next().unwrap_or_default());
        Ok(Page { rows: rows.into_iter().flatten().collect(), has_more, positions, end })
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_search_is_split_into_words_and_numbers_also_match_by_digits() {
        assert_eq!(words("  Lima\tmaria lima Lima\n"), [["Lima"], ["maria"], ["lima"]]);
        assert_eq!(words("+55 (11) 98765-4321"), [["+55", "55"], ["(11)", "11"], ["98765-4321", "987654321"]]);
        assert_eq!(words("a-1 4711 ()"), [vec!["a-1"], vec!["4711"], vec!["()"]]);
        assert!(words(" ").is_empty());
    }
}
