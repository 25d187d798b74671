//! `POST /contacts/{contactId}/merge`: two contacts that are one person become one.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::{FieldError, clock};
use hotline_persistence::tables::merges::{ContactMerge, merge_contacts};
use hotline_persistence::{ContactId, Database};
use serde_json::json;

use super::Contact;
use crate::api::merges::{self, Mergeable};
use crate::app::App;
use crate::web::request::if_match::IfMatch;
use crate::web::{ApiError, ApiResult, Body, Caller, Fields, Idempotency, Input, Json, PathId};

/// The body of `POST /contacts/{contactId}/merge`.
pub struct ContactMergeBody {
    from: ContactId,
}

impl Input for ContactMergeBody {
    fn name() -> Cow<'static, str> {
        "ContactMerge".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { from: fields.required("fromContactId")? })
    }
}

/// `POST /contacts/{contactId}/merge`: the contact of the path stays. Messages to and from either contact during the
/// merge belong to the conversation that stays.
pub async fn merge(
    caller: Caller,
    app: Data<App>,
    id: PathId<ContactId>,
    if_match: IfMatch,
    body: Body<ContactMergeBody>,
    idempotency: Idempotency,
) -> ApiResult<Json<Contact>> {
    let (company, into, from) = (caller.company, id.0, body.0.from);
    if into == from {
        let reason = "must be another contact".to_owned();
        return Err(ApiError::validation(&[FieldError { field: "fromContactId".to_owned(), reason }]));
    }
    for contact in [into, from] {
        // Checked before the hold, which makes other requests wait: a contact that does not exist must not cause that.
        let stored = app.engine.contacts.get(company, contact).await?.ok_or_else(ApiError::not_found);
        merges::add_successor(&caller, &app, Mergeable::Contact(contact), stored).await?;
    }
    let hold = app.engine.merging.hold(company, [into, from]).await?;
    let merged = idempotency
        .transaction(app.db(company).heavy(), async |db| {
            hold.begin_change();
            let (expected, author, ids) = (&if_match.0, merges::author(&caller), &app.engine.store().ids);
            let merge = ContactMerge { company, into, from, expected, author, at: clock::now(), ids };
            let contact = merge_contacts(db, &merge).await?;
            hotline_persistence::fail_point!("contacts_merged", |_| std::process::abort());
            contact
                .map(|row| Json::of(Contact::from(row)))
                .map_err(|conflict| merges::refused_error(conflict, "fromContactId", &json!(from)))
        })
        .await;
    hotline_persistence::fail_point!("contact_merge_committed", |_| std::process::abort());
    hold.settle().await;
    merges::add_successor_of_either(&caller, &app, [into, from].map(Mergeable::Contact), merged).await
}
