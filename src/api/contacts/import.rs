//! `POST /contacts/import`: many contacts in one transaction. The result is the same as if each row were sent
//! separately, in order.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use actix_web::web::Data;
use hotline_actors::FieldError;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::contacts;
use hotline_persistence::tables::contacts::import::{self as contact_import, Candidate};
use hotline_persistence::tables::custom_fields::{Application, CustomField, CustomFieldId};
use hotline_persistence::tables::tags::TagId;
use hotline_persistence::{CompanyId, ContactId, Database, Error, phone_numbers};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::task::spawn_blocking;

use super::import_report::{ImportError, ImportReport, ImportResult, ImportedContact};
use super::write::ContactInput;
use crate::api::custom_values;
use crate::app::App;
use crate::web::request::values::FromField;
use crate::web::{ApiError, ApiResult, Body, Caller, Fields, Idempotency, Input, Json};

/// Maximum number of rows per import.
const ROWS_MAX: usize = 1000;

/// Maximum size of an import: 16 KiB per row at the maximum number of rows. Longer rows need several imports.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The fields by which a row matches a contact.
const MATCHED_FIELDS: [&str; 3] = ["number", "email", "code"];

/// What to do with a row whose contact exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OnConflict {
    #[default]
    Update,
    Skip,
}

impl FromField for OnConflict {
    fn from_json(value: &Value) -> Result<Self, String> {
        match value.as_str().map(str::trim) {
            Some("update") => Ok(Self::Update),
            Some("skip") => Ok(Self::Skip),
            _ => Err("must be one of update, skip".to_owned()),
        }
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "enum": ["update", "skip"],
            "default": "update",
            "description": "How to handle a row whose contact exists, matched by number, then e-mail, then code",
        })
    }
}

/// The body of `POST /contacts/import`.
pub struct Import {
    /// The rows in the order of the body. An item that is not an object is represented by its errors.
    rows: Vec<Result<ImportRow, Vec<FieldError>>>,
    on_conflict: OnConflict,
}

/// A row, with the errors of its fields. A row with errors is validated in full, so that the response has all of them,
/// and then rejected.
#[derive(Clone)]
struct ImportRow {
    input: ContactInput,
    errors: Vec<FieldError>,
}

impl Input for Import {
    fn name() -> Cow<'static, str> {
        "ContactImport".into()
    }
    const BYTES_MAX: usize = BYTES_MAX;

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let rows = fields.rows("contacts", ROWS_MAX, |fields| {
            let input = ContactInput::read_row(fields);
            Some(ImportRow { input, errors: fields.take_errors() })
        });
        let on_conflict = fields.optional("onConflict").unwrap_or_default();
        Some(Self { rows: rows?, on_conflict })
    }
}

/// `POST /contacts/import`.
pub async fn import(
    caller: Caller,
    app: Data<App>,
    body: Body<Import>,
    idempotency: Idempotency,
) -> ApiResult<Json<ImportReport>> {
    let (company, import) = (caller.company, Arc::new(body.0));
    let changes = app.engine.contacts.changes(company);
    // Waits for the tables: an earlier opt-out that is not written yet must not overwrite an opt-in of this import.
    let db = app.engine.reads().tables(company).await?.heavy();
    let report = idempotency
        .transaction(db, async |db| {
            contact_import::begin_import(db, company).await?;
            // An attempt is repeated only if another request has created the contact of a row. Further attempts find
            // that contact, so each row causes at most one repetition.
            for _ in 0..=import.rows.len() {
                let mut attempt = hotline_persistence::error::with_timeout(db.begin()).await?;
                let mut plan = plan_import(&mut attempt, company, &import).await?;
                changes.add(plan.contacts.iter().filter_map(|contact| contact.id));
                if plan.contacts.iter().any(|contact| contact.columns.has("marketingOptOut")) {
                    changes.include_opt_outs();
                }
                match store_contacts(&mut attempt, company, &mut plan.contacts).await {
                    Ok(()) => {
                        hotline_persistence::error::with_timeout(attempt.commit()).await?;
                        return Ok(Json::of(plan.into_report()));
                    }
                    // Another request has created this contact since the look-up: the next attempt updates or skips it.
                    Err(Error::Taken(_)) => hotline_persistence::error::with_timeout(attempt.rollback()).await?,
                    Err(error) => return Err(error.into()),
                }
            }
            Err(ApiError::unavailable())
        })
        .await?;
    changes.settle().await;
    Ok(report)
}

