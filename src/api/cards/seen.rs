//! Which cards a person sees: those assigned to them, unless their profile sees all cards.

use hotline_persistence::BoardId;
use hotline_persistence::tables::cards::{self, CardId};

use crate::api::boards::check_board;
use crate::app::App;
use crate::web::{ApiError, ApiResult, Caller};

/// Checks that the caller sees the board and the card that a path of `/crm` names. This runs before the handler of
/// every such path.
///
/// # Errors
/// `404 ERR_API_NOT_FOUND` when they do not.
pub async fn check_path(caller: &Caller, app: &App, path: &str) -> ApiResult<()> {
    let Some(own) = caller.sees_own_of() else { return Ok(()) };
    let mut parts = path.split('/').skip_while(|part| *part != "crm").skip(1);
    match (parts.next(), parts.next().and_then(|id| id.parse::<i64>().ok())) {
        (Some("boards"), Some(id)) => check_board(caller, app, BoardId::new(id)).await,
        (Some("cards"), Some(id)) => {
            let assigned = cards::assigned_to(app.db(caller.company), caller.company, CardId::new(id)).await?;
            if assigned == Some(own) { Ok(()) } else { Err(ApiError::not_found()) }
        }
        _ => Ok(()),
    }
}
