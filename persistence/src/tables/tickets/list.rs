//! A company's list of tickets.

use super::{BESIDE, COLUMNS, LoadedTicket, TicketStatus};
use crate::select::{Page, PageRequest, Select};
use crate::table::Span;
use crate::tables::zones::{self, ASSIGNED, Time, UNASSIGNED, Wanted, Zoned};
use crate::{ChannelId, CompanyId, ContactId, Database, QueueId, Readers, Result, UserId, WrapupTypeId};
use futures_util::FutureExt;

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
            let then = format!(") {COLUMNS} from page t {BESIDE}");
            async move { narrowed("with page as (", company, &filter, page).page_then(db, "t.id", page, &then).await }
                .boxed()
        })
        .await
}

/// Rows that a search looks through one by one, in the order of the list, before it asks the contacts' index. A word that many
/// contacts have is in enough of them to fill a page, and the others need not be found; what few have is found by that index,
/// which takes the longer the more there are. It takes two milliseconds for a thousand.
const LOOKED_THROUGH: i64 = 10_000;

/// The same for a page far back, which many that are found lie before.
const LOOKED_THROUGH_FAR: i64 = 200_000;

/// Rows that tell how many must be looked through for a page far back.
const PROBED: i64 = 2_000;

/// The contact of a ticket, as far as it is searched. `offset 0` keeps PostgreSQL from finding the contacts first.
const EACH_CONTACT: &str = ") t cross join lateral (select name, number, search from contacts
    where company_id = t.company_id and id = t.contact_id offset 0) c";

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
    let then = &format!(") {COLUMNS} from page t {BESIDE}");
    if filter.search.is_none() {
        return narrowed("with page as (", company, filter, page).page_then(db, "t.id", page, then).await;
    }
    // Those of one contact are few, and found by their own index.
    if filter.contact_id.is_none() {
        let most = looked_through(db, company, filter, page).await?;
        let list =
            narrowed("with page as (select t.* from (", company, filter, page).first(most, "t.id", page, EACH_CONTACT);
        let found = searched(list, filter).page_then(db, "t.id", page, then).await?;
        if found.has_more || are_all(db, company, filter, page, most).await? {
            return Ok(found);
        }
    }
    let all = "with page as (select t.* from tickets t join contacts c on c.company_id = t.company_id and c.id = t.contact_id";
    let list = conditions(Select::new(all, "t.company_id", company), filter);
    // Contacts are found by all they are searched by, of which an index knows.
    searched(list, filter).page_then(db, "t.id", page, then).await
}

/// How many tickets, in the order of the list, are to be looked through one by one for a page of a search.
async fn looked_through(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &TicketFilter,
    page: PageRequest,
) -> sqlx::Result<i64> {
    if !page.is_deep() {
        return Ok(LOOKED_THROUGH);
    }
    let probe = narrowed("select count(*) from (", company, filter, page).first(PROBED, "t.id", page, EACH_CONTACT);
    let found = searched(probe, filter).count(db).await?;
    // Twice what it takes if those that follow are like the first.
    let expected = (page.offset() + page.size).saturating_mul(2 * PROBED) / found.max(1);
    Ok(if expected > LOOKED_THROUGH_FAR { PROBED } else { expected.max(PROBED) })
}

/// Whether there are no more tickets, whatever is searched in them, than were looked through.
async fn are_all(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &TicketFilter,
    page: PageRequest,
    looked_through: i64,
) -> sqlx::Result<bool> {
    let list = narrowed("select count(*) from (", company, filter, page).first(looked_through, "t.id", page, ") t");
    Ok(list.count(db).await? < looked_through)
}

/// Begins a list of tickets by all that is asked for but a search, in the order of the list, behind `before`.
fn narrowed(before: &str, company: CompanyId, filter: &TicketFilter, page: PageRequest) -> Select {
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
    // What an index finds in this order, and so few of that no more is needed.
    let is_found = filter.contact_id.is_some() || filter.status == Some(TicketStatus::Open);
    // What is searched is looked through, and only by zones comes in order whatever PostgreSQL expects of a company.
    let list = if !is_found && (wanted.is_any() || filter.search.is_some()) {
        let held =
            [("user_id", filter.user_id.map(|id| id.0)), ("wrapup_type_id", filter.wrapup_type_id.map(|id| id.0))];
        zones::list(before, Zoned::Ticket, company, &wanted, &held, page)
    } else {
        Select::new(&format!("{before}select t.* from tickets t"), "t.company_id", company)
    };
    conditions(list, filter)
}

/// Adds all that is asked for but a search.
fn conditions(list: Select, filter: &TicketFilter) -> Select {
    list.equals("t.status", filter.status)
        .equals("t.queue_id", filter.queue_id)
        .equals("t.user_id", filter.user_id)
        .equals("t.contact_id", filter.contact_id)
        .equals("t.channel_id", filter.channel_id)
        .equals("t.wrapup_type_id", filter.wrapup_type_id)
        .only(filter.unassigned.map(|nobodys| if nobodys { "t.user_id is null" } else { "t.user_id is not null" }))
        .between("t.opened_at", filter.opened)
        .between("t.closed_at", filter.closed)
        .between("t.created_at", filter.created)
        .between("t.updated_at", filter.updated)
}

/// Adds the search, in contacts `c`: only what a contact is called and reached by, of those that have the words in what an
/// index holds of them.
fn searched(list: Select, filter: &TicketFilter) -> Select {
    list.contains("c.search", filter.search.as_deref())
        .contains("hotline_fold(c.name || E'\\n' || coalesce(c.number, ''))", filter.search.as_deref())
}
