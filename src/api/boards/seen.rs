//! Which boards a person sees: those with a queue they work in, unless their profile sees all cards.

use actix_web::web::Data;
use hotline_persistence::tables::boards::{self, Board, SEEN_BY};
use hotline_persistence::{BoardId, table};

use crate::api::plain::PlainFilter;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller, Page, Query};

/// `GET /crm/boards`.
pub async fn list(caller: Caller, app: Data<App>, query: Query<PlainFilter<Board>>) -> ApiResult<Page<Board>> {
    let mut filter = query.filter.filter;
    if let Some(user) = caller.sees_own_of() {
        filter.only_related(SEEN_BY, user.0);
    }
    let rows = table::list(app.db(caller.company), caller.company, &filter, query.page).await?;
    Ok(Page::of(query.page, rows, |row| row))
}

/// Checks that the caller sees the board.
///
/// # Errors
/// `404 ERR_API_NOT_FOUND` when they do not.
pub async fn check_board(caller: &Caller, app: &App, id: BoardId) -> ApiResult<()> {
    let Some(user) = caller.sees_own_of() else { return Ok(()) };
    let is_seen = boards::is_seen_by(app.db(caller.company), caller.company, id, user).await?;
    if is_seen { Ok(()) } else { Err(ApiError::not_found()) }
}
