//! Lists of contacts.

use super::last_channel::LastChannelFilter;
use super::{ContactFilter, ContactRow, SELECT};
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::tables::contact_lists::ContactListId;
use crate::{ChannelId, CompanyId, Database, Result};

/// A page of a company's contacts.
///
/// The page's ids are found first, so related data is read only for the page, however many rows precede it.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &ContactFilter,
    page: PageRequest,
) -> Result<Page<ContactRow>> {
    let filter = &filter.clone().resolve_number(db, company).await?;
    let channel_filter = LastChannelFilter::of(db, company, filter).await?;
    if let Some((scan, limit)) = fastest_scan(db, company, filter, channel_filter, page).await? {
        let list = scan_first(company, filter, channel_filter, page, scan, ScanResult::Page, limit);
        let found = with_timeout(list.page_of_subquery(db.heavy(), "c.id", page, &select_page())).await?;
        if found.has_more {
            return Ok(found);
        }
    }
    let list = add_conditions(Select::new(channel_filter.statement_start(), "c.company_id", company), filter);
    let db = list.weigh(db, page);
    with_timeout(channel_filter.apply(list, page).page_of_subquery(db, "c.id", page, &select_page())).await
}

/// Adds the filter's conditions except for the channel.
fn add_conditions(list: Select, filter: &ContactFilter) -> Select {
    list.contains("c.search", filter.search.as_deref())
        .only_by("c.id = any (", filter.number_owner_ids.clone(), ")")
        .equals_ignoring_case("c.email", filter.email.as_deref())
        .equals("c.code", filter.code.as_deref())
        .equals("c.origin", filter.origin.as_deref())
        .equals("c.is_group", filter.is_group)
        .has_related(
            "select from contact_tags x where x.company_id = c.company_id and x.contact_id = c.id and x.tag_id",
            filter.tag_id,
        )
        .between("c.created_at", filter.created)
        .between("c.updated_at", filter.updated)
        .mark_heavy_if(filter.channel_id.is_some() || filter.origin.is_some() || filter.is_group.is_some())
}

/// Joins the shown data to the page's ids. `$1` is the company: the list's first bound value.
fn select_page() -> String {
    format!(") {SELECT} join page on page.id = c.id where c.company_id = $1")
}

/// Maximum number of contacts that are scanned in list order for a deep page. A thousand take half a millisecond, or
/// one and a half if they are a channel's ([`Scan::time`]). Finding all contacts by an index may take as long as the
/// longest scan.
const SCAN_CONTACTS_MAX: i64 = 200_000;

/// Number of contacts that are sampled to estimate how many a deep page has to scan. A page that is not deep scans at
/// most this many.
const SAMPLE_CONTACTS: i64 = 2_000;

/// Contacts that can be scanned in list order.
#[derive(Clone, Copy)]
enum Scan {
    /// All contacts of the company.
    All,
    /// The contacts of a channel.
    OfChannel(ChannelId),
}

impl Scan {
    /// The time to scan this many contacts, in half microseconds. Each contact of a channel has to be looked up.
    fn time(self, contacts: i64) -> i64 {
        match self {
            Self::All => contacts,
            Self::OfChannel(_) => contacts.saturating_mul(3),
        }
    }
}

/// What a scan returns.
#[derive(Clone, Copy)]
enum ScanResult {
    /// The number of matching contacts.
    Count,
    /// The ids of the page.
    Page,
}

/// The scans that may fill a page sooner than an index. With an index, all contacts with a word or within a span are
/// found and sorted before a page is returned. A scan reads contacts in list order: if many match, the first ones fill
/// the page.
fn possible_scans(
    filter: &ContactFilter,
    channel_filter: LastChannelFilter,
    page: PageRequest,
) -> impl Iterator<Item = Scan> {
    let may_scan_all = filter.search.is_some() && page.is_deep() && !channel_filter.has_few_contacts();
    // An origin with a span has an index of its own.
    let channel =
        channel_filter.channel_with_many_contacts().filter(|_| filter.search.is_some() || filter.origin.is_none());
    let scans = [may_scan_all.then_some(Scan::All), channel.map(Scan::OfChannel)];
    // These conditions match few contacts, or have an index that returns the contacts in list order.
    let has_index = filter.number.is_some()
        || filter.email.is_some()
        || filter.code.is_some()
        || filter.tag_id.is_some()
        || filter.is_group == Some(true);
    scans.into_iter().flatten().filter(move |_| !has_index)
}

