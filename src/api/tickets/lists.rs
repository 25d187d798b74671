//! The lists of tickets, and of a ticket's messages and events.

use actix_web::HttpRequest;
use actix_web::web::Data;
use hotline_persistence::TicketId;
use hotline_persistence::select::Position;
use hotline_persistence::tables::messages::{self, MessageFilter};
use hotline_persistence::tables::ticket_events;
use hotline_persistence::tables::tickets::{SortedPage, TicketFilter, TicketSort, TicketStatus};

use super::{RenderedTickets, Ticket, TicketEvent};
use crate::api::contacts::check_contact;
use crate::api::merges::{self, Mergeable};
use crate::api::messages::{Message, ViewContext};
use crate::app::App;
use crate::web::request::params::Span;
use crate::web::request::values::Search;
use crate::web::{ApiError, ApiResult, Caller, Filter, Page, Params, PathId, Query};

/// Filters and order of the list: `search` matches the contact's name and number.
pub struct Filters {
    tickets: TicketFilter,
    sort: TicketSort,
}

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        let tickets = TicketFilter {
            status: query.filter("status"),
            queue_id: query.filter("queueId"),
            user_id: query.filter("userId"),
            contact_id: query.filter("contactId"),
            channel_id: query.filter("channelId"),
            wrapup_type_id: query.filter("wrapupTypeId"),
            unassigned: query.filter("unassigned"),
            search: query.filter::<Search>("search").map(|text| text.0),
            opened: query.span("opened"),
            closed: query.span("closed"),
            created: query.span("created"),
            updated: query.span("updated"),
        };
        let sort = query.sort(SORT_DESCRIPTION);
        if sort != TicketSort::Id && tickets.status != Some(TicketStatus::Open) {
            query.refuse("status", "is required to be open with this sort");
        }
        if sort == TicketSort::Activity {
            query.descend_by_default();
        }
        Self { tickets, sort }
    }
}

/// What the API document says about `sort`.
const SORT_DESCRIPTION: &str = "With `status=open`. `activity`: by `lastActivityAt`, the latest first unless `order` \
    is given. `waiting`: by `waitingSince`, the longest wait first; tickets in which no one waits come last in either \
    order. Tickets of the same time are ordered by id";

/// Filters of a ticket's messages: when they were created, and when they changed last.
pub struct MessageSpans {
    created: Span,
    updated: Span,
}

impl Filter for MessageSpans {
    fn read(query: &mut Params) -> Self {
        Self { created: query.span("created"), updated: query.span("updated") }
    }
}

/// The filter of a ticket's events: a span of creation times.
pub struct CreatedSpan(pub Span);

impl Filter for CreatedSpan {
    fn read(query: &mut Params) -> Self {
        Self(query.span("created"))
    }
}

/// `GET /tickets`.
pub async fn list(
    caller: Caller,
    app: Data<App>,
    cache: Data<RenderedTickets>,
    query: Query<Filters>,
) -> ApiResult<Page<Ticket>> {
    let Filters { tickets: filter, sort } = query.filter;
    check_filter_ids(&caller, &filter)?;
    check_contact(&caller, &app, filter.contact_id).await?;
    let after = query.after.and_then(|after| match after {
        Position::Time(position) => Some(position),
        Position::Id(_) | Position::Name(_) => None,
    });
    let request = SortedPage { sort, page: query.page, after };
    let tickets = app.engine.tickets.list(caller.company, &filter, request).await?;
    Ok(Page::of(query.page, tickets, |ticket| Ticket::cached(&cache, &caller.organization, ticket)))
}

/// Checks that the records of a filter belong to the company; its contact is checked by [`check_contact`].
fn check_filter_ids(caller: &Caller, filter: &TicketFilter) -> ApiResult<()> {
    let organization = &caller.organization;
    let is_known = filter.queue_id.is_none_or(|id| organization.queues.contains_key(&id))
        && filter.user_id.is_none_or(|id| organization.users.contains_key(&id))
        && filter.channel_id.is_none_or(|id| organization.channels.contains_key(&id))
        && filter.wrapup_type_id.is_none_or(|id| organization.wrapup_types.contains_key(&id));
    if is_known { Ok(()) } else { Err(ApiError::not_found()) }
}

/// `GET /tickets/{ticketId}/messages`: includes notes, in chronological order.
pub async fn list_messages(
    request: HttpRequest,
    caller: Caller,
    app: Data<App>,
    id: PathId<TicketId>,
    query: Query<MessageSpans>,
) -> ApiResult<Page<Message>> {
    let ticket = app.engine.tickets.get(caller.company, id.0).await;
    merges::add_successor(&caller, &app, Mergeable::Ticket(id.0), ticket).await?;
    let MessageSpans { created, updated } = query.filter;
    let filter = MessageFilter { ticket_id: Some(id.0), created, updated, ..MessageFilter::default() };
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let rows = messages::list(db, caller.company, &filter, query.page).await?;
    let context = ViewContext::of(&caller, &app, &request);
    Ok(Page::of(query.page, rows, |row| Message::of(row, &context)))
}

/// `GET /tickets/{ticketId}/events`.
pub async fn list_events(
    caller: Caller,
    app: Data<App>,
    id: PathId<TicketId>,
    query: Query<CreatedSpan>,
) -> ApiResult<Page<TicketEvent>> {
    let ticket = app.engine.tickets.get(caller.company, id.0).await;
    merges::add_successor(&caller, &app, Mergeable::Ticket(id.0), ticket).await?;
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let rows = ticket_events::list(db, caller.company, id.0, query.filter.0, query.page).await?;
    Ok(Page::of(query.page, rows, |row| TicketEvent::of(row, &caller.organization)))
}
