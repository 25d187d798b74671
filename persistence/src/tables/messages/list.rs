//! Lists of a company's messages for the API.

use super::{Direction, MessageRow, MessageStatus, MessageType};
use crate::select::{Page, PageRequest, Select};
use crate::table::Span;
use crate::tables::zones::{self, TimeColumn, ZoneFilter, ZonedTable};
use crate::{ChannelId, CompanyId, ContactId, Database, MessageId, Result, TicketId};

/// The conditions of the API's lists.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter {
    pub ticket_id: Option<TicketId>,
    pub contact_id: Option<ContactId>,
    pub channel_id: Option<ChannelId>,
    pub direction: Option<Direction>,
    pub kind: Option<MessageType>,
    pub status: Option<MessageStatus>,
    pub created: Span,
    /// When the messages changed last.
    pub updated: Span,
    /// Only messages after this one.
    pub after: Option<MessageId>,
    /// Only messages a visitor may see: no notes.
    pub visible_to_visitor: bool,
}

impl MessageFilter {
    /// Whether all internal messages are requested: those of both types.
    fn is_internal(&self) -> bool {
        self.direction == Some(Direction::Internal) && self.kind.is_none()
    }

    /// Whether the requested messages are rare: failed, or not texts.
    fn is_rare(&self) -> bool {
        self.is_internal()
            || self.kind.is_some_and(|kind| kind != MessageType::Text)
            || self.status == Some(MessageStatus::Failed)
    }
}

/// A page of a company's messages.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &MessageFilter,
    page: PageRequest,
) -> Result<Page<MessageRow>> {
    let zone_filter = ZoneFilter {
        spans: &[(TimeColumn::Created, filter.created), (TimeColumn::Updated, filter.updated)],
        words: &[
            filter.direction.map(|word| word.as_str()),
            filter.kind.map(|word| word.as_str()),
            filter.status.map(|word| word.as_str()),
        ],
        channel: filter.channel_id,
        ..ZoneFilter::default()
    };
    // An index is better than zones for queued messages, for those of a ticket or contact, and for rare ones (failed,
    // or not texts). Nearly every zone contains a few rare messages, so for these, zones exclude enough only within a
    // time span or a channel.
    let has_span = filter.created != Span::default() || filter.updated != Span::default();
    let is_narrowed = has_span || filter.channel_id.is_some();
    let has_ticket_or_contact = filter.ticket_id.is_some() || filter.contact_id.is_some();
    let is_queued = filter.status == Some(MessageStatus::Queued);
    let has_index = has_ticket_or_contact || is_queued || filter.is_rare() && !is_narrowed;
    let uses_type_index = filter.is_internal() && !has_ticket_or_contact && !is_narrowed && !is_queued;
    let list = if uses_type_index {
        list_by_type(company, filter, page)
    } else if zone_filter.has_condition() && !has_index {
        add_conditions(zones::list("", ZonedTable::Message, company, &zone_filter, &[], page), filter)
    } else {
        add_conditions(Select::new("select t.* from messages t", "t.company_id", company), filter)
    };
    list.mark_heavy_if(filter.direction.is_some() || filter.kind.is_some() || filter.status.is_some())
        .mark_heavy_if(filter.channel_id.is_some() && !has_ticket_or_contact)
        .page(db, "t.id", page)
        .await
}

/// Adds all conditions of the filter.
fn add_conditions(list: Select, filter: &MessageFilter) -> Select {
    list.equals("t.ticket_id", filter.ticket_id)
        .equals("t.contact_id", filter.contact_id)
        .equals("t.channel_id", filter.channel_id)
        .equals("t.direction", filter.direction)
        .equals("t.type", filter.kind)
        .equals("t.status", filter.status)
        .after("t.id", filter.after.map(|id| id.0))
        .only(filter.visible_to_visitor.then_some("t.direction <> 'internal'"))
        .between("t.created_at", filter.created)
        .between("coalesce(t.updated_at, t.created_at)", filter.updated)
}

/// Finds the messages of a type. The second condition repeats the predicate of the partial index: PostgreSQL does not
/// see that the first implies it, and would not use the index.
const BY_TYPE: &str = "t.type = k.type and t.type <> 'text'";

/// Starts a list of all internal messages, which are notes and system messages: it reads the first messages of each
/// type, up to the end of the page. The index has the messages of one type in list order; for both types at once
/// PostgreSQL would read and sort all of them.
fn list_by_type(company: CompanyId, filter: &MessageFilter, page: PageRequest) -> Select {
    let each_type = "select t.* from (values ('note'), ('system')) k (type)
        cross join lateral (select t.* from messages t";
    let mut list = add_conditions(Select::new(each_type, "t.company_id", company), filter).only(Some(BY_TYPE));
    if let Some(after) = page.after() {
        list = list.after_id("t.id", after, page.descending);
    }
    let order = if page.descending { "t.id desc" } else { "t.id" };
    let mut query = list.into_subquery(order, page.offset().saturating_add(page.size).saturating_add(1));
    query.push(" t");
    Select::with_query(query, "t.company_id", company)
}
