//! Creating and changing contacts.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::contacts::{self, ContactRef, identities};
use hotline_persistence::tables::custom_fields::{Application, CustomFieldId};
use hotline_persistence::tables::tags::TagId;
use hotline_persistence::{CompanyId, ContactId};
use sqlx::PgConnection;

use super::Contact;
use super::tax_number::TaxNumber;
use crate::api::custom_values::{self, BodyWithValues, CustomValueInput, HasCustomValues};
use crate::api::merges::{self, Mergeable};
use crate::app::App;
use crate::web::request::if_match::IfMatch;
use crate::web::request::values::{ContactName, Email, Name, NonBlankText, Number, PictureAddress};
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, PathId};

/// Maximum number of tags in a request.
const TAGS_MAX: usize = 100;

/// The fields of a contact in a body.
#[derive(Clone, Debug, Default)]
pub struct ContactInput {
    pub(super) columns: Columns,
    /// Replaces all tags of the contact.
    pub(super) tags: Option<Vec<TagId>>,
    pub(super) values: Vec<CustomValueInput>,
}

/// The fields that `null` cannot clear.
struct UnclearableFields {
    name: Option<ContactName>,
    is_group: Option<bool>,
    opt_out: Option<bool>,
}

/// Sets the column of each text field that the body has: `"field" "column" Type`. `null` clears the column.
macro_rules! read_texts {
    ($fields:ident, $columns:ident; $($name:literal $column:literal $kind:ty),+ $(,)?) => {$(
        if let Some(text) = $fields.patch::<$kind>($name).into_option() {
            $columns.set($column, text.map(|text| text.0));
        }
    )+};
}

impl ContactInput {
    /// Reads all fields but the tags and `unclearable`: the caller reads those, differently for a change.
    fn read(fields: &mut Fields<'_>, unclearable: UnclearableFields, is_new: bool) -> Self {
        let mut columns = Columns::default();
        if let Some(name) = unclearable.name {
            columns.set("name", name.0);
        }
        if let Some(is_group) = unclearable.is_group {
            columns.set("is_group", is_group);
        }
        if let Some(opt_out) = unclearable.opt_out {
            columns.set("marketing_opt_out", opt_out);
        }
        if let Some(number) = fields.patch::<Number>("number").into_option() {
            columns.set("number_country", number.as_ref().and_then(Number::country));
            columns.set("number", number.map(|number| number.0));
        }
        read_texts! { fields, columns;
            "email" "email" Email,
            "code" "code" Name,
            "cpfCnpj" "cpf_cnpj" TaxNumber,
            "origin" "origin" Name,
            "profilePicUrl" "profile_pic_url" PictureAddress,
            "socialUsername" "social_username" Name,
            "lid" "lid" Name,
            "sourceUrl" "source_url" NonBlankText,
            "sourceId" "source_id" NonBlankText,
            "headline" "headline" NonBlankText,
            "mediaType" "media_type" NonBlankText,
            "mediaUrl" "media_url" NonBlankText,
            "utmSource" "utm_source" NonBlankText,
            "utmMedium" "utm_medium" NonBlankText,
            "utmCampaign" "utm_campaign" NonBlankText,
            "utmId" "utm_id" NonBlankText,
            "fbclid" "fbclid" NonBlankText,
            "gclid" "gclid" NonBlankText,
            "ctwaClid" "ctwa_clid" NonBlankText,
        }
        let values = custom_values::read(fields, is_new);
        Self { columns, tags: None, values }
    }

    /// Uses the number as the name if there is no name. Returns `false` when the contact has neither.
    pub(super) fn default_name_to_number(&mut self) -> bool {
        if self.columns.text("name").is_none() {
            let Some(number) = self.columns.text("number").map(str::to_owned) else { return false };
            self.columns.set("name", number);
        }
        true
    }

    /// Reads a new contact or a row of an import. `null` counts as absent in the fields that it cannot clear.
    pub(super) fn read_row(fields: &mut Fields<'_>) -> Self {
        let unclearable = UnclearableFields {
            name: fields.optional("name"),
            is_group: fields.optional("isGroup"),
            opt_out: fields.optional("marketingOptOut"),
        };
        let tags = fields.list("tagIds", TAGS_MAX);
        Self { tags, ..Self::read(fields, unclearable, NewContact::IS_NEW) }
    }
}

/// The body of `POST /contacts`.
pub struct NewContact(ContactInput);

