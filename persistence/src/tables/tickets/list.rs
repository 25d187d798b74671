//! A company's list of tickets.

use futures_util::FutureExt;
use sqlx::PgExecutor;

use super::{BESIDE, COLUMNS, LoadedTicket, TicketStatus};
use crate::select::{Page, PageRequest, Select};
use crate::table::Span;
use crate::tables::zones::{self, ASSIGNED, Time, UNASSIGNED, Wanted, Zoned};
use crate::{ChannelId, CompanyId, ContactId, Database, QueueId, Readers, Result, UserId, WrapupTypeId};

/// What the API's list may ask for.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct TicketFilter {
    pub status: Option<TicketStatus>,
    pub queue_id: Option<QueueId>,
    pub user_id: Option<UserId>,
    pub contact_id: Option<ContactId>,
    pub channel_id: Option<ChannelId>,
    pub wrapup_type_id: Option<WrapupTypeId>,
    /// Whether nobody takes care of them.
    pub unassigned: Option<bool>,
    pub search: Option<String>,
    pub opened: Span,
    pub closed: Span,
    pub created: Span,
    pub updated: Span,
}

/// Tickets that may lie before a page for it to be asked through [`crate::Readers`]: a page far back takes long, and
/// would keep those waiting that come for the first ones.
const STEADY_OFFSET_MAX: i64 = 1_000;

/// Whether [`list`] may read many tickets to show a few: unless an index holds those that are asked for.
fn is_heavy(filter: &TicketFilter, page: PageRequest) -> bool {
    let indexed = TicketFilter { status: filter.status, contact_id: filter.contact_id, ..TicketFilter::default() };
    *filter != indexed || page.is_deep()
}

/// Whether [`list`] has one plan that is good for every value: then an index holds the tickets in the order of the
/// list, and whatever the status is, the page's are the only ones looked at.
pub fn is_steady(filter: &TicketFilter, page: PageRequest) -> bool {
    let by_status = TicketFilter { status: filter.status, ..TicketFilter::default() };
    *filter == by_status && page.offset() <= STEADY_OFFSET_MAX
}

/// A page of a company's tickets with this status, or with any: what [`is_steady`], planned once.
///
/// # Errors
/// When the database cannot answer.
pub async fn list_steady(
    readers: &Readers,
    company: CompanyId,
    status: Option<TicketStatus>,
    page: PageRequest,
) -> Result<Page<LoadedTicket>> {
    let filter = TicketFilter { status, ..TicketFilter::default() };
    readers
        .read(company, move |db| {
            let filter = filter.clone();
            async move { find(db, "tickets t", company, &filter, page).await }.boxed()
        })
        .await
}

/// Tickets with their contacts, those that an index of contacts finds.
const BY_CONTACTS: &str = "tickets t join contacts c on c.company_id = t.company_id and c.id = t.contact_id";

/// The first tickets of a list that a search looks through one by one. A word that many contacts have is in enough of them
/// to fill a page, and the others need not be found; what few have is found by the contacts' index, which takes the longer
/// the more there are.
const LOOKED_THROUGH: i64 = 10_000;

/// A page of a company's tickets. The page's tickets are found first, then what is shown beside them.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &TicketFilter,
    page: PageRequest,
) -> sqlx::Result<Page<LoadedTicket>> {
    let db = if is_heavy(filter, page) { db.heavy() } else { db };
    if filter.search.is_none() {
        return find(db, "tickets t", company, filter, page).await;
    }
    // Those of one contact are few, and found by their own index.
    if filter.contact_id.is_none() && page.offset() + page.size < LOOKED_THROUGH {
        // The company is the first value that is bound. `offset 0` keeps PostgreSQL from finding the contacts first.
        let direction = if page.descending { " desc" } else { "" };
        let first = format!(
            "(select * from tickets where company_id = $1 order by id{direction} limit {LOOKED_THROUGH}) t
             cross join lateral (select name, number, search from contacts
                 where company_id = t.company_id and id = t.contact_id offset 0) c"
        );
        let found = find(db, &first, company, filter, page).await?;
        if found.has_more {
            return Ok(found);
        }
    }
    find(db, BY_CONTACTS, company, filter, page).await
}

/// A page of the tickets that `from` names `t`, and where something is searched for their contacts `c`.
async fn find(
    db: impl PgExecutor<'_>,
    from: &str,
    company: CompanyId,
    filter: &TicketFilter,
    page: PageRequest,
) -> sqlx::Result<Page<LoadedTicket>> {
    let wanted = Wanted {
        spans: &[
            (Time::Created, filter.created),
            (Time::Opened, filter.opened),
            (Time::Closed, filter.closed),
            (Time::Updated, filter.updated),
        ],
        words: &[filter.unassigned.map(|nobodys| if nobodys { UNASSIGNED } else { ASSIGNED })],
        channel: filter.channel_id,
        queue: filter.queue_id,
    };
    // What an index finds fewer by.
    let is_found = filter.contact_id.is_some()
        || filter.user_id.is_some()
        || filter.wrapup_type_id.is_some()
        || filter.search.is_some()
        || filter.status == Some(TicketStatus::Open);
    let list = if wanted.is_any() && !is_found {
        zones::list("with page as (", Zoned::Ticket, company, &wanted, page)
    } else {
        Select::new(&format!("with page as (select t.* from {from}"), "t.company_id", company)
    };
    list.equals("t.status", filter.status)
        .equals("t.queue_id", filter.queue_id)
        .equals("t.user_id", filter.user_id)
        .equals("t.contact_id", filter.contact_id)
        .equals("t.channel_id", filter.channel_id)
        .equals("t.wrapup_type_id", filter.wrapup_type_id)
        .only(filter.unassigned.map(|nobodys| if nobodys { "t.user_id is null" } else { "t.user_id is not null" }))
        // Only what the contact is called and reached by, of those an index finds by all they are found by.
        .contains("c.search", filter.search.as_deref())
        .contains("hotline_fold(c.name || E'\\n' || coalesce(c.number, ''))", filter.search.as_deref())
        .between("t.opened_at", filter.opened)
        .between("t.closed_at", filter.closed)
        .between("t.created_at", filter.created)
        .between("t.updated_at", filter.updated)
        .page_then(db, "t.id", page, &format!(") {COLUMNS} from page t {BESIDE}"))
        .await
}
