//! Which boards are visible to a person who does not administer the company: those of their queues. A person who sees the cards
//! of others also sees boards without a queue.

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
    let with_free = caller.cards_limited_to().is_none();
    let is_visible = boards::is_seen_by(app.db(caller.company), caller.company, id, user, with_free).await?;
    if is_visible { Ok(()) } else { Err(ApiError::not_found()) }
}

/// The boards whose figures the caller may see, of `board` or of all boards; `None`: every board. Figures cover all cards, so
/// a person who sees only their own cards may see none.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE` when they do not see the cards of others; `404 ERR_API_NOT_FOUND` when they do not see
/// `board`.
pub async fn visible_boards(caller: &Caller, app: &App, board: Option<BoardId>) -> ApiResult<Option<Vec<BoardId>>> {
    if caller.cards_limited_to().is_some() {
        return Err(ApiError::hidden_cards());
    }
    if let Some(board) = board {
        check_board(caller, app, board).await?;
        return Ok(Some(vec![board]));
    }
    let Some(user) = caller.boards_limited_to() else { return Ok(None) };
    Ok(Some(boards::seen_or_free(app.db(caller.company), caller.company, user).await?))
}
