//! Cards: opportunities that move through the stages of a board. Plain: changed by transactions, not by actors.

pub(crate) mod events;
mod indicators;
mod links;
mod loading;
mod positions;
mod products;
mod state;

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, FromRow, PgExecutor};
use utoipa::ToSchema;

pub use indicators::{BoardGoals, Indicators, Sum, goals, indicators};
pub use links::{CONTACTS, lock_ticket, set_custom_values};
pub use positions::{CardPosition, LockedStage, Target, board_and_list_exist, is_in_place, lock_stage, place};
pub use products::{
    CardProduct, CardProductId, CatalogueProduct, Line, add_line, change_line, count_lines, find_line,
    lock_catalogue_products, remove_line, set_lines,
};
pub use state::{CardOutcome, LockedCard, conclude, lock, move_card, reopen};

use super::businesses::BusinessId;
use super::card_origins::CardOriginId;
use super::card_statuses::CardStatusId;
use super::contacts::{ContactRow, CustomFieldValue};
use super::text_enum;
use crate::document;
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::table::{Named, Span, Table};
use crate::{Amount, CompanyId, ContactId, Database, PgConnection, Result, TicketId, UserId};
pub use crate::{BoardId, BoardListId, CardId, ProductId};

text_enum! {
    /// Who created a card: the API, a user in the panel, a chatbot, or an automation.
    CardSource { Api = "api", User = "user", Bot = "bot", Automation = "automation" }
}

/// A reference to a card's status, by id, name and colour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CardStatusRef)]
pub struct NamedStatus {
    pub id: CardStatusId,
    #[schema(example = "Waiting for an offer")]
    pub name: String,
    #[schema(example = "#64748b")]
    pub color: Option<String>,
}

/// One card with its related data, except its contacts.
#[derive(Clone, Debug, FromRow)]
pub struct Card {
    pub id: CardId,
    pub name: String,
    pub description: Option<String>,
    pub won: bool,
    pub won_at: Option<DateTime<Utc>>,
    pub lost: bool,
    pub lost_at: Option<DateTime<Utc>>,
    pub status_reason: Option<String>,
    pub board_id: BoardId,
    pub list: Option<Json<Named<BoardListId>>>,
    pub status: Option<Json<NamedStatus>>,
    pub business: Option<Json<Named<BusinessId>>>,
    pub origin: Option<Json<Named<CardOriginId>>>,
    pub assigned_to: Option<Json<Named<UserId>>>,
    pub contact_ids: Vec<ContactId>,
    pub products: Json<Vec<CardProduct>>,
    pub products_total: Amount,
    pub custom_fields: Json<Vec<CustomFieldValue>>,
    pub creation_source: CardSource,
    pub due: Option<DateTime<Utc>>,
    pub ticket_id: Option<TicketId>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A card with its contacts.
#[derive(Clone, Debug)]
pub struct LoadedCard {
    pub card: Card,
    /// Cards that were loaded together share their contacts.
    pub contacts: Vec<Arc<ContactRow>>,
}

/// Maximum bytes of the contacts of a page of cards, or of a board, as JSON and counted for each card, unless a single
/// card has more: three times what ten thousand contacts without long texts have.
const CONTACT_BYTES_MAX: usize = 32 << 20;

/// Selects the columns of [`Card`], including related data, without a statement per row and in one snapshot.
const SELECT: &str = include_str!("select.sql");

/// A card's id and board, without its other data.
#[derive(Clone, Debug, FromRow)]
pub struct CardRef {
    pub id: CardId,
    pub board_id: BoardId,
}

impl Table for CardRef {
    const NAME: &'static str = "cards";
    const NOUN: &'static str = "card";
    const COLUMNS: &'static str = "id, board_id";
    type Id = CardId;
}

/// The board and the assigned user of a card, which determine who may see it; `None` if there is no such card.
pub async fn find_board_and_assignee(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    id: CardId,
) -> Result<Option<(BoardId, Option<UserId>)>> {
    let select = sqlx::query_as("select board_id, assigned_user_id from cards where company_id = $1 and id = $2");
    with_timeout(select.bind(company).bind(id).fetch_optional(db)).await
}

/// The conditions of the API's lists of cards.
#[derive(Clone, Debug, Default)]
pub struct CardFilter {
    pub board_id: Option<BoardId>,
    pub list_id: Option<BoardListId>,
    pub assigned_user_id: Option<UserId>,
    pub contact_id: Option<ContactId>,
    pub status_id: Option<CardStatusId>,
    pub business_id: Option<BusinessId>,
    pub origin_id: Option<CardOriginId>,
    pub ticket_id: Option<TicketId>,
    pub won: Option<bool>,
    pub lost: Option<bool>,
    pub search: Option<String>,
    pub due: Span,
    pub created: Span,
    pub updated: Span,
    /// Only cards that are assigned to this user or on a board that they see; `None`: all.
    pub visible_to: Option<UserId>,
}

impl CardFilter {
    /// Whether the company has the board, stage, status, business and origin that the filter refers to.
    pub async fn references_exist(&self, db: impl Database<'_>, company: CompanyId) -> Result<bool> {
        let Self { board_id, list_id, status_id, business_id, origin_id, .. } = self;
        if (board_id, list_id, status_id, business_id, origin_id) == (&None, &None, &None, &None, &None) {
            return Ok(true);
        }
        let query = sqlx::query_scalar(
            "select ($2::bigint is null or exists (select from boards where company_id = $1 and id = $2))
                 and ($3::bigint is null or exists (select from board_lists where company_id = $1 and id = $3))
                 and ($4::bigint is null or exists (select from card_statuses where company_id = $1 and id = $4))
                 and ($5::bigint is null or exists (select from businesses where company_id = $1 and id = $5))
                 and ($6::bigint is null or exists (select from card_origins where company_id = $1 and id = $6))",
        );
        let query = query.bind(company).bind(board_id).bind(list_id).bind(status_id).bind(business_id).bind(origin_id);
        with_timeout(query.fetch_one(db)).await
    }
}

/// What follows `exists (select from (select <the user's id>` in the condition that a card is assigned to the user, or
/// is on a board that they see ([`super::boards::VISIBLE_BY_QUEUE_OR_UNASSIGNED`]).
const VISIBLE_TO: &str = "::bigint as id) u where k.assigned_user_id = u.id
    or not exists (select from board_queues q where q.company_id = k.company_id and q.board_id = k.board_id)
    or exists (select from board_queues q join queue_users m on m.company_id = q.company_id and m.queue_id = q.queue_id
        where q.company_id = k.company_id and q.board_id = k.board_id and m.user_id = u.id))";

