//! Which stages a card may move to.

use hotline_actors::{Conflict, Refusal};
use hotline_persistence::tables::cards::{self, BoardId, BoardListId, CardId, LockedCard, LockedStage, Target};
use hotline_persistence::{CompanyId, Id};
use sqlx::PgConnection;

use crate::web::{ApiError, ApiResult};

/// Locks the stage that a body names. `404` when the company has no such board or stage, `422` when the stage is of
/// another board.
pub(super) async fn lock_stage(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
    list: BoardListId,
) -> ApiResult<LockedStage> {
    if let Some(stage) = cards::lock_stage(db, company, board, Target::Stage(list)).await? {
        return Ok(stage);
    }
    let (board_exists, stage_exists) = cards::board_and_list_exist(db, company, board, list).await?;
    if !board_exists || !stage_exists {
        return Err(ApiError::not_found());
    }
    Err(Refusal::invalid("crmBoardListId", "must be a stage of the card's board").into())
}

/// Locks the first stage of a board. `404` when the company has no such board, `422` when it has no stages.
pub(super) async fn lock_first_stage(
    db: &mut PgConnection,
    company: CompanyId,
    board: BoardId,
) -> ApiResult<LockedStage> {
    if let Some(stage) = cards::lock_stage(db, company, board, Target::First).await? {
        return Ok(stage);
    }
    let no_list = Id::new(0);
    let (board_exists, _) = cards::board_and_list_exist(db, company, board, no_list).await?;
    if !board_exists {
        return Err(ApiError::not_found());
    }
    Err(Refusal::invalid("boardId", "must be a board with at least one stage").into())
}

/// Checks that a won card stays in the board's `doneList`.
pub(super) fn check_won_card_stays(locked_card: &LockedCard, stage: LockedStage) -> ApiResult<()> {
    if !locked_card.won || stage.done_list || stage.id == locked_card.list_id {
        return Ok(());
    }
    Err(state_conflict(
        "the card is won and cannot leave the stage for won cards; reopen it first",
        "won",
        locked_card.id,
    ))
}

/// The error of a change that the card's state does not allow.
pub(super) fn state_conflict(state: &'static str, reason: &'static str, id: CardId) -> ApiError {
    Refusal::Conflict(Conflict::of(state, reason, "cardId", id)).into()
}
