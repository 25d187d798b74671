//! Writes an archived company as a new one, in one transaction. Lines are not trusted: each field must be a column of
//! the line's table, and each row gets the id of the new company.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Connection, Postgres, Transaction};

use super::export::{columns, every_table};
use super::value::{self, ColumnType};
use super::{ArchivedTable, COMPANY, camel_case};
use crate::key::new_key;
use crate::sealed::{self, Keyring, Secret};
use crate::tables::campaigns::{self, UNFINISHED_MAX};
use crate::tables::channels::{ChannelSettings, ChannelType};
use crate::tables::webhooks;
use crate::writer_lock::lock_for_command;
use crate::{CompanyId, Error, Result, controls};

/// Maximum length of a line: a message's row takes at most a few hundred KiB.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// A batch of rows is inserted with one statement once it has this many rows, or their lines have this many bytes.
const BATCH_ROWS_MAX: usize = 500;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Why a line is refused.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    #[error("is not a JSON object: {0}")]
    NotAnObject(String),
    #[error("has the unknown field `{0}`")]
    UnknownField(String),
    #[error("lacks the field `{0}`")]
    MissingField(String),
    #[error("the field `{field}` {reason}")]
    Invalid { field: String, reason: String },
    #[error("{0}")]
    Refused(String),
}

/// Why an import failed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is refused.
    #[error("line {line} {error}")]
    Row {
        /// Its number in the table's file, from 1.
        line: u64,
        error: RowError,
    },
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<sqlx::Error> for ImportError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

/// The values of a row by their columns.
type Fields = BTreeMap<String, Box<RawValue>>;

/// An import in progress. If it is dropped without [`Import::finish`], nothing was changed.
pub struct Import {
    transaction: Transaction<'static, Postgres>,
    keys: Keyring,
    company: CompanyId,
    /// The new id of each channel by its archived id: the same one, unless another channel has it.
    new_channel_ids: HashMap<i64, i64>,
    /// The values of `new_channel_ids`, including those whose rows are not inserted yet.
    assigned_channel_ids: HashSet<i64>,
    table: &'static ArchivedTable,
    /// The columns of `table` with their types, by the names of their fields in a line.
    columns: BTreeMap<String, (String, ColumnType)>,
    /// Rows that are not inserted yet.
    rows: Vec<Fields>,
    /// The bytes of their lines.
    bytes: usize,
    /// The number of the line from which the first of `rows` was read.
    first_line: u64,
    /// The number of the last line that was read.
    line: u64,
    new_webhook_secret: fn() -> Secret,
}

impl Import {
    /// Begins an import, which excludes every service on the database until it ends.
    ///
    /// # Errors
    /// [`Error::NotOwner`] when a service runs; other errors when the database cannot answer.
    pub async fn begin(db: &PgPool, keys: &Keyring, new_webhook_secret: fn() -> Secret) -> Result<Self> {
        let mut transaction = db.begin().await?;
        lock_for_command(&mut transaction).await?;
        Ok(Self {
            transaction,
            keys: keys.clone(),
            company: CompanyId::new(0),
            new_channel_ids: HashMap::new(),
            assigned_channel_ids: HashSet::new(),
            table: &COMPANY,
            columns: BTreeMap::new(),
            rows: Vec::new(),
            bytes: 0,
            first_line: 1,
            line: 0,
            new_webhook_secret,
        })
    }

    /// The new company.
    pub fn company(&self) -> CompanyId {
        self.company
    }

