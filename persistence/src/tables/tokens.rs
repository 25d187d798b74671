//! API tokens: only the hash of a key is stored. Plain: changed by transactions, not by actors. Created in the panel or
//! on the command line.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor, PgPool};
use std::collections::{BTreeMap, BTreeSet};

use super::text_enum;
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::key::{hash, new_key};
use crate::select::{Page, PageRequest, Select};
use crate::table::{self, CHANGED_AT, Span, Table};
use crate::{CompanyId, Database, Error, Result, TokenId};

/// Prefix of every key.
pub const KEY_PREFIX: &str = "sk_live_";

/// Number of leading characters of a key that are stored in the clear, so that people recognize a token in a list.
const VISIBLE_CHARACTERS: usize = KEY_PREFIX.len() + 8;

/// Permitted methods by module.
pub type Permissions = BTreeMap<String, BTreeSet<String>>;

/// One token as stored.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
pub struct TokenRow {
    pub id: TokenId,
    pub company_id: CompanyId,
    pub name: String,
    pub prefix: String,
    #[serde(skip)]
    pub hash: Vec<u8>,
    #[sqlx(try_from = "Document<Permissions>")]
    pub permissions: Json<Permissions>,
    pub allowed_ips: Vec<String>,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Table for TokenRow {
    const NAME: &'static str = "tokens";
    const NOUN: &'static str = "token";
    type Id = TokenId;
}

text_enum! {
    /// Whether a token is valid.
    TokenStatus { Active = "active", Revoked = "revoked", Expired = "expired" }
}

impl TokenRow {
    /// The token's status at this time; revoked takes precedence over expired.
    pub fn status(&self, now: DateTime<Utc>) -> TokenStatus {
        if self.revoked_at.is_some() {
            TokenStatus::Revoked
        } else if self.expires_at.is_some_and(|expiry| expiry <= now) {
            TokenStatus::Expired
        } else {
            TokenStatus::Active
        }
    }
}

/// The permissions and restrictions of a new token.
#[derive(Clone, Debug, Default)]
pub struct NewToken<'a> {
    pub name: &'a str,
    pub permissions: Permissions,
    pub allowed_ips: Vec<String>,
    pub expires_at: Option<DateTime<Utc>>,
}

/// Creates a token and its key, which cannot be read again.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such company.
pub async fn insert(db: impl PgExecutor<'_>, company: CompanyId, new: NewToken<'_>) -> Result<(TokenRow, String)> {
    let key = new_key(KEY_PREFIX);
    let insert = sqlx::query_as(
        "insert into tokens (company_id, name, prefix, hash, permissions, allowed_ips, expires_at)
         select id, $2, $3, $4, $5, $6, $7 from companies where id = $1 returning *",
    )
    .bind(company)
    .bind(new.name)
    .bind(&key[..VISIBLE_CHARACTERS])
    .bind(hash(&key))
    .bind(Json(new.permissions))
    .bind(new.allowed_ips)
    .bind(new.expires_at);
    let row = with_timeout(insert.fetch_optional(db)).await?;
    Ok((row.ok_or(Error::NotFound("company"))?, key))
}

/// Replaces a token's key, which cannot be read again; the old one is invalid at once.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such token, or it was revoked.
pub async fn rotate(db: &PgPool, id: TokenId) -> Result<(TokenRow, String)> {
    let key = new_key(KEY_PREFIX);
    let update = sqlx::query_as(
        "update tokens set prefix = $2, hash = $3, updated_at = now()
         where id = $1 and revoked_at is null returning *",
    );
    let update = update.bind(id).bind(&key[..VISIBLE_CHARACTERS]).bind(hash(&key));
    let row = with_timeout(update.fetch_optional(db)).await?;
    Ok((row.ok_or(Error::NotFound("token"))?, key))
}

