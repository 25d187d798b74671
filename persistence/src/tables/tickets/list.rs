//! The list of a company's tickets.

use super::{JOINS, LoadedTicket, SELECT, TicketStatus};
use crate::select::{Page, PageRequest, Select};
use crate::table::Span;
use crate::tables::zones::{self, ASSIGNED, TimeColumn, UNASSIGNED, ZoneFilter, ZonedTable};
use crate::{ChannelId, CompanyId, ContactId, Database, QueueId, Readers, Result, UserId, WrapupTypeId};
use futures_util::FutureExt;

/// The conditions of the API's list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TicketFilter {
    pub status: Option<TicketStatus>,
    pub queue_id: Option<QueueId>,
    pub user_id: Option<UserId>,
    pub contact_id: Option<ContactId>,
    pub channel_id: Option<ChannelId>,
    pub wrapup_type_id: Option<WrapupTypeId>,
    /// Whether no user is assigned.
    pub unassigned: Option<bool>,
    pub search: Option<String>,
    pub opened: Span,
    pub closed: Span,
    pub created: Span,
    pub updated: Span,
}

/// Maximum offset of pages served through [`crate::Readers`]: deep pages take long, and would delay the frequent
/// requests for first pages.
const STEADY_OFFSET_MAX: i64 = 1_000;

/// Whether [`list`] may read many tickets to return a few, because no index matches the filter or the page is deep.
fn is_heavy(filter: &TicketFilter, page: PageRequest) -> bool {
    let indexed = TicketFilter { status: filter.status, contact_id: filter.contact_id, ..TicketFilter::default() };
    *filter != indexed || page.is_deep()
}

/// Whether one query plan suits every value of the filter: an index returns the tickets in list order, and only those
/// of the page are read, whatever the status.
pub fn is_steady(filter: &TicketFilter, page: PageRequest) -> bool {
    let by_status = TicketFilter { status: filter.status, ..TicketFilter::default() };
    *filter == by_status && page.offset() <= STEADY_OFFSET_MAX
}

/// A page of a company's tickets with this status, or with any, by a statement that is planned once ([`is_steady`]).
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
            let closing = format!(") {SELECT} from page t {JOINS}");
            async move {
                let list = select_without_search("with page as (", company, &filter, page);
                list.page_of_subquery(db, "t.id", page, &closing).await
            }
            .boxed()
        })
        .await
}

/// Rows that a search scans in list order before it uses the contacts' index. If many contacts match the word, so do
/// enough of these rows to fill a page, and the index is not needed. A rare word is found by the index, which takes
/// longer the more contacts match. Scanning a thousand rows takes a millisecond and a half.
const SCAN_ROWS: i64 = 12_000;

/// Maximum number of rows that are scanned for a deep page, whose offset skips many matches.
const DEEP_SCAN_ROWS_MAX: i64 = 200_000;

/// Rows that are scanned in the time in which the index finds the tickets of one contact. If the first scan has not
/// filled the page, a second one may take as long as the index would for all matching contacts.
const ROWS_PER_CONTACT: i64 = 4;

/// Matching contacts are counted up to this number.
const CONTACTS_COUNTED_MAX: i64 = 25_000;

/// Rows sampled to estimate how many to scan for a deep page.
const SAMPLE_ROWS: i64 = 2_000;

/// Joins the searched fields of a ticket's contact. `offset 0` keeps PostgreSQL from starting with the contacts.
const EACH_CONTACT: &str = ") t cross join lateral (select name, number, search from contacts
    where company_id = t.company_id and id = t.contact_id offset 0) c";

/// A page of a company's tickets. The page's tickets are found first, then the data shown with them.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &TicketFilter,
    page: PageRequest,
) -> sqlx::Result<Page<LoadedTicket>> {
    let db = if is_heavy(filter, page) { db.heavy() } else { db };
    let closing = &format!(") {SELECT} from page t {JOINS}");
    if filter.search.is_none() {
        let list = select_without_search("with page as (", company, filter, page);
        return list.page_of_subquery(db, "t.id", page, closing).await;
    }
    // A single contact needs no scan: an index finds its few tickets.
    if filter.contact_id.is_none() {
        let rows = rows_to_scan(db, company, filter, page).await?;
        if let Some(found) = scan(db, company, filter, page, rows).await? {
            return Ok(found);
        }
        let more_rows = count_contacts(db, company, filter).await? * ROWS_PER_CONTACT;
        if more_rows > rows
            && let Some(found) = scan(db, company, filter, page, more_rows).await?
        {
            return Ok(found);
        }
    }
    let from = "with page as (select t.* from tickets t
        join contacts c on c.company_id = t.company_id and c.id = t.contact_id";
    let list = add_conditions(Select::new(from, "t.company_id", company), filter);
    // The contacts are found by an index on all of their searched fields.
    add_search(list, filter).page_of_subquery(db, "t.id", page, closing).await
}

