//! Custom fields: additional fields that a company defines for its contacts and cards. Changed by transactions, not by
//! actors.

use std::collections::HashSet;
use std::marker::PhantomData;

use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, PgConnection};
use utoipa::ToSchema;

use super::text_enum;
use super::visible_cards::VisibleCards;
use crate::document::Document;
use crate::error::with_timeout;
use crate::table::{self, COUNTED_MAX, Columns, Ordered, Stamps, Table, map_constraint};
use crate::{CompanyId, Id, Result, noun};

text_enum! {
    /// The kind of record a custom field belongs to.
    Application { Contact = "contact", Card = "card" }
}

text_enum! {
    /// The type of a custom field's values.
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
    /// Whether values of this type are selected from options.
    pub const fn has_options(self) -> bool {
        matches!(self, Self::Select | Self::Multiselect)
    }
}

/// The id of a custom field.
pub type CustomFieldId = Id<CustomField>;

/// A company's own field of contacts or cards.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomField {
    pub id: CustomFieldId,
    /// Made from the first name; names the field where values are written, and never changes.
    #[schema(example = "shoe_size")]
    pub key: String,
    #[schema(example = "Shoe size")]
    pub name: String,
    /// The kind of record; it never changes.
    pub application: Application,
    /// Cannot change while there are values.
    #[sqlx(rename = "type")]
    #[serde(rename = "type")]
    pub kind: CustomFieldType,
    /// The options of `select` and `multiselect`. An option in use cannot be removed.
    #[sqlx(try_from = "Document<Vec<String>>")]
    #[schema(example = json!(["Blue", "Red"]))]
    pub options: Vec<String>,
    #[schema(example = false)]
    pub required: bool,
    #[schema(example = 1)]
    pub position: i32,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for CustomField {
    const NAME: &'static str = "custom_fields";
    const NOUN: &'static str = "custom field";
    const SEARCH: &'static [&'static str] = &["hotline_fold(name || E'\\n' || key)"];
    const ORDER: &'static [&'static str] = &["application", "position", "id"];
    type Id = CustomFieldId;
}

impl Ordered for CustomField {
    const PARENT: &'static str = "application";
    type Parent = Application;
}

/// A table with values of custom fields.
pub struct ValuesTable<N> {
    name: &'static str,
    /// The column with the record's id.
    record_column: &'static str,
    /// The noun of the record.
    noun: &'static str,
    record: PhantomData<fn() -> N>,
}

/// Values of contacts.
pub const CONTACT_VALUES: ValuesTable<noun::Contact> = ValuesTable {
    name: "contact_custom_field_values",
    record_column: "contact_id",
    noun: "contact",
    record: PhantomData,
};
/// Values of cards.
pub const CARD_VALUES: ValuesTable<noun::Card> =
    ValuesTable { name: "card_custom_field_values", record_column: "card_id", noun: "card", record: PhantomData };

/// All tables with values of custom fields, and the nouns of their records.
const VALUES_TABLES: &[(&str, &str)] =
    &[(CONTACT_VALUES.name, CONTACT_VALUES.noun), (CARD_VALUES.name, CARD_VALUES.noun)];

impl<N> ValuesTable<N> {
    /// Sets values of records and deletes those that are `None`; all others stay.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] when a custom field, or a record, does not exist.
    pub async fn set(
        &self,
        db: &mut PgConnection,
        company: CompanyId,
        values: &[(Id<N>, CustomFieldId, Option<String>)],
    ) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let Self { name, record_column, .. } = self;
        let write = format!(
            "insert into {name} (company_id, {record_column}, custom_field_id, value)
             select $1, record, field, value from unnest($2::bigint[], $3::bigint[], $4::text[])
                 as x (record, field, value) order by record, field
             on conflict (company_id, {record_column}, custom_field_id) do update set value = excluded.value"
        );
        let (upserts, removals): (Vec<_>, Vec<_>) = values.iter().partition(|(_, _, value)| value.is_some());
        with_timeout(async {
            self.delete(&mut *db, company, &removals).await?;
            sqlx::query(AssertSqlSafe(write))
                .bind(company)
                .bind(upserts.iter().map(|(record, ..)| *record).collect::<Vec<_>>())
                .bind(upserts.iter().map(|(_, field, _)| *field).collect::<Vec<_>>())
                .bind(upserts.iter().map(|(.., value)| value.as_deref()).collect::<Vec<_>>())
                .execute(db)
                .await
        })
        .await
        .map_err(map_constraint(&[]))?;
        Ok(())
    }

    /// Deletes the values of these records and fields.
    async fn delete(
        &self,
        db: &mut PgConnection,
        company: CompanyId,
        values: &[&(Id<N>, CustomFieldId, Option<String>)],
    ) -> sqlx::Result<()> {
        let Self { name, record_column, .. } = self;
        let delete = format!(
            "delete from {name} where ctid = any (array(
                 select v.place from unnest($2::bigint[], $3::bigint[]) as x (record, field) cross join lateral (
                     select ctid as place from {name}
                     where company_id = $1 and {record_column} = x.record and custom_field_id = x.field offset 0) v))"
        );
        sqlx::query(AssertSqlSafe(delete))
            .bind(company)
            .bind(values.iter().map(|(record, ..)| *record).collect::<Vec<_>>())
            .bind(values.iter().map(|(_, field, _)| *field).collect::<Vec<_>>())
            .execute(db)
            .await?;
        Ok(())
    }
}

