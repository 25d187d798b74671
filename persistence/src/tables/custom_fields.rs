//! Custom fields: what a company notes of its contacts and cards besides the fields they all have. Plain.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor};

use super::tickets::COUNTED_MAX;
use super::words;
use crate::document::{self, Document};
use crate::error::within;
use crate::select::{Listed, Page, Select};
use crate::table::Table;
use crate::{CompanyId, CustomFieldId, Database, Error, Result};

words! {
    /// What a custom field belongs to.
    Application { Contact = "contact", Card = "card" }
}

words! {
    /// What the values of a custom field look like.
    CustomFieldType {
        Text = "text",
        Textarea = "textarea",
        Number = "number",
        Boolean = "boolean",
        Date = "date",
        Datetime = "datetime",
        Email = "email",
        Url = "url",
        Phone = "phone",
        Select = "select",
        Multiselect = "multiselect",
    }
}

impl CustomFieldType {
    /// Whether its values are chosen from options.
    pub const fn has_options(self) -> bool {
        matches!(self, Self::Select | Self::Multiselect)
    }
}

/// One custom field as stored.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct CustomFieldRow {
    pub id: CustomFieldId,
    pub key: String,
    pub name: String,
    pub application: Application,
    #[sqlx(rename = "type")]
    pub kind: CustomFieldType,
    #[sqlx(try_from = "Document<Vec<String>>")]
    pub options: Json<Vec<String>>,
    pub required: bool,
    pub position: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Table for CustomFieldRow {
    const NAME: &'static str = "custom_fields";
    const SELECT: &'static str = "select * from custom_fields";
    type Id = CustomFieldId;
}

/// Tables that hold values of custom fields, and what they are values of.
const VALUES: &[(&str, &str)] = &[("contact_custom_field_values", "contact")];

/// Highest position; leaves room behind it for the fields that are added at the end.
pub const POSITION_MAX: i32 = 1_000_000;

/// Characters of a key.
const KEY_CHARACTERS_MAX: usize = 60;

/// What the list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct CustomFieldFilter {
    pub search: Option<String>,
    pub application: Option<Application>,
    pub kind: Option<CustomFieldType>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of custom fields.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &CustomFieldFilter,
    page: Page,
) -> Result<Listed<CustomFieldRow>> {
    Select::new(CustomFieldRow::SELECT, "company_id", company)
        .contains("hotline_fold(name || E'\\n' || key)", filter.search.as_deref())
        .equals("application", filter.application)
        .equals("type", filter.kind)
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page_by(db, &["application", "position", "id"], page)
        .await
}

/// Every custom field of contacts, or of cards, in the order they are shown in.
///
/// # Errors
/// When the database cannot answer.
pub async fn of_application(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    application: Application,
) -> Result<Vec<CustomFieldRow>> {
    ordered(db, company, application, "").await
}

/// The same, for who is about to write values: until the transaction ends none of the fields goes, or changes what
/// it accepts.
///
/// # Errors
/// When the database cannot answer.
pub async fn held_of_application(
    db: &mut PgConnection,
    company: CompanyId,
    application: Application,
) -> Result<Vec<CustomFieldRow>> {
    // The lock a new value takes on its field anyway; `lock` below waits for it.
    ordered(db, company, application, " for key share").await
}

async fn ordered(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    application: Application,
    held: &'static str,
) -> Result<Vec<CustomFieldRow>> {
    let statement =
        format!("select * from custom_fields where company_id = $1 and application = $2 order by position, id{held}");
    let rows = within(sqlx::query(AssertSqlSafe(statement)).bind(company).bind(application).fetch_all(db)).await?;
    Ok(document::read_all(&rows))
}

/// What a new custom field is made of.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct NewCustomField<'a> {
    pub name: &'a str,
    pub application: Application,
    pub kind: CustomFieldType,
    pub options: &'a [String],
    pub required: bool,
    /// The end when none is given.
    pub position: Option<i32>,
}