/// The page of a search, if the first `rows` tickets of the list fill it or are all there are.
async fn scan(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &TicketFilter,
    page: PageRequest,
    rows: i64,
) -> sqlx::Result<Option<Page<LoadedTicket>>> {
    let closing = &format!(") {SELECT} from page t {JOINS}");
    let list = select_without_search("with page as (select t.* from (", company, filter, page).limit_to_first(
        rows,
        "t.id",
        page,
        EACH_CONTACT,
    );
    let found = add_search(list, filter).page_of_subquery(db, "t.id", page, closing).await?;
    let is_complete = found.has_more || reaches_end(db, company, filter, page, rows).await?;
    Ok(is_complete.then_some(found))
}

/// Number of contacts that match a search, up to [`CONTACTS_COUNTED_MAX`].
async fn count_contacts(db: impl Database<'_>, company: CompanyId, filter: &TicketFilter) -> sqlx::Result<i64> {
    Select::new("select count(*) from (select from contacts c", "c.company_id", company)
        .contains("c.search", filter.search.as_deref())
        .at_most_rows(CONTACTS_COUNTED_MAX, ") c")
        .count(db)
        .await
}

/// Number of tickets to scan in list order for a page of a search.
async fn rows_to_scan(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &TicketFilter,
    page: PageRequest,
) -> sqlx::Result<i64> {
    if !page.is_deep() {
        return Ok(SCAN_ROWS);
    }
    let sample = select_without_search("select count(*) from (", company, filter, page).limit_to_first(
        SAMPLE_ROWS,
        "t.id",
        page,
        EACH_CONTACT,
    );
    let matches = add_search(sample, filter).count(db).await?;
    // Twice the number of rows that the page needs if the following rows match as often as the sample.
    let rows = page.offset().saturating_add(page.size).saturating_mul(2 * SAMPLE_ROWS) / matches.max(1);
    Ok(if rows > DEEP_SCAN_ROWS_MAX { SAMPLE_ROWS } else { rows.max(SAMPLE_ROWS) })
}

/// Whether a scan of `scanned` tickets has reached the end of the list, ignoring the search.
async fn reaches_end(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &TicketFilter,
    page: PageRequest,
    scanned: i64,
) -> sqlx::Result<bool> {
    let list = select_without_search("select count(*) from (", company, filter, page)
        .limit_to_first(scanned, "t.id", page, ") t");
    Ok(list.count(db).await? < scanned)
}

/// Starts a list of tickets with all conditions except for the search; `before` is prepended to its `select`.
fn select_without_search(before: &str, company: CompanyId, filter: &TicketFilter, page: PageRequest) -> Select {
    let zone_filter = ZoneFilter {
        spans: &[
            (TimeColumn::Created, filter.created),
            (TimeColumn::Opened, filter.opened),
            (TimeColumn::Closed, filter.closed),
            (TimeColumn::Updated, filter.updated),
        ],
        words: &[filter.unassigned.map(|is_unassigned| if is_unassigned { UNASSIGNED } else { ASSIGNED })],
        channel: filter.channel_id,
        queue: filter.queue_id,
    };
    // An index returns these tickets in list order, and there are few of them, so no zones are needed.
    let has_index = filter.contact_id.is_some() || filter.status == Some(TicketStatus::Open);
    // A search scans the rows in list order. Only with zones does PostgreSQL read them in this order, whatever it
    // estimates for a company.
    let list = if !has_index && (zone_filter.has_condition() || filter.search.is_some()) {
        let indexed_columns =
            [("user_id", filter.user_id.map(|id| id.0)), ("wrapup_type_id", filter.wrapup_type_id.map(|id| id.0))];
        zones::list(before, ZonedTable::Ticket, company, &zone_filter, &indexed_columns, page)
    } else {
        Select::new(&format!("{before}select t.* from tickets t"), "t.company_id", company)
    };
    add_conditions(list, filter)
}

/// Adds all conditions except for the search.
pub(super) fn add_conditions(list: Select, filter: &TicketFilter) -> Select {
    list.equals("t.status", filter.status)
        .equals("t.queue_id", filter.queue_id)
        .equals("t.user_id", filter.user_id)
        .equals("t.contact_id", filter.contact_id)
        .equals("t.channel_id", filter.channel_id)
        .equals("t.wrapup_type_id", filter.wrapup_type_id)
        .only(
            filter
                .unassigned
                .map(|is_unassigned| if is_unassigned { "t.user_id is null" } else { "t.user_id is not null" }),
        )
        .between("t.opened_at", filter.opened)
        .between("t.closed_at", filter.closed)
        .between("t.created_at", filter.created)
        .between("t.updated_at", filter.updated)
}

/// Adds the search in contacts `c`: it matches only names and numbers, among the contacts whose indexed text contains
/// the words.
pub(super) fn add_search(list: Select, filter: &TicketFilter) -> Select {
    // The first two lines of the indexed text are the folded name and number. Most matches are in these, and need no
    // folding, which takes longer than finding them. Only a name of several lines has to be folded.
    let folded = [
        "split_part(c.search, E'\\n', 1)",
        "split_part(c.search, E'\\n', 2)",
        "hotline_fold(c.name || E'\\n' || coalesce(c.number, ''))",
    ];
    list.contains("c.search", filter.search.as_deref()).any_contains(&folded, filter.search.as_deref())
}