impl Input for NewContact {
    fn name() -> Cow<'static, str> {
        "ContactCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut input = ContactInput::read_row(fields);
        // An invalid name or number was already reported.
        if !input.default_name_to_number() && !fields.has_text("name") && !fields.has_text("number") {
            fields.refuse("name", "is required without number");
        }
        Some(Self(input))
    }
}

impl HasCustomValues for NewContact {
    const APPLICATION: Application = Application::Contact;
    const IS_NEW: bool = true;
}

/// `POST /contacts`. Numbers are unique within a company.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<BodyWithValues<NewContact>>,
    idempotency: Idempotency,
) -> ApiResult<Created<Contact>> {
    let company = caller.company;
    let NewContact(new) = body.0.check(app.db(company), company).await?;
    idempotency
        .transaction(app.db(company), async |db| {
            if let Some(number) = new.columns.text("number") {
                identities::hold_number(db, company, number, None).await?;
            }
            let is_new = NewContact::IS_NEW;
            let values = custom_values::validate(db, company, Application::Contact, &new.values, is_new).await?;
            let id = table::insert::<ContactRef>(&mut *db, company, &new.columns).await?.id;
            set_tags_and_values(db, company, id, new.tags.as_deref(), values).await?;
            contacts::record_created(db, company, &[id]).await?;
            Ok(Created::of(find(db, company, id).await?))
        })
        .await
}

/// The body of `PUT /contacts/{contactId}`.
pub struct ChangedContact(ContactInput);

impl Input for ChangedContact {
    fn name() -> Cow<'static, str> {
        "ContactUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let unclearable = UnclearableFields {
            name: fields.non_null("name"),
            is_group: fields.non_null("isGroup"),
            opt_out: fields.non_null("marketingOptOut"),
        };
        let tags = fields.changed_list("tagIds", TAGS_MAX);
        Some(Self(ContactInput { tags, ..ContactInput::read(fields, unclearable, Self::IS_NEW) }))
    }
}

impl HasCustomValues for ChangedContact {
    const APPLICATION: Application = Application::Contact;
    const IS_NEW: bool = false;
}

/// `PUT /contacts/{contactId}`. The number may be cleared, because a contact always has a name. The response is sent
/// once conversations show the changed contact.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<ContactId>,
    if_match: IfMatch,
    body: Body<BodyWithValues<ChangedContact>>,
    idempotency: Idempotency,
) -> ApiResult<Json<Contact>> {
    let (company, id) = (caller.company, id.0);
    let ChangedContact(change) = body.0.check(app.db(company), company).await?;
    let changes = app.engine.contacts.changes(company);
    let db = app.engine.reads().tables(company).await?;
    let response = idempotency
        .transaction(db, async |db| {
            changes.add([id]);
            if change.columns.has("marketingOptOut") {
                changes.include_opt_outs();
            }
            if let Some(number) = change.columns.text("number") {
                identities::hold_number(db, company, number, Some(id)).await?;
            }
            if_match.0.lock_and_check::<ContactRef>(db, company, id).await?;
            let tracker = contacts::track_changes(db, company, &[id]).await?;
            table::update::<ContactRef>(&mut *db, company, id, &change.columns).await?;
            let is_new = ChangedContact::IS_NEW;
            let values = custom_values::validate(db, company, Application::Contact, &change.values, is_new).await?;
            set_tags_and_values(db, company, id, change.tags.as_deref(), values).await?;
            tracker.record(db, &[id]).await?;
            Ok(Json::of(find(db, company, id).await?))
        })
        .await;
    // After an error, dropping `changes` reads the contact again: the change may have been committed.
    let response = merges::add_successor(&caller, &app, Mergeable::Contact(id), response).await?;
    changes.settle().await;
    Ok(response)
}

async fn set_tags_and_values(
    db: &mut PgConnection,
    company: CompanyId,
    id: ContactId,
    tags: Option<&[TagId]>,
    values: Vec<(CustomFieldId, Option<String>)>,
) -> ApiResult<()> {
    if let Some(tags) = tags {
        let contact_tags: Vec<(ContactId, TagId)> = tags.iter().map(|tag| (id, *tag)).collect();
        contacts::set_tags(db, company, &[id], &contact_tags).await?;
    }
    let values: Vec<_> = values.into_iter().map(|(field, value)| (id, field, value)).collect();
    Ok(contacts::set_custom_values(db, company, &values).await?)
}

async fn find(db: &mut PgConnection, company: CompanyId, id: ContactId) -> ApiResult<contacts::ContactRow> {
    contacts::find(db, company, id).await?.ok_or_else(ApiError::not_found)
}
