//! Lists of contacts.

use super::last_channel::ByChannel;
use super::{ContactFilter, ContactRow, SHOWN};
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::tables::contact_lists::ContactListId;
use crate::{CompanyId, Database, Result};

/// A page of a company's contacts.
///
/// The page's ids are found first, so related data is read only for the page, however many rows precede it.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &ContactFilter,
    page: PageRequest,
) -> Result<Page<ContactRow>> {
    let by_channel = ByChannel::of(db, company, filter).await?;
    if let Some(found) = in_order(db, company, filter, by_channel, page).await? {
        return Ok(found);
    }
    let list = conditions(Select::new(by_channel.begins(), "c.company_id", company), filter);
    let db = list.weigh(db, page);
    with_timeout(by_channel.narrow(list, page).page_then(db, "c.id", page, &shown())).await
}

/// Adds all conditions but the channel.
fn conditions(list: Select, filter: &ContactFilter) -> Select {
    list.contains("c.search", filter.search.as_deref())
        .equals("c.number", filter.number.as_deref())
        .equals("lower(c.email)", filter.email.as_deref().map(str::to_lowercase))
        .equals("c.origin", filter.origin.as_deref())
        .equals("c.is_group", filter.is_group)
        .related(
            "select from contact_tags x where x.company_id = c.company_id and x.contact_id = c.id and x.tag_id",
            filter.tag_id,
        )
        .between("c.created_at", filter.created)
        .between("c.updated_at", filter.updated)
        .heavy_if(filter.channel_id.is_some() || filter.origin.is_some() || filter.is_group.is_some())
}

/// Joins the shown data to the page's ids. The company is the list's first bound value.
fn shown() -> String {
    format!(") {SHOWN} join page on page.id = c.id where c.company_id = $1")
}

/// Maximum number of contacts that a search scans in list order for a deep page: a thousand take half a millisecond.
const LOOKED_THROUGH_MAX: i64 = 200_000;

/// Contacts sampled to estimate how many that will be.
const PROBED: i64 = 2_000;

/// A deep page of a search whose word many contacts have, if it is filled by scanning contacts in list order. The index
/// would find all matching contacts, and sort them, to return a page.
async fn in_order(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &ContactFilter,
    by_channel: ByChannel,
    page: PageRequest,
) -> Result<Option<Page<ContactRow>>> {
    // These have few contacts or an index that returns them in list order.
    let is_found = filter.number.is_some()
        || filter.email.is_some()
        || filter.tag_id.is_some()
        || filter.is_group.is_some()
        || by_channel.has_few();
    if filter.search.is_none() || is_found || !page.is_deep() {
        return Ok(None);
    }
    let first = |before: &str, most| {
        let scanned = scan(before, company, page).first(most, "c.id", page, ") c");
        by_channel.narrow(conditions(scanned, filter), page)
    };
    let found = with_timeout(first(" select count(*) from (", PROBED).count(db.heavy())).await?;
    // Twice the expected number, if the following contacts match as often as the sample.
    let expected = page.offset().saturating_add(page.size).saturating_mul(2 * PROBED) / found.max(1);
    if expected > LOOKED_THROUGH_MAX {
        return Ok(None);
    }
    let list = first(", page as (select c.id from (", expected);
    let found = with_timeout(list.page_then(db.heavy(), "c.id", page, &shown())).await?;
    Ok(found.has_more.then_some(found))
}

/// Starts a scan of a company's contacts in list order, by blocks of ids: whatever PostgreSQL estimates for a company, it
/// reads no more of them than asked for. `before` is the start of the statement that filters them.
fn scan(before: &str, company: CompanyId, page: PageRequest) -> Select {
    let (order, next) = if page.descending {
        (" desc", format!("id < block << {BLOCK_BITS}"))
    } else {
        ("", format!("id >= (block + 1) << {BLOCK_BITS}"))
    };
    let begin = format!(
        "with recursive blocks (block) as (
            (select id >> {BLOCK_BITS} from contacts where company_id = $1 order by id{order} limit 1)
            union all
            select (select id >> {BLOCK_BITS} from contacts where company_id = $1 and {next} order by id{order} limit 1)
            from blocks where block is not null
        ){before}select c.* from (select block from blocks limit {BLOCKS_MAX}) b
            cross join lateral (select {SCANNED} from contacts c"
    );
    let block = format!("c.id >= b.block << {BLOCK_BITS} and c.id < (b.block + 1) << {BLOCK_BITS}");
    Select::new(&begin, "c.company_id", company).only(Some(&block)).within("c.id", page, ") c")
}

/// Contacts of a block have ids that differ only in this many low bits.
const BLOCK_BITS: i32 = 10;

/// Maximum number of blocks of a scan. Ids are of all companies together: where a company has one contact in each block,
/// a contact takes as long as a block does.
const BLOCKS_MAX: i64 = 400;

/// The columns that a scan filters by. No others: the contacts of a block are sorted.
const SCANNED: &str =
    "c.id, c.company_id, c.search, c.number, c.email, c.origin, c.is_group, c.created_at, c.updated_at";

/// A page of the contacts in a contact list; of the filter only search and time spans apply.
///
/// # Errors
/// When the database cannot answer.
pub async fn list_of(
    db: impl Database<'_>,
    company: CompanyId,
    list: ContactListId,
    filter: &ContactFilter,
    page: PageRequest,
) -> Result<Page<ContactRow>> {
    let found = "with page as (select c.id from contact_list_contacts l
        join contacts c on c.company_id = l.company_id and c.id = l.contact_id";
    let listed = Select::new(found, "l.company_id", company)
        .equals("l.contact_list_id", Some(list))
        .contains("c.search", filter.search.as_deref())
        .between("c.created_at", filter.created)
        .between("c.updated_at", filter.updated);
    let db = listed.weigh(db, page);
    with_timeout(listed.page_then(db, "c.id", page, &shown())).await
}
