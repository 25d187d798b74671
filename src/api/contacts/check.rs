//! What a request names must be the company's.

use hotline_persistence::tables::channels::ChannelRow;
use hotline_persistence::{ChannelId, ContactId};

use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller};

/// The channel is one of the company's.
pub fn check_channel(caller: &Caller, id: ChannelId) -> ApiResult<&ChannelRow> {
    caller.organization.channels.get(&id).ok_or_else(ApiError::not_found)
}

/// The contact a filter names must be the company's.
pub async fn check_contact(caller: &Caller, app: &App, id: Option<ContactId>) -> ApiResult<()> {
    match id {
        Some(id) if app.engine.contacts.get(caller.company, id).await?.is_none() => Err(ApiError::not_found()),
        _ => Ok(()),
    }
}