/// Maximum position that a user can set; only appended fields may have a higher one.
pub const POSITION_MAX: i32 = 1_000_000;

/// Maximum custom fields of an application, limited because each new contact or card reads all of them, with their
/// options, and locks them.
pub const FIELDS_MAX: usize = 200;

/// Maximum characters of a key.
const KEY_CHARACTERS_MAX: usize = 60;

/// Creates a custom field, with a unique key derived from its name, and at the end unless a position is given. `None`
/// when the application already has [`FIELDS_MAX`].
pub async fn insert(
    db: &mut PgConnection,
    company: CompanyId,
    application: Application,
    mut columns: Columns,
) -> Result<Option<CustomField>> {
    table::lock_order::<CustomField>(db, company, application).await?;
    let existing: Vec<String> = with_timeout(
        sqlx::query_scalar("select key from custom_fields where company_id = $1 and application = $2")
            .bind(company)
            .bind(application)
            .fetch_all(&mut *db),
    )
    .await?;
    if existing.len() >= FIELDS_MAX {
        return Ok(None);
    }
    let name = columns.text("name").unwrap_or_default();
    let key = free_key(application, name, &existing.into_iter().collect());
    columns.set("key", key);
    if !columns.has("position") {
        columns.set("position", table::next_position::<CustomField>(db, company, application).await?);
    }
    table::insert(db, company, &columns).await.map(Some)
}

/// Prefix of the key of a contact's field that has the name of a built-in variable. In texts, the variable takes
/// precedence over a field of the same key.
const BUILT_IN_PREFIX: &str = "contact_";

/// The first of `name`, `name_2`, `name_3`, … that is not an existing key.
fn free_key(application: Application, name: &str, existing: &HashSet<String>) -> String {
    let base = key_of(name, KEY_CHARACTERS_MAX);
    let is_built_in = super::global_variables::BUILT_IN.iter().any(|known| base.eq_ignore_ascii_case(known));
    let prefix = if application == Application::Contact && is_built_in { BUILT_IN_PREFIX } else { "" };
    let key = format!("{prefix}{base}");
    if !existing.contains(&key) {
        return key;
    }
    // There are more candidates than existing keys, so one is free.
    let candidates = (2..existing.len() + 3).map(|number| {
        let suffix = format!("_{number}");
        format!("{prefix}{}{suffix}", key_of(name, KEY_CHARACTERS_MAX - suffix.len()))
    });
    candidates.into_iter().find(|key| !existing.contains(key)).unwrap_or(key)
}

/// Converts a name to a key: lower-case ASCII letters and digits, in words joined by `_`.
fn key_of(name: &str, characters_max: usize) -> String {
    let ascii = deunicode::deunicode(name).to_ascii_lowercase();
    let words = ascii.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut key = words.collect::<Vec<_>>().join("_");
    key.truncate(characters_max);
    if key.is_empty() { "field".to_owned() } else { key.trim_end_matches('_').to_owned() }
}

/// Locks a custom field: until the transaction ends, no other transaction can change it or write values of it. `None`
/// if there is no such field.
pub async fn lock(db: &mut PgConnection, company: CompanyId, id: CustomFieldId) -> Result<Option<CustomField>> {
    with_timeout(
        sqlx::query_as("select * from custom_fields where company_id = $1 and id = $2 for update")
            .bind(company)
            .bind(id)
            .fetch_optional(db),
    )
    .await
}