/// The scan that is expected to fill a page soonest, and the number of contacts to scan; `None` if every scan is too
/// long.
async fn fastest_scan(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &ContactFilter,
    channel_filter: LastChannelFilter,
    page: PageRequest,
) -> Result<Option<(Scan, i64)>> {
    let mut best: Option<(Scan, i64)> = None;
    for scan in possible_scans(filter, channel_filter, page) {
        let limit = if page.is_deep() {
            let probe = scan_first(company, filter, channel_filter, page, scan, ScanResult::Count, SAMPLE_CONTACTS);
            let found = with_timeout(probe.count(db.heavy())).await?;
            // Twice the expected number, if the following contacts match as often as the sample.
            page.offset().saturating_add(page.size).saturating_mul(2 * SAMPLE_CONTACTS) / found.max(1)
        } else {
            SAMPLE_CONTACTS
        };
        if limit <= SCAN_CONTACTS_MAX
            && best.is_none_or(|(other, other_limit)| scan.time(limit) < other.time(other_limit))
        {
            best = Some((scan, limit));
        }
    }
    Ok(best)
}

/// Starts a list of the matching contacts among the first `limit` of a scan.
fn scan_first(
    company: CompanyId,
    filter: &ContactFilter,
    channel_filter: LastChannelFilter,
    page: PageRequest,
    scan: Scan,
    result: ScanResult,
    limit: i64,
) -> Select {
    match scan {
        Scan::All => {
            let list = scan_blocks(company, page, result).limit_to_first(limit, "c.id", page, ") c");
            channel_filter.apply(add_conditions(list, filter), page)
        }
        Scan::OfChannel(channel) => add_conditions(scan_channel(company, channel, page, result, limit), filter),
    }
}

/// Starts a scan of the first `limit` contacts of a channel in list order.
fn scan_channel(company: CompanyId, channel: ChannelId, page: PageRequest, result: ScanResult, limit: i64) -> Select {
    let select = match result {
        ScanResult::Count => "select count(*) from",
        ScanResult::Page => "with page as (select c.id from",
    };
    let begin = format!("{select} (select l.contact_id from contact_last_channels l");
    // `offset 0` keeps PostgreSQL from starting with the contacts.
    let join_contacts = format!(
        ") l cross join lateral (select {SCAN_COLUMNS} from contacts c
            where c.company_id = $1 and c.id = l.contact_id offset 0) c"
    );
    Select::new(&begin, "l.company_id", company).equals("l.channel_id", Some(channel)).limit_to_first(
        limit,
        "l.contact_id",
        page,
        &join_contacts,
    )
}

/// Starts a scan of a company's contacts in list order, by blocks of ids: whatever PostgreSQL estimates for a company,
/// it reads no more contacts than asked for.
fn scan_blocks(company: CompanyId, page: PageRequest, result: ScanResult) -> Select {
    let (order, is_next_block) = if page.descending {
        (" desc", format!("id < block << {BLOCK_BITS}"))
    } else {
        ("", format!("id >= (block + 1) << {BLOCK_BITS}"))
    };
    let select = match result {
        ScanResult::Count => " select count(*) from",
        ScanResult::Page => ", page as (select c.id from",
    };
    let begin = format!(
        "with recursive blocks (block) as (
            (select id >> {BLOCK_BITS} from contacts where company_id = $1 order by id{order} limit 1)
            union all
            select (select id >> {BLOCK_BITS} from contacts where company_id = $1 and {is_next_block} order by id{order} limit 1)
            from blocks where block is not null
        ){select} (select c.* from (select block from blocks limit {BLOCKS_MAX}) b
            cross join lateral (select {SCAN_COLUMNS} from contacts c"
    );
    let block = format!("c.id >= b.block << {BLOCK_BITS} and c.id < (b.block + 1) << {BLOCK_BITS}");
    Select::new(&begin, "c.company_id", company).only(Some(&block)).order_within_group("c.id", page, ") c")
}

/// Contacts of a block have ids that differ only in this many low bits.
const BLOCK_BITS: i32 = 10;

/// Maximum number of blocks of a scan. All companies share the ids: if a company has only one contact in each block, a
/// contact takes as long as a block.
const BLOCKS_MAX: i64 = 400;

/// The columns that a scan filters by, and no others, because it sorts the contacts of a block.
const SCAN_COLUMNS: &str =
    "c.id, c.company_id, c.search, c.number, c.email, c.origin, c.is_group, c.created_at, c.updated_at";

/// A page of the contacts in a contact list; of the filter only search and time spans apply.
pub async fn list_of(
    db: impl Database<'_>,
    company: CompanyId,
    list: ContactListId,
    filter: &ContactFilter,
    page: PageRequest,
) -> Result<Page<ContactRow>> {
    let select = "with page as (select c.id from contact_list_contacts l
        join contacts c on c.company_id = l.company_id and c.id = l.contact_id";
    let list = Select::new(select, "l.company_id", company)
        .equals("l.contact_list_id", Some(list))
        .contains("c.search", filter.search.as_deref())
        .between("c.created_at", filter.created)
        .between("c.updated_at", filter.updated);
    let db = list.weigh(db, page);
    with_timeout(list.page_of_subquery(db, "c.id", page, &select_page())).await
}
