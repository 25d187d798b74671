//! Contact lists: groups of contacts to send to.

use std::borrow::Cow;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::table;
use hotline_persistence::tables::contact_lists::{self, AddedContacts, CONTACTS, ContactList, ContactListId};
use hotline_persistence::tables::contacts::{self, ContactFilter, ContactRef};
use hotline_persistence::tables::merges::MergedNoun;
use hotline_persistence::tables::tags::{Tag, TagId};
use hotline_persistence::{ContactId, Database};

use super::contacts::Contact;
use super::merges;
use super::plain::{BodyColumns, Plain};
use super::references::LINKS_MAX;
use crate::app::App;
use crate::web::request::params::Span;
use crate::web::request::values::{Name, Search};
use crate::web::{
    ApiError, ApiResult, Body, Caller, Fields, Filter, Idempotency, Input, Json, NoContent, Page, Params, PathId, Query,
};

impl Plain for ContactList {
    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
    }
}

/// The body of `POST /contact-lists/{contactListId}/contacts`.
pub struct Addition {
    contacts: Vec<ContactId>,
    tag: Option<TagId>,
}

impl Input for Addition {
    fn name() -> Cow<'static, str> {
        "ContactListAddition".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let contacts = fields.list("contactIds", LINKS_MAX);
        let tag = fields.optional("tagId");
        if !fields.has("contactIds") && !fields.has("tagId") {
            fields.refuse("contactIds", "is required, or tagId");
        }
        Some(Self { contacts: contacts.unwrap_or_default(), tag })
    }
}

/// Filters for the contacts in a list: `search` matches the same fields as in `GET /contacts`; `created` and `updated`
/// are time spans.
pub struct Filters {
    search: Option<Search>,
    created: Span,
    updated: Span,
}

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self { search: query.filter("search"), created: query.span("created"), updated: query.span("updated") }
    }
}

/// `DELETE /contact-lists/{contactListId}`: the contacts remain. Refused while an unfinished campaign uses the list.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<ContactListId>) -> ApiResult<NoContent> {
    let mut transaction = app.db(caller.company).begin().await?;
    let campaign_count = contact_lists::remove(transaction.connection()?, caller.company, id.0).await?;
    if campaign_count > 0 {
        let state = "unfinished campaigns use the list";
        return Err(Refusal::Conflict(Conflict::used_by(state, "in_use", [("campaign", campaign_count)])).into());
    }
    transaction.commit().await?;
    Ok(NoContent)
}

/// `GET /contact-lists/{contactListId}/contacts`.
pub async fn list_contacts(
    caller: Caller,
    app: Data<App>,
    id: PathId<ContactListId>,
    query: Query<Filters>,
) -> ApiResult<Page<Contact>> {
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    if !table::exists::<ContactList>(db, caller.company, id.0).await? {
        return Err(ApiError::not_found());
    }
    let Filters { search, created, updated } = query.filter;
    let filter = ContactFilter { search: search.map(|text| text.0), created, updated, ..ContactFilter::default() };
    let rows = contacts::list_of(db, caller.company, id.0, &filter, query.page).await?;
    Ok(Page::of(query.page, rows, Contact::from))
}

/// `POST /contact-lists/{contactListId}/contacts`.
pub async fn add_contacts(
    caller: Caller,
    app: Data<App>,
    id: PathId<ContactListId>,
    body: Body<Addition>,
    idempotency: Idempotency,
) -> ApiResult<Json<AddedContacts>> {
    let Addition { contacts, tag } = body.0;
    // Heavy: a tag may have a hundred thousand contacts.
    let db = app.db(caller.company).heavy();
    let addition = idempotency.transaction(db, async |db| {
        if let Some(tag) = tag
            && !table::exists::<Tag>(&mut *db, caller.company, tag).await?
        {
            return Err(ApiError::not_found());
        }
        Ok(Json::of(contact_lists::add(db, caller.company, id.0, &contacts, tag).await?))
    });
    match addition.await {
        // If a contact of the body was merged into another, the error has the other's id.
        Err(error) if error.status == StatusCode::NOT_FOUND => {
            let ids: Vec<i64> = contacts.iter().map(|id| id.0).collect();
            Err(merges::not_found_error(app.db(caller.company), caller.company, MergedNoun::Contact, &ids).await)
        }
        outcome => outcome,
    }
}

/// `DELETE /contact-lists/{contactListId}/contacts/{contactId}`. Removing a contact that is not in the list changes
/// nothing.
pub async fn remove_contact(
    caller: Caller,
    app: Data<App>,
    ids: PathId<(ContactListId, ContactId)>,
) -> ApiResult<NoContent> {
    let (list, contact) = ids.0;
    let (db, company) = (app.db(caller.company), caller.company);
    if !table::exists::<ContactList>(db, company, list).await? {
        return Err(ApiError::not_found());
    }
    if !table::exists::<ContactRef>(db, company, contact).await? {
        return Err(merges::not_found_error(db, company, MergedNoun::Contact, &[contact.0]).await);
    }
    CONTACTS.remove(db, company, list, contact).await?;
    Ok(NoContent)
}