/// The contacts to store, and the response.
struct ImportPlan {
    contacts: Vec<PlannedContact>,
    /// The ids of existing contacts that need not be stored, by position in the [`ContactIndex`].
    unchanged: HashMap<usize, ContactId>,
    report: ImportReport,
    /// The successful rows, in row order.
    rows: Vec<AppliedRow>,
}

/// A row that was applied, or skipped because its contact exists.
struct AppliedRow {
    row_index: usize,
    /// The position of its contact in the [`ContactIndex`].
    position: usize,
    result: ImportResult,
}

impl ImportPlan {
    /// The response, once the contacts have ids.
    fn into_report(self) -> ImportReport {
        let Self { contacts, unchanged: mut ids, mut report, rows } = self;
        ids.extend(contacts.iter().filter_map(|contact| Some((contact.position, contact.id?))));
        let imported_contact = |AppliedRow { row_index, position, result }| {
            Some(ImportedContact { index: row_index, id: *ids.get(&position)?, result })
        };
        report.contacts = rows.into_iter().filter_map(imported_contact).collect();
        report
    }
}

/// A contact that rows create or change.
#[derive(Default)]
struct PlannedContact {
    /// Its position in the [`ContactIndex`].
    position: usize,
    /// `None`: the contact is created, and has no id yet.
    id: Option<ContactId>,
    /// The number in the table, before the import.
    number: Option<String>,
    columns: Columns,
    tags: Option<Vec<TagId>>,
    values: BTreeMap<CustomFieldId, Option<String>>,
}

impl PlannedContact {
    /// Whether the contact has a number that the import removes or replaces.
    fn loses_number(&self) -> bool {
        self.number.is_some() && self.columns.has("number") && self.columns.text("number") != self.number.as_deref()
    }
}

/// Locks the contacts, tags and custom fields that the rows refer to, and decides what to store.
async fn plan_import(db: &mut PgConnection, company: CompanyId, import: &Arc<Import>) -> ApiResult<ImportPlan> {
    let rows = || import.rows.iter().flatten().map(|row| &row.input);
    let texts = |column| rows().filter_map(move |row| row.columns.text(column));
    let (numbers, emails): (Vec<_>, Vec<_>) = (texts("number").collect(), texts("email").collect());
    let codes: Vec<_> = texts("code").collect();
    let lower_emails = contact_import::lower_case(db, &emails).await?;
    let candidates = contact_import::lock_candidates(db, company, &numbers, &emails, &codes).await?;
    let tags: Vec<TagId> = rows().flat_map(|row| row.tags.iter().flatten().copied()).collect();
    let tags = contact_import::lock_existing_tags(db, company, &tags).await?.into_iter().collect();
    let fields = table::lock_all_of::<CustomField>(db, company, Application::Contact).await?;
    let contact_index = ContactIndex::of(candidates, lower_emails);
    let mut planner = Planner { contact_index, tags, fields, on_conflict: import.on_conflict };
    // Thousands of values are checked by the rules of their fields, so this must not run on a serving thread. The limit
    // on heavy statements also limits how many imports run at the same time.
    let import = import.clone();
    spawn_blocking(move || planner.plan(&import.rows)).await.map_err(ApiError::internal)
}

/// The existing contacts that rows may match, and those that rows create. Each has the values of the rows already
/// applied. A contact's position in `contacts` identifies it.
#[derive(Default)]
struct ContactIndex {
    contacts: Vec<PlannedContact>,
    /// Positions of the contacts that must be stored.
    changed: BTreeSet<usize>,
    /// The keys of each contact, by its position.
    keys: Vec<ContactKeys>,
    by_number: HashMap<String, usize>,
    /// If several contacts match, the oldest is used: it has the lowest position.
    by_email: HashMap<String, BTreeSet<usize>>,
    by_code: HashMap<String, BTreeSet<usize>>,
    /// The lower case of each e-mail of the rows.
    lower_emails: HashMap<String, String>,
}

/// The values of a contact by which a row matches it.
#[derive(Clone, Default)]
struct ContactKeys {
    number: Option<String>,
    /// In lower case.
    email: Option<String>,
    code: Option<String>,
}

