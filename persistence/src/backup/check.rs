//! Queries for the commands `check`, `backup` and `restore`: what a database contains, and which references without a
//! foreign key are broken.

use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgPool};

use crate::tables::media::FileKey;
use crate::{CompanyId, Result};

/// The number of rows of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct Count {
    /// What is counted.
    pub kind: String,
    /// Number of rows.
    pub count: i64,
}

/// Rows that refer to a missing row, where the schema has no foreign key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct Orphans {
    /// The referring column, as `table.column`.
    pub reference: String,
    /// Number of rows.
    pub count: i64,
    /// The lowest company id among these rows.
    pub company_id: Option<i64>,
}

/// Whether the schema has no table, view or sequence other than those of extensions.
///
/// # Errors
/// When the database cannot answer.
pub async fn is_empty(db: &mut PgConnection) -> Result<bool> {
    let statement = "select not exists (select from pg_class c
            where c.relnamespace = quote_ident(current_schema())::regnamespace
              and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
              and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
                  and d.deptype = 'e'))";
    Ok(sqlx::query_scalar(statement).fetch_one(db).await?)
}

/// Counts the companies, contacts, tickets, messages and files of an installation.
///
/// # Errors
/// When the database cannot answer.
pub async fn counts(db: &mut PgConnection) -> Result<Vec<Count>> {
    let statement = "select 'companies' as kind, count(*) as count from companies
         union all select 'contacts', count(*) from contacts
         union all select 'tickets', count(*) from tickets
         union all select 'messages', count(*) from messages
         union all select 'files', count(*) from media where left_at is null";
    Ok(sqlx::query_as(statement).fetch_all(db).await?)
}

/// Counts the changes that PostgreSQL refused, by kind.
///
/// # Errors
/// When the database cannot answer.
pub async fn count_rejected(db: &mut PgConnection) -> Result<Vec<Count>> {
    let statement = "select kind, count(*) as count from rejected_changes group by kind order by kind";
    Ok(sqlx::query_as(statement).fetch_all(db).await?)
}

/// The schema and the extensions of the database that a restore writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetDatabase {
    /// The schema in which the role creates tables; `None` if no schema of its `search_path` exists.
    pub schema: Option<String>,
    /// The extensions that are installed.
    pub extensions: Vec<String>,
}

impl TargetDatabase {
    /// Reads the schema and the extensions.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn read(db: &mut PgConnection) -> Result<Self> {
        let statement = "select current_schema()::text, array(select extname::text from pg_extension order by extname)";
        let (schema, extensions) = sqlx::query_as(statement).fetch_one(db).await?;
        Ok(Self { schema, extensions })
    }
}

/// Rows that refer to a missing ticket, contact or message. This reads whole tables.
///
/// # Errors
/// When the database cannot answer.
pub async fn orphans(db: &mut PgConnection) -> Result<Vec<Orphans>> {
    let statement = "select * from (
             select 'messages.ticket_id' as reference, count(*) as count, min(m.company_id) as company_id
             from messages m
             where not exists (select from tickets t where t.company_id = m.company_id and t.id = m.ticket_id)
             union all
             select 'messages.contact_id', count(*), min(m.company_id) from messages m
             where not exists (select from contacts c where c.company_id = m.company_id and c.id = m.contact_id)
             union all
             select 'ticket_events.ticket_id', count(*), min(e.company_id) from ticket_events e
             where not exists (select from tickets t where t.company_id = e.company_id and t.id = e.ticket_id)
             union all
             select 'media.message_id', count(*), min(f.company_id) from media f
             where f.left_at is null
               and not exists (select from messages m where m.company_id = f.company_id and m.id = f.message_id)
         ) found where count > 0";
    Ok(sqlx::query_as(statement).fetch_all(db).await?)
}

/// A page of the files of messages, at most `limit`. `after` is the last file of the previous page; `None` for the
/// first page.
///
/// # Errors
/// When the database cannot answer.
pub async fn files_after(db: &mut PgConnection, after: Option<&FileKey>, limit: i64) -> Result<Vec<FileKey>> {
    let statement = "select company_id, id from media
         where left_at is null and ($1::bigint is null or (company_id, id) > ($1, $2))
         order by company_id, id limit $3";
    let (company, id) = after.map(|(company, id)| (*company, id.clone())).unzip();
    Ok(sqlx::query_as(statement).bind(company).bind(id).bind(limit).fetch_all(db).await?)
}

/// The files among `files` that a message still refers to.
///
/// # Errors
/// When the database cannot answer.
pub async fn referenced_files(db: &PgPool, files: &[FileKey]) -> Result<Vec<FileKey>> {
    let (companies, ids): (Vec<CompanyId>, Vec<String>) =
        files.iter().map(|(company, id)| (*company, id.to_string())).unzip();
    let statement = "select m.company_id, m.id from media m
         join unnest($1::bigint[], $2::text[]) as x (company, id) on m.company_id = x.company and m.id = x.id
         where m.left_at is null";
    Ok(sqlx::query_as(statement).bind(companies).bind(ids).fetch_all(db).await?)
}
