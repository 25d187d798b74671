//! `POST /tickets/{ticketId}/merge`: two tickets of a contact and channel become one.

use std::borrow::Cow;
use std::sync::Arc;

use actix_web::web::Data;
use hotline_actors::tickets as live;
use hotline_actors::{FieldError, clock};
use hotline_persistence::tables::merges::{MergeConflict, TicketMerge, merge_tickets};
use hotline_persistence::{Database, TicketId};
use serde_json::json;

use super::Ticket;
use crate::api::merges::{self, Mergeable};
use crate::app::App;
use crate::web::{ApiError, ApiResult, Body, Caller, Fields, Idempotency, Input, Json, PathId};

/// The body of `POST /tickets/{ticketId}/merge`.
pub struct TicketMergeBody {
    from: TicketId,
}

impl Input for TicketMergeBody {
    fn name() -> Cow<'static, str> {
        "TicketMerge".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { from: fields.required("fromTicketId")? })
    }
}

async fn find_ticket(caller: &Caller, app: &App, id: TicketId) -> ApiResult<Arc<live::Ticket>> {
    let found = app.engine.tickets.get(caller.company, id).await;
    merges::add_successor(caller, app, Mergeable::Ticket(id), found).await
}

/// `POST /tickets/{ticketId}/merge`: the ticket of the path remains. It receives the inbound messages that
/// arrive for either ticket during the merge.
pub async fn merge(
    caller: Caller,
    app: Data<App>,
    id: PathId<TicketId>,
    body: Body<TicketMergeBody>,
    idempotency: Idempotency,
) -> ApiResult<Json<Ticket>> {
    let (company, into, from) = (caller.company, id.0, body.0.from);
    if into == from {
        let reason = "must be another ticket".to_owned();
        return Err(ApiError::validation(&[FieldError { field: "fromTicketId".to_owned(), reason }]));
    }
    let (into_ticket, from_ticket) = (find_ticket(&caller, &app, into).await?, find_ticket(&caller, &app, from).await?);
    if into_ticket.row.contact_id != from_ticket.row.contact_id {
        return Err(merges::refused_error(MergeConflict::DifferentConversations, "fromTicketId", &json!(from)));
    }
    let contact = into_ticket.row.contact_id;
    // Until `settle`, no actor decides about the contact or its conversations: only the tables have them.
    let hold = app.engine.merging.hold(company, [contact]).await?;
    let organization = &caller.organization;
    let merged = idempotency
        .transaction(app.db(company).heavy(), async |db| {
            hold.begin_change();
            let (author, ids) = (merges::author(&caller), &app.engine.store().ids);
            let merge = TicketMerge { company, into, from, contact, author, at: clock::now(), ids };
            let ticket = merge_tickets(db, &merge).await?;
            hotline_persistence::fail_point!("tickets_merged", |_| std::process::abort());
            ticket
                .map(|loaded| {
                    // The response does not contain whether the contact is reachable.
                    let is_reachable = false;
                    Json::of(Ticket::of(organization, live::Ticket::loaded(loaded, is_reachable).into()))
                })
                .map_err(|conflict| merges::refused_error(conflict, "fromTicketId", &json!(from)))
        })
        .await;
    hotline_persistence::fail_point!("ticket_merge_committed", |_| std::process::abort());
    hold.settle().await;
    merges::add_successor_of_either(&caller, &app, [into, from].map(Mergeable::Ticket), merged).await
}
