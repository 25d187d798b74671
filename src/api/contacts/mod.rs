//! Contacts: the people and groups a company talks to. Sends and visitor sessions also create them.

mod check;
mod import;
mod import_report;
mod merge;
mod tags;
mod tax_number;
mod view;
mod write;

use actix_web::web::Data;
use hotline_persistence::ContactId;
use hotline_persistence::table;
use hotline_persistence::tables::contacts::{self, ContactFilter};
use hotline_persistence::tables::tags::Tag;

pub(super) use check::{check_channel, check_contact};
pub use import::{Import, import};
pub use merge::merge;
pub use tags::{add_tag, remove_tag};
pub use view::Contact;
pub use write::{create, update};

use super::merges::{self, Mergeable};
use crate::app::App;
use crate::web::request::if_match::IfMatch;
use crate::web::request::values::{Email, Name, Number, Search};
use crate::web::response::reply::Tagged;
use crate::web::{ApiError, ApiResult, Caller, Filter, Json, NoContent, Page, Params, PathId, Query};

/// Filters of the list: `search` matches name, number, e-mail and code; `number` also finds other spellings and former
/// numbers; `channelId` is the channel of the contact's last conversation.
pub struct Filters(ContactFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(ContactFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            number: query.filter::<Number>("number").map(|number| number.0),
            number_owner_ids: None,
            email: query.filter::<Email>("email").map(|email| email.0),
            code: query.filter::<Name>("code").map(|code| code.0),
            tag_id: query.filter("tagId"),
            channel_id: query.filter("channelId"),
            origin: query.filter::<Name>("origin").map(|origin| origin.0),
            is_group: query.filter("isGroup"),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /contacts`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<Contact>> {
    let filter = query.filter.0;
    if let Some(channel) = filter.channel_id {
        check_channel(&caller, channel)?;
    }
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    if let Some(tag) = filter.tag_id
        && !table::exists::<Tag>(db, caller.company, tag).await?
    {
        return Err(ApiError::not_found());
    }
    let rows = contacts::list(db, caller.company, &filter, query.page).await?;
    Ok(Page::of(query.page, rows, Contact::from))
}

/// `GET /contacts/{contactId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<ContactId>) -> ApiResult<Tagged<Contact>> {
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let found = contacts::find(db, caller.company, id.0).await?.ok_or_else(ApiError::not_found);
    let row = merges::add_successor(&caller, &app, Mergeable::Contact(id.0), found).await?;
    Ok(Tagged(Json::of(Contact::from(row))))
}

/// `DELETE /contacts/{contactId}`: also deletes closed tickets, messages and sessions. Refused while a ticket is open
/// or a session is active.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<ContactId>, if_match: IfMatch) -> ApiResult<NoContent> {
    let removed = app.engine.remove_contact(caller.company, id.0, if_match.0).await;
    merges::add_successor(&caller, &app, Mergeable::Contact(id.0), removed).await?;
    // The messages are deleted, so their files are no longer referenced.
    app.media.sweep_soon();
    Ok(NoContent)
}