/// A page of a company's cards: ordered by position if the filter has a stage and the page no cursor, otherwise by id.
/// It takes two statements, however many cards there are, and one more for each further hundred contacts.
///
/// A page by cursor ends before the cards whose contacts exceed `CONTACT_BYTES_MAX`; a page by number cannot be
/// shortened, and is `None` then.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &CardFilter,
    page: PageRequest,
) -> Result<Option<Page<LoadedCard>>> {
    let is_by_position = filter.list_id.is_some() && !page.is_by_cursor();
    let key = if is_by_position { "k.position" } else { "k.id" };
    // `$1` is the company: the list's first bound value.
    let select = format!(") {SELECT} join page on page.id = k.id where k.company_id = $1");
    let has_conditions_beyond_stage = [
        filter.assigned_user_id.is_some(),
        filter.status_id.is_some(),
        filter.business_id.is_some(),
        filter.origin_id.is_some(),
        filter.won.is_some(),
        filter.lost.is_some(),
    ]
    .contains(&true);
    let list = Select::new("with page as (select k.id from cards k", "k.company_id", company);
    let list = add_conditions(list, filter)
        .mark_heavy_if(has_conditions_beyond_stage)
        // A stage's index is by position, but a cursor needs the cards by id.
        .mark_heavy_if(filter.list_id.is_some() && page.is_by_cursor());
    let db = list.weigh(db, page);
    let mut cards: Page<Card> = with_timeout(list.page_of_subquery(db, key, page, &select)).await?;
    let rows = std::mem::take(&mut cards.rows);
    let (loaded, rest) = loading::load(db, company, rows, CONTACT_BYTES_MAX).await?;
    if rest.is_empty() {
        return Ok(Some(cards.with_rows(loaded)));
    }
    Ok(page.is_by_cursor().then(|| cards.with_first_rows(loaded)))
}

/// Adds all conditions of the filter.
fn add_conditions(list: Select, filter: &CardFilter) -> Select {
    list.equals("k.board_id", filter.board_id)
        .equals("k.list_id", filter.list_id)
        .equals("k.assigned_user_id", filter.assigned_user_id)
        .equals("k.status_id", filter.status_id)
        .equals("k.business_id", filter.business_id)
        .equals("k.origin_id", filter.origin_id)
        .equals("k.ticket_id", filter.ticket_id)
        .equals("k.won", filter.won)
        .equals("k.lost", filter.lost)
        .contains("k.search", filter.search.as_deref())
        .has_related(
            "select from card_contacts x where x.company_id = k.company_id and x.card_id = k.id and x.contact_id",
            filter.contact_id,
        )
        .between("k.due", filter.due)
        .between("k.created_at", filter.created)
        .between("k.updated_at", filter.updated)
        .only_by("exists (select from (select", filter.visible_to, VISIBLE_TO)
}