impl ContactIndex {
    fn of(candidates: Vec<Candidate>, lower_emails: HashMap<String, String>) -> Self {
        let mut contact_index = Self { lower_emails, ..Self::default() };
        for candidate in candidates {
            let number = candidate.number.clone();
            let position =
                contact_index.add(PlannedContact { id: Some(candidate.id), number, ..PlannedContact::default() });
            let Candidate { number, email, code, .. } = candidate;
            contact_index.set_keys(position, ContactKeys { number, email, code });
        }
        contact_index
    }

    /// Adds a contact, and returns its position.
    fn add(&mut self, contact: PlannedContact) -> usize {
        self.contacts.push(PlannedContact { position: self.contacts.len(), ..contact });
        self.keys.push(ContactKeys::default());
        self.contacts.len() - 1
    }

    /// The e-mail of a row, in lower case.
    fn lower_email(&self, columns: &Columns) -> Option<String> {
        columns.text("email").and_then(|email| self.lower_emails.get(email)).cloned()
    }

    /// The keys of a contact after these changes are applied.
    fn changed_keys(&self, position: usize, columns: &Columns) -> ContactKeys {
        let changed_text = |column, current: &Option<String>| {
            if columns.has(column) { columns.text(column).map(str::to_owned) } else { current.clone() }
        };
        let current = &self.keys[position];
        ContactKeys {
            number: changed_text("number", &current.number),
            email: if columns.has("email") { self.lower_email(columns) } else { current.email.clone() },
            code: changed_text("code", &current.code),
        }
    }

    /// Replaces the keys by which a contact is found.
    fn set_keys(&mut self, position: usize, next: ContactKeys) {
        let previous = std::mem::replace(&mut self.keys[position], next.clone());
        if let Some(number) = previous.number {
            self.by_number.remove(&number);
        }
        if let Some(number) = next.number {
            self.by_number.insert(number, position);
        }
        for (map, previous, next) in
            [(&mut self.by_email, previous.email, next.email), (&mut self.by_code, previous.code, next.code)]
        {
            if let Some(contacts) = previous.and_then(|text| map.get_mut(&text)) {
                contacts.remove(&position);
            }
            if let Some(text) = next {
                map.entry(text).or_default().insert(position);
            }
        }
    }

    /// The position of the contact that a row with these columns matches.
    fn find(&self, columns: &Columns) -> Option<usize> {
        let find_oldest =
            |map: &HashMap<String, BTreeSet<usize>>, text: Option<String>| map.get(&text?)?.first().copied();
        let by_number = columns.text("number").and_then(|number| {
            phone_numbers::spellings(number).iter().find_map(|spelling| self.by_number.get(spelling).copied())
        });
        by_number
            .or_else(|| find_oldest(&self.by_email, self.lower_email(columns)))
            .or_else(|| find_oldest(&self.by_code, columns.text("code").map(str::to_owned)))
    }
}

struct Planner {
    contact_index: ContactIndex,
    tags: BTreeSet<TagId>,
    fields: Vec<CustomField>,
    on_conflict: OnConflict,
}

impl Planner {
    fn plan(&mut self, rows: &[Result<ImportRow, Vec<FieldError>>]) -> ImportPlan {
        let mut report = ImportReport::default();
        let mut applied_rows = Vec::new();
        for (row_index, row) in rows.iter().enumerate() {
            let outcome = row.clone().and_then(|row| self.apply_row(row));
            match outcome {
                Ok((position, result)) => {
                    *report.count_mut(result) += 1;
                    applied_rows.push(AppliedRow { row_index, position, result });
                }
                Err(errors) => report.errors.extend(errors.into_iter().map(|error| ImportError::of(row_index, error))),
            }
        }
        let ContactIndex { contacts, changed, .. } = std::mem::take(&mut self.contact_index);
        let (contacts, unchanged_contacts) =
            contacts.into_iter().partition::<Vec<_>, _>(|contact| changed.contains(&contact.position));
        let unchanged =
            unchanged_contacts.into_iter().filter_map(|contact| Some((contact.position, contact.id?))).collect();
        ImportPlan { contacts, unchanged, report, rows: applied_rows }
    }

