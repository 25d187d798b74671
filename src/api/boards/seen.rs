//! Which boards a person sees who does not administer the company: those of whose queues one is theirs; who sees the cards of
//! others sees those that no queue has as well.

use actix_web::web::Data;
use hotline_persistence::tables::boards::{self, Board, SEEN_BY, SEEN_OR_FREE};
use hotline_persistence::{BoardId, table};

use crate::api::plain::PlainFilter;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Page, Query};

/// `GET /crm/boards`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<PlainFilter<Board>>) -> ApiResult<Page<Board>> {
    let mut filter = query.filter.filter;
    if let Some(user) = caller.boards_limited_to() {
        filter.only_related(if caller.cards_limited_to().is_some() { SEEN_BY } else { SEEN_OR_FREE }, user.0);
    }
    let rows = table::list(app.db(caller.company), caller.company, &filter, query.page).await?;
    Ok(Page::of(query.page, rows, |row| row))
}

/// Checks that the caller sees the board.
///
/// # Errors
/// `404 ERR_API_NOT_FOUND` when they do not.
pub async fn check_board(caller: &Caller, app: &App, id: BoardId) -> ApiResult<()> {
    let Some(user) = caller.boards_limited_to() else { return Ok(()) };
    let and_free = caller.cards_limited_to().is_none();
    let is_seen = boards::is_seen_by(app.db(caller.company), caller.company, id, user, and_free).await?;
    if is_seen { Ok(()) } else { Err(ApiError::not_found()) }
}

/// The boards whose figures the caller is told, of one that they name or of all; none: every board's. Figures are of all
/// cards, so who sees their own alone is told none.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE` when they do not see the cards of others; `404 ERR_API_NOT_FOUND` when they do not see the
/// board that they name.
pub async fn told(caller: &Caller, app: &App, named: Option<BoardId>) -> ApiResult<Option<Vec<BoardId>>> {
    if caller.cards_limited_to().is_some() {
        return Err(ApiError::hidden_cards());
    }
    if let Some(named) = named {
        check_board(caller, app, named).await?;
        return Ok(Some(vec![named]));
    }
    let Some(user) = caller.boards_limited_to() else { return Ok(None) };
    Ok(Some(boards::seen_or_free(app.db(caller.company), caller.company, user).await?))
}
