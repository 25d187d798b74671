//! The list of a company's open tickets sorted by a time: that of the last activity, or of the start of the contact's
//! wait.

use sqlx::postgres::PgRow;
use sqlx::{Postgres, QueryBuilder, Row};

use super::list::{add_conditions, add_search};
use super::{JOINS, LoadedTicket, SELECT, TicketFilter};
use crate::document;
use crate::select::{Page, PageRequest, Position, Select, TimePosition};
use crate::tables::text_enum;
use crate::{CompanyId, Database};

text_enum! {
    /// The order of a list of tickets.
    #[derive(Default)]
    TicketSort {
        /// By id.
        #[default]
        Id = "id",
        /// By the last activity.
        Activity = "activity",
        /// By how long the contact has been waiting; tickets without a waiting contact come last.
        Waiting = "waiting",
    }
}

/// A page of a list of tickets.
#[derive(Clone, Copy, Debug)]
pub struct SortedPage {
    /// The order.
    pub sort: TicketSort,
    /// The page.
    pub page: PageRequest,
    /// The cursor after which the page begins, if the order is by a time and the page by cursor.
    pub after: Option<TimePosition>,
}

/// A part of a list, whose tickets are sorted by one time, or by id.
#[derive(Clone, Copy)]
struct Part {
    /// The `from` clause, with the tickets as `t`.
    from_clause: &'static str,
    condition: Option<&'static str>,
    /// The time by which the tickets are sorted; `None`: they come last, in the order of their ids.
    time: Option<&'static str>,
}

const BY_ID: &[Part] = &[Part { from_clause: "tickets t", condition: None, time: None }];

/// The last activity of an open ticket is its opening or its last message, whichever is later. It is looked up once for
/// each ticket.
const BY_ACTIVITY: &[Part] = &[Part {
    from_clause: "tickets t cross join lateral (
        select greatest(t.opened_at, (select created_at from messages
            where company_id = t.company_id and id = t.last_message_id)) as at offset 0) activity",
    condition: None,
    time: Some("activity.at"),
}];

const BY_WAIT: &[Part] = &[
    Part { from_clause: "tickets t", condition: Some("t.waiting_since is not null"), time: Some("t.waiting_since") },
    Part { from_clause: "tickets t", condition: Some("t.waiting_since is null"), time: None },
];

/// The parts of a list, in its order.
fn parts(SortedPage { sort, after, .. }: SortedPage) -> impl Iterator<Item = Part> {
    let all = match sort {
        TicketSort::Id => BY_ID,
        TicketSort::Activity => BY_ACTIVITY,
        TicketSort::Waiting => BY_WAIT,
    };
    // No ticket with a time comes after a position without one.
    let may_follow_cursor = move |part: &Part| part.time.is_none() || after.is_none_or(|after| after.at.is_some());
    all.iter().copied().filter(may_follow_cursor)
}

/// A page of a company's tickets in the order of `request`. The filter must be for open tickets, which are few enough
/// to be sorted.
pub async fn list_sorted(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &TicketFilter,
    request: SortedPage,
) -> sqlx::Result<Page<LoadedTicket>> {
    let page = request.page;
    let direction = if page.descending { " desc" } else { "" };
    let mut query = QueryBuilder::new("with page as (select * from (");
    let mut separator = "";
    for part in parts(request) {
        query.push(separator);
        separator = " union all ";
        query = part.add_to(query, company, filter, request);
    }
    query.push(") t order by sorted_at").push(direction).push(" nulls last, id").push(direction);
    query.push(" limit ").push_bind(page.size + 1).push(" offset ").push_bind(page.offset());
    query.push(") ").push(SELECT).push(" from page t ").push(JOINS);
    query.push(" order by t.sorted_at").push(direction).push(" nulls last, t.id").push(direction);
    let mut rows = query.build().fetch_all(db.heavy()).await?;
    let has_more = rows.len() as i64 > page.size;
    rows.truncate(usize::try_from(page.size).unwrap_or(usize::MAX));
    if !page.is_by_cursor() {
        return Ok(Page::of(document::read_yielding(rows).await, has_more));
    }
    let position =
        |row: &PgRow| Ok(Position::Time(TimePosition { at: row.try_get("sorted_at")?, id: row.try_get("id")? }));
    let mut positions = rows.iter().map(position).collect::<sqlx::Result<Vec<_>>>()?;
    let end = positions.last().cloned();
    let tickets: Vec<Option<LoadedTicket>> = document::read_each(rows).await;
    // A row that cannot be read is left out, with its position.
    let mut readable = tickets.iter().map(Option::is_some);
    positions.retain(|_| readable.next().unwrap_or_default());
    Ok(Page { rows: tickets.into_iter().flatten().collect(), has_more, positions, end })
}

impl Part {
    /// Adds the first tickets of this part: as many as the page and the pages before it may have.
    fn add_to(
        self,
        mut query: QueryBuilder<Postgres>,
        company: CompanyId,
        filter: &TicketFilter,
        SortedPage { page, after, .. }: SortedPage,
    ) -> QueryBuilder<Postgres> {
        query
            .push("(select t.*, ")
            .push(self.time.unwrap_or("null::timestamptz"))
            .push(" as sorted_at from ")
            .push(self.from_clause);
        if filter.search.is_some() {
            query.push(" join contacts c on c.company_id = t.company_id and c.id = t.contact_id");
        }
        let list = add_conditions(Select::with_query(query, "t.company_id", company), filter).only(self.condition);
        let list = if filter.search.is_some() { add_search(list, filter) } else { list };
        let list = match (self.time, after) {
            (Some(time), Some(TimePosition { at: Some(at), id })) => {
                list.after_time(time, "t.id", (at, id), page.descending)
            }
            (None, Some(TimePosition { at: None, id })) => list.after_id("t.id", id, page.descending),
            _ => list,
        };
        let rows_max = page.offset().saturating_add(page.size + 1);
        let order = match (self.time.is_some(), page.descending) {
            (true, false) => "sorted_at, t.id",
            (true, true) => "sorted_at desc, t.id desc",
            (false, false) => "t.id",
            (false, true) => "t.id desc",
        };
        list.into_subquery(order, rows_max)
    }
}