    /// Applies one row. Returns the position of its contact, and the result.
    fn apply_row(&mut self, row: ImportRow) -> Result<(usize, ImportResult), Vec<FieldError>> {
        let ImportRow { input: mut row, mut errors } = row;
        let existing = self.contact_index.find(&row.columns);
        if let Some(position) = existing.filter(|_| self.on_conflict == OnConflict::Skip) {
            return if errors.is_empty() { Ok((position, ImportResult::Skipped)) } else { Err(errors) };
        }
        let has_error = |errors: &[FieldError], field: &str| errors.iter().any(|error| error.field == field);
        // A row with an invalid number, e-mail or code may be meant for an existing contact: it does not count as new.
        let is_new = existing.is_none() && !MATCHED_FIELDS.iter().any(|field| has_error(&errors, field));
        if is_new && !row.default_name_to_number() && !has_error(&errors, "name") {
            let reason = "is required without number".to_owned();
            errors.push(FieldError { field: "name".to_owned(), reason });
        }
        // The indexes in the body: `row.tags` lacks items that are not ids, so the indexes of those are skipped.
        let indexes = (0..).filter(|index: &usize| !has_error(&errors, &format!("tagIds[{index}]")));
        let unknown_tags = row.tags.iter().flatten().zip(indexes).filter(|(tag, _)| !self.tags.contains(*tag));
        let tag_errors = unknown_tags.map(|(_, index)| {
            let reason = "is not a tag of the company".to_owned();
            FieldError { field: format!("tagIds[{index}]"), reason }
        });
        let tag_errors: Vec<FieldError> = tag_errors.collect();
        errors.extend(tag_errors);
        let values = custom_values::check_all(&self.fields, &row.values, is_new);
        let values = match values {
            Ok(values) if errors.is_empty() => values,
            Ok(_) => return Err(errors),
            Err(value_errors) => {
                errors.extend(value_errors);
                return Err(errors);
            }
        };
        let position = existing.unwrap_or_else(|| self.contact_index.add(PlannedContact::default()));
        self.contact_index.changed.insert(position);
        self.contact_index.set_keys(position, self.contact_index.changed_keys(position, &row.columns));
        let contact = &mut self.contact_index.contacts[position];
        contact.columns.merge(row.columns);
        contact.tags = row.tags.or(contact.tags.take());
        contact.values.extend(values);
        Ok((position, if existing.is_some() { ImportResult::Updated } else { ImportResult::Created }))
    }
}

/// Stores the planned contacts in a few statements. Assigns ids to the new ones.
async fn store_contacts(
    db: &mut PgConnection,
    company: CompanyId,
    contacts: &mut [PlannedContact],
) -> Result<(), Error> {
    let existing: Vec<ContactId> = contacts.iter().filter_map(|contact| contact.id).collect();
    let new_count = contacts.len() - existing.len();
    let mut new_ids = contact_import::reserve_ids(db, new_count).await?.into_iter();
    let existing_set: BTreeSet<ContactId> = existing.iter().copied().collect();
    for contact in contacts.iter_mut().filter(|contact| contact.id.is_none()) {
        contact.id = new_ids.next();
    }
    let contacts = &*contacts;
    let (mut inserted, mut updated) = (Vec::with_capacity(new_count), Vec::with_capacity(existing.len()));
    let (mut retagged_contacts, mut contact_tags, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for contact in contacts {
        let id = contact.id.ok_or_else(|| Error::Unavailable("ids are missing".to_owned()))?;
        let target = if existing_set.contains(&id) { &mut updated } else { &mut inserted };
        target.push((id, contact.columns.clone()));
        if let Some(tags) = &contact.tags {
            retagged_contacts.push(id);
            contact_tags.extend(tags.iter().map(|tag| (id, *tag)));
        }
        values.extend(contact.values.iter().map(|(field, value)| (id, *field, value.clone())));
    }
    let tracker = contacts::track_changes(&mut *db, company, &existing).await?;
    // The numbers of contacts that lose theirs are cleared first, so that other contacts can take them.
    let releasing_number: Vec<ContactId> =
        contacts.iter().filter(|contact| contact.loses_number()).filter_map(|contact| contact.id).collect();
    contact_import::clear_numbers(db, company, &releasing_number).await?;
    contact_import::update_all(db, company, &updated).await?;
    contact_import::insert_all(db, company, &inserted).await?;
    if !retagged_contacts.is_empty() {
        contacts::set_tags(db, company, &retagged_contacts, &contact_tags).await?;
    }
    contacts::set_custom_values(&mut *db, company, &values).await?;
    let new: Vec<ContactId> = inserted.iter().map(|(id, _)| *id).collect();
    tracker.record(db, &[existing, new].concat()).await
}
