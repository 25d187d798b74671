//! Which boards a caller sees. Administrators see every board, other users those of their queues. A user who sees the
//! cards of others also sees the boards without a queue, here called unassigned.

use actix_web::web::Data;
use hotline_persistence::tables::boards::{self, Board, VISIBLE_BY_QUEUE, VISIBLE_BY_QUEUE_OR_UNASSIGNED};
use hotline_persistence::{BoardId, table};

use crate::api::plain::PlainFilter;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Page, Query};

/// `GET /crm/boards`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<PlainFilter<Board>>) -> ApiResult<Page<Board>> {
    let mut filter = query.filter.filter;
    if let Some(user) = caller.boards_limited_to() {
        let with_unassigned = caller.cards_limited_to().is_none();
        let condition = if with_unassigned { VISIBLE_BY_QUEUE_OR_UNASSIGNED } else { VISIBLE_BY_QUEUE };
        filter.has_related_existing(condition, user.0);
    }
    let rows = table::list(app.db(caller.company), caller.company, &filter, query.page).await?;
    Ok(Page::of(query.page, rows, |row| row))
}

/// Checks that the board is visible to the caller.
///
/// # Errors
/// `404 ERR_API_NOT_FOUND` if the board is not visible.
pub async fn check_board(caller: &Caller, app: &App, id: BoardId) -> ApiResult<()> {
    let Some(user) = caller.boards_limited_to() else { return Ok(()) };
    let with_unassigned = caller.cards_limited_to().is_none();
    let is_visible = boards::is_visible(app.db(caller.company), caller.company, id, user, with_unassigned).await?;
    if is_visible { Ok(()) } else { Err(ApiError::not_found()) }
}

/// The boards whose figures the caller may see: only `board` if it is given, otherwise all boards visible to the
/// caller, where `None` means every board. Figures cover all cards, so a user who sees only their own cards is refused.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE` if the caller does not see the cards of others; `404 ERR_API_NOT_FOUND` if `board` is
/// not visible to them.
pub async fn visible_boards(caller: &Caller, app: &App, board: Option<BoardId>) -> ApiResult<Option<Vec<BoardId>>> {
    if caller.cards_limited_to().is_some() {
        return Err(ApiError::hidden_cards());
    }
    if let Some(board) = board {
        check_board(caller, app, board).await?;
        return Ok(Some(vec![board]));
    }
    let Some(user) = caller.boards_limited_to() else { return Ok(None) };
    Ok(Some(boards::visible_to(app.db(caller.company), caller.company, user).await?))
}