    /// Continues with the lines of another table.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn begin_table(&mut self, table: &'static ArchivedTable) -> Result<()> {
        let columns = columns(&mut self.transaction, table).await?;
        let types = column_types(&mut self.transaction, table).await?;
        let entry_by_field = |column: String| {
            let kind = types.get(&column).copied().unwrap_or(ColumnType::Other);
            (camel_case(&column), (column, kind))
        };
        self.columns = columns.into_iter().map(entry_by_field).collect();
        (self.table, self.first_line, self.line) = (table, 1, 0);
        Ok(())
    }

    /// Adds the row of the table's next line. Rows are inserted in batches.
    ///
    /// # Errors
    /// When this line, or an earlier one of its batch, is refused, or the database cannot answer.
    pub async fn add_line(&mut self, line: &str) -> std::result::Result<(), ImportError> {
        self.line += 1;
        let refused = |error| ImportError::Row { line: self.line, error };
        let mut fields = self.parse_line(line).map_err(refused)?;
        match self.table.name {
            "companies" => return self.create_company(fields).await,
            "channels" => self.adapt_channel(&mut fields).await?,
            "webhooks" => self.adapt_webhook(&mut fields).await?,
            "messages" => adapt_message(&mut fields),
            "campaigns" => adapt_campaign(&mut fields),
            "webchat_sessions" => adapt_session(&mut fields),
            _ => {}
        }
        self.replace_channel_ids(&mut fields);
        clear_integration(&mut fields);
        fields.insert("company_id".to_owned(), raw(&self.company.0));
        self.bytes += line.len();
        self.rows.push(fields);
        if self.rows.len() >= BATCH_ROWS_MAX || self.bytes >= BATCH_BYTES_MAX { self.flush().await } else { Ok(()) }
    }

    /// Inserts the rows that are not inserted yet.
    ///
    /// # Errors
    /// As [`Import::add_line`].
    pub async fn flush(&mut self) -> std::result::Result<(), ImportError> {
        let rows = std::mem::take(&mut self.rows);
        let first_line = std::mem::replace(&mut self.first_line, self.line + 1);
        self.bytes = 0;
        if rows.is_empty() || self.insert(&rows).await?.is_ok() {
            return Ok(());
        }
        // PostgreSQL refuses at least one of the rows: find it.
        for (row, line) in rows.chunks(1).zip(first_line..) {
            if let Err(reason) = self.insert(row).await? {
                return Err(ImportError::Row { line, error: RowError::Refused(format!("is refused: {reason}")) });
            }
        }
        Ok(())
    }

    /// Whether the company has more unfinished campaigns than a company may have.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn has_too_many_campaigns(&mut self) -> Result<bool> {
        campaigns::has_unfinished(&mut *self.transaction, self.company, UNFINISHED_MAX + 1).await
    }

    /// Computes what is derived from the company's rows, and commits.
    ///
    /// # Errors
    /// When the database cannot answer; then nothing was changed.
    pub async fn finish(mut self) -> Result<CompanyId> {
        let db = &mut *self.transaction;
        // The recipients of the messages that `adapt_message` has marked as failed: they were queued and are not sent
        // from here.
        let fail_recipients = "update campaign_recipients r set status = 'failed', error = m.error from messages m
             where r.company_id = $1 and r.status in ('pending', 'unknown') and m.company_id = r.company_id
                 and m.id = r.message_id and m.status = 'failed'";
        sqlx::query(fail_recipients).bind(self.company).execute(&mut *db).await?;
        sqlx::query("select hotline_fill_zones($1)").bind(self.company).execute(&mut *db).await?;
        for table in every_table().filter(|table| table.name != "companies") {
            advance_sequence(&mut *db, table.name, self.company).await?;
        }
        // New ids follow those of the company.
        for (kind, last) in [
            ("ticket", "select coalesce(max(id), 0) from tickets where company_id = $1"),
            ("message", "select coalesce(max(id), 0) from messages where company_id = $1"),
            ("event", "select coalesce(max(id), 0) from ticket_events where company_id = $1"),
            ("schedule", "select coalesce(max(id), 0) from schedules where company_id = $1"),
        ] {
            let last: i64 = sqlx::query_scalar(last).bind(self.company).fetch_one(&mut *db).await?;
            let update = sqlx::query("update id_blocks set next = greatest(next, $2 + 1) where kind = $1");
            update.bind(kind).bind(last).execute(&mut *db).await?;
        }
        self.transaction.commit().await?;
        Ok(self.company)
    }

    /// Parses a line, and checks its values.
    fn parse_line(&self, line: &str) -> std::result::Result<Fields, RowError> {
        let parsed: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(line).map_err(|error| RowError::NotAnObject(error.to_string()))?;
        let mut fields = Fields::new();
        for (name, value) in parsed {
            let (column, kind) = self.columns.get(&name).ok_or_else(|| RowError::UnknownField(name.clone()))?;
            let invalid = |reason: &str| RowError::Invalid { field: name.clone(), reason: reason.to_owned() };
            let decoded: Value = serde_json::from_str(value.get()).map_err(|error| invalid(&error.to_string()))?;
            if controls::value_contains_refused(&decoded) {
                return Err(invalid(controls::REFUSED));
            }
            if let Some(reason) = value::refusal(self.table.name, column, *kind, &decoded) {
                return Err(invalid(reason));
            }
            fields.insert(column.clone(), value);
        }
        match self.columns.iter().find(|(_, (column, _))| !fields.contains_key(column)) {
            Some((name, _)) => Err(RowError::MissingField(name.clone())),
            None => Ok(fields),
        }
    }

    /// Creates the company with a new id. Its line must be read before all others.
    async fn create_company(&mut self, fields: Fields) -> std::result::Result<(), ImportError> {
        if self.company.0 != 0 {
            let error = RowError::Refused("is a second company".to_owned());
            return Err(ImportError::Row { line: self.line, error });
        }
        let names: Vec<String> = fields.keys().map(|column| format!("\"{column}\"")).collect();
        let names = names.join(", ");
        let insert = format!(
            "insert into companies ({names}) select {names} from jsonb_populate_record(null::companies, $1) returning id"
        );
        let insert = sqlx::query_scalar(AssertSqlSafe(insert)).bind(sqlx::types::Json(&fields));
        match insert.fetch_one(&mut *self.transaction).await {
            Ok(id) => {
                self.company = id;
                Ok(())
            }
            Err(error) => match refusal(&error) {
                Some(reason) => {
                    let error = RowError::Refused(format!("is refused: {reason}"));
                    Err(ImportError::Row { line: self.line, error })
                }
                None => Err(error.into()),
            },
        }
    }

    /// Inserts rows. The inner error says why PostgreSQL refuses one of them.
    async fn insert(&mut self, rows: &[Fields]) -> Result<std::result::Result<(), String>> {
        let names: Vec<String> =
            rows.first().into_iter().flat_map(|row| row.keys()).map(|column| format!("\"{column}\"")).collect();
        let (names, table) = (names.join(", "), self.table.name);
        let has_identity = names.contains("\"id\"");
        let overriding = if has_identity { "overriding system value" } else { "" };
        let insert = format!(
            "insert into {table} ({names}) {overriding}
             select {names} from jsonb_populate_recordset(null::{table}, $1)"
        );
        let mut savepoint = self.transaction.begin().await?;
        let insert = sqlx::query(AssertSqlSafe(insert)).bind(sqlx::types::Json(rows));
        match insert.execute(&mut *savepoint).await {
            Ok(_) => {
                savepoint.commit().await?;
                Ok(Ok(()))
            }
            Err(error) => match refusal(&error) {
                Some(reason) => {
                    savepoint.rollback().await?;
                    Ok(Err(reason))
                }
                None => Err(error.into()),
            },
        }
    }

    /// A channel keeps its id and its public key, unless another channel of this installation has them. A channel that
    /// needs credentials is disconnected, because archives contain none.
    async fn adapt_channel(&mut self, fields: &mut Fields) -> std::result::Result<(), ImportError> {
        let refused = |field: &str, reason: &str| ImportError::Row {
            line: self.line,
            error: RowError::Invalid { field: field.to_owned(), reason: reason.to_owned() },
        };
        let id: i64 = get(fields, "id").ok_or_else(|| refused("id", "is not a valid id"))?;
        if self.new_channel_ids.contains_key(&id) {
            return Err(refused("id", "is that of another channel"));
        }
        let kind: String = get(fields, "type").ok_or_else(|| refused("type", "is not a channel type"))?;
        let kind: ChannelType = kind.parse().map_err(|()| refused("type", "is not a channel type"))?;
        let settings: Value = get(fields, "settings").unwrap_or_default();
        let settings = ChannelSettings::read(&sealed::without_secrets(&settings));
        let settings = settings.map_err(|_| refused("settings", "cannot be read"))?.into_visible();
        // Only the operator of this installation may point a channel into a private network.
        let settings = ChannelSettings { is_provider_url_from_operator: false, ..settings };
        if !settings.has_required_credentials(kind) {
            fields.insert("status".to_owned(), raw(&"disconnected"));
            fields.insert("last_error".to_owned(), raw(&"the company was imported; enter the credentials"));
        }
        fields.insert("settings".to_owned(), raw(&settings));
        let taken_query = sqlx::query_as(
            "select exists (select from channels where id = $1), exists (select from channels where public_key = $2)",
        );
        let public_key: String = get(fields, "public_key").unwrap_or_default();
        let (is_id_taken, is_key_taken): (bool, bool) =
            taken_query.bind(id).bind(public_key).fetch_one(&mut *self.transaction).await?;
        if is_key_taken {
            fields.insert("public_key".to_owned(), raw(&new_key("ch_")));
        }
        let new_id = self.assign_channel_id(id, is_id_taken).await?;
        fields.insert("id".to_owned(), raw(&new_id));
        Ok(())
    }

    /// Assigns the new id of a channel: the archived one, unless an existing channel (`is_taken`) or one of this import
    /// has it.
    async fn assign_channel_id(&mut self, id: i64, mut is_taken: bool) -> sqlx::Result<i64> {
        let mut new_id = id;
        // The sequence never yields the id of an existing channel, but may yield one that this import has assigned.
        while is_taken || self.assigned_channel_ids.contains(&new_id) {
            let next = sqlx::query_scalar("select nextval(pg_get_serial_sequence('channels', 'id'))");
            new_id = next.fetch_one(&mut *self.transaction).await?;
            is_taken = false;
        }
        self.new_channel_ids.insert(id, new_id);
        self.assigned_channel_ids.insert(new_id);
        Ok(new_id)
    }

    /// A webhook gets a new id and a new secret, and is disabled: its secret must be rotated before it is enabled.
    async fn adapt_webhook(&mut self, fields: &mut Fields) -> std::result::Result<(), ImportError> {
        let next = sqlx::query_scalar("select nextval(pg_get_serial_sequence('webhooks', 'id'))");
        let new_id: i64 = next.fetch_one(&mut *self.transaction).await?;
        let secret = webhooks::seal_new(&self.keys, self.company, new_id.into(), &(self.new_webhook_secret)())?;
        fields.insert("id".to_owned(), raw(&new_id));
        fields.insert("secret".to_owned(), raw(&secret));
        fields.insert("delivered_through".to_owned(), raw(&0));
        fields.insert("active".to_owned(), raw(&false));
        let reason = "the company was imported; rotate the secret, then enable the webhook";
        fields.insert("disabled_reason".to_owned(), raw(&reason));
        Ok(())
    }

    /// Replaces archived ids of channels with their new ones.
    fn replace_channel_ids(&self, fields: &mut Fields) {
        if self.new_channel_ids.is_empty() {
            return;
        }
        // The rows of a report by channel have the channel's id as their key.
        let is_by_channel = get::<String>(fields, "dimension").is_some_and(|dimension| dimension == "channel");
        let columns: &[&str] = if is_by_channel { &["channel_id", "key"] } else { &["channel_id"] };
        for &column in columns {
            let Some(value) = get::<Value>(fields, column) else { continue };
            let id = value.as_i64().or_else(|| value.as_str()?.parse().ok());
            if let Some(new) = id.and_then(|id| self.new_channel_ids.get(&id)) {
                // In some tables the key is text.
                let new = if value.is_string() { raw(&new.to_string()) } else { raw(new) };
                fields.insert(column.to_owned(), new);
            }
        }
    }
}

