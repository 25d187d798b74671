//! Adding and removing the tags of a contact. A tag belongs to the contact, independently of its tickets.

use actix_web::web::Data;
use hotline_persistence::ContactId;
use hotline_persistence::tables::contacts;
use hotline_persistence::tables::tags::TagId;

use crate::api::merges::{self, Mergeable};
use crate::app::App;
use crate::web::{ApiResult, Caller, Idempotency, NoContent, PathId};

/// `PUT /contacts/{contactId}/tags/{tagId}`. Adding a tag that the contact already has changes nothing.
pub async fn add_tag(
    caller: Caller,
    app: Data<App>,
    ids: PathId<(ContactId, TagId)>,
    idempotency: Idempotency,
) -> ApiResult<NoContent> {
    let (contact, tag) = ids.0;
    let added = idempotency
        .transaction(app.db(caller.company), async |db| {
            contacts::link_tag(db, caller.company, contact, tag).await?;
            Ok(NoContent)
        })
        .await;
    merges::add_successor(&caller, &app, Mergeable::Contact(contact), added).await
}

/// `DELETE /contacts/{contactId}/tags/{tagId}`. Removing a tag that the contact does not have changes nothing.
pub async fn remove_tag(caller: Caller, app: Data<App>, ids: PathId<(ContactId, TagId)>) -> ApiResult<NoContent> {
    let (contact, tag) = ids.0;
    let mut transaction = app.db(caller.company).begin().await?;
    let removed = contacts::unlink_tag(transaction.connection()?, caller.company, contact, tag).await;
    merges::add_successor(&caller, &app, Mergeable::Contact(contact), removed).await?;
    transaction.commit().await?;
    Ok(NoContent)
}
