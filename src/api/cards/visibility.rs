//! Which cards are visible to a person: those assigned to them and, if their profile sees all cards, those of visible
//! boards.

use hotline_persistence::BoardId;
use hotline_persistence::tables::cards::{self, CardId};

use crate::api::boards::check_board;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller};

/// Checks that the board or the card that a path of `/crm` names is visible to the caller. This runs before the handler
/// of every such path.
///
/// # Errors
/// `404 ERR_API_NOT_FOUND` if it is not visible.
pub async fn check_path(caller: &Caller, app: &App, path: &str) -> ApiResult<()> {
    if caller.sees_every_card() {
        return Ok(());
    }
    let mut parts = path.split('/').skip_while(|part| *part != "crm").skip(1);
    match (parts.next(), parts.next().and_then(|id| id.parse::<i64>().ok())) {
        (Some("boards"), Some(id)) => check_board(caller, app, BoardId::new(id)).await,
        (Some("cards"), Some(id)) => check_card(caller, app, CardId::new(id)).await,
        _ => Ok(()),
    }
}

async fn check_card(caller: &Caller, app: &App, id: CardId) -> ApiResult<()> {
    let card = cards::find_board_and_assignee(app.db(caller.company), caller.company, id).await?;
    let (board, assignee) = card.ok_or_else(ApiError::not_found)?;
    let only_assignee = caller.cards_limited_to();
    let caller_user = only_assignee.or_else(|| caller.boards_limited_to());
    if assignee.is_some() && assignee == caller_user {
        return Ok(());
    }
    if only_assignee.is_some() { Err(ApiError::not_found()) } else { check_board(caller, app, board).await }
}
