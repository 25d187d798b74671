//! Cards: possible sales that move through the stages of a board.

mod card_events;
mod indicators;
mod products;
mod stages;
mod verbs;
mod view;
mod visibility;
mod write;

use actix_web::web::Data;
use hotline_actors::FieldError;
use hotline_persistence::CompanyId;
use hotline_persistence::select::PageRequest;
use hotline_persistence::tables::cards::{self, BoardId, CardFilter, CardId, CardRef, LoadedCard};
use sqlx::PgConnection;

pub use indicators::show as show_indicators;
pub use products::{add as add_product, change as change_product, remove as remove_product};
pub use verbs::{lose, move_to, reopen, win};
pub use view::Card;
pub use visibility::check_path;
pub use write::{create, update};

use crate::api::contacts::check_contact;
use crate::api::merges::{self, Mergeable};
use crate::app::App;
use crate::web::request::if_match::IfMatch;
use crate::web::request::params::Params;
use crate::web::request::values::Search;
use crate::web::response::reply::Tagged;
use crate::web::{ApiError, ApiResult, Caller, Filter, Json, NoContent, Page, PathId, Query};

/// The filters that the card lists of a company and of a board share. `search` matches name and description.
fn read_filter(query: &mut Params, board_id: Option<BoardId>) -> CardFilter {
    CardFilter {
        board_id,
        list_id: query.filter("crmBoardListId"),
        assigned_user_id: query.filter("assignedToUserId"),
        contact_id: query.filter("contactId"),
        status_id: query.filter("statusId"),
        business_id: query.filter("businessId"),
        origin_id: query.filter("originId"),
        ticket_id: query.filter("ticketId"),
        won: query.filter("won"),
        lost: query.filter("lost"),
        search: query.filter::<Search>("search").map(|text| text.0),
        due: query.span("due"),
        created: query.span("created"),
        updated: query.span("updated"),
        visible_to: None,
    }
}

/// Filters of the cards of a company.
pub struct Filters(CardFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        let board = query.filter("boardId");
        Self(read_filter(query, board))
    }
}

/// Filters of the cards of a board.
pub struct BoardFilters(CardFilter);

impl Filter for BoardFilters {
    fn read(query: &mut Params) -> Self {
        Self(read_filter(query, None))
    }
}

/// `GET /crm/cards`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> ApiResult<Page<Card>> {
    list_page(&caller, &app, query.filter.0, query.page).await
}

/// `GET /crm/boards/{boardId}/cards`.
pub async fn list_of_board(
    caller: Caller,
    app: Data<App>,
    id: PathId<BoardId>,
    query: Query<BoardFilters>,
) -> ApiResult<Page<Card>> {
    list_page(&caller, &app, CardFilter { board_id: Some(id.0), ..query.filter.0 }, query.page).await
}

/// Lists cards visible to the caller. `404` if the filter names a record that does not exist or is not visible.
async fn list_page(caller: &Caller, app: &App, mut filter: CardFilter, page: PageRequest) -> ApiResult<Page<Card>> {
    let company = caller.company;
    if let Some(only_assignee) = caller.cards_limited_to() {
        if filter.assigned_user_id.is_some_and(|assignee| assignee != only_assignee) {
            return Err(ApiError::not_found());
        }
        filter.assigned_user_id = Some(only_assignee);
    } else {
        filter.visible_to = caller.boards_limited_to();
    }
    if filter.assigned_user_id.is_some_and(|id| !caller.organization.users.contains_key(&id)) {
        return Err(ApiError::not_found());
    }
    check_contact(caller, app, filter.contact_id).await?;
    if let Some(ticket) = filter.ticket_id {
        let ticket_result = app.engine.tickets.get(company, ticket).await;
        merges::add_successor(caller, app, Mergeable::Ticket(ticket), ticket_result).await?;
    }
    let db = app.engine.reads().acknowledged_tables(company).await?;
    if !filter.references_exist(db, company).await? {
        return Err(ApiError::not_found());
    }
    let cards = cards::list(db, company, &filter, page).await?.ok_or_else(page_too_large)?;
    Ok(Page::of(page, cards, Card::from))
}

/// The contacts of a page by number are too long. It is refused, because the next page skips a fixed number of rows.
fn page_too_large() -> ApiError {
    let reason = "must be smaller, or use cursor: the contacts of these cards have very long texts".to_owned();
    ApiError::validation(&[FieldError { field: "perPage".to_owned(), reason }])
}

/// `GET /crm/cards/{cardId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<CardId>) -> ApiResult<Tagged<Card>> {
    let db = app.engine.reads().acknowledged_tables(caller.company).await?;
    let card = cards::find(db, caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
    Ok(Tagged(Json::of(card)))
}

/// `DELETE /crm/cards/{cardId}`.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<CardId>, if_match: IfMatch) -> ApiResult<NoContent> {
    let company = caller.company;
    let mut transaction = app.db(company).begin().await?;
    let db = transaction.connection()?;
    cards::lock(db, company, id.0).await?.ok_or_else(ApiError::not_found)?;
    if_match.0.lock_and_check::<CardRef>(db, company, id.0).await?;
    let card = find_card(db, company, id.0).await?;
    cards::remove(&mut *db, company, id.0).await?;
    card_events::publish_removed(db, company, card).await?;
    transaction.commit().await?;
    Ok(NoContent)
}

/// Loads a card; `404` if the company has no such card.
async fn find_card(db: &mut PgConnection, company: CompanyId, id: CardId) -> ApiResult<LoadedCard> {
    cards::find_in(db, company, id).await?.ok_or_else(ApiError::not_found)
}