/// Creates a custom field, with a key of its own made from the name.
///
/// # Errors
/// When the database cannot answer.
pub async fn insert(db: &mut PgConnection, company: CompanyId, new: NewCustomField<'_>) -> Result<CustomFieldRow> {
    take_turn(db, company, new.application).await?;
    let taken = within(
        sqlx::query_scalar("select key from custom_fields where company_id = $1 and application = $2")
            .bind(company)
            .bind(new.application)
            .fetch_all(&mut *db),
    )
    .await?;
    within(
        sqlx::query_as(
            "insert into custom_fields (company_id, application, key, name, type, options, required, position)
             values ($1, $2, $3, $4, $5, $6, $7, coalesce($8, (select coalesce(max(position), 0) + 1
                 from custom_fields where company_id = $1 and application = $2)))
             returning *",
        )
        .bind(company)
        .bind(new.application)
        .bind(free_key(new.name, &taken.into_iter().collect()))
        .bind(new.name)
        .bind(new.kind)
        .bind(Json(new.options))
        .bind(new.required)
        .bind(new.position)
        .fetch_one(db),
    )
    .await
}

/// Waits until nobody else adds to the fields of an application or puts them in order: the key that is free and the
/// fields there are stay so until the transaction ends.
async fn take_turn(db: &mut PgConnection, company: CompanyId, application: Application) -> Result<()> {
    within(
        sqlx::query("select pg_advisory_xact_lock(hashtextextended('custom_fields:' || $1 || ':' || $2, 0))")
            .bind(company.to_string())
            .bind(application)
            .execute(db),
    )
    .await?;
    Ok(())
}

/// Whether a field of this name would be called as a variable that every message has.
pub fn is_named_as_built_in(name: &str) -> bool {
    let key = key_of(name, KEY_CHARACTERS_MAX);
    super::global_variables::BUILT_IN.iter().any(|known| key.eq_ignore_ascii_case(known))
}

/// The first of `name`, `name_2`, `name_3`, … that is free.
fn free_key(name: &str, taken: &HashSet<String>) -> String {
    let key = key_of(name, KEY_CHARACTERS_MAX);
    if !taken.contains(&key) {
        return key;
    }
    // Of one number more than there are keys, one is free.
    let numbered = (2..taken.len() + 3).map(|number| {
        let suffix = format!("_{number}");
        format!("{}{suffix}", key_of(name, KEY_CHARACTERS_MAX - suffix.len()))
    });
    numbered.into_iter().find(|key| !taken.contains(key)).unwrap_or(key)
}

/// A name as a key: ASCII letters and digits in lower case, in words that are joined by `_`.
fn key_of(name: &str, characters_max: usize) -> String {
    let ascii = deunicode::deunicode(name).to_ascii_lowercase();
    let words = ascii.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut key = words.collect::<Vec<_>>().join("_");
    key.truncate(characters_max);
    if key.is_empty() { "field".to_owned() } else { key.trim_end_matches('_').to_owned() }
}

/// A custom field that is about to change: nobody else changes it, and no value of it is written, until the
/// transaction ends.
///
/// # Errors
/// When the database cannot answer.
pub async fn lock(db: &mut PgConnection, company: CompanyId, id: CustomFieldId) -> Result<Option<CustomFieldRow>> {
    within(
        sqlx::query_as("select * from custom_fields where company_id = $1 and id = $2 for update")
            .bind(company)
            .bind(id)
            .fetch_optional(db),
    )
    .await
}

/// How many records of each kind have a value of the field, at most [`COUNTED_MAX`].
///
/// # Errors
/// When the database cannot answer.
pub async fn values(db: &mut PgConnection, company: CompanyId, id: CustomFieldId) -> Result<Vec<(&'static str, i64)>> {
    let mut counted = Vec::with_capacity(VALUES.len());
    for (table, noun) in VALUES {
        let statement = format!(
            "select count(*) from (select from {table} where company_id = $1 and custom_field_id = $2
             limit {COUNTED_MAX}) counted"
        );
        let count = sqlx::query_scalar(AssertSqlSafe(statement)).bind(company).bind(id);
        counted.push((*noun, within(count.fetch_one(&mut *db)).await?));
    }
    Ok(counted)
}