/// The records of one kind that prevent a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockingRecords {
    /// The name of their kind.
    pub noun: &'static str,
    /// Number of them that are visible to the user, at most [`COUNTED_MAX`].
    pub visible: i64,
    /// Whether there are any, visible or not.
    pub exist: bool,
}

/// The records of each kind with a value of the field; only visible ones are counted.
pub async fn records_with_value(
    db: &mut PgConnection,
    company: CompanyId,
    field: &CustomField,
    cards: &VisibleCards,
) -> Result<Vec<BlockingRecords>> {
    blocking_records(db, company, field, "true", &[], cards).await
}

/// The records of each kind with a value of the field outside these options; only visible ones are counted.
pub async fn records_with_other_value(
    db: &mut PgConnection,
    company: CompanyId,
    field: &CustomField,
    options: &[String],
    cards: &VisibleCards,
) -> Result<Vec<BlockingRecords>> {
    let condition = match field.kind {
        CustomFieldType::Multiselect => {
            "exists (select from jsonb_array_elements_text(value::jsonb) as chosen where chosen <> all ($3))"
        }
        _ => "value <> all ($3)",
    };
    blocking_records(db, company, field, condition, options, cards).await
}

async fn blocking_records(
    db: &mut PgConnection,
    company: CompanyId,
    field: &CustomField,
    condition: &str,
    options: &[String],
    cards: &VisibleCards,
) -> Result<Vec<BlockingRecords>> {
    let mut records = Vec::with_capacity(VALUES_TABLES.len());
    for (table, noun) in VALUES_TABLES {
        let matching = format!("select from {table} v where company_id = $1 and custom_field_id = $2 and {condition}");
        let visible_only = if *noun == CARD_VALUES.noun {
            "and ($4::bigint is null or exists (select from cards c where c.company_id = $1 and c.id = v.card_id
                and (c.assigned_user_id = $4 or c.board_id = any ($5))))"
        } else {
            "and ($4::bigint is null or $5::bigint[] is not null)"
        };
        // The third column only keeps `$3` in the statement when `condition` does not use it.
        let statement = format!(
            "select (select count(*) from ({matching} {visible_only} limit {COUNTED_MAX}) counted), exists ({matching}),
                 $3::text[] is null"
        );
        let select = sqlx::query_as::<_, (i64, bool, bool)>(AssertSqlSafe(statement));
        let select = select.bind(company).bind(field.id).bind(options).bind(cards.assigned_to).bind(cards.board_ids());
        let (visible, exist, _) = with_timeout(select.fetch_one(&mut *db)).await?;
        records.push(BlockingRecords { noun, visible, exist });
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn existing(keys: &[&str]) -> HashSet<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn keys_are_names_in_lower_case_ascii() {
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
            assert_eq!(free_key(Application::Card, name, &HashSet::new()), key, "{name}");
        }
        let long = free_key(Application::Card, &"word ".repeat(51), &HashSet::new());
        assert_eq!(long, ["word"; 12].join("_"), "no longer than 60, and no `_` at the end");
    }

    #[test]
    fn names_of_built_in_variables_get_a_prefix() {
        for name in super::super::global_variables::BUILT_IN {
            let key = key_of(name, KEY_CHARACTERS_MAX);
            assert_eq!(free_key(Application::Contact, name, &HashSet::new()), format!("contact_{key}"));
            let second = free_key(Application::Contact, name, &existing(&[&format!("contact_{key}")]));
            assert_eq!(second, format!("contact_{key}_2"));
            assert_eq!(free_key(Application::Card, name, &HashSet::new()), key);
        }
    }

    #[test]
    fn duplicate_keys_get_the_first_free_number() {
        assert_eq!(free_key(Application::Card, "Size", &existing(&["size"])), "size_2");
        assert_eq!(free_key(Application::Card, "Size", &existing(&["size", "size_2", "size_4", "other"])), "size_3");
        let long = "x".repeat(60);
        assert_eq!(free_key(Application::Card, &long, &existing(&[&long])), format!("{}_2", "x".repeat(58)));
        let all: HashSet<String> =
            (2..10).map(|number| format!("{}_{number}", "x".repeat(58))).chain([long.clone()]).collect();
        assert_eq!(free_key(Application::Card, &long, &all), format!("{}_10", "x".repeat(57)));
    }
}