/// Revokes a token permanently; an earlier revocation stays unchanged.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such token.
pub async fn revoke(db: &PgPool, id: TokenId) -> Result<TokenRow> {
    let update = "update tokens set revoked_at = now(), updated_at = now() where id = $1 and revoked_at is null";
    with_timeout(sqlx::query(update).bind(id).execute(db)).await?;
    find(db, id).await?.ok_or(Error::NotFound("token"))
}

/// One token, or `None`.
pub async fn find(db: &PgPool, id: TokenId) -> Result<Option<TokenRow>> {
    with_timeout(sqlx::query_as("select * from tokens where id = $1").bind(id).fetch_optional(db)).await
}

/// Tokens in order of creation, of one company or of all companies.
pub async fn all(db: impl Database<'_>, company: Option<CompanyId>) -> Result<Vec<TokenRow>> {
    let all = sqlx::query("select * from tokens where company_id = coalesce($1, company_id) order by id");
    Ok(document::read_all(&with_timeout(all.bind(company).fetch_all(db)).await?))
}

/// The tokens of these companies, in order of creation.
pub async fn of_companies(db: impl Database<'_>, companies: &[CompanyId]) -> Result<Vec<TokenRow>> {
    let all = sqlx::query("select * from tokens where company_id = any($1) order by id").bind(companies);
    Ok(document::read_all(&with_timeout(all.fetch_all(db)).await?))
}

/// The filters of the list of a company's tokens.
#[derive(Clone, Debug, Default)]
pub struct TokenFilter {
    pub search: Option<String>,
    pub status: Option<TokenStatus>,
    pub created: Span,
    pub updated: Span,
}

/// A page of a company's tokens.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &TokenFilter,
    page: PageRequest,
) -> Result<Page<TokenRow>> {
    let condition = filter.status.map(|status| match status {
        TokenStatus::Active => "revoked_at is null and (expires_at is null or expires_at > now())",
        TokenStatus::Revoked => "revoked_at is not null",
        TokenStatus::Expired => "revoked_at is null and expires_at <= now()",
    });
    Select::new("select * from tokens", "company_id", company)
        .only(condition)
        .contains("hotline_fold(name || E'\\n' || prefix)", filter.search.as_deref())
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page(db, "id", page)
        .await
}

/// Maximum number of tokens of a company, including revoked ones. All of them are in memory.
pub const TOKENS_MAX: i64 = 1000;

/// Whether a company has the maximum number of tokens; other transactions that create one wait for the caller's to end.
pub async fn has_max_tokens(db: &mut PgConnection, company: CompanyId) -> Result<bool> {
    table::has_at_least(db, company, TokenRow::NAME, TOKENS_MAX).await
}

/// Like [`rotate`], restricted to one company.
///
/// # Errors
/// As [`rotate`].
pub async fn rotate_in_company(db: impl PgExecutor<'_>, company: CompanyId, id: TokenId) -> Result<(TokenRow, String)> {
    let key = new_key(KEY_PREFIX);
    let statement = format!(
        "update tokens set prefix = $3, hash = $4, updated_at = {CHANGED_AT}
         where company_id = $1 and id = $2 and revoked_at is null returning *"
    );
    let update = sqlx::query_as(AssertSqlSafe(statement)).bind(company).bind(id);
    let update = update.bind(&key[..VISIBLE_CHARACTERS]).bind(hash(&key));
    let row = with_timeout(update.fetch_optional(db)).await?;
    Ok((row.ok_or(Error::NotFound("token"))?, key))
}

/// Records the last use of tokens, many at once. An outdated time changes nothing.
pub async fn record_uses(db: impl Database<'_>, uses: &[(TokenId, DateTime<Utc>)]) -> Result<()> {
    let (ids, times): (Vec<TokenId>, Vec<DateTime<Utc>>) = uses.iter().copied().unzip();
    with_timeout(
        sqlx::query(
            "update tokens t set last_used_at = x.at from unnest($1::bigint[], $2::timestamptz[]) as x (id, at)
             where t.id = x.id and (t.last_used_at is null or t.last_used_at < x.at)",
        )
        .bind(ids)
        .bind(times)
        .execute(db),
    )
    .await?;
    Ok(())
}