fn raw(value: &impl serde::Serialize) -> Box<RawValue> {
    // All values here can be serialized: numbers, texts, and settings without secrets.
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn get<T: serde::de::DeserializeOwned>(fields: &Fields, column: &str) -> Option<T> {
    serde_json::from_str(fields.get(column)?.get()).ok()
}

/// Nothing is sent that the other installation may still send: a queued message is marked as failed, and a reaction is no
/// longer to be sent.
fn adapt_message(fields: &mut Fields) {
    if get::<String>(fields, "status").is_some_and(|status| status == "queued") {
        fields.insert("status".to_owned(), raw(&"failed"));
        let error = json!({"code": "ERR_API_CONFLICT", "message": "not sent before the company was moved"});
        fields.insert("error".to_owned(), raw(&error));
    }
    if let Some(mut revisions) = get::<serde_json::Map<String, Value>>(fields, "revisions")
        && revisions.remove("sending").is_some()
    {
        fields.insert("revisions".to_owned(), raw(&revisions));
    }
    fields.insert("after_send".to_owned(), RawValue::NULL.to_owned());
}

/// A running campaign is paused: the other installation may still run it.
fn adapt_campaign(fields: &mut Fields) {
    if get::<String>(fields, "status").is_some_and(|status| status == "processing") {
        fields.insert("status".to_owned(), raw(&"paused"));
    }
}

/// Clears the id of the token that wrote the row: tokens are not archived, and here another token may have this id.
fn clear_integration(fields: &mut Fields) {
    if let Some(integration) = fields.get_mut("integration_id") {
        *integration = RawValue::NULL.to_owned();
    }
}

/// An active session of a visitor ends: its token is a secret and not archived. A random hash takes the token's place.
fn adapt_session(fields: &mut Fields) {
    fields.insert("token_hash".to_owned(), raw(&format!("\\x{}", hex::encode(rand::random::<[u8; 32]>()))));
    if get::<String>(fields, "status").is_some_and(|status| status == "active") {
        fields.insert("status".to_owned(), raw(&"ended"));
        let last_seen_at = fields.get("last_seen_at").cloned().unwrap_or_else(|| RawValue::NULL.to_owned());
        fields.insert("ended_at".to_owned(), last_seen_at);
    }
}

/// The types of the columns of a table.
async fn column_types(db: &mut sqlx::PgConnection, table: &ArchivedTable) -> Result<HashMap<String, ColumnType>> {
    let types = sqlx::query_as(
        "select a.attname::text, t.typname::text from pg_attribute a join pg_type t on t.oid = a.atttypid
         where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped",
    );
    let types: Vec<(String, String)> = types.bind(table.name).fetch_all(db).await?;
    Ok(types.into_iter().map(|(column, kind)| (column, ColumnType::of(&kind))).collect())
}

/// Why PostgreSQL refuses a row; `None` if the error has another cause.
fn refusal(error: &sqlx::Error) -> Option<String> {
    let error = error.as_database_error()?;
    let code = error.code()?;
    // Classes of SQLSTATE: data, constraints, limits, and errors raised by triggers.
    ["22", "23", "54", "P0"].iter().any(|class| code.starts_with(class)).then(|| error.message().to_owned())
}

/// Advances the sequence of a table's ids past the ids of the company.
async fn advance_sequence(db: &mut sqlx::PgConnection, table: &str, company: CompanyId) -> Result<()> {
    let is_identity = sqlx::query_scalar(
        "select exists (select from pg_attribute where attrelid = to_regclass($1) and attname = 'id' and attidentity <> '')",
    );
    let is_identity: bool = is_identity.bind(table).fetch_one(&mut *db).await?;
    if !is_identity {
        return Ok(());
    }
    // `nextval` is the lower bound, so that the sequence never moves back.
    let advance = format!(
        "select setval(pg_get_serial_sequence('{table}', 'id'), greatest(
             nextval(pg_get_serial_sequence('{table}', 'id')), max(id))) from {table} where company_id = $1 having max(id) > 0"
    );
    sqlx::query(AssertSqlSafe(advance)).bind(company).execute(db).await?;
    Ok(())
}