/// One card, or `None`.
pub async fn find(db: impl Database<'_>, company: CompanyId, id: CardId) -> Result<Option<LoadedCard>> {
    let card = find_cards(db, company, &[id]).await?;
    Ok(loading::load(db, company, card, CONTACT_BYTES_MAX).await?.0.pop())
}

/// As [`find`], in an open transaction.
pub async fn find_in(db: &mut PgConnection, company: CompanyId, id: CardId) -> Result<Option<LoadedCard>> {
    let card = find_cards(&mut *db, company, &[id]).await?;
    Ok(loading::load_in(db, company, card, CONTACT_BYTES_MAX).await?.0.pop())
}

/// The cards with these ids, in the order of their ids.
async fn find_cards(db: impl PgExecutor<'_>, company: CompanyId, ids: &[CardId]) -> Result<Vec<Card>> {
    let sql = AssertSqlSafe(format!("{SELECT} where k.company_id = $1 and k.id = any ($2) order by k.id"));
    Ok(document::read_all(&with_timeout(sqlx::query(sql).bind(company).bind(ids).fetch_all(db)).await?))
}

/// The limits of [`first_of_stages`], so that the largest board takes no more memory than a few pages of cards.
#[derive(Clone, Copy, Debug)]
pub struct FirstCardsLimits {
    /// Maximum cards per stage.
    pub per_stage: i64,
    /// Maximum cards of all stages, divided equally among them.
    pub per_board: i64,
    /// Maximum contacts of all these cards, also divided among the stages; a stage's first card is always returned,
    /// unless the contacts of the cards above exceed `CONTACT_BYTES_MAX`.
    pub contacts: usize,
    /// Only cards assigned to this user.
    pub assigned_to: Option<UserId>,
}

/// The first cards of every stage of a board by position, in two statements, however many stages there are, and one
/// more for each further hundred contacts.
pub async fn first_of_stages(
    db: impl Database<'_>,
    company: CompanyId,
    board: BoardId,
    stage_count: usize,
    limits: FirstCardsLimits,
) -> Result<HashMap<BoardListId, Vec<LoadedCard>>> {
    let stage_count = stage_count.max(1);
    let cards_per_stage =
        limits.per_stage.min(limits.per_board / i64::try_from(stage_count).unwrap_or(i64::MAX)).max(1);
    let condition = if limits.assigned_to.is_some() { "and f.assigned_user_id = $4" } else { "" };
    let sql = AssertSqlSafe(format!(
        "with page as (
             select first.id, first.position from board_lists s cross join lateral (
                 select f.id, f.position from cards f where f.company_id = $1 and f.list_id = s.id {condition}
                 order by f.position limit $3) first
             where s.company_id = $1 and s.board_id = $2)
         {SELECT} join page on page.id = k.id where k.company_id = $1 order by page.position"
    ));
    let find = sqlx::query(sql).bind(company).bind(board).bind(cards_per_stage);
    let find = if limits.assigned_to.is_some() { find.bind(limits.assigned_to) } else { find };
    let found = with_timeout(find.fetch_all(db)).await?;
    let cards = topmost_first(document::read_all(&found), limits.contacts / stage_count);
    let mut stages: HashMap<BoardListId, Vec<LoadedCard>> = HashMap::new();
    for loaded in loading::load(db, company, cards, CONTACT_BYTES_MAX).await?.0 {
        if let Some(list) = &loaded.card.list {
            stages.entry(list.id).or_default().push(loaded);
        }
    }
    Ok(stages)
}

/// Drops cards from the end of each stage, once they have more contacts than `contacts_per_stage`. Of the others, the
/// first cards of all stages come first, then the second ones: of cards with very long contacts, only those at the top
/// of all stages are loaded.
fn topmost_first(cards: Vec<Card>, contacts_per_stage: usize) -> Vec<Card> {
    let mut counts: HashMap<BoardListId, (usize, usize)> = HashMap::new();
    let mut ranked_cards: Vec<(usize, Card)> = Vec::with_capacity(cards.len());
    for card in cards {
        let Some(stage) = card.list.as_ref().map(|list| list.id) else { continue };
        let (card_count, contact_count) = counts.entry(stage).or_default();
        *card_count += 1;
        *contact_count += card.contact_ids.len().max(1);
        if *card_count == 1 || *contact_count <= contacts_per_stage {
            ranked_cards.push((*card_count, card));
        }
    }
    ranked_cards.sort_by_key(|(rank, _)| *rank);
    ranked_cards.into_iter().map(|(_, card)| card).collect()
}

/// Deletes a card.
///
/// # Errors
/// [`crate::Error::NotFound`] when the card does not exist.
pub async fn remove(db: impl PgExecutor<'_>, company: CompanyId, id: CardId) -> Result<()> {
    crate::table::remove::<CardRef>(db, company, id).await
}