/// How many records of each kind have a value of the field that is none of these options, at most [`COUNTED_MAX`].
///
/// # Errors
/// When the database cannot answer.
pub async fn values_beside(
    db: &mut PgConnection,
    company: CompanyId,
    field: &CustomFieldRow,
    options: &[String],
) -> Result<Vec<(&'static str, i64)>> {
    let chosen = match field.kind {
        CustomFieldType::Multiselect => "jsonb_array_elements_text(value::jsonb)",
        _ => "unnest(array[value])",
    };
    let mut counted = Vec::with_capacity(VALUES.len());
    for (table, noun) in VALUES {
        let statement = format!(
            "select count(*) from (select from {table}
             where company_id = $1 and custom_field_id = $2
               and exists (select from {chosen} as chosen where chosen <> all ($3))
             limit {COUNTED_MAX}) counted"
        );
        let count = sqlx::query_scalar(AssertSqlSafe(statement)).bind(company).bind(field.id).bind(options);
        counted.push((*noun, within(count.fetch_one(&mut *db)).await?));
    }
    Ok(counted)
}

/// What changes of a custom field; what is none stays.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct CustomFieldChange<'a> {
    pub name: Option<&'a str>,
    pub kind: Option<CustomFieldType>,
    pub options: Option<&'a [String]>,
    pub required: Option<bool>,
    pub position: Option<i32>,
}

/// Changes what is given. Whether the values there are allow it is for the caller to see, under [`lock`].
///
/// # Errors
/// [`Error::NotFound`] when there is no such custom field.
pub async fn update(
    db: &mut PgConnection,
    company: CompanyId,
    id: CustomFieldId,
    change: CustomFieldChange<'_>,
) -> Result<CustomFieldRow> {
    within(
        sqlx::query_as(
            "update custom_fields set name = coalesce($3, name), type = coalesce($4, type),
                 options = coalesce($5, options), required = coalesce($6, required),
                 position = coalesce($7, position), updated_at = now()
             where company_id = $1 and id = $2 returning *",
        )
        .bind(company)
        .bind(id)
        .bind(change.name)
        .bind(change.kind)
        .bind(change.options.map(Json))
        .bind(change.required)
        .bind(change.position)
        .fetch_optional(db),
    )
    .await?
    .ok_or(Error::NotFound("custom field"))
}

/// Puts the custom fields of an application in order, from position 1. None when `ids` are not all of them, each
/// once.
///
/// # Errors
/// When the database cannot answer.
pub async fn reorder(
    db: &mut PgConnection,
    company: CompanyId,
    application: Application,
    ids: &[CustomFieldId],
) -> Result<Option<Vec<CustomFieldRow>>> {
    take_turn(db, company, application).await?;
    let mut known: Vec<_> = of_application(&mut *db, company, application).await?.iter().map(|row| row.id).collect();
    let mut named = ids.to_vec();
    known.sort_unstable();
    named.sort_unstable();
    if known != named {
        return Ok(None);
    }
    within(
        sqlx::query(
            "update custom_fields f set position = x.position, updated_at = now()
             from unnest($2::bigint[]) with ordinality as x (id, position)
             where f.company_id = $1 and f.id = x.id and f.position <> x.position",
        )
        .bind(company)
        .bind(ids)
        .execute(&mut *db),
    )
    .await?;
    of_application(db, company, application).await.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(keys: &[&str]) -> HashSet<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn a_key_is_the_name_in_plain_words() {
        for (name, key) in [
            ("Shoe size", "shoe_size"),
            ("  Data de Nascimento (dd/mm) ", "data_de_nascimento_dd_mm"),
            ("Situação – Órgão", "situacao_orgao"),
            ("Größe", "grosse"),
            ("北京", "bei_jing"),
            ("__a__b__", "a_b"),
            ("2nd phone", "2nd_phone"),
            ("???", "field"),
        ] {
            assert_eq!(free_key(name, &HashSet::new()), key, "{name}");
        }
        let long = free_key(&"word ".repeat(51), &HashSet::new());
        assert_eq!(long, ["word"; 12].join("_"), "no longer than 60, and no `_` at the end");
    }

    #[test]
    fn a_taken_key_gets_the_first_free_number_and_stays_short_enough() {
        assert_eq!(free_key("Size", &taken(&["size"])), "size_2");
        assert_eq!(free_key("Size", &taken(&["size", "size_2", "size_4", "other"])), "size_3");
        let long = "x".repeat(60);
        assert_eq!(free_key(&long, &taken(&[&long])), format!("{}_2", "x".repeat(58)));
        let all: HashSet<String> =
            (2..10).map(|number| format!("{}_{number}", "x".repeat(58))).chain([long.clone()]).collect();
        assert_eq!(free_key(&long, &all), format!("{}_10", "x".repeat(57)));
    }
}
