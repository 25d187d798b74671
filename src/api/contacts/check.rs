//! Checks that the records a request names belong to the company.

use hotline_persistence::tables::channels::ChannelRow;
use hotline_persistence::{ChannelId, ContactId};

use crate::api::merges::{self, Mergeable};
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller};

/// The company's channel with this id; `404` if there is none.
pub fn check_channel(caller: &Caller, id: ChannelId) -> ApiResult<&ChannelRow> {
    caller.organization.channels.get(&id).ok_or_else(ApiError::not_found)
}

/// Checks that the contact of a filter, if it has one, belongs to the company.
pub async fn check_contact(caller: &Caller, app: &App, id: Option<ContactId>) -> ApiResult<()> {
    let Some(id) = id else { return Ok(()) };
    let contact = app.engine.contacts.get(caller.company, id).await?.ok_or_else(ApiError::not_found);
    merges::add_successor(caller, app, Mergeable::Contact(id), contact).await.map(drop)
}
